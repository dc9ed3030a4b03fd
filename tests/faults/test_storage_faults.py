"""Cases 18–21, 26, 27: disks, databases and clocks that fail in the middle of a run."""

from __future__ import annotations

import errno
import sqlite3
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from core.errors import ParetoError, SetupError
from core.records import RecordsUnavailableError
from core.records import engine as engine_module
from core.status import AttemptState
from tasks import disk, instance
from tests.faults.support import Lab, away, database_files, shim
from tests.flows.support import kill, wait_until

FAILED, RUNNING, VALID = AttemptState.FAILED, AttemptState.RUNNING, AttemptState.VALID


@contextmanager
def locked(lab: Lab) -> Iterator[None]:
    """Another program writes, and does not end."""
    other = sqlite3.connect(lab.data / "pareto.db", isolation_level=None, timeout=30)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.execute("ROLLBACK")
        other.close()


@contextmanager
def read_only(lab: Lab) -> Iterator[None]:
    """The file's header says that only a newer program may write: whoever runs, root as well."""
    with locked(lab):
        pass
    other = sqlite3.connect(lab.data / "pareto.db", isolation_level=None, timeout=30)
    other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    other.close()
    _write_version(lab.data / "pareto.db", 3)
    try:
        yield
    finally:
        _write_version(lab.data / "pareto.db", 2)


def _write_version(path: Path, version: int) -> None:
    with path.open("r+b") as file:
        file.seek(18)
        file.write(bytes([version]))


@contextmanager
def lost(lab: Lab) -> Iterator[None]:
    """The file is not there."""
    with away(*database_files(lab)):
        yield


TROUBLES = [
    pytest.param(locked, id="20-locked"),
    pytest.param(read_only, id="21-read-only"),
    pytest.param(lost, id="lost"),
]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """One try at the database takes a moment, so that trouble outlasts several."""
    monkeypatch.setattr(engine_module, "BUSY_TIMEOUT_S", 1.0)


def measured(lab: Lab) -> bool:
    """Whether the client of the first point has ended and its outcome is kept in the folder."""
    return any(lab.runs.glob("*/c0001/attempt-01/attempt.json"))


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_database_that_is_away_for_a_while(
    lab: Lab, trouble: Callable[[Lab], Iterator[None]]
) -> None:
    """The run waits for it and goes on: nothing lost, nothing measured twice."""
    with lab.endpoint(), ThreadPoolExecutor(1) as pool:
        lab.write()
        run = pool.submit(lab.run, "c0001", "c0002")
        lab.wait_for_attempt("c0001", state=RUNNING)
        with trouble(lab):  # type: ignore[attr-defined]  # a context
            wait_until(lambda: guard_ended(lab), "the end of the client")
            time.sleep(1.0)
        run.result()
        assert lab.states("c0001") == lab.states("c0002") == [(VALID, "itself")]


def guard_ended(lab: Lab) -> bool:
    """Whether the client of the first attempt is gone."""
    return bool(lab.guard("c0001")["end"])


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_database_that_stays_away(lab: Lab, trouble: Callable[[Lab], Iterator[None]]) -> None:
    """The run ends, the folder keeps the outcome, and the next run takes it in."""
    with lab.endpoint(), ThreadPoolExecutor(1) as pool:
        lab.write(run={"recovery_timeout_s": 0.5})
        run = pool.submit(lab.run, "c0001")
        lab.wait_for_attempt("c0001", state=RUNNING)
        with trouble(lab):  # type: ignore[attr-defined]  # a context
            assert isinstance(run.result(), RecordsUnavailableError)
            wait_until(lambda: measured(lab) or guard_ended(lab), "the end of the client")
        assert lab.last("c0001").state is RUNNING
        sent = len(lab.requests())
        take_in(lab)
        assert len(lab.requests()) == sent
    assert lab.states("c0001") == [(VALID, "itself")]


@pytest.mark.usefixtures("quick")
def test_records_that_go_away_as_the_client_starts(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client that just started is not called failed: it goes on and is taken in."""
    from flows import client_run

    start, block = client_run.start, ExitStack()

    def start_and_lose(*arguments: Any) -> None:
        start(*arguments)
        block.enter_context(lost(lab))

    monkeypatch.setattr(client_run, "start", start_and_lose)
    with lab.endpoint():
        lab.write(run={"recovery_timeout_s": 0.5})
        with block:
            assert isinstance(lab.run("c0001"), RecordsUnavailableError)
        assert lab.last("c0001").state is AttemptState.PREPARED
        outcome = take_in(lab)
        assert lab.states("c0001") == [(VALID, "itself")], outcome
        assert len(lab.requests()) == lab.last("c0001").planned_samples


def test_a_folder_that_refuses_files(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is full before the client starts is a set-up error with the place named."""
    from flows import client_run

    def full(path: Path, _content: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(client_run, "write_atomic", full)
    with lab.endpoint():
        lab.write()
        outcome = lab.run("c0001")
    assert isinstance(outcome, SetupError)
    assert "No space left on device" in str(outcome)
    assert lab.states("c0001") == [(FAILED, None)]


def take_in(lab: Lab) -> ParetoError | None:
    """Run again as another process would: the attempt's owner, this process, counts as dead."""
    from flows import campaign

    with pytest.MonkeyPatch.context() as patch:
        for module in (campaign, instance):
            patch.setattr(module, "owner_lives", lambda _owner: False)
        return lab.run("c0001")


def test_18_killed_while_recording(shown_lab: Lab) -> None:
    """The folder has the outcome that the records could not take any more."""
    lab = shown_lab
    with lab.endpoint():
        lab.write()
        process = lab.start("run", lab.file, "--points", "1")
        lab.wait_for_attempt("c0001", state=RUNNING)
        with locked(lab):
            wait_until(lambda: guard_ended(lab), "the end of the client")
            kill(process.pid)
            process.communicate()
        sent = len(lab.requests())
        lab.run("c0001")
        assert len(lab.requests()) == sent
    assert lab.states("c0001") == [(VALID, "itself")]


def test_19_a_disk_that_fills_up(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Below the floor the client is ended cleanly; nothing is deleted, and the reason is told."""
    with lab.endpoint(stall_after=3), ThreadPoolExecutor(1) as pool:
        lab.write(run={"stall_timeout_s": 60.0})
        run = pool.submit(lab.run, "c0001")
        lab.wait_for_attempt("c0001", state=RUNNING)
        wait_until(lambda: len(lab.requests()) >= 3, "requests")
        monkeypatch.setattr(disk, "LEAST_FREE_BYTES", 1 << 60)
        run.result()
    assert lab.states("c0001") == [(FAILED, "stop-request")]
    assert "no-room" in (lab.last("c0001").reason or "")
    assert lab.guard("c0001")["end"]["signals"] == ["SIGINT"]
    assert lab.folders() == {"c0001": 1}


def test_26_the_clock_is_set_back(lab: Lab) -> None:
    """An hour back in the middle of a run: the run is no longer, no shorter, and not stale."""
    clock = lab.folder / "clock"
    clock.write_text("3600")
    lab.variables = {"PARETO_TEST_CLOCK": str(clock), "PYTHONPATH": shim()}
    with lab.endpoint(), ThreadPoolExecutor(1) as pool:
        lab.write(run={"min_passes": 2})
        run = pool.submit(lab.run, "c0001")
        lab.wait_for_attempt("c0001", state=RUNNING)
        clock.write_text("0")
        run.result()
    status = lab.guard("c0001")
    assert status["end"]["ended_at"] < status["started_at"]
    assert lab.states("c0001") == [(VALID, "itself")]


def test_27_no_rename(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a file system that refuses rename a run is as valid as elsewhere."""
    import os

    from tests.faults.shim import sitecustomize

    lab.variables = {"PARETO_TEST_NO_RENAME": str(lab.runs), "PYTHONPATH": shim()}
    monkeypatch.setenv("PARETO_TEST_NO_RENAME", str(lab.runs))
    monkeypatch.setattr(os, "replace", sitecustomize._replace)
    with lab.endpoint():
        lab.write()
        lab.run("c0001")
    assert lab.states("c0001") == [(VALID, "itself")]
