"""Draws curves: throughput against interactivity as a step function (§4).

Nothing is interpolated. Regions, standing and accuracy are told apart by shape or text as
well as by colour. A rehearsal's picture says so across its whole width. Only matplotlib is loaded:
pictures are drawn beside a client that measures.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Sequence
from typing import Any

from matplotlib import rc_context
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from core.curve import DOMINATED, OFFLINE, TIED, Curve, Row, highest, steps

#: Size in inches and resolution: 1,000 pixels wide, below 100 kB, readable on a phone held across.
_SIZE, _DPI = (9.0, 5.8), 110
#: Text stays text in SVG, and the same curve is the same file.
RC: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "pareto",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
}
#: Okabe and Ito's colours, which people with any colour vision tell apart.
_COLOURS = ("#0072b2", "#009e73", "#e69f00", "#d55e00", "#cc79a7", "#56b4e9", "#000000")
_DASHES = ("-", "--", "-.", ":")
_MARKS = ("o", "s", "^", "D", "v", "P", "X")
#: The mark that takes the pointer, in points: a fingertip, where a marker is a few pixels.
_HIT_SIZE = 20
#: How the names of the groups in SVG begin that stand for points.
_HIT = "hit-"
WATERMARK = "REHEARSAL\nnot a measurement"


def curve_png(curve: Curve, *, title: str, rehearsal: bool) -> bytes:
    """The curve as a picture."""
    return png(curve_figure(curve, title, rehearsal=rehearsal))


# --- One curve -------------------------------------------------------------------------------


def curve_figure(curve: Curve, title: str, *, rehearsal: bool) -> Figure:
    """One curve with its regions, its Offline ceiling and all of its points."""
    with rc_context(RC):
        figure, axes = _canvas(title, rehearsal=rehearsal, agentic=curve.agentic)
        _limits(axes, [curve])
        if not curve.placed:
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
    rows = [row for curve in curves for row in curve.rows]
    axes.set_xlim(0, (highest(rows, "interactivity") or 0) * 1.06 or 1)
    axes.set_ylim(0, (highest(rows, "system_tps") or 0) * 1.12 or 1)


def _regions(axes: Axes, curve: Curve) -> Iterator[Patch]:
    """Shade what each region's points span."""
    margin = axes.get_xlim()[1] * 0.006
    for region, colour in _region_colours(curve).items():
        inside = [row["interactivity"] for row in curve.placed if row["region"] == region]
        if inside:
            axes.axvspan(inside[0] - margin, inside[-1] + margin, color=colour, alpha=0.13)
            yield Patch(color=colour, alpha=0.35, label=curve.regions[region])


def _region_colours(curve: Curve) -> dict[str, str]:
    return dict(zip(curve.regions, _COLOURS, strict=False))


def _step_line(axes: Axes, curve: Curve) -> Iterator[Line2D]:
    corners = steps(curve.rows)
    if corners:
        yield _stairs(axes, corners, color="#333333", label="curve, not interpolated")


def _stairs(axes: Axes, corners: Sequence[tuple[float, float]], **style: Any) -> Line2D:
    """The corners as stairs from the left edge down to the axis."""
    xs, ys = zip(*corners, strict=True)
    (line,) = axes.step([0.0, *xs, xs[-1]], [ys[0], *ys, 0.0], where="pre", linewidth=1.4, **style)
    return line


def _ceiling(axes: Axes, curve: Curve) -> Iterator[Line2D]:
    if curve.offline_tps is not None:
        yield axes.axhline(
            curve.offline_tps, color="#555555", linestyle=(0, (6, 3)), label="Offline ceiling"
        )


def _points(axes: Axes, curve: Curve) -> Iterator[Line2D]:
    colours = _region_colours(curve)
    for row in curve.rows:
        _point(axes, row, colours.get(row["region"], "#333333"))
        _hit_mark(axes, 0, row)
    look: dict[str, Any] = {"linestyle": "none", "color": "#333333", "marker": "o"}
    standing = {row["standing"] for row in curve.rows}
    yield Line2D([], [], **look, label="on the frontier; number: level")
    if TIED in standing:
        yield Line2D([], [], **look | {"marker": "s"}, label="tied")
    if DOMINATED in standing:
        yield Line2D([], [], **look, markerfacecolor="white", label="dominated")
    if any(row["scores"] for row in curve.rows):
        ring = look | {"markersize": 11, "markerfacecolor": "none"}
        yield Line2D([], [], **ring, label="with accuracy run")


def _point(axes: Axes, row: Row, colour: str) -> None:
    (x, y), standing = _place(row), row["standing"]
    mark = {TIED: "s", OFFLINE: "<"}.get(standing, "o")
    face = "white" if standing == DOMINATED else colour
    style: dict[str, Any] = {"color": colour, "clip_on": False, "zorder": 3}
    axes.plot([x], [y], mark, markersize=6, markerfacecolor=face, **style)
    if row["scores"]:
        axes.plot([x], [y], "o", markersize=11, markerfacecolor="none", **style)
    level = f"{row['concurrency']:,}"
    axes.annotate(level, (x, y), textcoords="offset points", xytext=(6, 5), fontsize=7.5)


# --- Several curves --------------------------------------------------------------------------


def overlay_figure(curves: Sequence[Curve], title: str) -> Figure:
    """Curves over each other, told apart by colour, dashes and marks."""
    with rc_context(RC):
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
    corners = steps(curve.rows)
    if corners:
        _stairs(axes, corners, **look)
    for row in curve.rows:
        face = "white" if row["standing"] == DOMINATED else colour
        x, y = _place(row)
        axes.plot([x], [y], mark, color=colour, markerfacecolor=face, clip_on=False)
        _hit_mark(axes, index, row)
    return Line2D([], [], marker=mark, label=curve.name, **look)


# --- Parts -----------------------------------------------------------------------------------


def _place(row: Row) -> tuple[float, float]:
    """Where a point is drawn; a dedicated Offline run has no interactivity and is at the edge."""
    y = row["system_tps"]
    return row["interactivity"] or 0.0, math.nan if y is None else y


def _hit_mark(axes: Axes, index: int, row: Row) -> None:
    """An invisible mark over a point that takes pointer and focus."""
    style: dict[str, Any] = {"markersize": _HIT_SIZE, "alpha": 0, "clip_on": False, "zorder": 4}
    (x, y), gid = _place(row), hit_name(index, row["label"])
    axes.plot([x], [y], "o", color="#000000", gid=gid, **style)


def hit_name(index: int, label: str) -> str:
    """Name of the group in the drawing that stands for a point."""
    return f"{_HIT}{index}-{label}"


def _legend(figure: Figure, handles: Sequence[Artist]) -> None:
    figure.legend(
        handles=list(handles), loc="lower left", bbox_to_anchor=(0.07, 0.01), ncols=4, fontsize=8,
        frameon=False,
    )  # fmt: skip


def png(figure: Figure) -> bytes:
    """A figure as a picture."""
    file = io.BytesIO()
    with rc_context(RC):
        figure.savefig(file, format="png", metadata={"Software": None})
    return file.getvalue()
