"""Collecting: every file once, hash and content of the same read, and no way to raise."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from core import files
from core import folder as names
from core.accuracy import AccuracyReport
from core.events import EventFacts
from core.folder import FolderFacts, RunConfig
from core.summary import Summary
from core.validate import validate
from tasks import collect as module
from tasks.collect import collect
from tests.recorded import case_of, planned_run


@pytest.fixture
def run_folder(fixtures_dir: Path, tmp_path: Path) -> Path:
    """A writable copy of a good folder, written now."""
    copy = tmp_path / "out"
    shutil.copytree(fixtures_dir / "c02_both_pass" / "out", copy, copy_function=shutil.copyfile)
    for folder in (copy, *copy.iterdir()):
        folder.chmod(0o755)
    return copy


def collected(folder: Path, *, attempt_started_at: float = 0.0) -> FolderFacts:
    """The facts of a folder whose client ended well."""
    facts, _ = collect(
        folder, attempt_started_at=attempt_started_at, exit_code=0, ended_by="itself"
    )
    return facts


def test_a_good_folder_is_collected_in_full(run_folder: Path) -> None:
    """Every file is a fact, every known one is parsed, and the manifest verifies."""
    facts, recorded = collect(run_folder, attempt_started_at=1.5, exit_code=0, ended_by="itself")
    assert set(facts.files) == {e.name for e in recorded} == set(files.names(run_folder))
    assert isinstance(facts.config, RunConfig)
    assert isinstance(facts.summary, Summary)
    assert isinstance(facts.accuracy, AccuracyReport)
    assert isinstance(facts.events, EventFacts)
    assert facts.sample_map == {"performance": 40, "acc": 20}
    assert (facts.exists, facts.started_at, facts.problems) == (True, 1.5, ())
    assert recorded == files.manifest(run_folder)
    assert facts.files[names.SUMMARY].size_bytes == (run_folder / names.SUMMARY).stat().st_size


def test_collecting_changes_nothing(run_folder: Path) -> None:
    """A recorded folder is the same before and after, times included."""
    before = {p: p.stat().st_mtime_ns for p in run_folder.rglob("*")}
    recorded = files.manifest(run_folder)
    collected(run_folder)
    assert {p: p.stat().st_mtime_ns for p in run_folder.rglob("*")} == before
    assert files.verify(run_folder, recorded) == []


def test_each_file_is_opened_once(run_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hash and content come from one read: events can be tens of gigabytes."""
    opened: list[Path] = []

    def counted(path: Path) -> Iterator[bytes]:
        opened.append(path)
        with path.open("rb") as file:
            yield from iter(lambda: file.read(1000), b"")

    monkeypatch.setattr(files, "blocks", counted)
    facts = collected(run_folder)
    assert sorted(opened) == sorted(run_folder / name for name in files.names(run_folder))
    assert facts.events is not None
    assert facts.events.completed == 40


def test_a_missing_folder_is_a_fact(tmp_path: Path) -> None:
    """A client that never made its folder leaves facts without files."""
    facts, recorded = collect(
        tmp_path / "out", attempt_started_at=0.0, exit_code=2, ended_by="itself"
    )
    assert (facts.exists, facts.files, recorded) == (False, {}, ())


def test_a_folder_reused_by_a_later_attempt_shows_it(run_folder: Path, fixtures_dir: Path) -> None:
    """Files that an attempt found and didn't write anew are stale by their times."""
    run = planned_run(case_of(fixtures_dir / "c02_both_pass"))
    started_at = time.time() + 60
    assert validate(run, collected(run_folder), benchmark="custom").valid
    for name in files.names(run_folder):
        if name != names.ACCURACY:
            os.utime(run_folder / name, (started_at + 1, started_at + 1))
    facts = collected(run_folder, attempt_started_at=started_at)
    verdict = validate(run, facts, benchmark="custom")
    assert verdict.rules == {"stale-files"}
    assert names.ACCURACY in verdict.findings[0].seen


def test_a_file_too_large_is_a_problem(run_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file far larger than the client's is hashed, not parsed."""
    parser, _ = module._PARSED[names.CONFIG]
    monkeypatch.setitem(module._PARSED, names.CONFIG, (parser, 100))
    facts, recorded = collect(run_folder, attempt_started_at=0.0, exit_code=0, ended_by="itself")
    assert facts.config is None
    assert [problem.where for problem in facts.problems] == [names.CONFIG]
    assert recorded == files.manifest(run_folder)


def test_links_in_the_place_of_files_are_not_followed(run_folder: Path, tmp_path: Path) -> None:
    """A summary that is a link is empty to the reader, whatever it leads to."""
    (run_folder / names.SUMMARY).rename(tmp_path / "summary")
    (run_folder / names.SUMMARY).symlink_to(tmp_path / "summary")
    facts = collected(run_folder)
    assert isinstance(facts.summary, tuple)


@pytest.fixture
def other_user() -> Iterator[None]:
    """A user whom permissions bind: tests may run as root."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    yield
    if root:
        os.seteuid(0)


def test_files_that_the_disk_does_not_give_are_problems(
    fixtures_dir: Path, other_user: None
) -> None:
    """A file or folder without read permission is a problem with its name, not a traceback."""
    assert other_user is None
    with tempfile.TemporaryDirectory() as parent:
        copy = Path(parent) / "out"
        copy.mkdir()
        (copy / names.CONFIG).write_bytes(b"name: x\n")
        (copy / names.EVENTS).write_bytes(b"")
        (copy / names.CONFIG).chmod(0)
        facts = collected(copy)
        assert [problem.where for problem in facts.problems] == [names.CONFIG]
        verdict = validate(
            planned_run(case_of(fixtures_dir / "c02_both_pass")), facts, benchmark="custom"
        )
        assert verdict.rules == {"unreadable", "no-summary", "events-empty"}
        copy.chmod(0)
        assert [problem.where for problem in collected(copy).problems] == ["."]
        copy.chmod(0o700)
