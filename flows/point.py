"""One point: attempts until one is valid, none is left, or the failure would repeat."""

from __future__ import annotations

from core.errors import InterruptedByUserError
from core.estimate import over_budget
from core.plan import Point
from core.retry import Next
from flows.attempt import begin, take_in
from flows.pilot import needs_pilot, run_pilot
from flows.running import Running
from flows.session import Session, room_for
from flows.stop import StopRequest
from flows.system import look_before, record_before, refuse_drift
from tasks.endpoint import wait_until_healthy
from tasks.owner import this_process

#: Attempts at a point in one run that may come out with a wrong count without using up a retry: the
#: first measures the rate, the second corrects what that short run got wrong.
MAX_RESIZES = 2


def run_point(session: Session, label: str, stop: StopRequest) -> Next:
    """Measure a point: attempts until one is valid, none is left, or the failure would repeat.

    An attempt whose count was wrong doesn't use up a retry: it measured the rate that the next one
    is sized by.

    Raises:
        SetupError: the endpoint did not come back, or there is no room.
        ExecutionError: the system is no longer the one that the curve was begun on.
        InterruptedByUserError: stopped on request; what was running is recorded as interrupted.
    """
    failures = resizes = 0
    while True:
        if is_over_budget(session, label):
            return Next.GO_ON
        point = sized(session, label, stop)
        if is_over_budget(session, label):  # a pilot may have shown that it takes longer
            return Next.GO_ON
        following = _attempt(session, point, stop)
        if following is Next.RESIZE and resizes < MAX_RESIZES:
            resizes += 1
        elif following in (Next.RETRY, Next.RESIZE) and failures < session.campaign.run.retries:
            stop.wait(session.campaign.run.backoff_s * 2**failures)
            failures += 1
        else:
            return Next.STOP if following is Next.STOP else Next.GO_ON


def is_over_budget(session: Session, label: str) -> bool:
    """Whether a point no longer fits the budget; then it is recorded as skipped."""
    budget_hours = session.campaign.run.budget_hours
    if budget_hours is None:
        return False
    reason = over_budget(budget_hours, session.spent_s(), session.estimate([label]).wall_s)
    if reason is not None:
        session.records.skip_point(session.campaign.campaign, label, reason)
    return reason is not None


def sized(session: Session, label: str, stop: StopRequest) -> Point:
    """The point sized by the best rate known, after a pilot where there is none.

    Raises:
        SetupError: the endpoint did not come back, or the client can't be started.
        ExecutionError: the system is no longer the one that the curve was begun on.
        InterruptedByUserError: stopped on request.
    """
    point = session.sized(label)
    if not needs_pilot(session, point) or session.has_tried_pilot(label):
        return point
    _await_endpoint(session, label, stop)
    refuse_drift(session, label)
    run_pilot(session, point, stop)
    return session.sized(label)


def _attempt(session: Session, point: Point, stop: StopRequest) -> Next:
    """One attempt from preflight to verdict; a lost endpoint is waited for."""
    _await_endpoint(session, point.label, stop)
    room_for(session, [point.label])
    session.hold.tell(point.label)
    seen = look_before(session, point.label)
    attempt = session.records.new_attempt(
        session.campaign.campaign,
        point.label,
        owner=this_process(),
        samples=point.sizing.samples,
        passes=point.sizing.passes,
        client_version=session.client.version,
    )
    record_before(session, attempt, seen)
    running = Running(session, point, attempt, stop)
    begin(running)
    return take_in(running)


def _await_endpoint(session: Session, label: str, stop: StopRequest) -> None:
    recovery_s = session.campaign.run.recovery_timeout_s
    wait_until_healthy(session.campaign, session.env, recovery_s, stop.asked)
    if stop:
        raise InterruptedByUserError(f"stopped ({stop.reason}) before {label}")
