"""The pages as text: complete whatever was recorded, escaped, self-contained."""

from __future__ import annotations

import re
from dataclasses import asdict
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from core.drift import DriftRow
from core.estimate import Span
from core.report import Comparison, Report, Standing, at_equal, ratios, spending
from core.status import AttemptState
from core.validate import validate
from tasks.chart_svg import svg_and_png
from tasks.report import compare_page, report_page, status_page
from tests.core.test_curve_rows import PLAN, at, curve_of
from tests.core.test_overview import INVALID, VALID, attempt, campaign, point
from tests.recorded import case_of, facts_of, planned_run

#: Elements that HTML never closes.
_VOID = {"meta", "link", "img", "br", "hr", "input"}


class Reader(HTMLParser):
    """Reads a page and complains about tags that are not closed in turn."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.ids += [value or "" for name, value in attrs if name == "id"]
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def read(page: str) -> Reader:
    """A page that is well formed, in which no id is there twice, and which loads nothing."""
    reader = Reader()
    reader.feed(page)
    assert reader.open == []
    assert len(reader.ids) == len(set(reader.ids))
    loaded = re.findall(r'(?:src|href)="([^"]*)"', page)
    assert [link for link in loaded if not link.startswith(("#", "data:"))] == []
    return reader


def page_of(*points: Any, **facts: Any) -> str:
    """The report of these points."""
    record = campaign(plan=PLAN, rehearsal=facts.pop("rehearsal", False), name="curve")
    curve = curve_of(*points)
    values: dict[str, Any] = {
        "campaign": record,
        "stated": (("instance", "box <8>"),),
        "points": points,
        "curve": curve,
        "spending": spending(points, Span(10.0, 20.0, None), 8, now=100.0),
        "looks": (),
        "history": (),
        "has_drift": False,
        "notes": (),
        "left": None,
        "made_at": 100.0,
    }
    drawing = svg_and_png(curve, title="curve", rehearsal=record.rehearsal).svg
    return report_page(Report(**(values | facts)), drawing)


def test_a_campaign_without_any_attempt_has_a_page() -> None:
    text = read(page_of(point())).text
    assert "There was none yet." in text
    assert re.search(r"instance\s*box <8>", text)
    assert "not measured yet" in text
    assert "No attempt has a finding." in text


def test_failed_attempts_and_their_findings_are_told() -> None:
    finding = {"rule": "too-short", "severity": "error", "seen": "<3 s>", "wanted": "600 s"}
    failed = attempt(1, AttemptState.INVALID, reason="too-short", findings=(
        {**finding, "advice": "issue more passes"},
    ))  # fmt: skip
    page = page_of(point(failed, VALID))
    text = read(page).text
    for told in ("too-short", "<3 s>", "issue more passes", "attempt 1", "attempt 2"):
        assert told in text
    assert failed.folder in text
    assert "&lt;3 s&gt;" in page


def test_time_spent_is_told_against_what_was_planned() -> None:
    """In accelerator-hours too; an open end is said to be one."""
    text = read(page_of(point(INVALID, VALID), left=Span.exact(7200.0))).text
    assert re.search(r"planned, by the campaign file alone\s*at least 10 s\s*at least 0.022", text)
    assert re.search(r"still to come\s*2 h 00 min\s*16.0", text)
    assert re.search(r"spent\s*26 s\s*0.058", text)


def test_looks_at_the_system_and_its_history_are_told() -> None:
    look = DriftRow("c0004", 1, "after", 1, AttemptState.VALID, "ab" * 32, ("probes",))
    history = ("c0004 attempt 1, after: probes: driver: '550' → '560'",)
    text = read(page_of(point(VALID), looks=(look,), history=history, has_drift=True)).text
    assert "DRIFT" in text
    assert history[0] in text
    assert "≠" in text
    assert "abababababab" in text


def test_a_rehearsal_is_marked_and_a_measurement_is_not() -> None:
    assert '<body class="rehearsal">' in page_of(point(VALID), rehearsal=True)
    assert "REHEARSAL" in read(page_of(point(VALID), rehearsal=True)).text
    plain = page_of(point(VALID))
    assert "REHEARSAL" not in read(plain).text.replace(_style(plain), "")


def _style(page: str) -> str:
    found = re.search(r"<style>(.*?)</style>", page, re.DOTALL)
    assert found
    return found[1]


def test_whatever_a_client_left_can_be_shown(recorded: Path) -> None:
    """A page is written of every recorded folder, as the valid point or as the failed one."""
    case = case_of(recorded)
    verdict = validate(planned_run(case), facts_of(recorded, case), benchmark="custom")
    metrics = asdict(verdict.metrics) if verdict.metrics else {}
    metrics["accuracy_scores"] = verdict.accuracy_scores
    state = AttemptState.VALID if verdict.valid else AttemptState.INVALID
    findings = tuple(asdict(finding) for finding in verdict.findings)
    made = attempt(1, state, metrics=metrics, findings=findings, reason=None)
    text = read(page_of(point(made))).text
    assert all(finding.advice in text for finding in verdict.findings)


def compared(*curves: Any, differs: Any = (None,)) -> str:
    return compare_page(Comparison(curves, ratios(curves), at_equal(curves), differs, 100.0))


def test_a_comparison_says_what_is_not_known() -> None:
    empty = curve_of()
    text = read(compared(empty, empty)).text
    assert "No campaign has a valid point yet." in text
    assert "Not known: one of the two has no valid point with a fingerprint." in text


def test_a_comparison_tells_ratios() -> None:
    text = read(compared(curve_of(at(4, 100, 50)), curve_of(at(4, 150, 50)), differs=((),))).text
    assert "150.0 (1.500 ×)" in text
    assert "Nothing." in text


def test_the_status_of_many_campaigns_is_one_page() -> None:
    """Each with its picture once it has a point, and why points are not valid."""
    points = (point(VALID), point(INVALID, label="c0008", level=8))
    one = Standing(campaign(), points, curve_of(*points), Span.exact(60.0))
    none = Standing(campaign(name="new"), (point(),), curve_of(point()), None)
    page = status_page([one, none], 100.0)
    text = read(page).text
    assert page.count("data:image/png;base64,") == 1
    assert "1 of 2 points are valid; 1 min left" in text
    assert "too-short" in text
    assert "0 of 1 points are valid" in text


@pytest.mark.parametrize("name", ["</script><script>alert(1)</script>", "<b>&\"'"])
def test_no_text_becomes_markup(name: str) -> None:
    """Neither in a table nor in the data for the script."""
    curve = curve_of(at(4, 100, 50, label=name))
    page = compared(curve, curve, differs=((),))
    assert name not in page
    read(page)
