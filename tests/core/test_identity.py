"""Instance identity: the same one, another one, or nobody can tell."""

from __future__ import annotations

from typing import Any

import pytest

from core.identity import (
    CHANGED_RULE,
    START_TIME,
    UNVERIFIABLE_RULE,
    Sameness,
    changes,
    compare,
    instance_finding,
    steady,
    unverifiable,
)


def at(start: float, **further: Any) -> dict[str, dict[str, Any]]:
    """An instance of one URL that was started at a time."""
    return {"http://a": {START_TIME: [start], **further}}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (at(100), at(100), Sameness.SAME),
        (at(100), at(100.9), Sameness.SAME),  # worked out from a clock that is corrected
        (at(100), at(102), Sameness.CHANGED),
        (at(100), at(50), Sameness.CHANGED),  # a clock that jumped back hides no restart
        (at(100, pid=7), at(100, pid=8), Sameness.CHANGED),
        (at(100, pid=7), at(100), Sameness.SAME),  # what one look alone has tells nothing
        ({"http://a": {START_TIME: [1, 2]}}, at(1), Sameness.CHANGED),
        ({"http://a": {}}, {"http://a": {}}, Sameness.UNVERIFIABLE),
        (at(100), {"http://a": {}}, Sameness.UNVERIFIABLE),
        ({"http://a": {"pid": 1}}, at(100), Sameness.UNVERIFIABLE),
        ({**at(1), "http://b": {}}, {**at(1), "http://b": {}}, Sameness.UNVERIFIABLE),
        ({**at(1), "http://b": {}}, {**at(9), "http://b": {}}, Sameness.CHANGED),
        ({}, {}, Sameness.UNVERIFIABLE),
    ],
)
def test_two_looks_compared(old: Any, new: Any, expected: Sameness) -> None:
    assert compare(old, new) is expected


def test_changes_are_named_by_url_and_source() -> None:
    assert changes(at(1, pid=3), at(1, pid=4)) == ["http://a: pid: 3 → 4"]
    assert changes(at(1), at(1)) == []


def test_a_balancer_reveals_nothing() -> None:
    """It answers for another server each time: what differs at once is left out."""
    assert steady([at(1, name="x"), at(500, name="x"), at(1, name="x")]) == {
        "http://a": {"name": "x"}
    }
    assert steady([at(1), at(1)]) == at(1)
    assert steady([at(1), {}]) == {"http://a": {}}


def test_a_change_between_any_two_looks_is_an_error_and_says_when() -> None:
    looks = [("the start", at(1)), ("the accuracy run", at(9)), ("the end", at(9))]
    finding = instance_finding(looks)
    assert finding is not None
    assert (finding.rule, finding.severity) == (CHANGED_RULE, "error")
    assert finding.seen.startswith("between the start and the accuracy run: http://a: ")


def test_the_same_at_both_ends_proves_the_whole_stretch() -> None:
    assert instance_finding([("the start", at(1)), ("the end", at(1))]) is None


@pytest.mark.parametrize(
    "looks",
    [
        [("the start", at(1))],
        [("the start", {"http://a": {}}), ("the end", {"http://a": {}})],
        [("the start", at(1)), ("the end", {"http://a": {}})],
    ],
)
def test_what_can_not_be_told_is_a_warning_and_never_equal(looks: Any) -> None:
    finding = instance_finding(looks)
    assert finding is not None
    assert (finding.rule, finding.severity) == (UNVERIFIABLE_RULE, "warning")
    assert "http://a" in finding.seen


def test_urls_that_reveal_nothing_are_named() -> None:
    assert unverifiable(at(1)) is None
    said = unverifiable({**at(1), "http://b": {}})
    assert said is not None
    assert said.startswith("unverifiable: http://b reveals nothing")
