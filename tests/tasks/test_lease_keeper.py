"""The keeper: a lease lives for as long as a client does whose orchestrator is gone."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO

import pytest

from core.records import Owner, Records, open_records, upgrade
from tasks.lease_keeper import Keeper, is_locked
from tasks.owner import this_process
from tests.flows.support import wait_until
from tests.postgres import schema


@pytest.fixture
def records(postgres_url: str) -> Iterator[Records]:
    """Records that machines share."""
    with schema(postgres_url) as url:
        upgrade(url)
        yield open_records(url)


@pytest.fixture
def owner(records: Records) -> Owner:
    """An orchestrator of this machine that is gone, and whose lease is on record."""
    gone = replace(this_process(), start_time=1)
    records.take_lease("box", "one", gone)
    records.beat_lease("box", gone, "c0064", None)
    return gone


@pytest.fixture
def client(tmp_path: Path) -> Iterator[IO[str]]:
    """Stands for the client: it holds the lock."""
    with (tmp_path / "box.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file


def keeper(records: Records, owner: Owner, folder: Path) -> Keeper:
    """The keeper of the orchestrator."""
    url = records.url.render_as_string(hide_password=False)
    lock, beat = folder / "box.lock", folder / "box.beat"
    beat.touch()
    return Keeper(url, "box", owner, lock, beat, beat_s=0.05, term_s=600.0)


def ended(kept: Keeper) -> bool:
    """Whether its process is gone."""
    assert kept._process is not None
    return kept._process.poll() is not None


def test_it_renews_the_lease_until_the_client_is_gone(
    records: Records, owner: Owner, client: IO[str], tmp_path: Path
) -> None:
    """Then it gives the lease back, at once."""
    kept = keeper(records, owner, tmp_path)
    kept.start()
    kept.leave(to_go_on=True)
    renewed = wait_until(lambda: (found := records.lease("box")) and found.beat > 3 and found, "it")
    assert (renewed.owner, renewed.label) == (owner, "c0064")
    assert renewed.client_until is not None
    client.close()
    wait_until(lambda: records.lease("box") is None, "a lease that is given back")
    wait_until(lambda: ended(kept), "its end")
    assert (tmp_path / "box.beat").exists()


@pytest.mark.usefixtures("client")
def test_it_only_sleeps_beside_a_living_orchestrator(
    records: Records, owner: Owner, tmp_path: Path
) -> None:
    kept = keeper(records, owner, tmp_path)
    kept.start()
    before = records.lease("box")
    kept.leave(to_go_on=False)
    assert ended(kept)
    assert records.lease("box") == before


@pytest.mark.usefixtures("client")
@pytest.mark.parametrize(("machine", "is_told"), [("elsewhere", True), (None, False)])
def test_a_client_is_told_only_of_a_new_holder_elsewhere(
    records: Records,
    owner: Owner,
    tmp_path: Path,
    machine: str | None,
    is_told: bool,
) -> None:
    """The next run of the campaign on this machine goes on with the client."""
    kept = keeper(records, owner, tmp_path)
    kept.start()
    held = records.lease("box")
    other = replace(this_process(), boot_id=machine or owner.boot_id)
    records.take_lease("box", "one", other, seen=held)
    kept.leave(to_go_on=True)
    wait_until(lambda: ended(kept), "its end")
    assert (tmp_path / "box.beat").exists() is not is_told
    assert records.lease("box").owner == other


def test_looking_at_a_lock_leaves_it_as_it_was(tmp_path: Path) -> None:
    lock = tmp_path / "box.lock"
    assert not is_locked(lock)
    with lock.open("w") as file:
        assert not is_locked(lock)
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        assert is_locked(lock)


def test_its_repr_holds_no_password() -> None:
    """A repr gets into tracebacks and logs."""
    url, place = "postgresql://pareto:hush-hush@head-node/pareto", Path("box")
    kept = Keeper(url, "box", this_process(), place, place, beat_s=5.0, term_s=600.0)
    assert kept.url == url
    assert "hush-hush" not in repr(kept)
