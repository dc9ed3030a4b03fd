"""A flow of its own whose steps are shown, for `test_steps.py`: what came of them, as JSON."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from prefect import flow
from prefect.runtime import flow_run

from core.errors import SetupError
from flows import steps
from flows.steps import step, steps_shown, task_run_of


@flow
def campaign(tag: str) -> dict[str, Any]:
    """Three steps: one that succeeds, a failure that the user can act on, a bug."""
    failures = (SetupError("no room"), ZeroDivisionError())
    with steps_shown():
        began = time.monotonic()
        returned = step("c0001 · performance", {tag}, lambda: 41 + 1, 1)
        took_s = time.monotonic() - began
        raised = [_raises(failure, tag) for failure in failures]
    return {
        "run": str(flow_run.id),
        "returned": returned,
        "raised": raised,
        "took_s": took_s,
        "shown": [task_run_of(1), task_run_of(2)],
    }


def _raises(failure: Exception, tag: str) -> bool:
    """Whether the failure passes through its step."""

    def work() -> None:
        raise failure

    try:
        step("c0001 · validate", {tag}, work, 2)
    except (SetupError, ZeroDivisionError) as raised:
        return raised is failure
    return False


if __name__ == "__main__":
    steps.END_TIMEOUT_S = 60.0  # the server of a busy machine is slow
    print(json.dumps(campaign(sys.argv[1])))
