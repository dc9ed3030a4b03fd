"""The end of an attempt: its folder read once and judged, what came out recorded.

The attempt's folder has the outcome before the records have, should these be away.
"""

from __future__ import annotations

import errno
import os
import time
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Unpack

import orjson

from core.errors import ParetoError
from core.failfast import Hopeless
from core.files import Manifest, make_read_only, manifest, write_atomic
from core.findings import Finding, told
from core.folder import FolderFacts
from core.identity import CHANGED_RULE
from core.plan import rate_shown
from core.records import Facts
from core.retry import TOO_SHORT, Next, after_failure
from core.rules_ahead import Remark
from core.run import planned_run
from core.status import AttemptState
from core.validate import Verdict, validate
from flows.ahead import look_after
from flows.running import Running
from flows.session import Session
from flows.system import findings_after, instance_findings
from tasks.collect import collect
from tasks.disk import lack_of_room
from tasks.supervise import EndedBy, GuardEnd, GuardStatus

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


class PointNotValidError(ParetoError):
    """An attempt ended without a valid result; its findings say what to do."""

    def __init__(self, where: str, verdict: Verdict) -> None:
        self.rules = verdict.rules
        lines = told(asdict(finding) for finding in verdict.findings)
        super().__init__("\n  ".join([f"{where} is not valid:", *lines]))


def conclude_measurement(running: Running, status: GuardStatus) -> None:
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


def stopped_for(end: GuardEnd) -> Hopeless | None:
    """Why we ended a run; None if we didn't."""
    if end.ended_by is not EndedBy.STOP_REQUEST or not end.reason.startswith(FAIL_FAST):
        return None
    return next((kind for kind in Hopeless if f": {kind}: " in end.reason), None)


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
    kind = None if status.end is None else stopped_for(status.end)
    if status.end is None or kind is None:
        return None
    return Finding(
        "stopped-early",
        "error",
        status.end.reason,
        "a run that can still become valid",
        _ADVICE.get(kind, _ADVICE_ON_HOPELESS),
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


def _state(end: GuardEnd, verdict: Verdict) -> AttemptState:
    """State of an attempt that ended: an interruption is never complete, whatever it left."""
    if CHANGED_RULE in verdict.rules:
        return AttemptState.INVALID
    if stopped_for(end) is not None or _is_lost_to_the_disk(end, verdict):
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
    only_its_count_was_wrong = verdict.rules <= {TOO_SHORT} or stopped_for(end) in (
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
