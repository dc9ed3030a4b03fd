"""Proves afterwards that a curve is what was recorded: run folders, verdicts, one system."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.campaign import Campaign
from core.drift import DRIFT, differences, drift_lines
from core.errors import ParetoError
from core.files import Manifest, glance, told
from core.files import manifest as files_as_they_are
from core.folder import FolderFacts
from core.identity import CHANGED_RULE
from core.plan import make_plan
from core.records import (
    AttemptRecord,
    CampaignRecord,
    FingerprintRecord,
    Records,
    manifest_sha256,
)
from core.rules_ahead import POINT_RULES
from core.run import planned_run
from core.status import AttemptState
from core.validate import validate
from tasks.collect import collect

#: Rules of findings that come from the run, or from the official checker, and not from the folder.
_NOT_OF_THE_FOLDER = (
    frozenset({CHANGED_RULE, DRIFT, "stopped-early", "instance-taken-over"}) | POINT_RULES
)


@dataclass(frozen=True)
class Verification:
    """What was looked at, and what is wrong; no problem: nothing is."""

    folders: int
    files: int
    total_bytes: int
    problems: tuple[str, ...]


def verify_campaign(
    records: Records,
    name: str,
    *,
    deep: bool = False,
    campaign: Campaign | None = None,
    runs: Path | None = None,
) -> Verification:
    """Compare every run folder with its manifest, and the fingerprints of the curve.

    Args:
        records: The records.
        name: The campaign's name.
        deep: Read every byte; without it only names and sizes are compared.
        campaign: The campaign itself, to validate every folder again as well; that reads all of it.
        runs: Where the run folders are; default: where the records say.
    """
    record = records.campaign(name)
    place = runs or Path(record.runs_folder)
    points = records.points_with_attempts(name)
    recorded = [a for point in points for a in point.attempts if a.run_folder is not None]
    before = {r.attempt_id: r for r in records.fingerprints(name) if r.moment == "before"}
    problems: list[str] = []
    files = 0
    for attempt in recorded:
        manifest = records.manifest(attempt.id)
        files += len(manifest)
        where = f"{attempt.label} {attempt.phase} {attempt.number}"
        found = _verify_folder(attempt, manifest, place, deep, campaign, before.get(attempt.id))
        problems += (f"{where}: {line}" for line in found)
    problems += _unknown_folders(place / name, [a for point in points for a in point.attempts])
    problems += _verify_fingerprints(records, record)
    total = sum(a.run_folder.total_bytes for a in recorded if a.run_folder)
    return Verification(len(recorded), files, total, tuple(problems))


def _verify_folder(
    attempt: AttemptRecord,
    manifest: Manifest,
    place: Path,
    deep: bool,
    campaign: Campaign | None,
    before: FingerprintRecord | None,
) -> list[str]:
    """What is wrong with one run folder."""
    assert attempt.run_folder is not None
    folder = place / attempt.run_folder.path
    problems = []
    if manifest_sha256(manifest) != attempt.run_folder.manifest_sha256:
        problems.append("the manifest on record was changed")
    if not folder.is_dir():
        return [*problems, f"{folder} is gone"] if manifest else problems
    if campaign is None:
        now = files_as_they_are(folder) if deep else glance(folder, manifest)
        return problems + told(manifest, now)
    facts, now = collect(
        folder,
        attempt_started_at=attempt.created_at,
        exit_code=attempt.exit_code,
        ended_by=attempt.ended_by or "",
    )
    changed = told(manifest, now)
    if changed or attempt.is_pilot or before is None:
        return problems + changed
    return problems + _judge_again(attempt, facts, campaign, before.content["parts"]["datasets"])


def _judge_again(
    attempt: AttemptRecord,
    facts: FolderFacts,
    campaign: Campaign,
    datasets: list[Mapping[str, Any]],
) -> list[str]:
    """Whether the folder is judged as it was, by the rows that the datasets had then."""
    performance, *scored = datasets
    plan = make_plan(campaign, performance["rows"])
    rows = {entry["name"]: entry["rows"] for entry in scored}
    point = plan.point(attempt.label)
    wanted = planned_run(campaign, plan, point, attempt.planned_samples or 0, rows)
    now = validate(wanted, facts, benchmark=campaign.benchmark).rules
    then = {f["rule"] for f in attempt.findings if f["severity"] == "error"} - _NOT_OF_THE_FOLDER
    if now == then:
        return []
    shown = [", ".join(sorted(rules)) or "nothing" for rules in (now, then)]
    return [f"validated again, it has {shown[0]} against it; on record is {shown[1]}"]


def _unknown_folders(place: Path, attempts: list[AttemptRecord]) -> Iterator[str]:
    """Folders of attempts that nobody recorded."""
    known = {Path(attempt.folder).parts[-2:] for attempt in attempts}
    for folder in sorted(place.glob("*/*-[0-9][0-9]*")):
        if folder.parts[-2:] not in known:
            yield f"{'/'.join(folder.parts[-2:])} is not on record"


def _verify_fingerprints(records: Records, record: CampaignRecord) -> Iterator[str]:
    """Whether the fingerprints are whole, and those of the curve are one."""
    baseline = None
    for found in records.fingerprints(record.name):
        where = f"{found.label} attempt {found.number}, fingerprint {found.moment}"
        try:
            fingerprint = found.fingerprint
        except ParetoError as problem:
            yield f"{where}: {problem}"
            continue
        if fingerprint.sha256 != found.sha256:
            yield f"{where}: its digest on record is another"
        if found.baseline != record.baseline or found.state is not AttemptState.VALID:
            continue
        baseline = baseline or fingerprint
        for line in drift_lines(differences(baseline, fingerprint)):
            yield f"{where}: {line}"
