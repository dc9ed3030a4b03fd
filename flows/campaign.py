"""A campaign: every point in plan order, those that are valid skipped, one verdict at the end.

The records decide what is done; running the same file again, or pressing Retry in Prefect's pages,
measures what is not valid yet and nothing else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass

from prefect.client.schemas.objects import State
from prefect.runtime import flow_run

from core.errors import ExecutionError, ParetoError, SetupError
from core.findings import told
from core.layout import AttemptPaths
from core.plan import Role
from core.records import AttemptRecord, PointRecord, RecordsUnavailableError
from core.redact import hidden
from core.retry import Next
from core.status import AttemptState, PointState
from flows.alone import alone
from flows.attempt import take_in
from flows.monitor import monitored
from flows.pilot import conclude_pilot
from flows.point import run_point, sized
from flows.running import Running
from flows.session import Session, room_for
from flows.steps import steps_shown
from flows.stop import StopRequest
from flows.verdict import take_in_kept
from flows.wishes import Wishes, heeded, wait_while_paused
from tasks.owner import owner_lives, was_here
from tasks.supervise import read_status


@dataclass
class HandedOver:
    """A session that the caller prepared already, with its request to stop."""

    session: Session
    stop: StopRequest
    #: How it ended; the caller learns it even if Prefect's server is gone by then.
    outcome: State[None] | None = None


#: What `pareto run` hands over to the flow that it calls in its own process.
handed_over: ContextVar[HandedOver | None] = ContextVar("handed_over", default=None)


class CurveIncompleteError(ParetoError):
    """The campaign finished, and points are not valid; retry them."""


def run_campaign(
    session: Session,
    stop: StopRequest,
    only: Collection[str] | None = None,
    *,
    calibrate: bool = False,
) -> str:
    """Take in what an earlier run left, then measure every wanted point that is not valid.

    Args:
        session: The campaign.
        stop: The user's request to stop.
        only: Labels of the points to run; None: all.
        calibrate: Only find out rates by pilots; measure nothing.

    Returns:
        What was done.

    Raises:
        ExecutionError: a failure that would repeat stopped the campaign.
        CurveIncompleteError: all points were tried and some are not valid.
        InterruptedByUserError: stopped on request.
        SetupError: another process runs this campaign, another campaign holds the instance, or
            the surroundings failed.
    """
    name = session.campaign.campaign
    ready, records = session.prepared, session.records
    with alone(ready, stop, flow_run.id, records), session.hold.held(stop.ask):
        session.records.ask(name, None)  # to run it again is to go on
        payload = {"flow_run": flow_run.id or ""}
        started = session.records.append_event(name, "campaign.started", payload)
        with monitored(session, started.id - 1), steps_shown(), _stop_recorded(session):
            with heeded(session, stop) as wishes:
                settle_open_attempts(session, stop)
                session.hold.settled()
                to_do = _to_do(session, only)
                _refuse_missed(session, [] if only else to_do)
                if not calibrate:
                    room_for(session, to_do)
                _measure(session, stop, wishes, to_do, calibrate=calibrate)
            missing = [] if calibrate else _not_valid(session)
            session.records.append_event(name, "campaign.finished", {"not_valid": missing})
    if missing:
        raise CurveIncompleteError(_incomplete(session, missing))
    return "rates are known" if calibrate else "every point is valid"


@contextmanager
def _stop_recorded(session: Session) -> Iterator[None]:
    """Record why the block was left, if it was not by its end."""
    try:
        yield
    except ParetoError as failure:
        key = session.campaign.endpoint.api_key_env
        reason = hidden(str(failure), session.env, key)
        payload = {"reason": reason, "exit_code": failure.exit_code}
        with suppress(RecordsUnavailableError):  # then they are what the failure is about
            records = session.records.impatient()
            records.append_event(session.campaign.campaign, "campaign.stopped", payload)
        raise


def _measure(
    session: Session,
    stop: StopRequest,
    wishes: Wishes,
    labels: Collection[str],
    *,
    calibrate: bool,
) -> None:
    for label in labels:
        wait_while_paused(session, stop, wishes, label)
        if calibrate:
            sized(session, label, stop)
            continue
        following = run_point(session, label, stop)
        _record_end(session, label)
        if following is Next.STOP:
            raise ExecutionError(_stopped_by(_record(session, label)))


def _record_end(session: Session, label: str) -> None:
    """Record how the run ended at a point; one that was skipped is on record already."""
    point = _record(session, label)
    if point.state is PointState.SKIPPED or not point.measurements:
        return
    last = point.measurements[-1]
    kind = "point.completed" if point.state is PointState.VALID else "point.failed"
    payload = {"label": label, "attempt": last.number, "reason": last.reason}
    session.records.append_event(session.campaign.campaign, kind, payload)


def _to_do(session: Session, only: Collection[str] | None) -> list[str]:
    """Labels of the points to run, in plan order; under a budget the mandatory ones first."""
    valid = {point.label for point in session.points() if point.state is PointState.VALID}
    points = list(session.plan.points)
    if session.campaign.run.budget_hours is not None:
        needed = (Role.MANDATORY, Role.OFFLINE)
        points.sort(key=lambda point: point.role not in needed)
    return [p.label for p in points if p.label not in valid and (not only or p.label in only)]


def _refuse_missed(session: Session, to_do: Collection[str]) -> None:
    """Refuse to go on by itself where accuracy was missed: a better score is not shopped for.

    Raises:
        ExecutionError: naming the points; they run again only if the user names them.
    """
    missed = [
        point.label for point in session.points() if point.label in to_do and point.missed_accuracy
    ]
    if missed:
        raise ExecutionError(
            f"{', '.join(missed)} missed its accuracy, and a miss is not tried again by itself"
            f" (§4.3); once the system is corrected: pareto retry {session.prepared.loaded.path}"
            f" --points {','.join(missed)}"
        )


def settle_open_attempts(session: Session, stop: StopRequest) -> None:
    """Bring every attempt that an earlier run left open to its end: follow it, or call it lost.

    Raises:
        SetupError: an open attempt belongs to a living process.
        ExecutionError: one of them failed in a way that would repeat.
    """
    for attempt in session.records.open_attempts():
        if attempt.campaign == session.campaign.campaign:
            _settle(session, attempt, stop)


def _settle(session: Session, attempt: AttemptRecord, stop: StopRequest) -> None:
    """Take in one open attempt, from its folder's outcome, its guard, or neither."""
    paths = session.prepared.paths.attempt(attempt.folder)
    _refuse_foreign(session, attempt, paths)
    running = Running(session, session.plan.point(attempt.label), attempt, stop)
    status = read_status(paths.guard_status)
    was_started = status is not None
    if was_started and attempt.state is AttemptState.PREPARED:
        session.records.change_state(attempt.id, AttemptState.RUNNING)
    following = take_in_kept(running)
    if following is not None:
        return _refuse_repeating(session, attempt, following)
    if not was_started:
        session.records.change_state(
            attempt.id,
            AttemptState.INTERRUPTED,
            reason="its orchestrator ended before the client was started",
        )
        return None
    if attempt.is_pilot:
        return conclude_pilot(running)
    return _refuse_repeating(session, attempt, take_in(running))


def _refuse_foreign(session: Session, attempt: AttemptRecord, paths: AttemptPaths) -> None:
    """Refuse to conclude an attempt that is somebody else's to conclude.

    Raises:
        SetupError: its process lives, or it left its folder on another machine.
    """
    owner, where = attempt.owner, f"{attempt.label} attempt {attempt.number}"
    is_held = any(lease.owner == owner for lease in session.records.leases())
    if owner_lives(owner) or (is_held and not was_here(owner)):
        raise SetupError(
            f"{where} is being run by process {owner.pid} on {owner.host}; watch it with `pareto"
            f" status {attempt.campaign}`"
        )
    if not was_here(owner) and not paths.path.exists():
        raise SetupError(
            f"{where} was left by process {owner.pid} on {owner.host}, and {paths.path} is not on"
            " this machine: run the campaign there to take in what it measured, or give it up"
            f" with `pareto unlock {attempt.campaign} --reason …`"
        )


def _refuse_repeating(session: Session, attempt: AttemptRecord, following: Next) -> None:
    if following is Next.STOP:
        raise ExecutionError(_stopped_by(_record(session, attempt.label)))


def _record(session: Session, label: str) -> PointRecord:
    """The point as it stands in the records now."""
    points = session.records.points_with_attempts(session.campaign.campaign)
    return next(point for point in points if point.label == label)


def _not_valid(session: Session) -> list[str]:
    """Labels of the points that are not valid."""
    points = session.records.points_with_attempts(session.campaign.campaign)
    return [point.label for point in points if point.state is not PointState.VALID]


def _incomplete(session: Session, missing: Sequence[str]) -> str:
    file = session.prepared.loaded.path
    skipped = [point.label for point in session.points() if point.state is PointState.SKIPPED]
    text = (
        f"{len(missing)} of {len(session.plan.points)} points are not valid: {', '.join(missing)};"
        f" `pareto runs {file}` says why, `pareto run {file}` goes on"
    )
    if skipped:
        text += f"; {', '.join(skipped)} did not fit run.budget_hours and were skipped"
    return text


def _stopped_by(point: PointRecord) -> str:
    last = point.attempts[-1]
    head = (
        f"{point.label} attempt {last.number} failed in a way that would repeat at every point;"
        " the campaign was stopped:"
    )
    return "\n  ".join([head, *told(last.findings)])
