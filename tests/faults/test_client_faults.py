"""Cases 9–14: what the client does wrong is told, ended and cleared away."""

from __future__ import annotations

import pytest

from core.status import AttemptState
from tests.faults.support import Lab

FAILED, VALID = AttemptState.FAILED, AttemptState.VALID


@pytest.mark.parametrize(
    ("fault", "end", "rule"),
    [
        pytest.param("exit at start", (FAILED, "itself"), "exit-code", id="9-exits-at-start"),
        pytest.param("killed", (FAILED, "itself"), "exit-code", id="10-killed-by-the-kernel"),
        pytest.param("incomplete", (FAILED, "itself"), "no-summary", id="13-incomplete-folder"),
    ],
)
def test_a_client_with_a_fault(
    lab: Lab, fault: str, end: tuple[AttemptState, str], rule: str
) -> None:
    """The attempt fails with the named finding; the next one is valid."""
    with lab.endpoint():
        lab.write(run={"min_passes": 2})
        assert lab.run("c0001", PARETO_TEST_FAULT=fault) is not None
        assert lab.states("c0001") == [end]
        assert rule in {finding["rule"] for finding in lab.last("c0001").findings}
        assert lab.leftovers() == []
        lab.run("c0001")
    assert [s for s, _ in lab.states("c0001")] == [FAILED, VALID]


def test_11_a_client_that_ignores_interrupt_and_terminate(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The watchdog interrupts, waits the grace, kills; nothing is left."""
    from flows import client_run
    from tasks.supervise import GuardSpec

    def impatient(**values: object) -> GuardSpec:
        return GuardSpec(**{**values, "grace_s": 0.5})  # type: ignore[arg-type]  # of mixed types

    monkeypatch.setattr(client_run, "GuardSpec", impatient)
    with lab.endpoint():
        lab.write(run={"stall_timeout_s": 1.0})
        lab.run("c0001", PARETO_TEST_FAULT="stubborn")
        assert lab.states("c0001") == [(FAILED, "watchdog")]
        assert lab.guard("c0001")["end"]["signals"] == ["SIGINT", "SIGKILL"]


def test_12_a_client_that_leaves_a_grandchild(lab: Lab) -> None:
    """The measurement is valid, the grandchild is killed and named."""
    with lab.endpoint():
        lab.write()
        lab.run("c0001", PARETO_TEST_FAULT="grandchild")
    assert lab.states("c0001") == [(VALID, "itself")]
    assert [left["found_by"] for left in lab.guard("c0001")["end"]["leftovers_killed"]] == [
        "marker"
    ]


def test_14_a_client_that_floods_its_log(lab: Lab) -> None:
    """A gigabyte of words neither hides the progress nor fills the status file."""
    with lab.endpoint():
        lab.write(run={"stall_timeout_s": 60.0})
        lab.run("c0001", PARETO_TEST_FAULT="flood")
    assert lab.states("c0001") == [(VALID, "itself")]
    folder = lab.runs / lab.last("c0001").folder
    assert (folder / "client.stdout.log").stat().st_size > 1_000_000_000
    assert (folder / "guard.json").stat().st_size < 50_000
    (folder / "client.stdout.log").unlink()
