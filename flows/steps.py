"""A step of a campaign as a Prefect task, named so that the list of tasks reads as a curve.

Tasks are called directly in the main thread: a subflow per point costs 1.5 s and can't be retried
alone, and a submitted task could not be cancelled without orphaning its client.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from prefect import tags, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.states import Completed, Failed

from core.errors import ParetoError

T = TypeVar("T")


@task(cache_policy=NO_CACHE, persist_result=False)
def _step(work: Callable[[], Any]) -> State[Any]:
    """Run the work; a failure that the user can act on is a failed task without a traceback."""
    try:
        return Completed(data=work())
    except ParetoError as failure:
        return Failed(message=str(failure), data=failure)


def step(name: str, marks: set[str], work: Callable[[], T]) -> T:
    """Run one step under a task name and tags; what it returns or raises passes through.

    Args:
        name: Name in Prefect's lists, e.g. ``llama31-h200 · c0256 · performance``.
        marks: Tags to search by, e.g. ``level:256``.
        work: The step.

    Raises:
        ParetoError: as raised by the work; the task is then shown as failed with its message.
    """
    with tags(*marks):
        state = _step.with_options(task_run_name=name)(work, return_state=True)
    return cast(T, state.result())  # raises what the work raised, a bug with its traceback
