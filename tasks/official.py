"""The official builder, checker and run-folder parser, called as a library (§9.1).

The only importer of them. Nothing of their command lines is used: those start a version check on a
thread of its own and ask the network.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml
from endpoints_submission_cli.exceptions import RunFolderError, SubmissionBuildError
from endpoints_submission_cli.runs.parser import build_archive, parse_run_folder
from endpoints_submission_cli.submissions.builder import build_submission_folder
from submission_checker import SubmissionChecker
from submission_checker.models import Severity as Official

from core import layout
from core.gates import CURVE, is_folder_name, remark
from core.rules_ahead import Remark, key_for
from core.specimen import SYSTEM
from core.submission import CurveFiles, PointFiles, labels

#: The submission's folder below its organization's, until MLCommons gives it an id.
PENDING_ID = "local"


def check_tree(tree: Path, registry: Path | None, names: Mapping[int, str]) -> list[Remark]:
    """What the official checker says against a submission tree, errors first.

    Args:
        tree: The organization's folder, or the submission's in it.
        registry: A newer seed-set registry; None: the official package's own.
        names: Level → label of the points.
    """
    try:
        report = SubmissionChecker(tree, seed_sets_path=registry).run()
    except Exception as crash:
        return [_crashed(crash)]
    found = [result for result in report.results if result.severity is not Official.INFO]
    ordered = sorted(found, key=lambda result: result.severity is not Official.ERROR)
    return [
        Remark(
            rule=result.rule,
            severity="error" if result.severity is Official.ERROR else "warning",
            message=result.message,
            fix=result.fix,
            place=_place(result.path, names),
            key=key_for(result.rule, result.message),
        )
        for result in ordered
    ]


def _crashed(crash: Exception) -> Remark:
    return remark(
        "checker-crashed",
        f"the official checker failed: {type(crash).__name__}: {crash}",
        "look for a file that is not as its tool writes it",
    )


def _place(path: Path | None, names: Mapping[int, str]) -> str:
    """The point that a path leads to."""
    for part in reversed(path.parts if path else ()):
        level = layout.parse_point_dir(part)
        if level is not None:
            return names.get(level, part)
    return CURVE


def check_files(files: CurveFiles, registry: Path | None) -> list[Remark]:
    """What the official checker says against files that are not on the disk yet.

    A system's name that would lead out of the tree is a specimen's in it; `gate_files` tells of it.
    """
    files = replace(files, points=tuple(map(_inside, files.points)))
    with tempfile.TemporaryDirectory(prefix="pareto-ahead-") as folder:
        try:
            write_tree(files, Path(folder))
        except (OSError, ValueError) as problem:
            return [_crashed(problem)]
        return check_tree(Path(folder), registry, labels(files.points))


def _inside(point: PointFiles) -> PointFiles:
    """A point whose system's name is a folder's."""
    if is_folder_name(str(point.system.get("system_name"))):
        return point
    return replace(point, system={**point.system, "system_name": SYSTEM["system_name"]})


def write_tree(files: CurveFiles, root: Path) -> None:
    """Write a submission tree as the official builder lays it out."""
    system = root / layout.RESULTS_DIR / files.system_name
    for point in files.points:
        folder = system / files.benchmark / layout.point_dir_name(point.concurrency)
        folder.mkdir(parents=True, exist_ok=True)
        _write_yaml(folder / layout.POINT_YAML, point.point)
        _write_json(folder / layout.SYSTEM_DESC_JSON, point.system)
        if point.config is not None:
            _write_yaml(folder / layout.CONFIG_YAML, point.config)
        if point.summary is not None:
            _write_json(folder / layout.RESULT_SUMMARY_JSON, point.summary)
        if point.accuracy is not None:
            _write_json(folder / layout.ACCURACY_RESULTS_JSON, point.accuracy)
    if files.power is not None:
        _write_json(system / layout.SYSTEM_POWER_JSON, files.power)
    (root / layout.DOCS_DIR).mkdir()
    for name in files.implementations:
        (root / layout.SRC_DIR / name).mkdir(parents=True)
        (root / layout.SRC_DIR / name / layout.README_MD).write_text("specimen\n")


def _write_yaml(path: Path, document: Mapping[str, Any]) -> None:
    path.write_text(yaml_text(document), encoding="utf-8")


def _write_json(path: Path, document: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(document, indent=2), encoding="utf-8")


def yaml_text(document: Mapping[str, Any]) -> str:
    """A document as YAML, in its own order."""
    text: str = yaml.dump(dict(document), Dumper=_DUMPER, sort_keys=False, allow_unicode=True)
    return text


#: The fast dumper where PyYAML was built with it; both write the same.
_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


# --- The real thing --------------------------------------------------------------------------


def accepts_run_folder(folder: Path) -> str | None:
    """Why `runs create` would refuse a run folder; None: it takes it."""
    try:
        parse_run_folder(folder)
    except RunFolderError as refusal:
        return str(refusal)
    return None


def build_tree(
    runs: Mapping[str, Path],
    work: Path,
    *,
    division: str,
    availability: str,
    src: Path,
    docs: Path,
) -> Path:
    """The submission tree that the official builder makes of run folders.

    The events are left out of the archives: the builder reads none, and they are most of the bytes.

    Args:
        runs: Label → run folder with its disclosures.
        work: Where the tree goes.
        division: Division, as the command line of the official tool takes it.
        availability: Availability, likewise.
        src: Folder with the implementations.
        docs: Folder of documents.

    Returns:
        The organization's folder.

    Raises:
        SubmissionBuildError: the builder refuses the runs.
    """
    with tempfile.TemporaryDirectory(prefix="pareto-archives-") as scratch:
        archives = []
        for label, folder in runs.items():
            light = Path(scratch) / label
            shutil.copytree(folder, light, ignore=shutil.ignore_patterns(layout.EVENTS_JSONL))
            archives.append((label, build_archive(light, Path(scratch) / f"{label}.tar.gz")))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they say what the checker says again
            org: Path = build_submission_folder(
                archives,
                division=division.lower(),
                availability=availability.lower(),
                work_dir=work,
                submission_id=PENDING_ID,
                shared_src_dirs=[src],
                shared_docs_dirs=[docs],
            )
    return org


__all__ = [
    "PENDING_ID",
    "SubmissionBuildError",
    "accepts_run_folder",
    "build_tree",
    "check_files",
    "check_tree",
    "write_tree",
    "yaml_text",
]
