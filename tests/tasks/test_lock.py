"""One process at a time drives a campaign."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from core.errors import SetupError
from tasks.lock import exclusive

#: Holds the lock given until it is killed.
HOLDER = """
import sys, time
from pathlib import Path
from tasks.lock import exclusive
with exclusive(Path(sys.argv[1]), "it"):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_holder_is_refused_and_told_who_holds_it(tmp_path: Path) -> None:
    """The holder's process id is told; a killed holder holds nothing."""
    path = tmp_path / "new" / "campaign.lock"
    root = str(Path(__file__).parents[2])
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)],
        env=os.environ | {"PYTHONPATH": root},
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == b"held\n"
        with (
            pytest.raises(SetupError, match=f"campaign x is being run by process {process.pid};"),
            exclusive(path, "campaign x"),
        ):
            pass
        process.kill()
        process.wait()
    with exclusive(path, "campaign x"):
        assert path.read_text() == str(os.getpid())


def test_the_lock_is_free_after_the_block(tmp_path: Path) -> None:
    """Also after a failure inside."""
    path = tmp_path / "campaign.lock"
    with pytest.raises(ZeroDivisionError), exclusive(path, "it"):
        raise ZeroDivisionError
    with exclusive(path, "it"):
        pass


def test_a_place_that_can_have_no_lock_is_told(tmp_path: Path) -> None:
    """Runs below a file: a message, no traceback."""
    (tmp_path / "file").touch()
    with (
        pytest.raises(SetupError, match=r"campaign\.lock"),
        exclusive(tmp_path / "file" / "campaign.lock", "it"),
    ):
        pass
