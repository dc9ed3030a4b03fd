"""Campaigns that are stopped, and orchestrators that are killed, in the middle of a point.

The endpoint answers the first few requests of a point and then no more, so that a point lasts for
as long as the test needs it to.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from typing import Any

from core.status import AttemptState
from tests.flows.support import (
    Place,
    finish,
    flow_runs,
    is_alive,
    kill,
    wait_until,
)

#: Requests that are answered before the endpoint falls silent.
ANSWERED = 3


def running(place: Place, number: int = 1) -> tuple[subprocess.Popen[str], dict[str, Any]]:
    """`pareto run` in the middle of its first point, and its guard's status."""
    process = place.start("run", place.file, "--points", "1")
    place.wait_for_attempt("c0001", number, AttemptState.RUNNING)
    wait_until(lambda: _is_stuck(place, number), "an endpoint that is silent")
    return process, place.guard("c0001", number)


def _is_stuck(place: Place, attempts: int) -> bool:
    """Whether the last attempt's client waits for an answer that it will not get."""
    answered = sum(request.finish == "stop" for request in place.requests())
    return answered == attempts * ANSWERED and place.in_flight() == 1


def processes_of(status: dict[str, Any]) -> list[int]:
    """Guard and client."""
    return [status["guard"]["pid"], status["client"]["pid"]]


def test_stopped_and_killed_again_and_again(place: Place) -> None:
    """Four attempts at a point: interrupted, followed by the next run, left alone, and valid."""
    with place.endpoint(stall_after=ANSWERED):
        place.write()
        interrupted_once(place)
        followed_and_interrupted_twice(place)
        left_without_guard(place)
    attempts = place.attempts("c0001")
    states = [(attempt.state, attempt.ended_by) for attempt in attempts]
    assert states == [
        (AttemptState.INTERRUPTED, "stop-request"),
        (AttemptState.INTERRUPTED, "stop-request"),
        (AttemptState.INTERRUPTED, "lost-guard"),
        (AttemptState.VALID, "itself"),
    ]
    assert place.folders() == {"c0001": 4}
    late = [r.kind for r in place.requests() if r.received_at >= (attempts[3].started_at or 0)]
    assert late == ["performance"] * (attempts[3].planned_samples or 0)


def interrupted_once(place: Place) -> None:
    """Ctrl-C: exit 130, the attempt is interrupted, no client is left, Prefect says cancelled.

    While it runs, nobody else may load the instance or run the campaign.
    """
    process, status = running(place)
    others(place, process.pid)
    process.send_signal(signal.SIGINT)
    done = finish(process)
    assert done.code == 130, done
    assert "stopped (Ctrl-C) during c0001; run the same file again to continue" in done.err
    assert "Traceback" not in done.err
    (attempt,) = place.attempts("c0001")
    assert attempt.reason == "Ctrl-C"
    assert place.guard("c0001")["end"]["signals"][0] == "SIGINT"
    assert not any(is_alive(pid) for pid in processes_of(status))
    assert place.in_flight() == 0
    assert flow_runs(place)[0]["state_type"] == "CANCELLED"


def followed_and_interrupted_twice(place: Place) -> None:
    """Killed, the next run follows the client; asked to stop twice, it ends it at once.

    SIGTERM is a request to stop as well, although Prefect takes that signal while a flow runs.
    """
    place.set_faults(stall_after=ANSWERED)
    process, status = running(place, number=2)
    kill(process.pid)
    finish(process)
    runs = len(campaign_starts(place))
    process = place.start("run", place.file, "--points", "1")
    wait_until(lambda: len(campaign_starts(place)) > runs, "the next run")
    os.kill(status["client"]["pid"], signal.SIGSTOP)  # it would end at the first request
    process.send_signal(signal.SIGTERM)
    wait_until(lambda: place.guard("c0001", 2)["stop_reason"], "the guard's answer")
    process.send_signal(signal.SIGINT)
    done = finish(process)
    assert done.code == 130, done
    assert "stopped (SIGTERM) during c0001" in done.err
    assert "Traceback" not in done.err
    assert place.guard("c0001", 2)["end"]["signals"] == ["SIGINT", "SIGKILL"]
    asked = (place.runs / "curve" / "c0001" / "attempt-02" / "stop.json").read_bytes()
    assert json.loads(asked) == {"reason": "SIGTERM", "at_once": True}
    assert not any(is_alive(pid) for pid in processes_of(status))


def left_without_guard(place: Place) -> None:
    """Both killed: the next run ends the client that nobody watched, and measures anew."""
    place.set_faults(stall_after=ANSWERED)
    process, status = running(place, number=3)
    guard, client = processes_of(status)
    kill(process.pid)
    finish(process)
    kill(guard)
    assert is_alive(client)
    place.set_faults()
    done = place.pareto("run", place.file, "--points", "1")
    assert done.code == 1, done
    assert not is_alive(client)


def campaign_starts(place: Place) -> list[float]:
    """When the campaign was started, by whomever."""
    return [e.at for e in place.records.events("curve") if e.kind == "campaign.started"]


def others(place: Place, holder: int) -> None:
    """Another campaign on the instance, and the same campaign again, are refused with exit 3."""
    other = place.folder / "other.yaml"
    other.write_text(place.file.read_text().replace("campaign: curve", "campaign: other"))
    before = len(place.requests())
    calls = [place.start("run", other, "--points", "1"), place.start("run", place.file)]
    different, same = map(finish, calls)
    assert different.code == same.code == 3, (different, same)
    assert "instance 'box' is being measured by another campaign" in different.err
    assert "curve" in different.err  # names the holder's folder
    assert f"campaign curve is being run by process {holder}" in same.err
    assert "checking" not in same.out  # told before anything is looked at
    assert len(place.requests()) == before
    assert len(place.attempts("c0001")) == 1


def test_a_measurement_outlives_its_orchestrator(place: Place) -> None:
    """Killed mid-point: the guard lets the client finish, and the next run takes that in."""
    with place.endpoint(prefill_ms=500):
        place.write()
        process = place.start("run", place.file, "--points", "1")
        place.wait_for_attempt("c0001", state=AttemptState.RUNNING)
        wait_until(place.in_flight, "a request under way")
        kill(process.pid)
        finish(process)
        wait_until(lambda: place.guard("c0001")["end"], "the end of the measurement")
        status = place.guard("c0001")
        assert status["orphaned_at"] is not None
        assert status["end"]["ended_by"] == "itself"
        (attempt,) = place.attempts("c0001")
        assert attempt.state is AttemptState.RUNNING

        done = place.pareto("run", place.file, "--points", "1")
    assert done.code == 1, done
    (attempt,) = place.attempts("c0001")
    assert attempt.state is AttemptState.VALID
    assert [r.kind for r in place.requests()] == ["performance"] * (attempt.planned_samples or 0)
