"""The client's detector, a real program: what it says, and that the run folder stays as it is."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from core.files import make_read_only, manifest
from tasks.bounded import Bounds, UnreadableError
from tasks.steady_state import detect

PATIENT = Bounds(60.0, 1 << 20)
BLOCK = "{'status': 'insufficient_passes', 'verdict': 'not found', 'window': {}}"
#: What a detector does before it says something: look at its folder, and meddle with it.
LOOK = (
    "import json, pathlib, sys\n"
    "run = pathlib.Path(sys.argv[-1])\n"
    "summary = run / 'performance' / 'result_summary.json'\n"
    "assert json.loads(summary.read_text())['complete'] and (run / 'events.jsonl').stat().st_size\n"
    "summary.write_text('{}'); (run / 'new.json').write_text('{}')\n"
)


@pytest.fixture
def run_folder(fixtures_dir: Path, tmp_path: Path) -> Path:
    """A recorded folder, read-only as one on record is."""
    copy = tmp_path / "run"
    shutil.copytree(fixtures_dir / "c02_both_pass" / "out", copy, copy_function=shutil.copyfile)
    make_read_only(copy)
    return copy


def detected(run_folder: Path, code: str, bounds: Bounds = PATIENT) -> object:
    """What a detector of this code says."""
    command = [sys.executable, "-c", LOOK + code]
    return detect(command, run_folder, dict(os.environ), bounds)


@pytest.mark.parametrize(
    "code",
    [
        f"print(json.dumps({BLOCK}))",
        f"print(json.dumps({{'steady_state': {BLOCK}}}))",
        f"print('found'); (run / 'steady_state.json').write_text(json.dumps({BLOCK}))",
    ],
    ids=["printed", "printed as in the summary", "written"],
)
def test_what_it_says_is_taken_and_the_folder_stays(run_folder: Path, code: str) -> None:
    before = manifest(run_folder)
    found = detected(run_folder, code)
    assert found == {"status": "insufficient_passes", "verdict": "not found", "window": {}}
    assert manifest(run_folder) == before


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("print('no idea')", "printed no steady-state block"),
        ("(run / 'steady_state.json').write_text('[]')", "wrote none as steady_state.json"),
        ("sys.exit('no window')", "exit code 1, saying 'no window'"),
        ("import time; time.sleep(60)", "no end after 2 s"),
        ("print('x' * 5000)", "more than 4,000 bytes"),
    ],
)
def test_anything_else_is_told(run_folder: Path, code: str, why: str) -> None:
    with pytest.raises(UnreadableError, match=why):
        detected(run_folder, code, Bounds(2.0, 4000))


def test_a_folder_or_program_that_is_gone_is_told(run_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match="can't be copied"):
        detected(tmp_path / "gone", "")
    with pytest.raises(UnreadableError, match="can't be run"):
        detect(["no-such-detector"], run_folder, dict(os.environ))
