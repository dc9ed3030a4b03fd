"""Cases 1–8: the endpoint stalls, dies, refuses, drops, slows down; health is watched meanwhile."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from core.errors import SetupError
from core.status import OPEN_STATES, AttemptState
from tasks.prefect_server import _free_port
from tasks.rehearsal.process import running_endpoint
from tests.faults.support import Lab
from tests.flows.support import DECODE_MS, PREFILL_MS, TOKENS, wait_until

FAILED, INVALID, VALID = AttemptState.FAILED, AttemptState.INVALID, AttemptState.VALID


@pytest.mark.parametrize(
    ("faults", "state", "reason"),
    [
        pytest.param({"stall_midway_after": 3}, FAILED, "no sample completed", id="1-mid-stream"),
        pytest.param({"stall_after": 3}, FAILED, "no sample completed", id="2-before-first-token"),
        pytest.param({"error_rate_percent": 20}, FAILED, "failed-request", id="5-error-500"),
        pytest.param({"busy_rate_percent": 20}, FAILED, "failed-request", id="6-busy-429"),
        pytest.param({"drop_rate_percent": 20}, FAILED, "failed-request|cut-streams", id="7-drops"),
    ],
)
def test_an_endpoint_with_a_fault(
    lab: Lab, faults: dict[str, int], state: AttemptState, reason: str
) -> None:
    """The attempt has a named reason, the next one without the fault is valid, once."""
    with lab.endpoint():
        lab.write(run={"fail_fast": True, "min_passes": 4})
        lab.set_faults(**faults)
        assert lab.run("c0001") is not None
        assert re.search(reason, _why(lab)), lab.last("c0001")
        assert lab.last("c0001").state in (state, INVALID)
        lab.set_faults()
        lab.run("c0001")
        assert [s for s, _ in lab.states("c0001")][1:] == [VALID]
        before = len(lab.requests())
        lab.run("c0001")
        assert len(lab.requests()) == before


def _why(lab: Lab) -> str:
    attempt = lab.last("c0001")
    return " ".join([attempt.reason or "", *(finding["rule"] for finding in attempt.findings)])


def _endpoint(lab: Lab, port: int, **options: Any) -> Any:
    return running_endpoint(
        model="rehearsal-model",
        request_log=lab.log,
        prefill_ms=PREFILL_MS,
        decode_ms=DECODE_MS,
        output_tokens=TOKENS,
        port=port,
        **options,
    )


def test_3_it_dies_and_returns(lab: Lab) -> None:
    """The lost attempt is invalid, the endpoint is waited for, the retry in the same run valid."""
    port = _free_port()
    lab.url = f"http://127.0.0.1:{port}"
    lab.write(run={"retries": 1})
    with ThreadPoolExecutor(1) as pool:
        with _endpoint(lab, port, die_after=3):
            run = pool.submit(lab.run, "c0001")
            wait_until(lambda: ended(lab) == [INVALID], "a lost attempt")
        with _endpoint(lab, port):
            run.result()
    assert ended(lab) == [INVALID, VALID]


def ended(lab: Lab) -> list[AttemptState]:
    """States of the attempts at the first point that have ended."""
    return [state for state, _ in lab.states("c0001") if state not in OPEN_STATES]


def test_4_it_dies_for_good(lab: Lab) -> None:
    """After the limit the run ends and names the limit; the next point isn't even begun."""
    port = _free_port()
    lab.url = f"http://127.0.0.1:{port}"
    lab.write(run={"retries": 1, "recovery_timeout_s": 1.0})
    with _endpoint(lab, port, die_after=3):
        outcome = lab.run("c0001", "c0002")
    assert isinstance(outcome, SetupError)
    assert "waited run.recovery_timeout_s = 1 s" in str(outcome)
    assert ended(lab) == [INVALID]
    assert lab.attempts("c0002") == ()


def test_8_it_slows_down_tenfold(lab: Lab) -> None:
    """A slow endpoint is measured as it is: progress counts, not time."""
    with lab.endpoint(slow_after=6):
        lab.write()
        lab.run("c0002")
    assert [s for s, _ in lab.states("c0002")] == [VALID]


def test_a_lost_endpoint_ends_a_run_that_the_client_would_not(lab: Lab) -> None:
    """The client notices nothing; the health path does, and says so."""
    port = _free_port()
    lab.url = f"http://127.0.0.1:{port}"
    lab.write(run={"endpoint_lost_after_s": 0.5, "stall_timeout_s": 60.0})
    with ThreadPoolExecutor(1) as pool:
        with _endpoint(lab, port):
            run = pool.submit(lab.run, "c0001", PARETO_TEST_FAULT="hang")
            lab.wait_for_attempt("c0001", state=AttemptState.RUNNING)
        run.result()
    assert lab.states("c0001") == [(FAILED, "stop-request")]
    assert "endpoint-lost" in (lab.last("c0001").reason or "")
