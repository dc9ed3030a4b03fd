"""Room for a run: on the runs' file system and in the client's event buffer."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from core.errors import SetupError
from tasks import disk
from tasks.disk import LEAST_FREE_BYTES, check_room, free_bytes


def test_a_folder_that_is_not_there_yet_lies_where_its_parent_does(tmp_path: Path) -> None:
    """The free space of the file system that it will lie on."""
    assert free_bytes(tmp_path / "a" / "b") == pytest.approx(
        shutil.disk_usage(tmp_path).free, rel=0.1
    )
    assert not (tmp_path / "a").exists()


def test_more_than_there_is_is_refused_with_numbers(tmp_path: Path) -> None:
    """Place, free and needed are told."""
    check_room(tmp_path, 0, 0)
    with pytest.raises(SetupError, match=r"GB free, 1000000\.00 GB are needed for the run folders"):
        check_room(tmp_path, 10**15, 0)
    with pytest.raises(
        SetupError, match=r"1000000\.00 GB are needed for the client's event buffer"
    ):
        check_room(tmp_path, 0, 10**15)


def test_the_event_buffer_counts_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full shared memory ends a run although the disk is ample; where there is none, it can't."""
    small = tmp_path / "shm"
    small.mkdir()
    monkeypatch.setattr(disk, "SCRATCH", small)
    monkeypatch.setattr(
        disk, "free_bytes", lambda place: LEAST_FREE_BYTES - 1 if place == small else 10**12
    )
    with pytest.raises(SetupError, match=r"shm: .* needed for the client's event buffer"):
        check_room(tmp_path, 0, 0)
    small.rmdir()
    check_room(tmp_path, 0, 10**15)
