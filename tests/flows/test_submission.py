"""Which run a submission joins, and how the end of a run is told."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import pytest

from core.errors import SetupError
from core.records import EventRecord
from flows.cli.submit import _ended
from flows.prepare import Prepared, prepare
from flows.submission import _same, exit_code
from tasks.owner import this_process
from tasks.prefect_api import FlowRun, PrefectApi
from tasks.prefect_pages import OWNER_LABELS
from tests.flows.support import Place

RUN = FlowRun(
    id="a",
    name="a run",
    state_type="RUNNING",
    state_name="Running",
    message="",
    tags=(),
    labels={},
    parameters={},
    deployment_id="d",
)


@pytest.fixture
def ready(bare_place: Place) -> Prepared:
    """A campaign, read and planned."""
    bare_place.write()
    return prepare(bare_place.file, os.environ)


def joins(ready: Prepared, wanted: list[str] | None, kind: str = "RUNNING", **given: Any) -> bool:
    """Whether a submission of these points joins a run with these parameters."""
    parameters = {"source": str(ready.loaded.path), **given}
    run = replace(RUN, state_type=kind, parameters=parameters)
    return _same([run], ready, wanted) == run


def test_a_run_is_joined_only_if_it_measures_what_is_asked(ready: Prepared) -> None:
    """All points, or more than are asked for; labels and levels are one."""
    assert joins(ready, None)
    assert joins(ready, ["c0033"])
    assert joins(ready, ["c0033"], points="33, 20")
    assert joins(ready, None, "PAUSED", points="", calibrate=False)
    assert not joins(ready, None, points="33")
    assert not joins(ready, ["c0033", "c0020"], points="c0033")
    assert not joins(ready, ["c0033"], points="33,no-such-point")
    assert not joins(ready, None, source="/another.yaml", campaign="another")


@pytest.mark.parametrize("given", [{"check": True}, {"calibrate": True}])
def test_a_run_that_measures_nothing_is_not_joined(ready: Prepared, given: dict[str, Any]) -> None:
    assert not joins(ready, None, **given)


def test_a_run_that_ends_or_is_dead_is_not_joined(ready: Prepared) -> None:
    """Cancelled just now, or left by a process of this machine that is gone."""
    assert not joins(ready, None, "CANCELLING")
    own = this_process()
    parameters = {"source": str(ready.loaded.path)}
    found = {}
    for start_time in (own.start_time, 1):
        values = (own.host, own.boot_id, own.pid, start_time)
        labels = dict(zip(OWNER_LABELS, values, strict=True))
        found[start_time] = _same([replace(RUN, labels=labels, parameters=parameters)], ready, None)
    assert found[own.start_time] is not None
    assert found[1] is None


def events(*told: tuple[str, dict[str, Any]]) -> list[EventRecord]:
    """Events in this order."""
    return [
        EventRecord(number, 0.0, f"campaign.{kind}", None, payload)
        for number, (kind, payload) in enumerate(told, 1)
    ]


OURS, OTHERS = ("started", {"flow_run": "a"}), ("started", {"flow_run": "b"})
FINISHED = ("finished", {"not_valid": ["c0001"]})


@pytest.mark.parametrize(
    ("kind", "told", "code"),
    [
        ("COMPLETED", [], 0),
        ("CANCELLED", [OURS], 130),
        ("FAILED", [OURS, FINISHED], 1),
        ("FAILED", [OTHERS, FINISHED, OURS, ("stopped", {"reason": "", "exit_code": 4})], 4),
        ("FAILED", [OURS, ("stopped", {"reason": "", "exit_code": 3}), OTHERS, FINISHED], 3),
        ("FAILED", [OTHERS, FINISHED], 3),
        ("CRASHED", [OTHERS, FINISHED], 4),
        ("CRASHED", [OURS, OTHERS, FINISHED], 4),
    ],
)
def test_the_exit_code_is_of_this_run_alone(
    kind: str, told: list[tuple[str, dict[str, Any]]], code: int
) -> None:
    """As `pareto run` would have ended; what other runs of the campaign told does not count."""
    assert exit_code(replace(RUN, state_type=kind), events(*told)) == code


def test_a_server_that_is_away_for_a_look_does_not_end_the_watch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The next look tells the end."""
    answers: list[FlowRun | None] = [None, replace(RUN, state_type="COMPLETED")]

    def run(_api: PrefectApi, _run_id: str) -> FlowRun:
        if (answer := answers.pop(0)) is None:
            raise SetupError("away")
        return answer

    monkeypatch.setattr(PrefectApi, "run", run)
    monkeypatch.setattr("flows.submission.LOOK_S", 0.01)
    ended = _ended(PrefectApi("http://127.0.0.1:9/api"), RUN)
    assert ended is not None
    assert ended.is_final
