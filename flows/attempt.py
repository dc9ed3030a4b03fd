"""One attempt: its client behind a guard, followed to its end, its folder judged and recorded.

Every state is committed to the records before the next step; Prefect only shows it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeVar

import orjson

from core.errors import InterruptedByUserError, ParetoError, SetupError
from core.failfast import Glimpse, Hopeless, reason_to_stop
from core.files import Manifest, make_read_only, write_atomic
from core.findings import Finding, told
from core.folder import FolderFacts
from core.identity import CHANGED_RULE
from core.layout import AttemptPaths
from core.plan import Point, target_of
from core.progress import Phase
from core.records import AttemptRecord
from core.retry import TOO_SHORT, Next, after_failure
from core.run import planned_run
from core.sizing import issue_rate
from core.status import AttemptState
from core.validate import Verdict, validate
from core.watchdog import Limits
from flows.session import Session, config_of
from flows.steps import step
from flows.stop import StopRequest
from flows.system import findings_after, instance_watch, look_at_accuracy
from tasks.client import benchmark_command
from tasks.collect import collect
from tasks.supervise import (
    EndedBy,
    GuardEnd,
    GuardSpec,
    GuardStatus,
    follow,
    own_identity,
    request_stop,
    start,
)

T = TypeVar("T")

#: Outer limit of one client run whose length can't be predicted, seconds.
UNKNOWN_RUN_TIMEOUT_S = 24 * 3600.0
#: Outer limit over the predicted length, and seconds for start-up, drain and scoring on top.
TIMEOUT_FACTOR, TIMEOUT_EXTRA_S = 3.0, 1800.0
#: How the reason of a request to stop begins when it is ours and not the user's.
FAIL_FAST = "fail-fast"
#: Ends of a client that say nothing about the measurement: it was stopped, or nobody knows.
_INTERRUPTIONS = frozenset(
    {EndedBy.STOP_REQUEST, EndedBy.ORPHAN_STOP, EndedBy.GUARD_FAILURE, EndedBy.LOST_GUARD}
)

#: Looks at a running client and says why to end it, or nothing.
Judge = Callable[[GuardStatus], str | None]


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


# --- From the first step to the last -----------------------------------------------------------


def begin(running: Running) -> None:
    """Configure the client, start it, and follow it until the timed phase is over.

    Raises:
        SetupError: it can't be configured or started; the attempt is recorded as failed.
    """
    with failing(running):
        running.step("configure", lambda: configure(running, _config(running)))
        running.step("performance", lambda: _performance(running))


def take_in(running: Running) -> Next:
    """Follow a started attempt to its end, whoever started it, and record what came out."""
    judge = _judge(running)
    if running.point.accuracy:
        running.step("accuracy", lambda: follow_client(running, judge=judge))
    status = follow_client(running, judge=judge)
    try:
        running.step("validate", lambda: _conclude(running, status))
    except PointNotValidError as not_valid:
        if running.stop:
            raise InterruptedByUserError(
                f"stopped ({running.stop.reason}) during {running.point.label}; run the same file"
                " again to continue"
            ) from None
        assert status.end is not None
        is_one_instance = CHANGED_RULE not in not_valid.rules
        if is_one_instance and _stopped_for(status.end) in (Hopeless.TOO_FAST, Hopeless.TOO_SLOW):
            return Next.RESIZE
        return after_failure(not_valid.rules, status.end.return_code)
    return Next.GO_ON


@contextmanager
def failing(running: Running) -> Iterator[None]:
    """Record the attempt as failed if the block meets wrong surroundings."""
    try:
        yield
    except SetupError as failure:
        running.session.records.change_state(
            running.attempt.id, AttemptState.FAILED, reason=str(failure)
        )
        raise


# --- The client --------------------------------------------------------------------------------


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
    )
    session.hold.tell(running.point.label, client_until=time.time() + deadline_s)
    start(spec, session.env)
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
    """Seconds since the timed phase began; 0 before."""
    began = next((at for phase, at in status.phases if phase is Phase.PERFORMANCE), None)
    return 0.0 if began is None else max(0.0, status.heartbeat_at - began)


def read_folder(running: Running, status: GuardStatus) -> tuple[FolderFacts, Manifest]:
    """Read the run folder once, and record what lies in it."""
    assert status.end is not None
    place = running.paths.run.path
    facts, manifest = collect(
        place,
        attempt_started_at=status.started_at,
        exit_code=status.end.return_code,
        ended_by=status.end.ended_by,
    )
    running.session.records.record_folder(running.attempt.id, place, manifest)
    if facts.exists:
        make_read_only(place)
    return facts, manifest


def _config(running: Running) -> str:
    session = running.session
    return config_of(session.prepared, session.client, running.point, running.paths.run.path)


def _performance(running: Running) -> None:
    start_client(
        running,
        accuracy=running.point.accuracy,
        deadline_s=_deadline_s(running.session, running.point),
        when_orphaned=running.session.campaign.run.when_orphaned,
    )
    until = (Phase.ACCURACY, Phase.FINISHING)
    status = follow_client(running, until=until, judge=_judge(running))
    if status.phase is Phase.ACCURACY:
        look_at_accuracy(running.session, running.attempt)


def _judge(running: Running) -> Judge:
    """Ends a run that can no longer become valid, or whose instance is no longer the same."""
    fail_fast = _fail_fast(running)
    watch = instance_watch(running.session, running.attempt)
    return lambda status: fail_fast(status) or watch()


def _fail_fast(running: Running) -> Judge:
    """Ends a run that can no longer become valid, unless the user wants it to go on."""
    campaign, plan = running.session.campaign, running.session.plan
    samples = running.attempt.planned_samples
    if not campaign.run.fail_fast or samples is None:
        return lambda _status: None
    target = target_of(campaign, running.point, plan.dataset_rows)

    def judge(status: GuardStatus) -> str | None:
        is_timed = status.phase is Phase.PERFORMANCE
        glimpse = Glimpse(status.done, status.errors, load_s(status) if is_timed else 0.0)
        stop = reason_to_stop(glimpse, samples, target)
        return f"{FAIL_FAST}: {stop.kind}: {stop.reason}" if stop else None

    return judge


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
    if expected_s is None or point.accuracy:
        return UNKNOWN_RUN_TIMEOUT_S
    return TIMEOUT_FACTOR * expected_s + TIMEOUT_EXTRA_S


# --- The verdict -------------------------------------------------------------------------------


def _conclude(running: Running, status: GuardStatus) -> None:
    """Read the run folder, judge it, and record manifest, findings and state, in this order.

    Raises:
        PointNotValidError: the attempt is no valid result.
    """
    session, attempt, end = running.session, running.attempt, status.end
    assert end is not None
    seen = [] if running.stop else findings_after(session, attempt)
    facts, _ = read_folder(running, status)
    verdict = _verdict(running, facts, end)
    verdict = replace(verdict, findings=(*seen, *verdict.findings))
    findings = [asdict(finding) for finding in verdict.findings]
    write_atomic(running.paths.verdict, orjson.dumps(findings, option=orjson.OPT_INDENT_2))
    state = _state(end, verdict)
    session.records.change_state(
        attempt.id,
        state,
        exit_code=end.return_code,
        ended_by=end.ended_by,
        ended_at=end.ended_at,
        reason=_reason(end, verdict),
        findings=findings,
        metrics=_metrics(verdict, end, running.point.concurrency),
    )
    if state is not AttemptState.VALID:
        raise PointNotValidError(f"{running.point.label} attempt {attempt.number}", verdict)


def _verdict(running: Running, facts: FolderFacts, end: GuardEnd) -> Verdict:
    """The folder judged against its plan; a run that we ended says so first."""
    session = running.session
    wanted = planned_run(
        session.campaign,
        session.plan,
        running.point,
        running.attempt.planned_samples or 0,
        session.accuracy_rows,
    )
    verdict = validate(wanted, facts, benchmark=session.campaign.benchmark)
    if _stopped_for(end) is None:
        return verdict
    stopped = Finding(
        "stopped-early",
        "error",
        end.reason,
        "a run that can still become valid",
        "the next attempt is sized by the rate seen; for failed requests look at the endpoint's"
        " log; run.fail_fast: false lets such runs go on",
    )
    return replace(verdict, findings=(stopped, *verdict.findings))


def _stopped_for(end: GuardEnd) -> Hopeless | None:
    """Why we ended a run; None if we didn't."""
    if end.ended_by is not EndedBy.STOP_REQUEST or not end.reason.startswith(FAIL_FAST):
        return None
    return next((kind for kind in Hopeless if f": {kind}: " in end.reason), None)


def _state(end: GuardEnd, verdict: Verdict) -> AttemptState:
    """State of an attempt that ended: an interruption is never complete, whatever it left."""
    if CHANGED_RULE in verdict.rules:
        return AttemptState.INVALID
    if _stopped_for(end) is not None:
        return AttemptState.FAILED
    if end.ended_by in _INTERRUPTIONS:
        return AttemptState.INTERRUPTED
    if verdict.valid:
        return AttemptState.VALID
    if end.ended_by is EndedBy.ITSELF and verdict.metrics:
        return AttemptState.INVALID
    return AttemptState.FAILED


def _reason(end: GuardEnd, verdict: Verdict) -> str | None:
    """One line on why the attempt is not valid; None if it is."""
    if end.ended_by is not EndedBy.ITSELF and end.reason:
        return end.reason
    return ", ".join(sorted(verdict.rules)) or None


def _metrics(verdict: Verdict, end: GuardEnd, level: int) -> dict[str, Any]:
    """What was measured, as the records keep it; `rate_qps` only if the rate can be relied on."""
    found = verdict.metrics
    if found is None:
        return {}
    kept = asdict(found) | {"accuracy_scores": verdict.accuracy_scores}
    only_its_count_was_wrong = verdict.rules <= {TOO_SHORT} or _stopped_for(end) in (
        Hopeless.TOO_FAST,
        Hopeless.TOO_SLOW,
    )
    if only_its_count_was_wrong and found.issue_span_s is not None:
        kept["rate_qps"] = issue_rate(found.issued, level, found.issue_span_s, found.qps or 0.0)
    return kept
