"""Draws curves: throughput against interactivity as a step function, as SVG and PNG (§4).

Nothing is interpolated. Regions, standing and accuracy are told apart by shape or text as
well as by colour. A rehearsal's picture says so across its whole width.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

import pandas as pd
from matplotlib import rc_context
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from core.curve import DOMINATED, OFFLINE, TIED, Curve, steps
from core.plan import AGENTIC, band_name
from core.regions import REGION_NAMES

#: Size in inches and resolution: 1,000 pixels wide, below 100 kB, readable on a phone held across.
_SIZE, _DPI = (9.0, 5.8), 110
#: Text stays text in SVG, and the same curve is the same file.
_RC: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "pareto",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
}
#: Okabe and Ito's colours, which people with any colour vision tell apart.
_COLOURS = ("#0072b2", "#009e73", "#e69f00", "#d55e00", "#cc79a7", "#56b4e9", "#000000")
_REGION_COLOURS = dict(zip(REGION_NAMES, _COLOURS, strict=False))
_DASHES = ("-", "--", "-.", ":")
_MARKS = ("o", "s", "^", "D", "v", "P", "X")
#: The mark that takes the pointer, in points: a fingertip, where a marker is a few pixels.
_HIT_SIZE = 20
#: How the names of the groups in SVG begin that stand for points.
_HIT = "hit-"
WATERMARK = "REHEARSAL\nnot a measurement"
_SVG = "http://www.w3.org/2000/svg"
_XLINK = "http://www.w3.org/1999/xlink"


@dataclass(frozen=True)
class Pictures:
    """A curve in both forms."""

    svg: str
    png: bytes


def curve_pictures(curve: Curve, *, title: str, rehearsal: bool) -> Pictures:
    """The curve as a drawing, whose points say their numbers, and as a picture."""
    figure = _curve_figure(curve, title, rehearsal=rehearsal)
    said = {hit_name(0, row["label"]): spoken(row) for row in rows_of(curve)}
    return Pictures(_svg(figure, title, said), _png(figure))


def curve_png(curve: Curve, *, title: str, rehearsal: bool) -> bytes:
    """The curve as a picture."""
    return _png(_curve_figure(curve, title, rehearsal=rehearsal))


def overlay_svg(curves: Sequence[Curve], *, title: str) -> str:
    """Curves over each other; points as in `curve_pictures`."""
    said = {
        hit_name(index, row["label"]): f"{curve.name}, {spoken(row)}"
        for index, curve in enumerate(curves)
        for row in rows_of(curve)
    }
    return _svg(_overlay_figure(curves, title), title, said)


def rows_of(curve: Curve) -> Iterator[dict[str, Any]]:
    """The points as plain mappings, by level."""
    for row in curve.frame.to_dict("records"):
        yield {str(key): value for key, value in row.items()}


def facts_of(row: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Every number of a point with its name, as people read them."""
    per_user = "e2e interactivity" if row["load_pattern"] == AGENTIC else "per user"
    facts = [
        ("level", f"{row['concurrency']:,}"),
        ("region", band_name(row["region"])),
        ("role", row["role"]),
        ("throughput", _amount(row["system_tps"], "tokens/s")),
        (per_user, _amount(row["interactivity"], "tokens/s")),
        ("TTFT P90", _amount(row["ttft_p90_ms"], "ms")),
        ("TPOT P90", _amount(row["tpot_p90_ms"], "ms", decimals=2)),
        ("utilization", _amount(row["tps_utilization"], "of the highest", decimals=3)),
        ("per kW", _amount(row["system_tps_per_kw"], "tokens/s")),
        ("samples", "–" if pd.isna(row["samples"]) else f"{row['samples']:,}"),
        ("issue time", _amount(row["issue_time_s"], "s")),
        ("accuracy", scores_text(row)),
        ("standing", row["standing"]),
        ("measured over", f"{row['basis']}: {row['basis_why']}"),
        ("attempt", str(row["attempt"])),
    ]
    return [(name, text) for name, text in facts if text != "–"]


def scores_text(row: Mapping[str, Any]) -> str:
    """The scores of a point's accuracy run; a dash without one."""
    scores = json.loads(row["scores"] or "{}")
    found = [
        f"{dataset} {metric} {value:.4g}"
        for dataset, metrics in sorted(scores.items())
        for metric, value in sorted(metrics.items())
    ]
    return ", ".join(found) or "–"


def spoken(row: Mapping[str, Any]) -> str:
    """A point in one sentence, for who does not see it."""
    return f"{row['label']}: " + ", ".join(f"{name} {text}" for name, text in facts_of(row))


# --- One curve -------------------------------------------------------------------------------


def _curve_figure(curve: Curve, title: str, *, rehearsal: bool) -> Figure:
    with rc_context(_RC):
        figure, axes = _canvas(title, rehearsal=rehearsal, agentic=curve.agentic)
        _limits(axes, [curve])
        if curve.points.empty:
            axes.text(0.5, 0.5, "no valid point yet", transform=axes.transAxes, ha="center")
        parts = (_regions, _step_line, _ceiling, _points)
        _legend(figure, [handle for part in parts for handle in part(axes, curve)])
        return figure


def _canvas(title: str, *, rehearsal: bool, agentic: bool) -> tuple[Figure, Axes]:
    figure = Figure(figsize=_SIZE, dpi=_DPI)
    axes = figure.add_axes((0.09, 0.21, 0.88, 0.72))
    axes.set_title(title, loc="left", fontweight="bold")
    kind = "all answers, end to end" if agentic else "per user: 1000 / TPOT P90"
    axes.set_xlabel(f"interactivity, tokens/s ({kind})")
    axes.set_ylabel("system throughput, tokens/s")
    axes.grid(visible=True, color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.yaxis.set_major_formatter("{x:,.0f}")
    if rehearsal:
        figure.text(
            0.53, 0.55, WATERMARK, fontsize=46, color="#b00020", alpha=0.16, rotation=24,
            ha="center", va="center", gid="watermark", fontweight="bold",
        )  # fmt: skip
    return figure, axes


def _limits(axes: Axes, curves: Sequence[Curve]) -> None:
    """Both axes from nothing, so that lengths can be compared."""
    highest_x = max((c.frame["interactivity"].max() for c in curves), default=math.nan)
    highest_y = max((c.frame["system_tps"].max() for c in curves), default=math.nan)
    axes.set_xlim(0, highest_x * 1.06 if highest_x > 0 else 1)
    axes.set_ylim(0, highest_y * 1.12 if highest_y > 0 else 1)


def _regions(axes: Axes, curve: Curve) -> Iterator[Patch]:
    """Shade what each region's points span."""
    margin = axes.get_xlim()[1] * 0.006
    for region in REGION_NAMES:
        inside = curve.points[curve.points["region"] == region]["interactivity"]
        if not inside.empty:
            colour = _REGION_COLOURS[region]
            axes.axvspan(inside.min() - margin, inside.max() + margin, color=colour, alpha=0.13)
            yield Patch(color=colour, alpha=0.35, label=band_name(region))


def _step_line(axes: Axes, curve: Curve) -> Iterator[Line2D]:
    corners = steps(curve.frame)
    if not corners.empty:
        yield _stairs(axes, corners, color="#333333", label="curve, not interpolated")


def _stairs(axes: Axes, corners: pd.DataFrame, **style: Any) -> Line2D:
    """The corners as stairs from the left edge down to the axis."""
    xs, ys = corners["interactivity"].tolist(), corners["system_tps"].tolist()
    (line,) = axes.step([0.0, *xs, xs[-1]], [ys[0], *ys, 0.0], where="pre", linewidth=1.4, **style)
    return line


def _ceiling(axes: Axes, curve: Curve) -> Iterator[Line2D]:
    if curve.offline_tps is not None:
        yield axes.axhline(
            curve.offline_tps, color="#555555", linestyle=(0, (6, 3)), label="Offline ceiling"
        )


def _points(axes: Axes, curve: Curve) -> Iterator[Line2D]:
    for row in rows_of(curve):
        _point(axes, row)
        _hit_mark(axes, 0, row)
    look: dict[str, Any] = {"linestyle": "none", "color": "#333333", "marker": "o"}
    standing = set(curve.frame["standing"])
    yield Line2D([], [], **look, label="on the frontier; number: level")
    if TIED in standing:
        yield Line2D([], [], **look | {"marker": "s"}, label="tied")
    if DOMINATED in standing:
        yield Line2D([], [], **look, markerfacecolor="white", label="dominated")
    if (curve.frame["scores"] != "").any():
        ring = look | {"markersize": 11, "markerfacecolor": "none"}
        yield Line2D([], [], **ring, label="with accuracy run")


def _point(axes: Axes, row: Mapping[str, Any]) -> None:
    x, y, standing = _x(row), row["system_tps"], row["standing"]
    colour = _REGION_COLOURS.get(row["region"], "#333333")
    mark = {TIED: "s", OFFLINE: "<"}.get(standing, "o")
    face = "white" if standing == DOMINATED else colour
    style: dict[str, Any] = {"color": colour, "clip_on": False, "zorder": 3}
    axes.plot([x], [y], mark, markersize=6, markerfacecolor=face, **style)
    if row["scores"]:
        axes.plot([x], [y], "o", markersize=11, markerfacecolor="none", **style)
    level = f"{row['concurrency']:,}"
    axes.annotate(level, (x, y), textcoords="offset points", xytext=(6, 5), fontsize=7.5)


# --- Several curves --------------------------------------------------------------------------


def _overlay_figure(curves: Sequence[Curve], title: str) -> Figure:
    with rc_context(_RC):
        rehearsal, agentic = (
            any(getattr(c, of) for c in curves) for of in ("rehearsal", "agentic")
        )
        figure, axes = _canvas(title, rehearsal=rehearsal, agentic=agentic)
        _limits(axes, curves)
        _legend(figure, [_overlaid(axes, index, curve) for index, curve in enumerate(curves)])
        return figure


def _overlaid(axes: Axes, index: int, curve: Curve) -> Line2D:
    """One of several curves; what stands for it in the legend."""
    colour, mark = _COLOURS[index % len(_COLOURS)], _MARKS[index % len(_MARKS)]
    look: dict[str, Any] = {"color": colour, "linestyle": _DASHES[index % len(_DASHES)]}
    corners = steps(curve.frame)
    if not corners.empty:
        _stairs(axes, corners, **look)
    for row in rows_of(curve):
        face = "white" if row["standing"] == DOMINATED else colour
        axes.plot(
            [_x(row)], [row["system_tps"]], mark, color=colour, markerfacecolor=face, clip_on=False
        )
        _hit_mark(axes, index, row)
    return Line2D([], [], marker=mark, label=curve.name, **look)


# --- Parts -----------------------------------------------------------------------------------


def _x(row: Mapping[str, Any]) -> float:
    """Where a point is drawn; a dedicated Offline run has no interactivity and is at the edge."""
    return 0.0 if pd.isna(row["interactivity"]) else float(row["interactivity"])


def _hit_mark(axes: Axes, index: int, row: Mapping[str, Any]) -> None:
    """An invisible mark over a point that takes pointer and focus."""
    style: dict[str, Any] = {"markersize": _HIT_SIZE, "alpha": 0, "clip_on": False, "zorder": 4}
    gid = hit_name(index, row["label"])
    axes.plot([_x(row)], [row["system_tps"]], "o", color="#000000", gid=gid, **style)


def hit_name(index: int, label: str) -> str:
    """Name of the group in the drawing that stands for a point."""
    return f"{_HIT}{index}-{label}"


def _legend(figure: Figure, handles: Sequence[Artist]) -> None:
    figure.legend(
        handles=list(handles), loc="lower left", bbox_to_anchor=(0.07, 0.01), ncols=4, fontsize=8,
        frameon=False,
    )  # fmt: skip


def _amount(value: Any, unit: str, decimals: int = 1) -> str:
    return "–" if value is None or pd.isna(value) else f"{value:,.{decimals}f} {unit}"


def _png(figure: Figure) -> bytes:
    file = io.BytesIO()
    with rc_context(_RC):
        figure.savefig(file, format="png", metadata={"Software": None})
    return file.getvalue()


def _svg(figure: Figure, title: str, said: Mapping[str, str]) -> str:
    file = io.BytesIO()
    with rc_context(_RC):
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    return _accessible(file.getvalue(), title, said)


def _accessible(drawing: bytes, title: str, said: Mapping[str, str]) -> str:
    """The drawing as an element: as wide as its place, points in the order of their levels."""
    ElementTree.register_namespace("", _SVG)
    ElementTree.register_namespace("xlink", _XLINK)
    root = ElementTree.fromstring(drawing)  # noqa: S314 - our own drawing
    for size in ("width", "height"):
        root.attrib.pop(size, None)
    root.attrib |= {"role": "group", "aria-label": title}
    for metadata in root.findall(f"{{{_SVG}}}metadata"):
        root.remove(metadata)
    for group in root.iter(f"{{{_SVG}}}g"):
        name = group.get("id", "")
        if name in said:
            group.attrib |= {"tabindex": "0", "role": "img", "aria-label": said[name]}
            group.set("class", "point")
        elif name.startswith(
            ("patch_", "matplotlib.axis", "line2d", "text_", "legend", "watermark")
        ):
            group.set("aria-hidden", "true")
    return ElementTree.tostring(root, encoding="unicode")
