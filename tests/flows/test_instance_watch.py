"""The looks at the instance while a client runs; clock and endpoint are stood in for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from core.identity import START_TIME, Identity
from flows import system


def at(start: float) -> Identity:
    """An instance that was started at a time."""
    return {"http://a": {START_TIME: [start]}}


class Watched:
    """A session, an attempt, a clock, and what the endpoint says next."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, first: Identity) -> None:
        self.now_s, self.took_s, self.polls = 1000.0, 0.0, 0
        self.answer: Identity | None = first
        self.appended: list[dict[str, Any]] = []
        monkeypatch.setattr(system, "_polled", self.polled)
        monkeypatch.setattr(system.time, "monotonic", lambda: self.now_s)
        event = SimpleNamespace(payload={"identity": first})
        records = SimpleNamespace(
            attempt_events=lambda *_: (event,),
            append_event=lambda _name, _kind, payload, _id: self.appended.append(payload),
        )
        session: Any = SimpleNamespace(
            records=records, campaign=SimpleNamespace(campaign="curve"), env={}
        )
        attempt: Any = SimpleNamespace(id=1, label="c0001")
        self.watch = system.instance_watch(session, attempt)

    def polled(self, _session: object) -> Identity | None:
        """One look, which takes its time."""
        self.polls += 1
        self.now_s += self.took_s
        return self.answer

    def after(self, seconds: float) -> str | None:
        """What the watch says some time later."""
        self.now_s += seconds
        return self.watch()


def test_a_restart_ends_the_run_and_is_on_record(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(monkeypatch, at(1))
    assert watched.after(20) is None
    watched.answer = at(500)
    assert watched.after(1) is None  # not asked again so soon
    said = watched.after(20)
    assert said is not None
    assert said.startswith("instance-changed: http://a: ")
    assert watched.appended == [{"label": "c0001", "moment": "the run", "identity": at(500)}]


def test_a_busy_endpoint_that_does_not_answer_is_no_other_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watched = Watched(monkeypatch, at(1))
    watched.answer = None
    assert watched.after(20) is None
    assert watched.polls == 1


def test_looks_that_take_long_are_rare(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look may cost a hundredth of the time."""
    watched = Watched(monkeypatch, at(1))
    watched.took_s = 2.0
    watched.after(20)
    watched.after(190)
    assert watched.polls == 1
    watched.after(20)
    assert watched.polls == 2


def test_an_endpoint_that_reveals_nothing_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(monkeypatch, {"http://a": {}})
    assert watched.after(1000) is None
    assert watched.polls == 0
