"""Which run a submission joins, and how the end of a run is told."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import pytest

from flows.prepare import Prepared, prepare
from flows.submission import _same
from tasks.owner import this_process
from tasks.prefect_api import FlowRun
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
