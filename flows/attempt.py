"""One attempt: its client behind a guard, followed to its end, its folder judged and recorded.

Every state is committed to the records before the next step; Prefect only shows it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from core.errors import InterruptedByUserError, SetupError
from core.failfast import Hopeless
from core.identity import CHANGED_RULE
from core.progress import Phase
from core.records import RecordsUnavailableError
from core.retry import Next, after_failure
from core.status import AttemptState
from flows.client_run import configure, follow_client, judge_of, outer_limit_s, start_client
from flows.running import Running
from flows.session import config_of
from flows.system import look_at_accuracy
from flows.verdict import PointNotValidError, conclude, conclude_measurement, stopped_for
from tasks.supervise import request_stop


def begin(running: Running) -> None:
    """Configure the client, start it, and follow it until the timed phase is over.

    Raises:
        SetupError: it can't be configured or started; the attempt is recorded as failed.
    """
    with ending_client(running), failing(running):
        running.step("start", lambda: _start(running))
        running.step("performance", lambda: _performance(running))


def take_in(running: Running) -> Next:
    """Follow a started attempt to its end, whoever started it, and record what came out."""
    with ending_client(running):
        judge = judge_of(running)
        if running.point.accuracy:
            running.step("accuracy", lambda: follow_client(running, judge=judge))
        status = follow_client(running, judge=judge)
    try:
        running.step("validate", lambda: conclude_measurement(running, status))
    except PointNotValidError as not_valid:
        if running.stop:
            raise InterruptedByUserError(
                f"stopped ({running.stop.reason}) during {running.point.label}; run the same file"
                " again to continue"
            ) from None
        assert status.end is not None
        is_one_instance = CHANGED_RULE not in not_valid.rules
        if is_one_instance and stopped_for(status.end) in (Hopeless.TOO_FAST, Hopeless.TOO_SLOW):
            return Next.RESIZE
        return after_failure(not_valid.rules, status.end.return_code)
    return Next.GO_ON


@contextmanager
def ending_client(running: Running) -> Iterator[None]:
    """Hand a request to stop on to the guard also where the block was left for want of records."""
    try:
        yield
    except RecordsUnavailableError:
        if running.stop and running.paths.guard_status.exists():
            with suppress(OSError):
                request_stop(running.paths.stop_request, running.stop.reason)
        raise


@contextmanager
def failing(running: Running) -> Iterator[None]:
    """Record the attempt as failed if the block meets wrong surroundings.

    Records that are away say nothing about the attempt: its client may be running by then, and is
    taken in later.
    """
    try:
        yield
    except RecordsUnavailableError:
        raise
    except FileExistsError as problem:  # of other records: nothing in it may change
        failure = SetupError(
            f"{running.paths.path} exists, and these records know nothing of it; name the records"
            " that it belongs to, or move it away"
        )
        running.session.records.change_state(
            running.attempt.id, AttemptState.FAILED, reason=str(failure)
        )
        raise failure from problem
    except OSError as problem:  # a disk that is full or read-only
        failure = SetupError(f"{running.paths.path}: {problem}; look at that disk")
        conclude(running, AttemptState.FAILED, reason=str(failure))
        raise failure from problem
    except SetupError as failure:
        conclude(running, AttemptState.FAILED, reason=str(failure))
        raise


def _start(running: Running) -> None:
    configure(running, _config(running))
    start_client(
        running,
        accuracy=running.point.accuracy,
        deadline_s=outer_limit_s(running.session, running.point),
        when_orphaned=running.session.campaign.run.when_orphaned,
    )


def _performance(running: Running) -> None:
    until = (Phase.ACCURACY, Phase.FINISHING)
    status = follow_client(running, until=until, judge=judge_of(running))
    if status.phase is Phase.ACCURACY:
        look_at_accuracy(running.session, running.attempt)


def _config(running: Running) -> str:
    session = running.session
    return config_of(session.prepared, session.client, running.point, running.paths.run.path)
