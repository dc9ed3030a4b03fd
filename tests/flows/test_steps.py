"""Prefect shows the steps of a campaign and never holds one up."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from flows.steps import step, steps_shown, task_run_of
from tests.flows.support import prefect, task_runs, wait_until


def outcome(api_url: str, tag: str) -> dict[str, Any]:
    """What came of the steps of a flow in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.flows.steps_program", tag],
        env={**os.environ, "PREFECT_API_URL": api_url},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def tasks_of(api_url: str, run: str, count: int) -> list[dict[str, Any]]:
    """The tasks of a run, once they have ended."""

    def ended() -> list[dict[str, Any]] | None:
        found = task_runs(api_url, run)
        is_over = all(task["state_type"] in ("COMPLETED", "FAILED") for task in found)
        return found if len(found) == count and is_over else None

    return wait_until(ended, f"{count} tasks that ended")


def test_steps_are_tasks_in_their_order(prefect_api_url: str) -> None:
    """With name, tags and end of each; what a step returns or raises passes through."""
    found = outcome(prefect_api_url, "level:1")
    assert (found["returned"], found["raised"]) == (42, [True, True])
    tasks = tasks_of(prefect_api_url, found["run"], 3)
    assert [task["name"].removeprefix("c0001 · ") for task in tasks] == [
        "performance",
        "validate",
        "validate",
    ]
    assert [task["tags"] for task in tasks] == [["level:1"]] * 3
    assert [task["state_type"] for task in tasks] == ["COMPLETED", "FAILED", "FAILED"]
    assert [task["state"]["message"] for task in tasks[1:]] == ["no room", "ZeroDivisionError"]
    assert found["shown"] == [tasks[0]["id"], tasks[2]["id"]]


@pytest.fixture
def held_back(prefect_api_url: str) -> Iterator[str]:
    """A tag of which another task holds the only slot for good."""
    tag = f"held-{uuid4()}"
    server, where = prefect(prefect_api_url), "/v2/concurrency_limits/"
    server.ask("POST", where, {"name": f"tag:{tag}", "limit": 1, "active_slots": 1})
    yield tag
    server.ask("DELETE", f"{where}tag:{tag}")


def test_a_tag_of_which_prefect_lets_no_task_run_holds_up_no_step(
    prefect_api_url: str, held_back: str
) -> None:
    """Nor a page: a limit on a tag of ours says nothing about what may be measured."""
    found = outcome(prefect_api_url, held_back)
    assert (found["returned"], found["raised"]) == (42, [True, True])
    assert found["took_s"] < 5.0
    assert len(tasks_of(prefect_api_url, found["run"], 3)) == 3


def test_nothing_is_shown_without_a_flow() -> None:
    """The step is run all the same."""
    with steps_shown():
        assert step("c0001 · start", set(), lambda: "done", 3) == "done"
    assert task_run_of(3) is None
