"""A step of a campaign as a Prefect task, named so that the list of tasks reads as a curve.

Tasks are called directly in the main thread: a subflow per point costs 1.5 s and can't be retried
alone, and a submitted task could not be cancelled without orphaning its client. Prefect only shows
the step: without a flow, or while its server is away, the step is run all the same.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import httpx
from prefect import tags, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.context import FlowRunContext
from prefect.exceptions import Abort, Pause, PrefectException
from prefect.runtime import task_run
from prefect.states import Completed, Failed

from core.errors import ParetoError
from core.redact import hidden
from tasks.prefect_server import answers

T = TypeVar("T")


class _Once(Generic[T]):
    """Work that is done once, however often it is asked for."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._outcome: Callable[[], T] | None = None

    @property
    def is_done(self) -> bool:
        """Whether there is an outcome; a bug leaves none."""
        return self._outcome is not None

    def __call__(self) -> T:
        if self._outcome is None:
            self._outcome = self._done()
        return self._outcome()

    def _done(self) -> Callable[[], T]:
        try:
            result = self._work()
        except ParetoError as failure:
            return _raising(failure)
        return lambda: result


def _raising(failure: ParetoError) -> Callable[[], Any]:
    def outcome() -> Any:
        raise failure

    return outcome


#: Attempt → the task run that shows its latest step.
_shown_by: dict[int, str] = {}


def task_run_of(attempt_id: int) -> str | None:
    """Prefect's task run of an attempt's latest step; None: no page shows it."""
    return _shown_by.get(attempt_id)


@task(cache_policy=NO_CACHE, persist_result=False)
def _step(work: Callable[[], Any], attempt_id: int) -> State[Any]:
    """Run the work; a failure that the user can act on is a failed task without a traceback."""
    _shown_by[attempt_id] = str(task_run.id)
    try:
        return Completed(data=work())
    except ParetoError as failure:
        return Failed(message=hidden(str(failure), os.environ), data=failure)


def step(name: str, marks: set[str], work: Callable[[], T], attempt_id: int) -> T:
    """Run one step under a task name and tags; what it returns or raises passes through.

    Args:
        name: Name in Prefect's lists, e.g. ``llama31-h200 · c0256 · performance``.
        marks: Tags to search by, e.g. ``level:256``.
        work: The step.
        attempt_id: The attempt that it is a step of.

    Raises:
        ParetoError: as raised by the work; the task is then shown as failed with its message.
    """
    if not _is_shown():
        return work()
    once = _Once(work)
    try:
        with tags(*marks):
            call = _step.with_options(task_run_name=name)
            state = call(once, attempt_id, return_state=True)
    except (httpx.HTTPError, PrefectException, Pause, Abort):
        # The server went away meanwhile, or the run was paused or cancelled there: that is heeded
        # between two points, and never within one.
        return once()
    state.result(raise_on_failure=not once.is_done)  # a bug raises with its traceback
    return once()


def _is_shown() -> bool:
    """Whether this is a flow whose Prefect server answers now; its client would wait for it."""
    api_url = os.environ.get("PREFECT_API_URL")
    if FlowRunContext.get() is None:
        return False
    return api_url is None or answers(api_url)
