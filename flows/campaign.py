"""A campaign: every point in plan order, those that are valid skipped, one verdict at the end.

The records decide what is done; running the same file again, or pressing Retry in Prefect's pages,
measures what is not valid yet and nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.runtime import flow_run
from prefect.states import Cancelled, Completed, Failed

from core.errors import ExecutionError, InterruptedByUserError, ParetoError, SetupError
from core.findings import told
from core.layout import campaign_lock_path
from core.plan import Role
from core.records import AttemptRecord, PointRecord
from core.retry import Next
from core.status import AttemptState, PointState
from flows.attempt import Running, take_in, take_in_kept
from flows.pilot import conclude_pilot, is_pilot
from flows.point import run_point, sized
from flows.prepare import prepare
from flows.session import Session, enter, preflight, room_for
from flows.stop import StopRequest, on_signals
from flows.wishes import heeded, wait_while_paused
from tasks.lock import exclusive
from tasks.owner import owner_lives
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


def _run_name() -> str:
    """Name of a run in Prefect's lists: the campaign and the instance that it measures."""
    given = handed_over.get()
    if given is None:
        return Path(flow_run.parameters["campaign_file"]).stem
    campaign = given.session.campaign
    return f"{campaign.campaign} @ {campaign.instance.name}"


@flow(name="campaign", flow_run_name=_run_name)
def campaign_flow(
    campaign_file: str, points: list[str] | None = None, calibrate: bool = False
) -> State[None]:
    """Measure every point of a campaign that is not valid yet.

    Args:
        campaign_file: Path of the campaign YAML.
        points: Labels of the points to run, e.g. c0064; default: all that are not valid.
        calibrate: Only find out rates by pilots; measure nothing.
    """
    given = handed_over.get()
    outcome = _outcome(given, campaign_file, points, calibrate=calibrate)
    if given is not None:
        given.outcome = outcome
    return outcome


def _outcome(
    given: HandedOver | None, campaign_file: str, points: list[str] | None, *, calibrate: bool
) -> State[None]:
    """Run the campaign; its end as a state that Prefect shows."""
    try:
        if given is None:
            ready = prepare(Path(campaign_file), os.environ)
            stop = StopRequest()
            given = HandedOver(enter(ready, preflight(ready), stop.asked), stop)
        with on_signals(given.stop):  # within the flow SIGTERM is Prefect's, until we take it
            run_campaign(given.session, given.stop, points, calibrate=calibrate)
    except InterruptedByUserError as stopped:
        return Cancelled(message=str(stopped), data=stopped)
    except ParetoError as failure:
        return Failed(message=str(failure), data=failure)
    return Completed(message="every point is valid")


def run_campaign(
    session: Session,
    stop: StopRequest,
    only: Collection[str] | None = None,
    *,
    calibrate: bool = False,
) -> None:
    """Take in what an earlier run left, then measure every wanted point that is not valid.

    Args:
        session: The campaign.
        stop: The user's request to stop.
        only: Labels of the points to run; None: all.
        calibrate: Only find out rates by pilots; measure nothing.

    Raises:
        ExecutionError: a failure that would repeat stopped the campaign.
        CurveIncompleteError: all points were tried and some are not valid.
        InterruptedByUserError: stopped on request.
        SetupError: another process runs this campaign, another campaign holds the instance, or
            the surroundings failed.
    """
    name = session.campaign.campaign
    lock = campaign_lock_path(session.prepared.paths.runs, name)
    with exclusive(lock, f"campaign {name}"), session.hold.held(stop.ask):
        session.records.ask(name, None)  # to run it again is to go on
        session.records.append_event(name, "campaign.started", {"flow_run": flow_run.id or ""})
        with heeded(session, stop):
            settle_open_attempts(session, stop)
            session.hold.settled()
            to_do = _to_do(session, only)
            _refuse_missed(session, [] if only else to_do)
            if not calibrate:
                room_for(session, to_do)
            _measure(session, stop, to_do, calibrate=calibrate)
        missing = [] if calibrate else _not_valid(session)
        session.records.append_event(name, "campaign.finished", {"not_valid": missing})
    if missing:
        raise CurveIncompleteError(_incomplete(session, missing))


def _measure(
    session: Session, stop: StopRequest, labels: Collection[str], *, calibrate: bool
) -> None:
    for label in labels:
        wait_while_paused(session, stop, label)
        if calibrate:
            sized(session, label, stop)
        elif run_point(session, label, stop) is Next.STOP:
            raise ExecutionError(_stopped_by(_record(session, label)))


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
    owner = attempt.owner
    if owner_lives(owner):
        raise SetupError(
            f"{attempt.label} attempt {attempt.number} is being run by process {owner.pid}; watch"
            f" it with `pareto status {attempt.campaign}`"
        )
    paths = session.prepared.paths.attempt(attempt.folder)
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
    if is_pilot(attempt):
        return conclude_pilot(running)
    return _refuse_repeating(session, attempt, take_in(running))


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
