"""One point: attempts until one is valid, none is left, or the failure would repeat.

An attempt is a row and a folder of its own: configure, performance, accuracy, validate. Every
state is committed to the records before the next step; Prefect only shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

import orjson

from core.errors import InterruptedByUserError, ParetoError, SetupError
from core.files import make_read_only, write_atomic
from core.findings import told
from core.layout import AttemptPaths, instance_lock_path
from core.plan import Point
from core.progress import Phase
from core.records import AttemptRecord
from core.retry import TOO_SHORT, Next, after_failure
from core.run import planned_run
from core.sizing import issue_rate
from core.status import AttemptState
from core.validate import Verdict, validate
from core.watchdog import Limits
from flows.session import Session, config_of, room_for
from flows.steps import step
from flows.stop import StopRequest
from tasks.client import benchmark_command
from tasks.collect import collect
from tasks.endpoint import wait_until_healthy
from tasks.owner import this_process
from tasks.supervise import (
    EndedBy,
    GuardEnd,
    GuardSpec,
    GuardState,
    GuardStatus,
    follow,
    own_identity,
    read_status,
    request_stop,
    start,
)

T = TypeVar("T")

#: Outer limit of one client run whose length can't be predicted, seconds.
UNKNOWN_RUN_TIMEOUT_S = 24 * 3600.0
#: Outer limit over the predicted length, and seconds for start-up, drain and scoring on top.
TIMEOUT_FACTOR, TIMEOUT_EXTRA_S = 3.0, 1800.0
#: Attempts at a point in one run that may come out too short without using up a retry: the first
#: measures the rate, the second corrects what that short run got wrong.
MAX_RESIZES = 2
#: Ends of a client that say nothing about the measurement: it was stopped, or nobody knows.
_INTERRUPTIONS = frozenset(
    {EndedBy.STOP_REQUEST, EndedBy.ORPHAN_STOP, EndedBy.GUARD_FAILURE, EndedBy.LOST_GUARD}
)


class PointNotValidError(ParetoError):
    """An attempt ended without a valid result; its findings say what to do."""

    def __init__(self, where: str, verdict: Verdict) -> None:
        self.rules = verdict.rules
        lines = told(asdict(finding) for finding in verdict.findings)
        super().__init__("\n  ".join([f"{where} is not valid:", *lines]))


@dataclass(frozen=True)
class Running:
    """What the steps of one attempt share."""

    session: Session
    point: Point
    attempt: AttemptRecord
    stop: StopRequest

    @property
    def paths(self) -> AttemptPaths:
        """Where the attempt lies."""
        return self.session.prepared.paths.attempt(self.attempt.folder)

    def step(self, what: str, work: Callable[[], T]) -> T:
        """Run a step of this attempt under its name and tags."""
        campaign = self.session.campaign
        again = "" if self.attempt.number == 1 else f" (attempt {self.attempt.number})"
        marks = {
            f"campaign:{campaign.campaign}",
            f"instance:{campaign.instance.name}",
            f"level:{self.point.concurrency}",
            f"region:{self.point.region}",
            *(["rehearsal"] if campaign.rehearsal else []),
        }
        return step(f"{campaign.campaign} · {self.point.label} · {what}{again}", marks, work)


def run_point(session: Session, planned: Point, stop: StopRequest) -> Next:
    """Measure a point: attempts until one is valid, none is left, or the failure would repeat.

    An attempt that was only too short doesn't use up a retry: it measured the rate that the next
    one is sized by.

    Raises:
        SetupError: the endpoint did not come back, or there is no room.
        InterruptedByUserError: stopped on request; what was running is recorded as interrupted.
    """
    failures = resizes = 0
    while True:
        point = session.sized(planned.label)
        following = _attempt(session, point, stop)
        if following is Next.RESIZE and resizes < MAX_RESIZES:
            resizes += 1
        elif following in (Next.RETRY, Next.RESIZE) and failures < session.campaign.run.retries:
            stop.wait(session.campaign.run.backoff_s * 2**failures)
            failures += 1
        else:
            return Next.STOP if following is Next.STOP else Next.GO_ON


def take_in(running: Running) -> Next:
    """Follow a started attempt to its end, whoever started it, and record what came out."""
    if running.point.accuracy:
        running.step("accuracy", lambda: _follow(running))
    status = _follow(running)
    try:
        running.step("validate", lambda: _conclude(running, status))
    except PointNotValidError as not_valid:
        if running.stop:
            raise InterruptedByUserError(
                f"stopped ({running.stop.reason}) during {running.point.label}; run the same file"
                " again to continue"
            ) from None
        return after_failure(not_valid.rules, status.end.return_code if status.end else None)
    return Next.GO_ON


def _attempt(session: Session, point: Point, stop: StopRequest) -> Next:
    """One attempt from preflight to verdict; a lost endpoint is waited for."""
    recovery_s = session.campaign.run.recovery_timeout_s
    wait_until_healthy(session.campaign, session.env, recovery_s, stop.asked)
    if stop:
        raise InterruptedByUserError(f"stopped ({stop.reason}) before {point.label}")
    room_for(session, point)
    attempt = session.records.new_attempt(
        session.campaign.campaign,
        point.label,
        owner=this_process(),
        samples=point.sizing.samples,
        passes=point.sizing.passes,
        client_version=session.client.version,
    )
    running = Running(session, point, attempt, stop)
    try:
        running.step("configure", lambda: _configure(running))
        running.step("performance", lambda: _measure(running))
    except SetupError as failure:
        session.records.change_state(attempt.id, AttemptState.FAILED, reason=str(failure))
        raise
    return take_in(running)


def _configure(running: Running) -> None:
    """Write the client's configuration into the attempt's new folder."""
    paths, session = running.paths, running.session
    paths.path.mkdir(parents=True, exist_ok=False)
    text = config_of(session.prepared, session.client, running.point, paths.run.path)
    write_atomic(paths.client_yaml, text.encode())


def _measure(running: Running) -> None:
    """Start the client behind its guard and follow it until the timed phase is over."""
    paths, session = running.paths, running.session
    lock = instance_lock_path(session.campaign.instance.name, session.env)
    lock.parent.mkdir(parents=True, exist_ok=True)
    spec = GuardSpec(
        command=tuple(
            benchmark_command(
                session.client.command, paths.client_yaml, accuracy=running.point.accuracy
            )
        ),
        cwd=session.campaign.records.folder,  # the client keeps datasets that it downloads here
        stdout_path=paths.client_stdout,
        stderr_path=paths.client_stderr,
        status_path=paths.guard_status,
        stop_path=paths.stop_request,
        lock_path=lock,
        limits=_limits(session),
        deadline_s=_deadline_s(session, running.point),
        when_orphaned=session.campaign.run.when_orphaned,
        parent=own_identity(),
    )
    start(spec, session.env)
    _refuse_busy(running)
    session.records.change_state(running.attempt.id, AttemptState.RUNNING)
    _follow(running, until=(Phase.ACCURACY, Phase.FINISHING))


def _refuse_busy(running: Running) -> None:
    status = read_status(running.paths.guard_status)
    if status is not None and status.state is GuardState.REFUSED:
        raise SetupError(
            f"instance {running.session.campaign.instance.name!r} is being measured by another"
            f" campaign ({status.holder}); one at a time may load it"
        )


def _limits(session: Session) -> Limits:
    run = session.campaign.run
    return Limits(
        startup_timeout_s=run.startup_timeout_s,
        stall_timeout_s=run.stall_timeout_s,
        draining_timeout_s=max(run.stall_timeout_s, Limits.draining_timeout_s),
        finishing_timeout_s=run.finishing_timeout_s,
    )


def _deadline_s(session: Session, point: Point) -> float:
    """Outer limit of one client run, from its start."""
    run = session.campaign.run
    if run.point_timeout_s is not None:
        return run.point_timeout_s
    expected_s = point.sizing.issue_time_s
    if expected_s is None or point.sizing.rate is None or point.accuracy:
        return UNKNOWN_RUN_TIMEOUT_S
    return TIMEOUT_FACTOR * expected_s + TIMEOUT_EXTRA_S


def _follow(running: Running, until: Collection[Phase] = ()) -> GuardStatus:
    """Follow the guard to its end or to a phase; hand a request to stop on to it."""
    asked = 0
    for status in follow(running.paths.guard_status):
        wanted = 0 if not running.stop else 2 if running.stop.at_once else 1
        if wanted > asked:
            request_stop(
                running.paths.stop_request, running.stop.reason, at_once=running.stop.at_once
            )
            asked = wanted
        if status.end is not None or status.phase in until:
            return status
    return status


def _conclude(running: Running, status: GuardStatus) -> None:
    """Read the run folder, judge it, and record manifest, findings and state, in this order.

    Raises:
        PointNotValidError: the attempt is no valid result.
    """
    session, attempt = running.session, running.attempt
    assert status.end is not None
    facts, manifest = collect(
        running.paths.run.path,
        attempt_started_at=status.started_at,
        exit_code=status.end.return_code,
        ended_by=status.end.ended_by,
    )
    wanted = planned_run(
        session.campaign,
        session.plan,
        running.point,
        attempt.planned_samples or 0,
        session.accuracy_rows,
    )
    verdict = validate(wanted, facts, benchmark=session.campaign.benchmark)
    findings = [asdict(finding) for finding in verdict.findings]
    write_atomic(running.paths.verdict, orjson.dumps(findings, option=orjson.OPT_INDENT_2))
    session.records.record_folder(attempt.id, running.paths.run.path, manifest)
    if facts.exists:
        make_read_only(running.paths.run.path)
    state = _state(status.end.ended_by, verdict)
    session.records.change_state(
        attempt.id,
        state,
        exit_code=status.end.return_code,
        ended_by=status.end.ended_by,
        ended_at=status.end.ended_at,
        reason=_reason(status.end, verdict),
        findings=findings,
        metrics=_metrics(verdict, running.point.concurrency),
    )
    if state is not AttemptState.VALID:
        raise PointNotValidError(f"{running.point.label} attempt {attempt.number}", verdict)


def _state(ended_by: EndedBy, verdict: Verdict) -> AttemptState:
    """State of an attempt that ended: an interruption is never complete, whatever it left."""
    if ended_by in _INTERRUPTIONS:
        return AttemptState.INTERRUPTED
    if verdict.valid:
        return AttemptState.VALID
    if ended_by is EndedBy.ITSELF and verdict.metrics:
        return AttemptState.INVALID
    return AttemptState.FAILED


def _reason(end: GuardEnd, verdict: Verdict) -> str | None:
    """One line on why the attempt is not valid; None if it is."""
    if end.ended_by is not EndedBy.ITSELF and end.reason:
        return end.reason
    return ", ".join(sorted(verdict.rules)) or None


def _metrics(verdict: Verdict, level: int) -> dict[str, Any]:
    """What was measured, as the records keep it; `rate_qps` only if the rate can be relied on."""
    found = verdict.metrics
    if found is None:
        return {}
    kept = asdict(found) | {"accuracy_scores": verdict.accuracy_scores}
    if verdict.rules <= {TOO_SHORT} and found.issue_span_s is not None:
        kept["rate_qps"] = issue_rate(found.issued, level, found.issue_span_s, found.qps or 0.0)
    return kept
