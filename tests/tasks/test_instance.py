"""One campaign at a time on an instance, on one machine and across machines."""

from __future__ import annotations

import fcntl
import multiprocessing
import os
from collections.abc import Iterator
from dataclasses import replace
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pytest

from core.errors import InputError, SetupError
from core.records import Records, open_records
from tasks import instance as module
from tasks.instance import Hold, Lease, Wanted, free
from tasks.owner import this_process

#: Processes that want the instance at the same moment, and how often.
RACERS, ROUNDS = 2, 100


@pytest.fixture
def records(tmp_path: Path) -> Records:
    """Fresh records."""
    return open_records(f"sqlite:///{tmp_path / 'pareto.db'}")


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LEASE_S", 0.5)
    monkeypatch.setattr(module, "BEAT_S", 0.05)
    monkeypatch.setattr(module, "LOOK_S", 0.02)


def hold(records: Records, folder: Path, campaign: str = "one") -> Hold:
    """What a campaign wants."""
    return Hold.of(Wanted("box", campaign, str(records.url)), folder / "box.lock", records)


def lost(_reason: str) -> None:
    """Nobody takes it over."""
    raise AssertionError("the lease was lost")


def race(folder: str, name: str, start: Barrier, holding: Barrier, results: Any) -> None:
    """Want the instance a hundred times, each time together with others."""
    records = open_records(f"sqlite:///{folder}/pareto.db")
    for _ in range(ROUNDS):
        start.wait()
        try:
            with hold(records, Path(folder), name).held(lost):
                holding.wait()
                results.put("held")
        except SetupError as refusal:
            holding.wait()
            results.put(str(refusal))


def test_of_two_at_the_same_moment_exactly_one_holds_it(tmp_path: Path, records: Records) -> None:
    """A hundred times; whoever is refused is told who holds it."""
    assert records.lease("box") is None
    context = multiprocessing.get_context("fork")
    start, holding = context.Barrier(RACERS, timeout=60), context.Barrier(RACERS, timeout=60)
    results: multiprocessing.Queue[str] = context.Queue()
    racers = [
        context.Process(target=race, args=(str(tmp_path), f"c{n}", start, holding, results))
        for n in range(RACERS)
    ]
    for racer in racers:
        racer.start()
    said = [results.get(timeout=120) for _ in range(RACERS * ROUNDS)]
    for racer in racers:
        racer.join()
    assert said.count("held") == ROUNDS
    refusals = [text for text in said if text != "held"]
    assert all("instance 'box' is being measured by another campaign" in r for r in refusals)


def test_the_refusal_says_who_since_when_and_where(tmp_path: Path, records: Records) -> None:
    with hold(records, tmp_path).held(lost):
        pass
    first = hold(records, tmp_path)
    with first.held(lost):
        first.tell("c0064")
        with pytest.raises(SetupError) as refusal, hold(records, tmp_path, "two").held(lost):
            pass
    own = this_process()
    assert "another campaign: one, at point c0064, since 20" in str(refusal.value)
    assert f"process {own.pid} on {own.host}; one at a time may load it" in str(refusal.value)
    with hold(records, tmp_path, "two").held(lost):
        assert records.lease("box").campaign == "two"
    assert records.lease("box") is None


def test_two_instances_are_held_side_by_side(tmp_path: Path, records: Records) -> None:
    other = Hold.of(Wanted("crate", "two", str(records.url)), tmp_path / "crate.lock", records)
    with hold(records, tmp_path).held(lost), other.held(lost):
        assert records.lease("box").campaign == "one"
        assert records.lease("crate").campaign == "two"


def test_an_unreadable_lock_file_still_refuses(tmp_path: Path, records: Records) -> None:
    with (tmp_path / "box.lock").open("w") as file:
        file.write("]")
        file.flush()
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(SetupError, match="another campaign; one at a time"):
            hold(records, tmp_path).lock.acquire()


def test_a_place_that_can_have_no_lock_is_told(tmp_path: Path, records: Records) -> None:
    """A folder that can't be made, a lock that may not be opened: a message, no traceback."""
    (tmp_path / "file").touch()
    with pytest.raises(SetupError, match=r"file/box\.lock: can't be written \(File exists\)"):
        hold(records, tmp_path / "file").lock.acquire()
    (tmp_path / "box.lock").mkdir()
    with (
        pytest.raises(SetupError, match=r"box\.lock: can't be written \(Is a directory\)"),
        hold(records, tmp_path).held(lost),
    ):
        pass


def test_a_long_holder_is_told_whole(tmp_path: Path, records: Records) -> None:
    """And after it a short one, of which nothing is left over."""
    lock = hold(records, tmp_path).lock
    lock.acquire()
    for label in ("c" * 3 * module._FILE_BYTES, "c0064"):
        lock.tell(label)
        assert lock.holder()["label"] == label
        assert lock.path.stat().st_size % module._FILE_BYTES == 0
    lock.release()


# --- Across machines ---------------------------------------------------------------------------


@pytest.fixture
def elsewhere(records: Records) -> Iterator[Lease]:
    """The lease of a campaign on another machine, which is alive if it is told to beat."""
    lease = Lease(records, Wanted("box", "far", "x"))
    lease.owner = replace(this_process(), host="elsewhere", boot_id="other", pid=1)
    lease.acquire()
    yield lease
    records.drop_lease("box", lease.owner)


def test_a_living_holder_elsewhere_keeps_its_lease(
    tmp_path: Path, records: Records, elsewhere: Lease
) -> None:
    """No clock is compared: its lease moves."""
    with (
        elsewhere.kept_alive(lost),
        pytest.raises(SetupError, match=r"another campaign: far, since .* on elsewhere"),
    ):
        hold(records, tmp_path).lease.acquire()


def test_a_dead_holder_elsewhere_loses_it_after_the_lease(
    tmp_path: Path, records: Records, elsewhere: Lease
) -> None:
    with hold(records, tmp_path).held(lost):
        assert records.lease("box").campaign == "one"
        told: list[str] = []
        elsewhere.on_lost = told.append
        for _ in range(2):
            elsewhere.tell("c0064", has_client=False)
        assert told == ["the lease of instance box was taken over by another campaign"]


def test_a_client_that_may_still_run_elsewhere_is_waited_for(
    records: Records, elsewhere: Lease
) -> None:
    """Its orchestrator is dead, but a client may run until the lease's term: not before that."""
    elsewhere.clock = lambda: 1000.0
    elsewhere.tell("c0064", has_client=True)
    mine = Lease(records, Wanted("box", "one", "x"), clock=lambda: 999.0 + module.TERM_S)
    way_out = "its lease ends at 1970-01-01 02:16:40Z, or with `pareto unlock far --reason"
    with pytest.raises(SetupError, match=f"far, at point c0064.*{way_out}"):
        mine.acquire()
    mine.clock = lambda: 1001.0 + module.TERM_S
    mine.acquire()
    assert records.lease("box").campaign == "one"


def test_a_dead_holder_here_loses_it_at_once(records: Records) -> None:
    """The lock file says whether its client is gone."""
    dead = Lease(records, Wanted("box", "dead", "x"))
    dead.owner = replace(this_process(), start_time=1)
    dead.acquire()
    dead.tell("c0064", has_client=True)
    Lease(records, Wanted("box", "one", "x")).acquire()
    assert records.lease("box").campaign == "one"
    assert os.getpid() == records.lease("box").owner.pid


def test_a_keeper_that_renews_just_now_is_no_reason_to_refuse(
    records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its orchestrator is dead: the lease is looked at once more."""
    dead = Lease(records, Wanted("box", "one", "x"))
    dead.owner = replace(this_process(), start_time=1)
    dead.acquire()
    looks: list[int] = []

    def look(*_: Any) -> bool:
        looks.append(1)
        if len(looks) == 1:
            dead.beat()
        return True

    monkeypatch.setattr(module, "_may_take_over", look)
    mine = Lease(records, Wanted("box", "one", "x"))
    mine.acquire()
    assert records.lease("box").owner == mine.owner
    assert len(looks) == 2


def test_a_machine_of_the_same_name_is_another_machine(records: Records) -> None:
    """While its lease moves; its processes are not looked for among ours."""
    namesake = Lease(records, Wanted("box", "far", "x"))
    namesake.owner = replace(this_process(), boot_id="other")
    namesake.acquire()
    mine = Lease(records, Wanted("box", "one", "x"))
    with namesake.kept_alive(lost):
        with pytest.raises(SetupError, match="another campaign: far"):
            mine.acquire()
        assert records.lease("box").campaign == "far"


def test_the_client_of_a_namesake_is_waited_for(records: Records) -> None:
    """It is cut off from the records, and its client measures on: until the term nobody else."""
    namesake = Lease(records, Wanted("box", "far", "x"))
    own = this_process()
    name, _, _ = own.host.partition("#")
    namesake.owner = replace(own, host=f"{name}#another", boot_id="other")
    namesake.acquire()
    namesake.tell("c0064", has_client=True)
    with pytest.raises(SetupError, match="another campaign: far"):
        Lease(records, Wanted("box", "one", "x")).acquire()
    assert records.lease("box").campaign == "far"


def test_a_restart_of_the_machine_ended_its_client(records: Records) -> None:
    """No term is waited for, only for signs of life: a copy of the machine has its mark too."""
    before = Lease(records, Wanted("box", "one", "x"))
    before.owner = replace(this_process(), boot_id="before")
    before.acquire()
    before.tell("c0064", has_client=True)
    Lease(records, Wanted("box", "two", "x")).acquire()
    assert records.lease("box").campaign == "two"


def test_a_lease_outlives_an_orchestrator_that_leaves_a_client(
    tmp_path: Path, records: Records
) -> None:
    """As after an outage of the records: whoever comes next looks for the client first."""
    first = hold(records, tmp_path)
    with first.held(lost):
        first.tell("c0064", has_client=True)
    left = records.lease("box")
    assert left is not None
    assert left.client_until is not None
    with hold(records, tmp_path).held(lost):  # the lock says that there is none
        pass
    assert records.lease("box") is None


def test_nothing_is_freed_while_a_client_runs_here(tmp_path: Path, records: Records) -> None:
    dead = Lease(records, Wanted("box", "one", "x"))
    dead.owner = replace(this_process(), start_time=1)
    dead.acquire()
    lock = tmp_path / "box.lock"
    with lock.open("w") as client:
        fcntl.flock(client, fcntl.LOCK_EX)
        with pytest.raises(InputError, match="still runs; `pareto cancel one` ends it"):
            free(records, records.lease("box"), lock, "gone")
        assert records.lease("box") is not None
