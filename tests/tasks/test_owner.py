"""Which process an attempt belongs to, and whether that very process lives."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from core.records import Owner
from tasks.owner import is_here, owner_lives, this_process, was_here
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
