"""A data folder on a file system that another program fills up to its last byte, during a run."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from core.status import AttemptState
from tests.flows.support import Place, finish, is_alive, wait_until

#: Room of the file system, MiB: enough to begin with.
ROOM_MIB = 128


@pytest.fixture
def small_disk(place: Place) -> Iterator[Place]:
    """The place, its data folder on a small file system of its own; mounting needs privileges."""
    place.data.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={ROOM_MIB}m", "tmpfs", str(place.data)]
    subprocess.run(mount, check=True, capture_output=True)
    yield place
    subprocess.run(["umount", "--lazy", str(place.data)], check=True)


def fill(place: Place) -> None:
    """Write until the file system refuses every further byte."""
    try:
        with (place.data / "ballast").open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
    except OSError:
        return


def test_a_disk_that_is_full_to_the_last_byte(small_disk: Place) -> None:
    """The run stops cleanly, nothing is deleted; with room again, the same command goes on.

    Even the records and the guard can't write then: what the attempt was is recorded afterwards.
    """
    place = small_disk
    with place.endpoint():
        place.write(
            run={
                "fail_fast": True,
                "min_passes": 60,
                "stall_timeout_s": 60.0,
                "recovery_timeout_s": 4.0,
            }
        )
        process = place.start("run", place.file, "--points", "6")
        place.wait_for_attempt("c0006", state=AttemptState.RUNNING)
        wait_until(lambda: len(place.requests()) > 10, "requests")
        seen = place.guard("c0006")
        fill(place)
        done = finish(process)
        assert done.code != 0
        assert "Traceback" not in done.err, done.err
        for pid in (seen["guard"]["pid"], seen["client"]["pid"]):
            wait_until(lambda pid=pid: not is_alive(pid), "the end of guard and client")
        (place.data / "ballast").unlink()
        again = place.pareto("run", place.file, "--points", "6")
    first, second = place.attempts("c0006")
    assert first.state is AttemptState.FAILED, (first, done)
    assert "no-room" in (first.reason or ""), first
    assert (place.runs / first.folder / "run").is_dir()
    assert second.state is AttemptState.VALID, again
