"""Curves as drawings of a page: SVG whose points take the pointer and say their numbers."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

from matplotlib import rc_context
from matplotlib.figure import Figure

from core.curve import Curve
from core.point_facts import spoken
from tasks.chart import RC, curve_figure, hit_name, overlay_figure, png

_SVG = "http://www.w3.org/2000/svg"
_XLINK = "http://www.w3.org/1999/xlink"


@dataclass(frozen=True)
class Pictures:
    """A curve in both forms."""

    svg: str
    png: bytes


def svg_and_png(curve: Curve, *, title: str, rehearsal: bool) -> Pictures:
    """The curve as a drawing, whose points say their numbers, and as a picture."""
    figure = curve_figure(curve, title, rehearsal=rehearsal)
    said = {hit_name(0, row["label"]): spoken(row) for row in curve.rows}
    return Pictures(_svg(figure, title, said), png(figure))


def overlay_svg(curves: Sequence[Curve], *, title: str) -> str:
    """Curves over each other; points as in `svg_and_png`."""
    said = {
        hit_name(index, row["label"]): f"{curve.name}, {spoken(row)}"
        for index, curve in enumerate(curves)
        for row in curve.rows
    }
    return _svg(overlay_figure(curves, title), title, said)


def _svg(figure: Figure, title: str, said: Mapping[str, str]) -> str:
    file = io.BytesIO()
    with rc_context(RC):
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
