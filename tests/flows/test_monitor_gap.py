"""Between two clients the pages wait, but not for long."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from core.status import AttemptState
from flows import monitor
from flows.monitor import GAP_S, Monitor


class Clock:
    """The time that the monitor sees."""

    now_s = 1000.0

    def monotonic(self) -> float:
        """Seconds since some moment."""
        return self.now_s


def points(*states: AttemptState) -> Any:
    return (SimpleNamespace(attempts=[SimpleNamespace(state=state) for state in states]),)


def test_pages_wait_between_two_clients_and_not_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(monitor, "time", clock)
    watching: Any = object.__new__(Monitor)
    assert not watching._is_gap(points())  # nothing ran yet: the plan is shown at once
    assert not watching._is_gap(points(AttemptState.RUNNING))
    assert watching._is_gap(points(AttemptState.VALID))
    assert watching._is_gap(points(AttemptState.VALID, AttemptState.PREPARED))
    clock.now_s += GAP_S
    assert not watching._is_gap(points(AttemptState.VALID))
