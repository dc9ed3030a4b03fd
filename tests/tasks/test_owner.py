"""Which process an attempt belongs to, and whether that very process lives."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from core.errors import SetupError
from core.records import Owner
from tasks.owner import is_here, machine, owner_lives, this_process, was_here
from tasks.processes import INITIAL_PIDS, boot_id, process_start_time


def test_this_process_lives() -> None:
    """Its owner names host, boot, pid and start time."""
    own = this_process()
    assert owner_lives(own)
    assert own.host
    assert own.boot_id


def test_a_reused_pid_is_another_process() -> None:
    """The same pid with another start time or in another boot is not it; a name says nothing."""
    own = this_process()
    assert not owner_lives(replace(own, start_time=own.start_time + 1))
    assert not owner_lives(replace(own, boot_id="another"))
    assert owner_lives(replace(own, host=own.host + "x"))


def test_a_container_has_pids_of_its_own() -> None:
    """Its processes are not those of the machine with the same numbers, nor of the next one."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    namespace = os.stat("/proc/self/ns/pid").st_ino
    assert boot_id() in (boot, f"{boot}.{namespace}")
    assert (boot_id() == boot) == (namespace == INITIAL_PIDS)


def test_a_restart_of_the_machine_is_told_from_another_machine() -> None:
    own = this_process()
    assert is_here(replace(own, host="renamed"))
    assert was_here(replace(own, boot_id="before"))
    assert not is_here(replace(own, boot_id="before"))
    assert not was_here(replace(own, host="elsewhere", boot_id="other"))


def test_a_name_alone_is_no_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of one name have marks of their own, which their state folders keep."""
    mine = replace(this_process(), boot_id="before")
    monkeypatch.setenv("PARETO_STATE_DIR", str(tmp_path / "other"))
    other = this_process()
    assert other.host.partition("#")[0] == mine.host.partition("#")[0]
    assert other.host != mine.host
    assert not was_here(mine)
    show = "from tasks.owner import machine; print(machine())"
    again = [
        subprocess.Popen([sys.executable, "-c", show], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    assert {process.communicate()[0].strip() for process in again} == {other.host}


def test_a_mark_that_several_make_at_once_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARETO_STATE_DIR", str(tmp_path))
    with multiprocessing.get_context("fork").Pool(8) as pool:
        assert len(set(pool.starmap(machine, [()] * 8, chunksize=1))) == 1


def test_a_state_folder_that_keeps_no_mark_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("PARETO_STATE_DIR", str(tmp_path / "file" / "state"))
    with pytest.raises(SetupError, match=r"state/machine: can't keep .* PARETO_STATE_DIR"):
        this_process()


def test_a_process_that_ended_does_not_live() -> None:
    """Neither as a zombie nor when it is gone."""
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    owner = replace(this_process(), pid=child.pid, start_time=process_start_time(child.pid) or 0)
    assert owner_lives(owner)
    child.kill()
    while owner_lives(owner):  # a zombie in a moment
        pass
    child.communicate()
    assert not owner_lives(owner)


def test_an_owner_is_a_plain_value() -> None:
    """Equal parts make equal owners: it goes through the database."""
    own = this_process()
    assert own == Owner(own.host, own.boot_id, own.pid, own.start_time)
