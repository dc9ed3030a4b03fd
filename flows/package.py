"""From a finished campaign to a package: run folders to upload, the tree, and what is said of it.

In this order: refuse what can't be packaged, copy and prove the copies, disclose, look for what the
checker passes in silence, build with the official builder, ask the official checker, record.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from core import files as manifests
from core.campaign import Campaign
from core.disclosure import Curve, Told, curve_of, missing, point_yaml, system_desc, system_power
from core.errors import InputError
from core.files import Manifest
from core.folder import FolderFacts
from core.gates import gate_files, remark
from core.layout import RunPaths
from core.overview import valid_attempt
from core.plan import Plan, Role, make_plan
from core.records import AttemptRecord, CampaignRecord, Records, manifest_sha256
from core.rules_ahead import Remark
from core.run import planned_run
from core.submission import CurveFiles, PointFiles, labels, specimen_files
from core.validate import validate
from flows.ahead import read_config, read_document
from flows.drift import drift_overview
from flows.prepare import Prepared
from flows.session import join_record
from flows.windows import windows_of
from tasks.collect import collect
from tasks.disclosures import read_told
from tasks.official import (
    SubmissionBuildError,
    accepts_run_folder,
    build_tree,
    check_files,
    check_tree,
)
from tasks.package import copy_run, dashboard, drop, staged, write_disclosures, write_note

#: Folders of a package.
RUNS, TREE, DASHBOARD = "runs", "tree", "dashboard"
#: Files of a package.
UPLOAD, TEST_DATA = "UPLOAD.txt", "TEST-DATA.txt"
#: Kind of the event that keeps what was said of a package.
CHECKED = "package.checked"
#: What stands before every name in test data.
_MARK = "TEST-DATA"
#: Points that a curve can do without.
_SPARE = frozenset({Role.SPARE, Role.CHOICE})


@dataclass(frozen=True)
class Package:
    """What was packaged, and what is said of it."""

    folder: Path
    labels: tuple[str, ...]  # the points in it
    left_out: tuple[str, ...]  # points of the plan that are not, with the reason
    remarks: tuple[Remark, ...]  # errors first
    commands: tuple[str, ...]  # that upload it; none of test data
    without_dashboard: str | None  # why there is none

    def count(self, severity: str) -> int:
        """How many remarks are of that severity."""
        return sum(remark.severity == severity for remark in self.remarks)

    def passes(self, *, strict: bool) -> bool:
        """Whether there is no error and, if strict, no warning."""
        return not (self.count("error") or (strict and self.count("warning")))


@dataclass(frozen=True)
class _Run:
    """The run of one point in the package."""

    attempt: AttemptRecord
    folder: Path
    facts: FolderFacts


def package(ready: Prepared, records: Records, out: Path, *, test_data: bool = False) -> Package:
    """Package the valid points of a campaign.

    Args:
        ready: The campaign as its file has it now.
        records: Its records.
        out: Where the package goes.
        test_data: Package a rehearsal, marked as test data, without run folders to upload.

    Raises:
        InputError: it can't be packaged; the message lists every reason.
        SetupError: the package can't be written.
    """
    records.campaign(ready.campaign.campaign)  # one that was never run has nothing to package
    record = join_record(ready, records)
    _refuse_rehearsal(record, test_data=test_data)
    if out.is_relative_to(record.runs_folder):
        raise InputError(f"--out: {out} lies among the run folders; name another place")
    told = _told(ready)
    chosen, left_out = _chosen(ready, records, record)
    _refuse_drift(records, record)
    with staged(out) as place:
        runs = _copied(records, record, chosen, place / RUNS)
        curve = curve_of(ready.campaign, ready.plan, chosen)
        points = [p for p in records.points_with_attempts(record.name) if p.label in runs]
        windows, _ = windows_of(records, record, points, ready)
        files = _disclosed(ready.campaign, curve, told, runs, windows)
        files = _as_test_data(files) if test_data else files
        for point in files.points:
            write_disclosures(runs[point.label].folder, point.point, point.system, files.power)
        found = [*_judged(ready, records, runs), *gate_files(files)]
        found += _built(ready.campaign, runs, files, place)
        without = dashboard(place / TREE, place / DASHBOARD)
        commands = () if test_data else tuple(_commands(ready.campaign, out, files))
        _finish(place, commands, test_data=test_data)
    ordered = tuple(sorted(found, key=lambda remark: remark.severity != "error"))
    made = Package(out, tuple(chosen), left_out, ordered, commands, without)
    _record(records, record, made, test_data=test_data)
    return made


# --- What can't be packaged ------------------------------------------------------------------


def _refuse_rehearsal(record: CampaignRecord, *, test_data: bool) -> None:
    if record.rehearsal and not test_data:
        raise InputError(
            f"{record.name} is a rehearsal and never a measurement: it can't be packaged;"
            " --test-data makes a marked tree of it, to look at"
        )
    if test_data and not record.rehearsal:
        raise InputError("--test-data: this campaign is a measurement; leave the option out")


def _told(ready: Prepared) -> Told:
    """What the campaign's files hold, if nothing is missing."""
    told, unread = read_told(ready.campaign)
    lacks = [*unread, *missing(ready.campaign, ready.plan, told)]
    if lacks:
        listed = "\n".join(f"  {lack}" for lack in lacks)
        raise InputError(
            f"{ready.loaded.path}: the disclosures lack what only a person can tell:\n{listed}"
        )
    return told


def _chosen(
    ready: Prepared, records: Records, record: CampaignRecord
) -> tuple[dict[str, AttemptRecord], tuple[str, ...]]:
    """The valid attempt of each point, and the points that have none.

    Raises:
        InputError: without those points the curve is not legal.
    """
    chosen, left_out, needed = {}, [], []
    for point in records.points_with_attempts(record.name):
        attempt = valid_attempt(point)
        if attempt is not None and attempt.run_folder is not None:
            chosen[point.label] = attempt
            continue
        left_out.append(f"{point.label}: {point.state}")
        needed += [] if point.role in _SPARE else [point.label]
    reasons = _illegal(ready.campaign, ready.plan, list(chosen)) if left_out else []
    if needed or reasons:
        wanted = "".join(f"\n  {line}" for line in (*left_out, *reasons))
        raise InputError(
            f"{record.name} has points that are not valid, and can't be submitted without them:"
            f"{wanted}\n`pareto run {ready.loaded.path}` measures what is missing, `pareto retry`"
            " what failed"
        )
    return chosen, tuple(left_out)


def _illegal(campaign: Campaign, plan: Plan, there: list[str]) -> list[str]:
    """Why the points that there are make no legal curve, in the official checker's words."""
    if not there:
        return ["no point is valid"]
    files = specimen_files(
        campaign.benchmark,
        campaign.curve.c_max,
        curve_of(campaign, plan, there),
        measured={},
        target_cohort=campaign.seeds.target_cohort,
    )
    said = check_files(files, campaign.seeds.registry)
    return [f"{x.rule}: {x.message}" for x in said if x.severity == "error"]


def _refuse_drift(records: Records, record: CampaignRecord) -> None:
    """Refuse points of several systems: one curve is of one (§9.1)."""
    rows = drift_overview(records, record).rows
    of_curve = [row for row in rows if row.baseline == record.baseline and row.is_valid]
    differing = sorted({row.label for row in of_curve if row.differs})
    if differing:
        raise InputError(
            f"{', '.join(differing)}: measured on another system than the rest of the curve;"
            f" `pareto drift {record.name}` shows what differs, `pareto rebase` begins it anew"
        )


# --- Run folders and disclosures ---------------------------------------------------------------


def _copied(
    records: Records, record: CampaignRecord, chosen: Mapping[str, AttemptRecord], place: Path
) -> dict[str, _Run]:
    """Copies of the run folders, each proved to be what was recorded.

    Raises:
        InputError: a folder was changed since, or is gone.
    """
    runs, changed = {}, []
    for label, attempt in chosen.items():
        assert attempt.run_folder is not None
        source, target = Path(record.runs_folder) / attempt.run_folder.path, place / label
        if not source.is_dir():
            changed.append(f"{label}: {source} is gone")
            continue
        copy_run(source, target)
        facts, found = collect(
            target,
            attempt_started_at=attempt.created_at,
            exit_code=attempt.exit_code,
            ended_by=attempt.ended_by or "",
        )
        changed += (
            f"{label}: {line}" for line in _changes(attempt, records.manifest(attempt.id), found)
        )
        runs[label] = _Run(attempt, target, facts)
    if changed:
        listed = "\n".join(f"  {line}" for line in changed)
        raise InputError(
            f"run folders of {record.name} are not as they were recorded, so nothing was packaged:"
            f"\n{listed}\nbring the recorded files back from a copy; `pareto verify {record.name}"
            " --deep` compares again"
        )
    return runs


def _changes(attempt: AttemptRecord, recorded: Manifest, found: Manifest) -> Iterator[str]:
    assert attempt.run_folder is not None
    if manifest_sha256(recorded) != attempt.run_folder.manifest_sha256:
        yield "the manifest on record was changed"
    yield from manifests.told(recorded, found)


def _disclosed(
    campaign: Campaign,
    curve: Curve,
    told: Told,
    runs: Mapping[str, _Run],
    windows: Mapping[int, Mapping[str, Any]],
) -> CurveFiles:
    """The files of the submission, from what is told and what the runs show."""
    points = []
    for point in curve.points:
        run = runs[point.label]
        paths, window = RunPaths(run.folder), windows.get(run.attempt.id)
        points.append(
            PointFiles(
                label=point.label,
                concurrency=point.concurrency,
                point=point_yaml(campaign, curve, point, told, run.facts, window),
                system=system_desc(campaign, point, told),
                summary=read_document(paths.summary),
                accuracy=read_document(paths.accuracy),
                config=read_config(paths.config),
            )
        )
    return CurveFiles(campaign.benchmark, tuple(points), system_power(told), told.implementations)


def _as_test_data(files: CurveFiles) -> CurveFiles:
    """The files marked in every place that a reader sees first."""

    def marked(point: PointFiles) -> PointFiles:
        system = {
            **point.system,
            "system_name": f"{_MARK} {point.system.get('system_name')}",
            "submitter_org_names": f"{_MARK} {point.system.get('submitter_org_names')}",
            "test_data": True,
        }
        return replace(point, system=system, point={**point.point, "test_data": True})

    return replace(files, points=tuple(map(marked, files.points)))


# --- What is said ------------------------------------------------------------------------------


def _judged(ready: Prepared, records: Records, runs: Mapping[str, _Run]) -> Iterator[Remark]:
    """What the rules of today have against the run folders, by the rows that the data had then."""
    looks = records.fingerprints(ready.campaign.campaign)
    parts = {look.attempt_id: look.content["parts"] for look in looks if look.moment == "before"}
    for label, run in runs.items():
        datasets = parts.get(run.attempt.id, {}).get("datasets")
        if datasets is None:
            yield remark(
                "fingerprint-missing",
                "no fingerprint of its system and data is on record: neither whether it belongs to"
                " the curve nor whether it is valid can be told",
                "measure the point again",
                label,
            )
            continue
        performance, *scored = datasets
        plan = make_plan(ready.campaign, performance["rows"])
        rows = {entry["name"]: entry["rows"] for entry in scored}
        samples = run.attempt.planned_samples or 0
        wanted = planned_run(ready.campaign, plan, plan.point(label), samples, rows)
        for finding in validate(wanted, run.facts, benchmark=ready.campaign.benchmark).findings:
            if finding.severity == "error":
                message = f"{finding.seen}; wanted {finding.wanted}"
                key = f"`pareto retry {ready.loaded.path}`"
                yield Remark(finding.rule, "error", message, finding.advice, label, key)


def _built(
    campaign: Campaign, runs: Mapping[str, _Run], files: CurveFiles, place: Path
) -> list[Remark]:
    """Build the tree and ask the official checker about it."""
    folders = {label: run.folder for label, run in runs.items()}
    refused = [
        remark("builder-refused", f"runs create: {why}", "see the message", label)
        for label, folder in folders.items()
        if (why := accepts_run_folder(folder))
    ]
    if any(found.rule == "system-name-path" for found in gate_files(files)):
        return refused  # the builder would write beside the tree
    stated = campaign.disclosure
    assert stated.src is not None
    assert stated.docs is not None
    assert stated.availability is not None
    try:
        tree = build_tree(
            folders,
            place / TREE,
            division=stated.division,
            availability=stated.availability,
            src=stated.src,
            docs=stated.docs,
        )
    except (SubmissionBuildError, ValueError, OSError) as refusal:
        return [*refused, remark("builder-refused", str(refusal), "see the message")]
    return [*refused, *check_tree(tree, campaign.seeds.registry, labels(files.points))]


# --- The package as its user gets it -----------------------------------------------------------


def _commands(campaign: Campaign, out: Path, files: CurveFiles) -> Iterator[str]:
    """The commands that upload the package, in order; nothing runs them here."""
    tool, stated = "endpoints-submission-cli", campaign.disclosure
    assert stated.availability is not None
    for point in files.points:
        yield shlex.join([tool, "runs", "create", "--path", str(out / RUNS / point.label)])
    create = [tool, "submissions", "create", "--division", stated.division.lower()]
    create += ["--scenario", str(stated.scenario), "--availability", stated.availability.lower()]
    for flag, folder in (("--shared-src", stated.src), ("--shared-docs", stated.docs)):
        create += [flag, str(folder)]
    date = files.points[0].system.get("target_availability_date")
    if stated.availability == "Preview" and date:
        create += ["--target-availability-date", str(date)]
    ids = " ".join(f"--run-ids RUN_ID_OF_{point.label}" for point in files.points)
    yield f"{shlex.join(create)} {ids}"


def _finish(place: Path, commands: tuple[str, ...], *, test_data: bool) -> None:
    """Leave the upload commands; of test data only the tree, which no tool uploads."""
    if not test_data:
        lines = ["# Each `runs create` prints the id that the last command asks for.", *commands]
        write_note(place / UPLOAD, lines)
        return
    drop(place / RUNS)
    write_note(
        place / TEST_DATA,
        ["Test data of a rehearsal: nothing here is a measurement, and nothing may be submitted."],
    )


def _record(records: Records, record: CampaignRecord, made: Package, *, test_data: bool) -> None:
    payload: dict[str, Any] = {
        "folder": str(made.folder),
        "baseline": record.baseline,
        "points": list(made.labels),
        "test_data": test_data,
        "errors": made.count("error"),
        "warnings": made.count("warning"),
        "remarks": [asdict(remark) for remark in made.remarks],
    }
    records.append_event(record.name, CHECKED, payload)
