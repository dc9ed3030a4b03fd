"""Waiting for a records database: again and again, until time is up or nobody waits any more."""

from __future__ import annotations

import threading

import pytest

from core.records import RecordsUnavailableError
from tasks.patience import patient


def failing(times: int) -> list[str]:
    """What a database that refuses for a while will say."""
    return ["locked"] * times


def ask(answers: list[str]) -> str:
    """One try."""
    if answers:
        raise RecordsUnavailableError(answers.pop())
    return "begun"


def test_what_fails_for_a_while_succeeds() -> None:
    """The result of the first try that works is given."""
    answers = failing(2)
    assert patient(10.0, threading.Event())(lambda: ask(answers)) == "begun"


def test_time_is_limited() -> None:
    """The last failure is raised as it was."""
    with pytest.raises(RecordsUnavailableError, match="locked"):
        patient(0.3, threading.Event())(lambda: ask(failing(99)))


def test_who_gave_up_waits_no_longer() -> None:
    """Asked to stop, one try is made and no more."""
    given_up = threading.Event()
    given_up.set()
    answers = failing(9)
    with pytest.raises(RecordsUnavailableError):
        patient(60.0, given_up)(lambda: ask(answers))
    assert len(answers) == 8


def test_other_failures_are_not_tried_again() -> None:
    """A mistake would repeat."""
    calls = []

    def mistaken() -> None:
        calls.append(1)
        raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011 - it has no text
        patient(60.0, threading.Event())(mistaken)
    assert len(calls) == 1
