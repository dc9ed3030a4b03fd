"""Points are sized right, hopeless runs are ended, and the price is told and kept to."""

from __future__ import annotations

import json
import resource
import time
from threading import Event
from typing import Any, cast

import pytest

from core.records import AttemptRecord, Owner
from core.status import AttemptState, PointState
from flows.cli.status import status as show_status
from flows.prepare import prepare
from flows.session import Surroundings, enter
from tasks.client import InstalledClient
from tests.flows.support import ROWS, Place, finish, is_alive, kill, wait_until

#: The minimum durations become 1.2 s and 2.4 s.
SCALE = {"rehearsal": {"time_scale": 0.002}}
#: An endpoint whose answers take 0.4 s at any level.
SLOW = {"prefill_ms": 200, "decode_ms": 50}
LATENCY_S = 0.4
#: What is on by default and off in the other tests; a margin of 1.25.
DEFAULTS: dict[str, Any] = {"fail_fast": True, "duration_margin": 1.25}
#: A pilot of 1 s.
PILOT = {"enabled": True, "seconds": 500.0}
#: A process that is long gone.
OWNER = Owner("nowhere", "never", 1, 1)
#: Level → how many times the expected rate the endpoint has; of each kind some have accuracy runs.
FACTORS = {33: 3.0, 20: 0.5, 9: 0.5, 6: 0.5, 3: 3.0, 2: 3.0, 1: 0.5}
EXPECTED = {level: level / LATENCY_S / factor for level, factor in FACTORS.items()}


def points_of(place: Place, *levels: int) -> list[str]:
    return ["run", str(place.file), "--points", ",".join(map(str, levels or FACTORS))]


def test_a_wrong_guess_costs_one_attempt_at_most(place: Place) -> None:
    """Without a pilot every point is valid at the second attempt at the latest.

    A run that the guess made hopeless is ended or too short, and is kept.
    """
    with place.endpoint(**SLOW):
        place.write(**SCALE, run={**DEFAULTS, "expected_qps": EXPECTED})
        done = place.pareto(*points_of(place))
    assert done.code == 0, done
    for level in FACTORS:
        *before, last = place.attempts(f"c{level:04d}")
        assert last.state is AttemptState.VALID, done
        assert len(before) <= 1
        for attempt in before:
            assert_ended_for_its_rate(attempt)
    assert len(place.attempts("c0033")) == 2  # a third of the count that it needs


def assert_ended_for_its_rate(attempt: AttemptRecord) -> None:
    """A stopped run is failed, one that went on to its end is too short; both tell a rate."""
    rules = [finding["rule"] for finding in attempt.findings]
    if rules[0] == "stopped-early":
        assert attempt.state is AttemptState.FAILED
        assert (attempt.reason or "").startswith(("fail-fast: too-fast:", "fail-fast: too-slow:"))
    else:
        assert attempt.state is AttemptState.INVALID
        assert rules == ["too-short"]
    assert attempt.run_folder is not None
    assert attempt.metrics["rate_qps"] > 0


def test_after_a_pilot_the_first_attempt_is_valid(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    """`pareto calibrate` runs pilots and tells the price; the run then needs no other.

    A pilot is no measurement: it has a folder of its own, and nothing counts it as an attempt.
    """
    with place.endpoint(**SLOW):
        place.write(**SCALE, run={**DEFAULTS, "expected_qps": EXPECTED, "pilot": PILOT})
        done = place.pareto("calibrate", *points_of(place)[1:])
        assert done.code == 0, done
        assert_only_calibrated(place, done.out, capsys)
        done = place.pareto(*points_of(place))
    assert done.code == 0, done
    for level in FACTORS:
        pilot, attempt = place.attempts(f"c{level:04d}")
        assert (pilot.phase, attempt.phase) == ("pilot", "measure")
        assert attempt.state is AttemptState.VALID, done
        assert attempt.planned_passes == (attempt.planned_samples or 0) / ROWS
    rows = status(place, capsys)["points"]
    assert {row["concurrency"]: row["attempts"] for row in rows} == dict.fromkeys(FACTORS, 1)


def assert_only_calibrated(place: Place, out: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is measured; the endpoint saw accuracy samples only; the estimate is exact there."""
    for level in FACTORS:
        label = f"c{level:04d}"
        (pilot,) = place.attempts(label)
        assert (pilot.phase, pilot.state) == ("pilot", AttemptState.VALID), pilot
        assert pilot.folder == f"curve/{label}/pilot-01"
        assert place.points()[label].state is PointState.PENDING
    assert {request.kind for request in place.requests()} == {"accuracy"}
    assert not place.folders()
    for line in ("time  ", "accelerator-hours", "disk  ", "done  "):
        assert f"\n{line}" in out
    found = status(place, capsys)
    assert found["state"] == "pending"
    left = {point["label"]: point["wall_s"] for point in found["left"]["points"]}
    assert left["c0033"]["low"] == left["c0033"]["high"]


def status(place: Place, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """What `pareto status FILE --json` prints."""
    capsys.readouterr()
    show_status(str(place.file), as_json=True)
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


# --- Failing requests ------------------------------------------------------------------------


def test_one_failed_request_ends_the_run(place: Place) -> None:
    """Within 5 s of its being seen; the attempt is failed, kept, and tried again."""
    with place.endpoint():
        place.write(run={**DEFAULTS, "retries": 1, "min_passes": 60})  # 480 samples at 60/s: 8 s
        process = place.start(*points_of(place, 6))
        place.wait_for_attempt("c0006", state=AttemptState.RUNNING)
        wait_until(lambda: guard(place, "c0006/attempt-01")["done"] > 5, "samples")
        place.set_faults(error_next=1)
        wait_until(lambda: guard(place, "c0006/attempt-01")["errors"], "a failed request")
        seen_at = time.time()
        done = finish(process)
    stopped, valid = place.attempts("c0006")
    assert (stopped.ended_at or 0) - seen_at < 5, done
    assert (stopped.state, valid.state) == (AttemptState.FAILED, AttemptState.VALID)
    assert (stopped.reason or "").startswith("fail-fast: failed-request: 1 failed of")
    assert stopped.metrics["issued"] < (stopped.planned_samples or 0)
    rules = [finding["rule"] for finding in stopped.findings]
    assert rules[0] == "stopped-early"
    assert "failed-requests" in rules
    assert "rate_qps" not in stopped.metrics
    assert stopped.run_folder is not None
    assert (place.runs / stopped.folder / "run" / "events.jsonl").stat().st_size > 0


def test_a_pilot_with_failed_requests_tells_no_rate(place: Place) -> None:
    """It is recorded as failed, and the point is sized by the guess that it was before."""
    with place.endpoint(error_next=1):
        place.write(run={**DEFAULTS, "pilot": PILOT})
        done = place.pareto(*points_of(place, 2))
    pilot, attempt = place.attempts("c0002")
    assert (pilot.phase, pilot.state) == ("pilot", AttemptState.FAILED), done
    assert "1 of" in (pilot.reason or "")
    assert "requests of the pilot failed" in (pilot.reason or "")
    assert pilot.metrics == {}
    assert attempt.state is AttemptState.VALID
    # 600 s × 0.0002 × 1.25 × 1.5 (a guess) × 20/s, and 2 to fill the streams
    assert attempt.planned_samples == ROWS


# --- No room -------------------------------------------------------------------------------------

#: No file may grow beyond this, bytes: the records stay below, a run's events do not.
LARGEST_FILE = 600_000


def test_a_client_that_finds_no_room_is_told_so(place: Place) -> None:
    """The attempt is failed with the reason, its folder stays, and the run ends in good order."""
    before, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with place.endpoint():
        place.write(run={**DEFAULTS, "min_passes": 150})
        resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST_FILE, hard))
        try:
            process = place.start(*points_of(place, 33))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (before, hard))
        done = finish(process)
    (attempt,) = place.attempts("c0033")
    assert done.code == 1, done
    assert "Traceback" not in done.err
    assert attempt.state is AttemptState.FAILED
    assert attempt.findings[0]["rule"] == "disk-full"
    assert "File too large" in attempt.findings[0]["seen"]
    assert "disk-full" in (attempt.reason or "")
    assert (place.runs / attempt.folder / "run" / "config.yaml").is_file()


# --- An orchestrator that dies ---------------------------------------------------------------


def test_a_pilot_outlives_nobody(place: Place) -> None:
    """Kill -9 during a pilot: its client ends too, and the next run takes in what it showed."""
    with place.endpoint():
        place.write(**SCALE, run={**DEFAULTS, "pilot": {"enabled": True, "seconds": 1e5}})
        process = place.start(*points_of(place, 2))
        place.wait_for_attempt("c0002", state=AttemptState.RUNNING)
        wait_until(lambda: guard(place, "c0002/pilot-01")["done"] > 5, "requests of the pilot")
        seen = guard(place, "c0002/pilot-01")
        pids = [seen["guard"]["pid"], seen["client"]["pid"]]
        kill(process.pid)
        finish(process)
        wait_until(lambda: not any(map(is_alive, pids)), "the end of guard and client")
        wait_until(lambda: place.in_flight() == 0, "no request")
        done = place.pareto(*points_of(place, 2))
    pilot, attempt = place.attempts("c0002")
    assert (pilot.phase, pilot.ended_by) == ("pilot", "orphan-stop")
    assert pilot.state is AttemptState.VALID
    assert attempt.state is AttemptState.VALID, done
    late = {r.kind for r in place.requests() if r.received_at > (attempt.started_at or 0)}
    assert late == {"performance"}


def guard(place: Place, attempt: str) -> dict[str, Any]:
    """The guard's status file; no progress before there is one."""
    path = place.runs / "curve" / attempt / "guard.json"
    if not path.exists():
        return {"done": 0, "errors": 0}
    found: dict[str, Any] = json.loads(path.read_bytes())
    return found


# --- Budget ----------------------------------------------------------------------------------


def test_a_budget_that_no_curve_fits_into_is_refused(bare_place: Place) -> None:
    """Exit 2 with the least that a curve takes; nothing is asked or made."""
    bare_place.write(run={"budget_hours": 0.005})
    for command in ("plan", "run"):
        done = bare_place.pareto(command, bare_place.file)
        assert done.code == 2, done
        assert "run.budget_hours: 0.005 h, but the cheapest legal curve takes 0.0" in done.err
        assert "raise the budget" in done.err
    assert not bare_place.data.exists()


def test_points_beyond_the_budget_are_skipped(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the reason, the mandatory ones first; nothing is sent and the run ends with exit 1."""
    with place.endpoint():
        place.write(run={"budget_hours": 1.0})
        nobodys = Surroundings(cast("InstalledClient", None), accuracy_rows={}, identity={})
        enter(prepare(place.file, {}), nobodys, Event())
        spend(place, "c0033", 2 * 3600.0)
        done = place.pareto("run", place.file)
        assert done.code == 1, done
        assert "did not fit run.budget_hours and were skipped" in done.err
        assert not place.requests()
    events = [e for e in place.records.events("curve") if e.kind == "point.skipped"]
    order = [event.payload["label"] for event in events]
    assert set(order[:4]) == {"c0033", "c0020", "c0009", "c0003"}
    assert set(order[4:]) == {"c0001", "c0002", "c0006"}
    states = {label: point.state for label, point in place.points().items()}
    assert states.pop("c0033") is PointState.FAILED  # it has an attempt
    assert set(states.values()) == {PointState.SKIPPED}
    rows = {row["label"]: row for row in status(place, capsys)["points"]}
    assert rows["c0001"]["reason"].startswith("budget: 2.00 h spent, 0.00 h needed")


def spend(place: Place, label: str, seconds: float) -> None:
    """Record an attempt that failed after a time."""
    attempt = place.records.new_attempt("curve", label, owner=OWNER)
    now = time.time()
    place.records.change_state(attempt.id, AttemptState.RUNNING, started_at=now - seconds)
    place.records.change_state(attempt.id, AttemptState.FAILED, ended_at=now, reason="spent")
