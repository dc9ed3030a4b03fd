"""The drawings: small, the same each time, every point with its numbers, rehearsals marked."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

from core.curve import Curve
from core.plan import Role
from core.point_facts import facts_of
from tasks.chart import WATERMARK, curve_png
from tasks.chart_svg import overlay_svg, svg_and_png
from tests.core.test_curve_rows import at, curve_of
from tests.curves import MANY, measured

#: Bytes that a page of Prefect can take as a picture.
LARGEST = 150_000
PNG = b"\x89PNG\r\n"


@pytest.fixture(scope="module")
def many() -> Curve:
    """A curve of 32 points, four of them with an accuracy run, in four regions."""
    regions = ["low_concurrency", "med_concurrency", "high_concurrency", "margin"]
    scores = {"accuracy_scores": {"acc": {"score": 0.9}}}
    return curve_of(
        *(
            at(
                level,
                measured(level)["tps"],
                1000 / measured(level)["tpot_ms"]["90"],
                region=regions[index // 8],
                **({} if index % 8 else scores),
            )
            for index, level in enumerate(MANY)
        )
    )


def drawn(curve: Curve, *, rehearsal: bool = False) -> str:
    return svg_and_png(curve, title="curve", rehearsal=rehearsal).svg


def points_in(svg: str) -> dict[str, str]:
    """Name of each group that stands for a point → what it says."""
    groups = ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}g")
    return {g.attrib["id"]: g.attrib["aria-label"] for g in groups if g.get("class") == "point"}


def test_a_picture_of_32_points_is_small(many: Curve) -> None:
    """With the watermark, which costs most."""
    picture = curve_png(many, title="many", rehearsal=True)
    assert picture.startswith(PNG)
    assert len(picture) < LARGEST


def test_every_point_says_its_numbers(many: Curve) -> None:
    """In the order of the levels, focusable, with the very values of the table."""
    said = points_in(drawn(many))
    assert list(said) == [f"hit-0-{row['label']}" for row in many.rows]
    for row in many.rows:
        assert f"{row['system_tps']:,.1f} tokens/s" in said[f"hit-0-{row['label']}"]
    assert drawn(many).count('tabindex="0"') == 32


def test_the_same_curve_is_the_same_drawing(many: Curve) -> None:
    assert drawn(many) == drawn(many)


def test_a_drawing_loads_nothing(many: Curve) -> None:
    """All references lead to parts of the drawing itself."""
    svg = drawn(many)
    links = re.findall(r'href="([^"]*)"', svg) + re.findall(r"url\(([^)]*)\)", svg)
    assert links
    assert [link for link in links if not link.startswith("#")] == []
    assert "@import" not in svg


def test_a_rehearsal_is_marked_in_the_drawing(many: Curve) -> None:
    first = WATERMARK.split("\n", maxsplit=1)[0]
    assert first in drawn(many, rehearsal=True)
    assert first not in drawn(many)
    plain = curve_png(many, title="many", rehearsal=False)
    assert plain != curve_png(many, title="many", rehearsal=True)


def test_the_steps_are_drawn_through_the_points() -> None:
    """Upright and level, with corners only above and beside points: nothing is interpolated."""
    svg = drawn(curve_of(at(4, 100, 50), at(8, 200, 40), at(16, 250, 20)))
    lines = re.findall(r'<path d="([^"]*)"[^>]*stroke: #333333; stroke-width: 1.4', svg)
    path = max(lines, key=len)
    places = [tuple(map(float, place)) for place in re.findall(r"[ML] ([\d.]+) ([\d.]+)", path)]
    for (x, y), (next_x, next_y) in pairwise(places):
        assert x == next_x or y == next_y
    marks = re.findall(r'id="hit-.*?<use [^>]*?x="([\d.]+)" y="([\d.]+)"', svg, re.DOTALL)
    assert len(marks) == 3
    left, bottom = min(x for x, _ in places), max(y for _, y in places)
    assert {x for x, _ in places} == {left, *(float(x) for x, _ in marks)}
    assert {y for _, y in places} == {bottom, *(float(y) for _, y in marks)}


def test_what_is_not_a_plain_point_is_drawn_too() -> None:
    """A dedicated Offline run, dominated and tied points, points in the margin; and no point."""
    offline = at(1000, 400, None, label="offline", role=Role.OFFLINE)
    tied = [at(4, 100, 50, region="margin"), at(5, 100, 50), at(8, 90, 40)]
    svg = drawn(curve_of(*tied, offline))
    for text in ("Offline ceiling", "tied", "dominated", "margin"):
        assert text in svg
    assert len(points_in(svg)) == 4
    assert "no valid point yet" in drawn(curve_of())


def test_names_are_text_never_markup() -> None:
    svg = svg_and_png(curve_of(at(4, 100, 50)), title="<b>&$x^2$", rehearsal=False).svg
    assert ElementTree.fromstring(svg).get("aria-label") == "<b>&$x^2$"
    assert "<b>" not in svg


def test_curves_over_each_other_keep_their_points(many: Curve) -> None:
    svg = overlay_svg([many, curve_of(at(4, 100, 50))], title="both")
    said = points_in(svg)
    assert len(said) == 33
    assert said["hit-1-c0004"].startswith("curve, c0004:")


def test_facts_leave_out_what_is_not_known() -> None:
    (row,) = curve_of(at(4, 100, 50)).rows
    names = [name for name, _ in facts_of(row)]
    assert "per kW" not in names
    assert "accuracy" not in names
    assert {"level", "throughput", "per user", "TTFT P90", "measured over"} <= set(names)


def test_drawing_leaves_no_file_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    curve_png(curve_of(at(4, 100, 50)), title="x", rehearsal=False)
    assert list(tmp_path.iterdir()) == []
