"""The API key is in nothing that a campaign writes, shows or starts."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from core.status import AttemptState
from tests.faults.support import Lab
from tests.flows.support import finish, flow_runs, task_runs

#: The key, and how it would look in a file that encodes it.
KEY = "sk-test-4f9c1d7ab2e8"


def files_with_the_key(folder: Path) -> list[str]:
    """Every file below a folder whose bytes hold the key."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return [str(path.relative_to(folder)) for path in files if KEY.encode() in path.read_bytes()]


@pytest.fixture
def command_lines() -> Iterator[set[str]]:
    """Every command line that was in the process list during a test."""
    seen: set[str] = set()
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(0.1):
            for process in psutil.process_iter(["cmdline"]):
                seen.add(" ".join(process.info["cmdline"] or []))

    thread = threading.Thread(target=look)
    thread.start()
    yield seen
    ended.set()
    thread.join()


def test_the_key_is_nowhere(
    shown_lab: Lab, command_lines: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failed and a valid attempt: files, database, logs, output, Prefect and process list."""
    lab = shown_lab
    monkeypatch.setenv("TEST_KEY", KEY)
    with lab.endpoint(api_key_env="TEST_KEY", error_next=1):
        lab.write(endpoint={"api_key_env": "TEST_KEY"}, run={"retries": 1, "fail_fast": True})
        done = finish(lab.start("run", lab.file, "--points", "1"))
        shown = [lab.pareto(command, lab.file).out for command in ("status", "runs")]
    states = [state for state, _ in lab.states("c0001")]
    assert states[-1:] == [AttemptState.VALID], done
    assert len(states) > 1
    assert files_with_the_key(lab.folder) == []
    assert not any(KEY in text for text in (done.out, done.err, *shown, *command_lines))
    (run,) = flow_runs(lab)
    assert KEY not in str(run) + str(task_runs(lab.prefect_api_url, run["id"]))
    assert any("tasks.guard" in line for line in command_lines)


def test_a_wrong_key_is_not_shown(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """A refusal quotes the endpoint, never the key."""
    monkeypatch.setenv("RIGHT_KEY", "another")
    with lab.endpoint(api_key_env="RIGHT_KEY"):
        lab.write(endpoint={"api_key_env": "TEST_KEY"})
        done = lab.pareto("run", lab.file, TEST_KEY=KEY)
    assert done.code == 3
    assert "401" in done.err
    assert KEY not in done.out + done.err
    assert files_with_the_key(lab.folder) == []
