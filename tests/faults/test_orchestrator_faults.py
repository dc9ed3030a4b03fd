"""Cases 15–17, 22–25, 28, and pause, resume and cancel: what is done to the orchestrator."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing
from urllib.parse import urlsplit

import pytest

from core.status import AttemptState
from tests.faults.support import Lab, Proxy
from tests.flows.support import Done, finish, flow_runs, is_alive, kill, prefect, wait_until

INTERRUPTED, RUNNING, VALID = AttemptState.INTERRUPTED, AttemptState.RUNNING, AttemptState.VALID


def started(lab: Lab, points: str = "1", **variables: str) -> subprocess.Popen[str]:
    """`pareto run` whose first point is under way."""
    process = lab.start("run", lab.file, "--points", points, **variables)
    lab.wait_for_attempt(f"c{int(points[:1]):04d}", state=RUNNING)
    wait_until(lab.in_flight, "a request under way")
    return process


def test_15_killed_during_the_performance_run(lab: Lab) -> None:
    """The run goes on unattended, which `status` shows, ends by itself and is taken in once."""
    with lab.endpoint(slow_after=3):
        lab.write(run={"min_passes": 5, "stall_timeout_s": 60.0})
        kill_now(started(lab))
        status = lab.pareto("status", lab.file)
        assert "unattended: c0001 attempt 1 goes on under its guard" in status.out, status
        lab.set_faults()
        lab.run("c0001")
        assert lab.states("c0001") == [(VALID, "itself")]
        assert len(lab.requests()) == lab.last("c0001").planned_samples


def kill_now(process: subprocess.Popen[str]) -> None:
    """End the orchestrator as a machine's memory killer does."""
    kill(process.pid)
    finish(process)


def test_16_killed_during_the_accuracy_run(lab: Lab) -> None:
    """Both results are taken in, and neither is measured again."""
    with lab.endpoint():
        lab.write()
        process = lab.start("run", lab.file, "--points", "3")
        wait_until(lambda: "accuracy" in {r.kind for r in sent(lab)}, "an accuracy request")
        kill_now(process)
        lab.run("c0003")
        assert lab.states("c0003") == [(VALID, "itself")]
        kinds = [request.kind for request in lab.requests()]
        assert kinds.count("accuracy") == 36
        assert kinds.count("performance") == lab.last("c0003").planned_samples


def sent(lab: Lab) -> list[object]:
    """Requests so far."""
    return list(lab.requests()) if lab.log.exists() else []


def test_17_the_guard_is_killed_too(lab: Lab) -> None:
    """Nobody watched the client: it is ended, its attempt interrupted, and measured anew."""
    with lab.endpoint(stall_after=3):
        lab.write(run={"stall_timeout_s": 60.0})
        process = started(lab)
        status = lab.guard("c0001")
        kill_now(process)
        kill(status["guard"]["pid"])
        assert is_alive(status["client"]["pid"])
        lab.set_faults()
        lab.run("c0001")
    assert lab.states("c0001") == [(INTERRUPTED, "lost-guard"), (VALID, "itself")]


@pytest.mark.parametrize(("times", "sign"), [(1, "SIGINT"), (2, "SIGKILL")])
def test_24_ctrl_c(lab: Lab, times: int, sign: str) -> None:
    """Once: the client may save; twice: at once. Exit 130, nothing left, the attempt recorded."""
    with lab.endpoint(stall_after=3):
        lab.write(run={"stall_timeout_s": 60.0})
        process = started(lab)
        process.send_signal(signal.SIGINT)
        if times > 1:
            wait_until(lambda: lab.guard("c0001")["stop_reason"], "the guard's answer")
            process.send_signal(signal.SIGINT)
        done = finish(process)
    assert done.code == 130, done
    assert lab.states("c0001") == [(INTERRUPTED, "stop-request")]
    assert sign in lab.guard("c0001")["end"]["signals"] or times > 1
    assert lab.last("c0001").reason == "Ctrl-C"


def test_cancel_from_another_terminal(lab: Lab) -> None:
    """`pareto cancel` is Ctrl-C from afar; without an orchestrator it ends the client itself."""
    with lab.endpoint(stall_after=3):
        lab.write(run={"stall_timeout_s": 60.0})
        process = started(lab)
        assert lab.pareto("cancel", lab.file).code == 0
        done = finish(process)
        assert done.code == 130, done
        assert "stopped (pareto cancel) during c0001" in done.err
        assert lab.states("c0001") == [(INTERRUPTED, "stop-request")]

        lab.set_faults(stall_after=3)
        process = started_again(lab)
        kill_now(process)
        assert "its client is ended" in lab.pareto("cancel", lab.file).out
        wait_until(lambda: lab.guard("c0001", 2)["end"], "the end of the client")
        lab.set_faults()
        lab.run("c0001")
    assert [state for state, _ in lab.states("c0001")] == [INTERRUPTED, INTERRUPTED, VALID]


def started_again(lab: Lab) -> subprocess.Popen[str]:
    """A second `pareto run`, under way."""
    process = lab.start("run", lab.file, "--points", "1")
    lab.wait_for_attempt("c0001", 2, RUNNING)
    return process


def test_pause_and_resume(lab: Lab) -> None:
    """The running point ends, the next one begins only after `resume`."""
    with lab.endpoint(slow_after=3):
        lab.write(run={"min_passes": 3, "stall_timeout_s": 60.0})
        process = started(lab, "1,2")
        assert lab.pareto("pause", lab.file).code == 0
        lab.set_faults()
        lab.wait_for_attempt("c0001", state=VALID)
        status = lab.pareto("status", lab.file)
        assert "paused before the next point" in status.out, status
        assert lab.attempts("c0002") == ()
        assert lab.pareto("resume", lab.file).code == 0
        done = finish(process)
    assert done.code == 1, done
    assert lab.states("c0001") == lab.states("c0002") == [(VALID, "itself")]


def test_28_two_at_once(lab: Lab) -> None:
    """One of them measures, the other is refused and says who does."""
    with lab.endpoint():
        lab.write(run={"min_passes": 3})
        both = [lab.start("run", lab.file, "--points", "1") for _ in range(2)]
        ends = [finish(process) for process in both]
    assert sorted(end.code for end in ends) == [1, 3], ends
    refused = next(end for end in ends if end.code == 3)
    assert "is being run by process" in refused.err
    assert lab.states("c0001") == [(VALID, "itself")]
    assert len(lab.requests()) == lab.last("c0001").planned_samples


def test_23_a_prefect_server_that_was_never_there(lab: Lab) -> None:
    """It is said, and everything is measured and recorded all the same."""
    with lab.endpoint():
        lab.write()
        done = lab.pareto("run", lab.file, "--points", "1")
    assert done.code == 1, done
    assert "measuring without Prefect's pages" in done.err
    assert "Traceback" not in done.err
    assert lab.states("c0001") == [(VALID, "itself")]


@pytest.fixture
def proxy(shown_lab: Lab) -> Iterator[Proxy]:
    """A way to the Prefect server that can be cut."""
    parts = urlsplit(shown_lab.prefect_api_url)
    assert parts.hostname is not None
    assert parts.port is not None
    proxy = Proxy(parts.hostname, parts.port)
    with closing(proxy):
        yield proxy


def through(proxy: Proxy) -> dict[str, str]:
    """Variables of a run that reaches Prefect through the proxy."""
    return {
        "PREFECT_API_URL": f"http://127.0.0.1:{proxy.port}/api",
        "PREFECT_CLIENT_MAX_RETRIES": "3",
    }


def test_22_the_prefect_server_is_away_for_a_while(shown_lab: Lab, proxy: Proxy) -> None:
    """Measurement goes on meanwhile, and Prefect has the end of the run when it is back."""
    lab = shown_lab
    with lab.endpoint():
        lab.write(run={"min_passes": 2})
        process = started(lab, "1,2", **through(proxy))
        proxy.cut()
        lab.wait_for_attempt("c0001", state=VALID)
        proxy.mend()
        done = finish(process)
    _assert_measured(lab, done)
    assert flow_runs(lab)[0]["state_type"] == "FAILED"  # five points were not asked for


def test_22_the_prefect_server_is_gone_for_good(shown_lab: Lab, proxy: Proxy) -> None:
    """Every point is measured and recorded; the end is told here alone."""
    lab = shown_lab
    with lab.endpoint():
        lab.write(run={"min_passes": 2})
        process = started(lab, "1,2", **through(proxy))
        proxy.cut()
        done = finish(process)
    assert "the Prefect server went away" in done.err
    _assert_measured(lab, done)


def _assert_measured(lab: Lab, done: Done) -> None:
    assert done.code == 1, done
    assert "Traceback" not in done.err, done
    assert lab.states("c0001") == lab.states("c0002") == [(VALID, "itself")]


def test_25_cancelled_in_prefect(shown_lab: Lab) -> None:
    """A flow that was called directly sees it too, and ends as after Ctrl-C."""
    lab = shown_lab
    with lab.endpoint(stall_after=3):
        lab.write(run={"stall_timeout_s": 60.0})
        process = started(lab)
        (run,) = flow_runs(lab)
        cancelling = {"state": {"type": "CANCELLING"}}
        prefect(lab.prefect_api_url).ask("POST", f"/flow_runs/{run['id']}/set_state", cancelling)
        done = finish(process)
    assert done.code == 130, done
    assert lab.states("c0001") == [(INTERRUPTED, "stop-request")]
    assert lab.last("c0001").reason == "cancelled in Prefect"
    assert flow_runs(lab)[0]["state_type"] == "CANCELLED"
