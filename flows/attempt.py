"""One attempt: its client behind a guard, followed to its end, its folder judged and recorded.

Every state is committed to the records before the next step; Prefect only shows it.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeVar, Unpack

import orjson

from core.errors import InterruptedByUserError, ParetoError, SetupError
from core.failfast import Glimpse, Hopeless, reason_to_stop
from core.files import Manifest, make_read_only, manifest, write_atomic
from core.findings import Finding, told
from core.folder import FolderFacts
from core.identity import CHANGED_RULE
from core.layout import AttemptPaths
from core.plan import Point, rate_shown, target_of
from core.progress import Phase
from core.records import AttemptRecord, Facts, RecordsUnavailableError
from core.retry import TOO_SHORT, Next, after_failure
from core.rules_ahead import Remark
from core.run import planned_run
from core.sizing import Target
from core.status import AttemptState
from core.validate import Verdict, validate
from core.watchdog import Limits
from flows.ahead import look_after
from flows.session import Session, config_of
from flows.steps import step
from flows.stop import StopRequest
from flows.system import findings_after, instance_findings, instance_watch, look_at_accuracy
from tasks.client import benchmark_command
from tasks.collect import collect
from tasks.disk import lack_of_room
from tasks.endpoint import EndpointWatch
from tasks.instance import TERM_MARGIN_S, TERM_S
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
#: What programs say when a file system, a quota or a limit takes no more.
_NO_ROOM = tuple(os.strerror(code) for code in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG))
#: The finding that says so.
DISK_FULL = "disk-full"
#: Version of the outcome that an attempt's folder keeps.
OUTCOME_VERSION = 1
#: How the reason of a request to stop begins when it is ours and not the user's.
FAIL_FAST = "fail-fast"
#: Ends of a client that say nothing about the measurement: it was stopped, or nobody knows.
_INTERRUPTIONS = frozenset(
    {EndedBy.STOP_REQUEST, EndedBy.ORPHAN_STOP, EndedBy.GUARD_FAILURE, EndedBy.LOST_GUARD}
)

#: Two loads at a time are no measurement of one.
_TAKEN_OVER = Finding(
    "instance-taken-over",
    "error",
    "another campaign took the instance over while this attempt ran",
    "an instance that this campaign alone loads",
    "nothing; the next attempt begins when the instance is free",
)
#: What to do about a run that we ended, by why.
_ADVICE = {
    Hopeless.ENDPOINT_LOST: "look at the endpoint's log; it is waited for before the next attempt",
    Hopeless.NO_ROOM: "nothing was deleted; make room, then run the same file again",
}
_ADVICE_ON_HOPELESS = (
    "the next attempt is sized by the rate seen; for failed requests look at the endpoint's log;"
    " run.fail_fast: false lets such runs go on"
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
        name = f"{campaign.campaign} · {self.point.label} · {what}{again}"
        return step(name, marks, work, self.attempt.id)


# --- From the first step to the last -----------------------------------------------------------


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


def conclude(
    running: Running,
    state: AttemptState,
    found: Manifest | None = None,
    **facts: Unpack[Facts],
) -> None:
    """Record the attempt's run folder and final state.

    The attempt's folder has the outcome before, should the records be away.
    """
    kept = {"version": OUTCOME_VERSION, "attempt": running.attempt.id, "state": state, **facts}
    with suppress(OSError):  # a full disk, or no folder yet: the records have it in a moment
        write_atomic(running.paths.outcome, orjson.dumps(kept, option=orjson.OPT_INDENT_2))
    if found is not None:
        running.session.records.record_folder(running.attempt.id, running.paths.run.path, found)
    running.session.records.change_state(running.attempt.id, state, **facts)


def take_in_kept(running: Running) -> Next | None:
    """Record an outcome that only the attempt's folder has; None if there is none."""
    kept = _kept(running.paths.outcome)
    if kept is None or kept.pop("attempt") != running.attempt.id:
        return None
    state = AttemptState(kept.pop("state"))
    place = running.paths.run.path
    if place.is_dir():
        running.session.records.record_folder(running.attempt.id, place, manifest(place))
        make_read_only(place)
    running.session.records.change_state(running.attempt.id, state, **kept)
    if state is AttemptState.VALID:
        return Next.GO_ON
    rules = {f["rule"] for f in kept.get("findings", ()) if f.get("severity") == "error"}
    return after_failure(rules, kept.get("exit_code"))


def _kept(path: Path) -> dict[str, Any] | None:
    try:
        document = orjson.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    is_ours = isinstance(document, dict) and document.pop("version", None) == OUTCOME_VERSION
    return document if is_ours else None


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


def read_folder(running: Running, status: GuardStatus) -> tuple[FolderFacts, Manifest]:
    """Read the run folder once; from then on nothing in it is to change."""
    end = status.end
    assert end is not None
    place = running.paths.run.path
    # Files are dated by the clock: one that was set back during the run makes them look older.
    by_the_clock = status.started_at
    by_duration = by_the_clock if end.elapsed_s is None else end.ended_at - end.elapsed_s
    facts, found = collect(
        place,
        attempt_started_at=min(by_the_clock, by_duration),
        exit_code=end.return_code,
        ended_by=end.ended_by,
    )
    if facts.exists:
        make_read_only(place)
    return facts, found


def _config(running: Running) -> str:
    session = running.session
    return config_of(session.prepared, session.client, running.point, running.paths.run.path)


def _start(running: Running) -> None:
    configure(running, _config(running))
    start_client(
        running,
        accuracy=running.point.accuracy,
        deadline_s=_deadline_s(running.session, running.point),
        when_orphaned=running.session.campaign.run.when_orphaned,
    )


def _performance(running: Running) -> None:
    until = (Phase.ACCURACY, Phase.FINISHING)
    status = follow_client(running, until=until, judge=_judge(running))
    if status.phase is Phase.ACCURACY:
        look_at_accuracy(running.session, running.attempt)


def _judge(running: Running) -> Judge:
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
    """Read the run folder, judge it, and keep findings and state, then record it all.

    Raises:
        PointNotValidError: the attempt is no valid result.
    """
    attempt, end = running.attempt, status.end
    assert end is not None
    seen = _system_after(running, end)
    facts, manifest_found = read_folder(running, status)
    verdict = _verdict(running, facts, status)
    official = [remark.as_finding() for remark in _official(running, facts)]
    verdict = replace(verdict, findings=(*seen, *verdict.findings, *official))
    state = _state(end, verdict)
    conclude(
        running,
        state,
        manifest_found,
        exit_code=end.return_code,
        ended_by=end.ended_by,
        ended_at=end.ended_at,
        reason=_reason(end, verdict),
        findings=[asdict(finding) for finding in verdict.findings],
        metrics=_metrics(running, verdict, end),
    )
    if state is not AttemptState.VALID:
        raise PointNotValidError(f"{running.point.label} attempt {attempt.number}", verdict)


def _system_after(running: Running, end: GuardEnd) -> list[Finding]:
    """What speaks against the attempt beside its folder.

    Whoever asks to stop is not kept waiting for one more look, unless the run is whole.
    """
    session, attempt = running.session, running.attempt
    if running.stop and end.ended_by in _INTERRUPTIONS:
        found = instance_findings(session, attempt)
    else:
        found = findings_after(session, attempt, late_s=time.time() - end.ended_at)
    return [*found, _TAKEN_OVER] if session.hold.lease.is_lost else found


def _verdict(running: Running, facts: FolderFacts, status: GuardStatus) -> Verdict:
    """The folder judged against its plan; what explains the rest comes first."""
    session = running.session
    wanted = planned_run(
        session.campaign,
        session.plan,
        running.point,
        running.attempt.planned_samples or 0,
        session.accuracy_rows,
    )
    verdict = validate(wanted, facts, benchmark=session.campaign.benchmark)
    full = None if verdict.valid else _disk_full(session, status)
    found = tuple(cause for cause in (_stopped_early(status), full) if cause is not None)
    return replace(verdict, findings=(*found, *verdict.findings))


def _official(running: Running, facts: FolderFacts) -> list[Remark]:
    """What the official checker would say of the point, before it is packaged."""
    session = running.session
    return look_after(session.campaign, session.plan, running.point, running.paths.run, facts)


def _stopped_early(status: GuardStatus) -> Finding | None:
    """We ended the run."""
    stopped_for = None if status.end is None else _stopped_for(status.end)
    if status.end is None or stopped_for is None:
        return None
    return Finding(
        "stopped-early",
        "error",
        status.end.reason,
        "a run that can still become valid",
        _ADVICE.get(stopped_for, _ADVICE_ON_HOPELESS),
    )


def _disk_full(session: Session, status: GuardStatus) -> Finding | None:
    """There is no room left, or the client met such a place."""
    lacking = lack_of_room(session.prepared.paths.runs)
    said = (line for line in status.tail if any(text in line for text in _NO_ROOM))
    seen = lacking or next(said, None)
    if seen is None:
        return None
    return Finding(
        DISK_FULL,
        "error",
        seen,
        "room for the run folder and the client's event buffer",
        "make room, then run the same command again; nothing was deleted",
    )


def _stopped_for(end: GuardEnd) -> Hopeless | None:
    """Why we ended a run; None if we didn't."""
    if end.ended_by is not EndedBy.STOP_REQUEST or not end.reason.startswith(FAIL_FAST):
        return None
    return next((kind for kind in Hopeless if f": {kind}: " in end.reason), None)


def _state(end: GuardEnd, verdict: Verdict) -> AttemptState:
    """State of an attempt that ended: an interruption is never complete, whatever it left."""
    if CHANGED_RULE in verdict.rules:
        return AttemptState.INVALID
    if _stopped_for(end) is not None or _is_lost_to_the_disk(end, verdict):
        return AttemptState.FAILED
    if end.ended_by in _INTERRUPTIONS:
        return AttemptState.INTERRUPTED
    if verdict.valid:
        return AttemptState.VALID
    if end.ended_by is EndedBy.ITSELF and verdict.metrics:
        return AttemptState.INVALID
    return AttemptState.FAILED


def _is_lost_to_the_disk(end: GuardEnd, verdict: Verdict) -> bool:
    """Whether even the guard found no room for its last words."""
    return end.ended_by is EndedBy.LOST_GUARD and DISK_FULL in verdict.rules


def _reason(end: GuardEnd, verdict: Verdict) -> str | None:
    """One line on why the attempt is not valid; None if it is."""
    if end.ended_by is not EndedBy.ITSELF and end.reason:
        return f"{DISK_FULL}: {end.reason}" if DISK_FULL in verdict.rules else end.reason
    return ", ".join(sorted(verdict.rules)) or None


def _metrics(running: Running, verdict: Verdict, end: GuardEnd) -> dict[str, Any]:
    """What was measured, as the records keep it; `rate_qps` only if the rate can be relied on."""
    found = verdict.metrics
    if found is None:
        return {}
    kept = asdict(found) | {"accuracy_scores": verdict.accuracy_scores}
    only_its_count_was_wrong = verdict.rules <= {TOO_SHORT} or _stopped_for(end) in (
        Hopeless.TOO_FAST,
        Hopeless.TOO_SLOW,
    )
    if only_its_count_was_wrong:
        kept["rate_qps"] = rate_shown(
            running.point,
            planned=running.attempt.planned_samples or 0,
            issued=found.issued,
            issue_span_s=found.issue_span_s,
            qps=found.qps,
        )
    return kept
