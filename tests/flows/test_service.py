"""Campaigns that are submitted to a real service: once, watched, cancelled, paused, retried.

All share the one service of this run of the tests, so each has a name and an instance of its own.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core.errors import SetupError
from core.status import AttemptState, PointState
from flows.prepare import prepare
from flows.submission import submit as submit_campaign
from tests import session
from tests.flows.support import Place, finish, prefect, task_runs, wait_until, write_datasets


@pytest.fixture(scope="module")
def api_url() -> str:
    """The Prefect server whose deployments the service serves."""
    return session.service_api_url()


@pytest.fixture
def served(tmp_path: Path, api_url: str) -> Place:
    """A place whose campaigns are submitted to the service."""
    write_datasets(tmp_path)
    name = hashlib.sha256(str(tmp_path).encode()).hexdigest()[:8]
    return Place(tmp_path, api_url, name=f"served-{name}")


@pytest.fixture
def written(served: Place) -> Iterator[Place]:
    """The same, with a running endpoint and a campaign file."""
    with served.endpoint():
        write(served)
        yield served


def write(place: Place, **sections: Any) -> None:
    """Write the campaign file, with an instance that no other test has."""
    place.write(**{"instance": {"name": place.name}, **sections})


def submit(place: Place, *arguments: str) -> str:
    """Submit the place's campaign; the id of its run."""
    done = place.pareto("submit", place.file, *arguments)
    assert done.code == 0, done.err
    return run_id(done.out)


def run_id(out: str) -> str:
    """The run whose address a submission printed."""
    found = re.search(r"/runs/flow-run/(\S+)", out)
    assert found, out
    return found[1]


def ask(place: Place, method: str, path: str, body: Any = None) -> Any:
    """Ask the Prefect server, as its pages do."""
    return prefect(place.prefect_api_url).ask(method, path, body)


def state(place: Place, run: str) -> tuple[str, str]:
    """Type and name of a run's state."""
    found = ask(place, "GET", f"/flow_runs/{run}")["state"]
    return found["type"], found["name"]


def wait_for(place: Place, run: str, *kinds: str) -> str:
    """Wait until a run is in one of these states; its message."""
    wait_until(lambda: state(place, run)[0] in kinds, f"{kinds}", pause_s=0.3)
    return str(ask(place, "GET", f"/flow_runs/{run}")["state"]["message"])


def press_retry(place: Place, run: str) -> None:
    """What the button *Retry* of Prefect's pages sends."""
    wanted = {"type": "SCHEDULED", "name": "AwaitingRetry", "message": "Retry from the UI"}
    ask(place, "POST", f"/flow_runs/{run}/set_state", {"state": wanted, "force": True})


def press_pause(place: Place, run: str) -> None:
    """What the button *Pause* sends: a suspension that times out in five minutes."""
    details = {"pause_timeout": "2020-01-01T00:00:00Z", "pause_reschedule": True}
    wanted = {"type": "PAUSED", "name": "Suspended", "state_details": details}
    ask(place, "POST", f"/flow_runs/{run}/set_state", {"state": wanted, "force": True})


def press_cancel(place: Place, run: str) -> None:
    """What the button *Cancel* sends."""
    wanted = {"type": "CANCELLING", "name": "Cancelling"}
    ask(place, "POST", f"/flow_runs/{run}/set_state", {"state": wanted, "force": True})


def test_a_failed_point_is_shown_and_retried_while_the_command_line_tries_too(
    written: Place,
) -> None:
    """Twice submitted it runs once; what failed is explained; of two retries at once one runs."""
    place = written
    place.set_faults(error_rate_percent=30)
    options = (["--points", "33,20"], ["--points", "33,20", "--watch"])
    submissions = [place.start("submit", place.file, *each) for each in options]
    ended = [finish(process) for process in submissions]
    assert [done.code for done in ended] == [0, 1], ended
    assert "c0033 attempt 1: invalid" in ended[1].out
    runs = {run_id(done.out) for done in ended}
    assert len(runs) == 1
    run = runs.pop()
    message = wait_for(place, run, "FAILED")
    assert "points are not valid" in message
    assert place.points()["c0033"].state is PointState.FAILED
    the_findings_are_shown(place, run)

    place.set_faults()
    press_retry(place, run)
    other = finish(place.start("retry", place.file, "--points", "33,20"))
    wait_for(place, run, "FAILED", "CANCELLED", "COMPLETED")
    assert other.code in (1, 2, 3), other  # refused, or all points but two are missing
    for label in ("c0033", "c0020"):
        states = [attempt.state for attempt in place.attempts(label)]
        assert states.count(AttemptState.VALID) == 1, (label, states)
        assert states[-1] is AttemptState.VALID
    the_curve_is_shown(place, run)


def the_findings_are_shown(place: Place, run: str) -> None:
    """The artifact of the failed point says what to do, on the page of its task."""
    artifacts = artifacts_of(place)
    page = artifacts[f"{place.name}-c0033-findings"]
    assert "failed-requests" in page["data"]
    assert "what to do" in page["data"]
    names = {task["id"]: task["name"] for task in task_runs(place.prefect_api_url, run)}
    assert names[page["task_run_id"]] == f"{place.name} · c0033 · validate"


def the_curve_is_shown(place: Place, run: str) -> None:
    """Plan, result, chart, progress, tags, events and few log lines."""
    artifacts = artifacts_of(place)
    plan = json.loads(artifacts[f"{place.name}-plan"]["data"])
    assert [row["point"] for row in plan] == list(place.points())
    result = json.loads(artifacts[f"{place.name}-result"]["data"])
    valid = {row["point"] for row in result if row["state"] == "valid"}
    assert valid == {"c0033", "c0020"}
    chart = artifacts[f"{place.name}-chart"]["data"]
    assert "data:image/png;base64," in chart
    assert chart.index("| c0020 |") < chart.index("| c0033 |")
    assert "2 of 7 points valid" in artifacts[f"{place.name}-progress"]["description"]
    found = ask(place, "GET", f"/flow_runs/{run}")
    assert {f"campaign:{place.name}", f"instance:{place.name}", "rehearsal"} <= set(found["tags"])
    wait_until(lambda: told(place, "point.completed") == 2, "both events")  # Prefect takes its time
    assert told(place, "attempt.invalid", "attempt.failed") >= 1
    assert told(place, "campaign.finished") >= 1


def artifacts_of(place: Place) -> dict[str, Any]:
    """The newest artifact of each key, whichever run of the campaign showed it."""
    wanted = {"artifacts": {"key": {"like_": f"{place.name}-%"}}}
    found = ask(place, "POST", "/artifacts/latest/filter", wanted)
    return {artifact["key"]: artifact for artifact in found}


def told(place: Place, *names: str) -> int:
    """How many of the campaign's events have one of these names."""
    chosen = {"event": {"name": [f"pareto.{name}" for name in names]}}
    found = ask(place, "POST", "/events/filter", {"filter": chosen, "limit": 50})["events"]
    return sum(e["resource"].get("pareto.campaign") == place.name for e in found)


def test_cancelled_and_paused_from_the_pages(served: Place) -> None:
    """Cancel ends the client cleanly; a suspended run ends after its point and goes on later."""
    place = served
    with place.endpoint(slow_after=0):
        write(place)
        run = submit(place, "--points", "1,2")
        place.wait_for_attempt("c0001", 1, AttemptState.RUNNING)
        wait_until(lambda: place.in_flight() == 1, "a client that waits")
        press_cancel(place, run)
        wait_for(place, run, "CANCELLED")
        first = place.attempts("c0001")[0]
        assert (first.state, first.ended_by) == (AttemptState.INTERRUPTED, "stop-request")

        press_retry(place, run)
        place.wait_for_attempt("c0001", 2, AttemptState.RUNNING)
        wait_until(lambda: place.in_flight() == 1, "a client that waits")
        pause(place, run)
        place.set_faults()
        wait_until(lambda: place.points()["c0001"].state is PointState.VALID, "a valid point")
        gone = wait_until(lambda: lock_is_free(place), "the end of the run's process")
        assert gone
        assert state(place, run) == ("PAUSED", "Suspended")
        assert place.attempts("c0002") == ()

        place.set_faults(slow_after=0)
        ask(place, "POST", f"/flow_runs/{run}/resume", {})
        place.wait_for_attempt("c0002", 1, AttemptState.RUNNING)
        wait_until(lambda: place.in_flight() > 0, "a client that waits")
        pause(place, run)
        ask(place, "POST", f"/flow_runs/{run}/resume", {})  # before the point has ended
        wait_for(place, run, "RUNNING")
        place.set_faults()
        wait_for(place, run, "FAILED")  # five points were not wanted
    states = [attempt.state for attempt in place.attempts("c0002")]
    assert states == [AttemptState.VALID]
    assert len(place.attempts("c0001")) == 2


def pause(place: Place, run: str) -> None:
    """Pause a run, and wait until it has noticed."""
    press_pause(place, run)
    wait_until(lambda: pause_timeout(place, run) > "2027", "a pause without time-out")


def pause_timeout(place: Place, run: str) -> str:
    """When Prefect would make a suspended run fail."""
    found = ask(place, "GET", f"/flow_runs/{run}")["state"]["state_details"]
    return str(found["pause_timeout"])


def lock_is_free(place: Place) -> bool:
    """Whether nobody runs the campaign."""
    lock = place.runs / place.name / "campaign.lock"
    return subprocess.run(["flock", "-n", lock, "true"], check=False).returncode == 0


def test_what_cannot_be_measured_is_refused_before_it_is_queued(served: Place) -> None:
    """An illegal curve; a path that only the submitting machine has; a password in the text."""
    place = served
    with place.endpoint():
        write(place, curve={"c_max": 3})
        done = place.pareto("submit", place.file)
        assert (done.code, "c_max" in done.err) == (2, True), done
        assert not (place.data / "pareto.db").exists()


def test_a_path_that_only_the_submitting_machine_has_is_named(
    written: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Submitted from another machine, the service is asked first; nothing is queued."""
    write(written, datasets={"performance": {"path": "${ONLY_HERE:-/nowhere/performance.jsonl}"}})
    here = {**os.environ, "ONLY_HERE": "performance.jsonl"}
    ready = prepare(written.file, here)
    monkeypatch.setattr(socket, "gethostname", lambda: "another-machine")
    api = prefect(written.prefect_api_url)
    with pytest.raises(SetupError, match=r"/nowhere/performance\.jsonl"):
        submit_campaign(api, ready, None)
    runs = api.runs(tags=[f"campaign:{written.name}"])
    assert all(run.parameters.get("check") for run in runs)
    assert written.attempts("c0033") == ()
