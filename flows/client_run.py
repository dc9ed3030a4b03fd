"""The client of an attempt: configured, started behind its guard, followed to its end."""

from __future__ import annotations

from collections.abc import Callable, Collection

from core.errors import InterruptedByUserError, SetupError
from core.failfast import Glimpse, Hopeless, reason_to_stop
from core.files import write_atomic
from core.plan import Point, target_of
from core.progress import Phase
from core.sizing import Target
from core.status import AttemptState
from core.watchdog import Limits
from flows.running import Running
from flows.session import Session
from flows.system import instance_watch
from flows.verdict import FAIL_FAST, conclude
from tasks.client import benchmark_command
from tasks.disk import lack_of_room
from tasks.endpoint import EndpointWatch
from tasks.instance import TERM_MARGIN_S, TERM_S
from tasks.supervise import GuardSpec, GuardStatus, follow, own_identity, request_stop, start

#: Outer limit of one client run whose length can't be predicted, seconds.
UNKNOWN_RUN_TIMEOUT_S = 24 * 3600.0
#: Outer limit over the predicted length, and seconds for start-up, drain and scoring on top.
TIMEOUT_FACTOR, TIMEOUT_EXTRA_S = 3.0, 1800.0

#: Looks at a running client and says why to end it, or nothing.
Judge = Callable[[GuardStatus], str | None]


def configure(running: Running, text: str) -> None:
    """Write the client's configuration into the attempt's new folder."""
    running.paths.path.mkdir(parents=True, exist_ok=False)
    running.session.campaign.records.folder.mkdir(parents=True, exist_ok=True)
    write_atomic(running.paths.client_yaml, text.encode())


def start_client(
    running: Running, *, accuracy: bool, deadline_s: float, when_orphaned: str
) -> None:
    """Start the client behind its guard.

    Raises:
        SetupError: it can't be started.
    """
    paths, session = running.paths, running.session
    command = benchmark_command(session.client.command, paths.client_yaml, accuracy=accuracy)
    spec = GuardSpec(
        command=tuple(command),
        cwd=session.campaign.records.folder,  # the client keeps datasets that it downloads here
        stdout_path=paths.client_stdout,
        stderr_path=paths.client_stderr,
        status_path=paths.guard_status,
        stop_path=paths.stop_request,
        lock_fd=session.hold.lock.fd,
        limits=_limits(session),
        deadline_s=deadline_s,
        when_orphaned=when_orphaned,
        parent=own_identity(),
        beat_path=session.hold.beat_path,
        beat_timeout_s=TERM_S - TERM_MARGIN_S,
    )
    session.hold.tell(running.point.label, has_client=True)
    if running.stop:  # by the user, or because another campaign took the instance over
        session.hold.tell(running.point.label)
        conclude(running, AttemptState.INTERRUPTED, reason=running.stop.reason)
        raise InterruptedByUserError(
            f"stopped ({running.stop.reason}) before {running.point.label}; run the same file again"
            " to continue"
        )
    try:
        start(spec, session.env)
    except (SetupError, OSError):
        session.hold.tell(running.point.label)
        raise
    session.records.change_state(running.attempt.id, AttemptState.RUNNING)


def follow_client(
    running: Running, *, until: Collection[Phase] = (), judge: Judge = lambda _status: None
) -> GuardStatus:
    """Follow the guard to its end or to a phase; hand on the user's request to stop, or a judge's.

    Args:
        running: The attempt.
        until: Phases at which to return although the client goes on.
        judge: Says why the client is to be ended; asked at each heartbeat.
    """
    asked = 0
    for status in follow(running.paths.guard_status):
        wanted = 0 if not running.stop else 2 if running.stop.at_once else 1
        if wanted > asked:
            request_stop(
                running.paths.stop_request, running.stop.reason, at_once=running.stop.at_once
            )
            asked = wanted
        elif status.stop_reason is None and (reason := judge(status)):
            request_stop(running.paths.stop_request, reason)
        if status.end is not None or status.phase in until:
            break
    if status.end is not None:
        running.session.hold.tell(running.point.label)
    return status


def load_s(status: GuardStatus) -> float:
    """Seconds of the timed phase so far, or up to its last issue; 0 before it began."""
    times = iter(status.phases)
    began = next((at for phase, at in times if phase is Phase.PERFORMANCE), None)
    _, ended = next(times, (None, status.heartbeat_at))
    return 0.0 if began is None else max(0.0, ended - began)


def outer_limit_s(session: Session, point: Point) -> float:
    """Outer limit of one client run, from its start."""
    run = session.campaign.run
    if run.point_timeout_s is not None:
        return run.point_timeout_s
    expected_s = point.sizing.issue_time_s
    if expected_s is None or point.accuracy:
        return UNKNOWN_RUN_TIMEOUT_S
    return TIMEOUT_FACTOR * expected_s + TIMEOUT_EXTRA_S


def judge_of(running: Running) -> Judge:
    """Ends a run that can't become valid, whose surroundings fail, or whose instance changed."""
    hopeless, failing = _fail_fast(running), surroundings(running)
    watch = instance_watch(running.session, running.attempt)
    return lambda status: hopeless(status) or failing(status) or watch()


def surroundings(running: Running) -> Judge:
    """Ends a run whose endpoint is lost or whose disk is about to be full; deletes nothing."""
    session = running.session
    watch = EndpointWatch(session.campaign, session.env)

    def judge(_status: GuardStatus) -> str | None:
        if lacking := lack_of_room(session.prepared.paths.runs):
            return f"{FAIL_FAST}: {Hopeless.NO_ROOM}: {lacking}"
        lost = watch.lost()
        return f"{FAIL_FAST}: {Hopeless.ENDPOINT_LOST}: {lost}" if lost else None

    return judge


def _fail_fast(running: Running) -> Judge:
    """Ends a run that can no longer become valid, unless the user wants it to go on."""
    samples = running.attempt.planned_samples
    if not running.session.campaign.run.fail_fast or samples is None:
        return lambda _status: None
    target = _target(running)

    def judge(status: GuardStatus) -> str | None:
        all_issued = status.phase is Phase.ACCURACY
        is_timed = status.phase is Phase.PERFORMANCE or all_issued
        issued_s = load_s(status) if is_timed else 0.0
        glimpse = Glimpse(status.done, status.errors, issued_s, all_issued)
        stop = reason_to_stop(glimpse, samples, target)
        return f"{FAIL_FAST}: {stop.kind}: {stop.reason}" if stop else None

    return judge


def _target(running: Running) -> Target:
    session = running.session
    return target_of(session.campaign, running.point, session.plan.dataset_rows)


def _limits(session: Session) -> Limits:
    run = session.campaign.run
    return Limits(
        startup_timeout_s=run.startup_timeout_s,
        stall_timeout_s=run.stall_timeout_s,
        draining_timeout_s=max(run.stall_timeout_s, Limits.draining_timeout_s),
        finishing_timeout_s=run.finishing_timeout_s,
    )
