"""Campaigns that are stopped, and orchestrators that are killed, in the middle of a point.

The endpoint answers the first few requests of a point and then no more, so that a point lasts for
as long as the test needs it to.
"""

from __future__ import annotations

import signal
import subprocess
from typing import Any

from core.status import AttemptState
from tests.flows.support import (
    Place,
    Request,
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


def test_ctrl_c_stops_cleanly_and_continuing_finishes(place: Place) -> None:
    """Interrupted once: exit 130, the attempt is interrupted, no client is left, the rest is kept.

    While it runs, nobody else may load the instance or run the campaign.
    """
    with place.endpoint(stall_after=ANSWERED):
        place.write()
        process, status = running(place)
        others(place, process.pid)

        process.send_signal(signal.SIGINT)
        done = finish(process)
        assert done.code == 130, done
        assert "stopped (Ctrl-C) during c0001; run the same file again to continue" in done.err
        (attempt,) = place.attempts("c0001")
        assert attempt.state is AttemptState.INTERRUPTED
        assert attempt.reason == "Ctrl-C"
        assert attempt.ended_by == "stop-request"
        assert place.guard("c0001")["end"]["signals"][0] == "SIGINT"
        assert not any(is_alive(pid) for pid in processes_of(status))
        assert place.in_flight() == 0
        run = flow_runs(place.prefect_api_url, "curve @ box")[-1]
        assert run["state_type"] == "CANCELLED"

        # Twice, by whatever signal: at once. SIGTERM is a request too, also within Prefect's flow.
        place.set_faults(stall_after=ANSWERED)
        process, status = running(place, number=2)
        process.send_signal(signal.SIGTERM)
        wait_until(lambda: place.guard("c0001", 2)["stop_reason"], "the guard's answer")
        process.send_signal(signal.SIGINT)
        done = finish(process)
        assert done.code == 130, done
        assert "stopped (SIGTERM)" in done.err
        assert "Traceback" not in done.err
        assert place.guard("c0001", 2)["end"]["signals"][-1] == "SIGKILL"
        assert not any(is_alive(pid) for pid in processes_of(status))

        place.set_faults()
        done = place.pareto("run", place.file, "--points", "1")
    assert "c0001 attempt 3: valid" in done.out, done
    states = [attempt.state for attempt in place.attempts("c0001")]
    assert states == [AttemptState.INTERRUPTED, AttemptState.INTERRUPTED, AttemptState.VALID]
    assert place.folders() == {"c0001": 3}


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


def test_a_live_guard_is_followed_and_a_dead_one_is_cleared_away(place: Place) -> None:
    """After a kill: a client under guard is followed by the next run, one without is ended."""
    with place.endpoint(stall_after=ANSWERED):
        place.write()
        process, status = running(place)
        kill(process.pid)
        finish(process)

        following = place.start("run", place.file, "--points", "1")
        wait_until(lambda: _events(place).count("campaign.started") > 1, "the next run")
        following.send_signal(signal.SIGINT)
        done = finish(following)
        assert done.code == 130, done
        (attempt,) = place.attempts("c0001")
        assert (attempt.state, attempt.ended_by) == (AttemptState.INTERRUPTED, "stop-request")
        assert not any(is_alive(pid) for pid in processes_of(status))

        place.set_faults(stall_after=ANSWERED)
        process, status = running(place, number=2)
        kill(process.pid)
        finish(process)
        guard, client = processes_of(status)
        kill(guard)
        assert is_alive(client)
        place.set_faults()
        done = place.pareto("run", place.file, "--points", "1")
        assert not is_alive(client)
    second, third = place.attempts("c0001")[1:]
    assert (second.state, second.ended_by) == (AttemptState.INTERRUPTED, "lost-guard")
    assert third.state is AttemptState.VALID
    late = requests_since(place, third.started_at)
    assert [request.kind for request in late] == ["performance"] * (third.planned_samples or 0)
    assert done.code == 1, done


def _events(place: Place) -> list[str]:
    return [event.kind for event in place.records.events("curve")]


def requests_since(place: Place, moment: float | None) -> list[Request]:
    """Measured requests from a moment on."""
    return [request for request in place.requests() if request.received_at >= (moment or 0)]
