"""Drift: what differs between two systems is named."""

from __future__ import annotations

from typing import Any

import pytest

from core.drift import ABSENT, Difference, differences, drift_lines, drift_message
from core.fingerprint import fingerprint


def of(old: Any, new: Any, part: str = "endpoint") -> list[tuple[str, Any, Any]]:
    """Key, old and new value of the differences within one part."""
    found = differences(fingerprint({part: old}), fingerprint({part: new}))
    assert {difference.part for difference in found} <= {part}
    return [(d.key, d.old, d.new) for d in found]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({"a": {"b": 1}}, {"a": {"b": 2}}, [("a.b", 1, 2)]),
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}, [("a[1].b", 2, 3)]),
        ({"a": 1}, {}, [("a", 1, ABSENT)]),
        ({"a": [1]}, {"a": [1, 2]}, [("a[1]", ABSENT, 2)]),
        ({"a": 1}, {"a": True}, [("a", 1, True)]),
        ({"b": 1, "a": 1}, {"b": 2, "a": 2}, [("a", 1, 2), ("b", 1, 2)]),
        ({"a": 1}, {"a": 1.0}, []),
        ({}, [], [("", {}, [])]),
    ],
)
def test_differences_have_key_old_and_new_value(old: Any, new: Any, expected: Any) -> None:
    assert of(old, new) == expected


def test_parts_come_in_their_order_and_equal_ones_not_at_all() -> None:
    old = fingerprint({"probes": {"d": ["1"]}, "client": {"v": "1"}, "model": {"name": "m"}})
    new = fingerprint({"probes": {"d": ["2"]}, "client": {"v": "2"}, "model": {"name": "m"}})
    found = differences(old, new)
    assert [difference.part for difference in found] == ["client", "probes"]
    assert differences(old, old) == ()
    assert drift_lines(found) == ["client: v: '1' → '2'", "probes: d[0]: '1' → '2'"]


def test_a_line_is_short_and_says_what_is_not_there() -> None:
    assert str(Difference("probes", "", ABSENT, "x" * 500)).startswith("probes: not there → 'xxx")
    assert len(str(Difference("probes", "", ABSENT, "x" * 500))) < 160
    many = [Difference("config", str(n), 1, 2) for n in range(25)]
    assert drift_lines(many)[-1] == "and 5 more"
    assert len(drift_lines(many)) == 21


def test_the_message_names_the_ways_out_and_what_they_cost() -> None:
    found = [Difference("probes", "driver[0]", "550", "560")]
    message = drift_message("curve", "before c0064", found, ["c0001", "c0032"])
    assert message.startswith("before c0064: the system is no longer the one")
    assert "probes: driver[0]: '550' → '560'" in message
    assert "pareto rebase curve --reason" in message
    assert "c0001, c0032 would have to be measured again" in message
