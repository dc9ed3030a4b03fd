"""Looks at the system before and after each point: is it the one that the curve was begun on?

A difference stops the campaign; a restart within a point makes the attempt invalid, one between two
points is recorded. What was seen is in the records, so that a run taken over later is judged alike.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from core.campaign import Campaign
from core.client_config import TEMPLATES, client_config, config_of_curve
from core.disclosure import of_every_point
from core.drift import DRIFT, differences, drift_lines, drift_message
from core.errors import ExecutionError, SetupError
from core.findings import Finding
from core.fingerprint import Fingerprint, fingerprint
from core.identity import (
    CHANGED_RULE,
    Identity,
    Sameness,
    changes,
    compare,
    instance_finding,
)
from core.layout import SYSTEM_DESC_JSON
from core.records import AttemptRecord
from core.status import PointState
from flows.session import Session
from tasks.disclosures import read_told
from tasks.host import read_checkout, read_datasets, read_host, read_model
from tasks.probe import STEADY_LOOKS, read_endpoint, read_identity, read_probes

#: Seconds between two looks at the instance while a client runs, and how many times the length of a
#: look that is at least: a look may cost the server no more than a hundredth of its time.
POLL_S, POLL_FACTOR = 15.0, 100.0
#: Seconds after a client's end from which a look at the system is too late to speak against it.
LATE_S = 120.0
#: Seconds for one answer to such a look, be it of the endpoint or of a probe.
POLL_TIMEOUT_S = 2.0
#: Kind of the event that says what was seen of the instance.
SEEN = "instance.seen"
#: Rule id of the warning that the system could not be looked at after a point.
UNREAD = "fingerprint-unread"


@dataclass(frozen=True)
class Look:
    """The system at one moment."""

    fingerprint: Fingerprint
    identity: Identity


def look(session: Session, looks: int = 1) -> Look:
    """The system as it is now.

    Args:
        session: The campaign.
        looks: Looks at the instance in a row, by which a balancer shows itself.

    Raises:
        SetupError: something of it can't be read.
    """
    campaign, env = session.campaign, session.env
    parts = {
        "client": _client(session),
        "config": _config(session),
        "model": read_model(campaign),
        "datasets": read_datasets(campaign, session.plan.dataset_rows, session.accuracy_rows),
        "endpoint": read_endpoint(campaign, env),
        "seed_set": asdict(session.plan.seed_set),
        "system": _system(campaign),
        "probes": read_probes(campaign, env),
    }
    return Look(fingerprint(parts), read_identity(campaign, env, looks))


def refuse_drift(session: Session, label: str) -> Look:
    """The system before a client starts.

    Raises:
        ExecutionError: it is not the system of the curve; what differs is named.
    """
    name = session.campaign.campaign
    seen = look(session, STEADY_LOOKS)
    baseline = session.records.baseline(name)
    found = differences(baseline.fingerprint, seen.fingerprint) if baseline else ()
    if found:
        payload = {"label": label, "differences": [asdict(difference) for difference in found]}
        session.records.append_event(name, "drift.found", payload)
        measured = [p.label for p in session.points() if p.state is PointState.VALID]
        raise ExecutionError(drift_message(name, f"before {label}", found, measured))
    return seen


def look_before(session: Session, label: str) -> Look:
    """The system before a point's client starts; a restart since the last one goes on record.

    Raises:
        ExecutionError: as `refuse_drift` does.
    """
    name, seen = session.campaign.campaign, refuse_drift(session, label)
    earlier = session.records.campaign_events(name, SEEN)[-1:]
    for event in earlier:
        if compare(event.payload["identity"], seen.identity) is Sameness.CHANGED:
            lines = changes(event.payload["identity"], seen.identity)
            payload = {"before": label, "after": event.payload["label"], "changes": lines}
            session.records.append_event(name, "instance.changed", payload)
    return seen


def record_before(session: Session, attempt: AttemptRecord, seen: Look) -> None:
    """Put on record what an attempt begins on."""
    session.records.record_fingerprint(attempt.id, "before", seen.fingerprint)
    record_seen(session, attempt, "the start", seen.identity)


def record_seen(session: Session, attempt: AttemptRecord, moment: str, identity: Identity) -> None:
    """Put on record what was seen of the instance during an attempt."""
    payload = {"label": attempt.label, "moment": moment, "identity": identity}
    session.records.append_event(session.campaign.campaign, SEEN, payload, attempt.id)


def look_at_accuracy(session: Session, attempt: AttemptRecord) -> None:
    """Look at the instance where the accuracy run begins; one that doesn't answer is seen later."""
    identity = _polled(session)
    if identity is not None:
        record_seen(session, attempt, "the accuracy run", identity)


def findings_after(session: Session, attempt: AttemptRecord, late_s: float) -> list[Finding]:
    """Look at the system after a client ended, and say what speaks against the attempt.

    Args:
        session: The campaign.
        attempt: The attempt.
        late_s: Seconds since the client ended. Much later, as after a dead orchestrator, a system
            that is another by now says nothing about the run.
    """
    found: list[Finding] = []
    try:
        seen = look(session)
    except SetupError as problem:
        return [_unread(str(problem)), *instance_findings(session, attempt)]
    drift = _drift_within(session, attempt, seen.fingerprint)
    if late_s > LATE_S and (drift or _is_another(session, attempt, seen.identity)):
        found.append(_unread(f"looked at {late_s:.0f} s after the run: another system by then"))
    else:
        session.records.record_fingerprint(attempt.id, "after", seen.fingerprint)
        record_seen(session, attempt, "the end", seen.identity)
        found += drift
    return found + instance_findings(session, attempt)


def _is_another(session: Session, attempt: AttemptRecord, now: Identity) -> bool:
    """Whether the instance is another than at the attempt's start."""
    events = session.records.attempt_events(attempt.id, SEEN)
    first: Identity = events[0].payload["identity"] if events else {}
    return compare(first, now) is Sameness.CHANGED


def instance_findings(session: Session, attempt: AttemptRecord) -> list[Finding]:
    """What the looks at the instance say against an attempt."""
    events = session.records.attempt_events(attempt.id, SEEN)
    looks = [(event.payload["moment"], event.payload["identity"]) for event in events]
    finding = instance_finding(looks) if looks else None
    return [] if finding is None else [finding]


def instance_watch(session: Session, attempt: AttemptRecord) -> Callable[[], str | None]:
    """Looks at the instance now and then; says why to end the client once it is another one."""
    events = session.records.attempt_events(attempt.id, SEEN)
    first: Identity = events[0].payload["identity"] if events else {}
    due_s = time.monotonic() + POLL_S

    def watch() -> str | None:
        nonlocal due_s
        began_s = time.monotonic()
        if began_s < due_s or not any(first.values()):
            return None
        seen = _polled(session)
        took_s = time.monotonic() - began_s
        due_s = time.monotonic() + max(POLL_S, POLL_FACTOR * took_s)
        if seen is None or compare(first, seen) is not Sameness.CHANGED:
            return None
        record_seen(session, attempt, "the run", seen)
        return f"{CHANGED_RULE}: {'; '.join(changes(first, seen))}"

    return watch


def _polled(session: Session) -> Identity | None:
    """The instance, asked once and shortly; None: it didn't answer."""
    try:
        return read_identity(session.campaign, session.env, timeout_s=POLL_TIMEOUT_S, tries=1)
    except SetupError:
        return None


def _drift_within(session: Session, attempt: AttemptRecord, now: Fingerprint) -> list[Finding]:
    """What changed while the client ran."""
    records = session.records.fingerprints(session.campaign.campaign)
    before = next((r for r in records if (r.attempt_id, r.moment) == (attempt.id, "before")), None)
    found = differences(before.fingerprint, now) if before else ()
    if not found:
        return []
    return [
        Finding(
            DRIFT,
            "error",
            "; ".join(drift_lines(found)),
            "the same system before and after the point",
            f"restore it; or `pareto rebase {session.campaign.campaign} --reason …`, after which"
            " every point is measured again",
        )
    ]


def _unread(problem: str) -> Finding:
    return Finding(
        UNREAD,
        "warning",
        problem,
        "a look at the system after the point",
        "the next point's look before its client starts shows whether it is still the same",
    )


def _system(campaign: Campaign) -> dict[str, Any]:
    """The client's host, and the system as its description tells it, if there is one."""
    told, _ = read_told(campaign, capture=False)
    described = of_every_point(told)
    return read_host() | ({SYSTEM_DESC_JSON: described} if described else {})


def _client(session: Session) -> dict[str, Any]:
    templates = session.client.templates
    return {
        "version": session.client.version,
        "dialect": {name: sorted(templates[name].get("settings", {})) for name in templates},
        **read_checkout(session.campaign.client.command, session.env),
    }


def _config(session: Session) -> dict[str, Any]:
    """What all points of the curve are configured with, by template."""
    first = {TEMPLATES[point.load_pattern]: point for point in reversed(session.plan.points)}
    return {
        name: config_of_curve(
            client_config(
                session.client.templates[name],
                session.campaign,
                point,
                samples=1,
                seed_set=session.plan.seed_set,
                run_folder=Path("run"),
            )
        )
        for name, point in first.items()
    }
