"""A step of a campaign, shown as a Prefect task, so that the list of tasks reads as a curve.

A step runs in its caller's thread and never waits for Prefect. Another thread shows it: one task
after the other, each of which begins and ends as its step does. A subflow per point would cost
1.5 s and can't be retried alone. Without a flow, or while Prefect's server is away, nothing is
shown and the step is run all the same.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any, TypeVar

from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.context import FlowRunContext, TaskRunContext
from prefect.exceptions import PrefectSignal
from prefect.states import Completed, Failed

from core.redact import hidden
from tasks.prefect_server import answers

T = TypeVar("T")

#: Seconds that the last tasks get to be shown when the campaign has ended.
END_TIMEOUT_S = 5.0

#: Attempt → the task run that shows its latest step.
_shown_by: dict[int, str] = {}


def task_run_of(attempt_id: int) -> str | None:
    """Prefect's task run of an attempt's latest step; None: no page shows it."""
    return _shown_by.get(attempt_id)


@dataclass(frozen=True)
class _Step:
    """What Prefect shows of a step."""

    name: str
    marks: Collection[str]
    attempt_id: int
    end: Future[BaseException | None] = field(default_factory=Future)  # what it failed with


#: Where the steps of this campaign are put to be shown.
_to_show: ContextVar[SimpleQueue[_Step | None] | None] = ContextVar("to_show", default=None)


def step(name: str, marks: Collection[str], work: Callable[[], T], attempt_id: int) -> T:
    """Run one step; what it returns or raises passes through.

    Args:
        name: Name in Prefect's lists, e.g. ``llama31-h200 · c0256 · performance``.
        marks: Tags to search by, e.g. ``level:256``.
        work: The step.
        attempt_id: The attempt that it is a step of.
    """
    shown, queue = _Step(name, marks, attempt_id), _to_show.get()
    if queue is not None:
        queue.put(shown)
    try:
        result = work()
    except BaseException as failure:
        shown.end.set_result(failure)
        raise
    shown.end.set_result(None)
    return result


@contextmanager
def steps_shown() -> Iterator[None]:
    """While the block lasts, its steps are shown as tasks of the flow run that this is."""
    if FlowRunContext.get() is None:
        yield
        return
    queue: SimpleQueue[_Step | None] = SimpleQueue()
    show = copy_context().run  # the flow run is known by the context
    thread = threading.Thread(target=show, args=(_show_all, queue), name="steps", daemon=True)
    thread.start()
    token = _to_show.set(queue)
    try:
        yield
    finally:
        _to_show.reset(token)
        queue.put(None)
        thread.join(END_TIMEOUT_S)


def _show_all(queue: SimpleQueue[_Step | None]) -> None:
    while (shown := queue.get()) is not None:
        try:
            _show(shown)
        except (Exception, PrefectSignal) as problem:
            # The server went away meanwhile, or the run was paused or cancelled there, which is
            # heeded between two points; whatever it is, a page must never end a measurement.
            logging.getLogger("pareto.steps").debug("%s is not shown: %s", shown.name, problem)


def _show(shown: _Step) -> None:
    api_url = os.environ.get("PREFECT_API_URL")
    if api_url is not None and not answers(api_url):  # its client would wait for it
        return
    show = _task.with_options(task_run_name=shown.name)
    show(shown.end.result, shown.marks, shown.attempt_id, return_state=True)


@task(name="step", cache_policy=NO_CACHE, persist_result=False)
def _task(
    end: Callable[[], BaseException | None], marks: Collection[str], attempt_id: int
) -> State[Any]:
    """Ends as the step ended; a failure has its message and no traceback.

    It begins without tags and ends with them: before a task with tags Prefect's client asks its
    server for a slot of each, which a busy SQLite turns down, and then waits for seconds.
    """
    context = TaskRunContext.get()
    assert context is not None, "this is a task"
    context.task_run.tags = sorted(marks)
    _shown_by[attempt_id] = str(context.task_run.id)
    failure = end()
    if failure is None:
        return Completed()
    message = hidden(str(failure) or type(failure).__name__, os.environ)
    return Failed(message=message, data=failure)
