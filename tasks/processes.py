"""The process table and shared memory of this machine: what belongs to one client, and its end.

Processes are known by pid and start time, and a client's by session, marker and descent; never
by a name. Standard library only: the guard imports this. Linux's /proc is the source.
"""

from __future__ import annotations

import os
import re
import select
import shutil
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

#: The folder that `core`, `tasks` and `flows` are imported from: where processes of ours start.
IMPORT_ROOT = Path(__file__).resolve().parents[1]
#: Environment variable that marks every process of one attempt.
MARKER = "PARETO_ATTEMPT"
#: Where the client puts its events, sockets and semaphores while it runs.
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - the client's choice, not ours
#: The names that the client and Python's multiprocessing give to what they leave there.
_SHARED_NAME = re.compile(rb"/dev/shm/((?:benchmark_|zmq_|sem\.mp-)[A-Za-z0-9_.-]+)")
#: Inode of the machine's own pid namespace (PROC_PID_INIT_INO of Linux).
INITIAL_PIDS = 0xEFFFFFFC
#: A mapped semaphore shows a temporary name; its inode leads to the lasting one.
_SEMAPHORE_INODE = re.compile(rb"(\d+) +/dev/shm/sem\.")


@dataclass(frozen=True)
class Identity:
    """A process for good: pids are used again, start times are not."""

    pid: int
    #: Clock ticks since boot, field 22 of /proc/PID/stat.
    start_time: int


class Process(NamedTuple):
    """One line of the process table."""

    pid: int
    name: str
    is_zombie: bool
    parent: int
    session: int
    start_time: int


def boot_id() -> str:
    """Identifies within what a pid means one process: this boot of this machine, or this container.

    A container has pids of its own, which end with it.
    """
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    namespace = os.stat("/proc/self/ns/pid").st_ino
    return boot if namespace == INITIAL_PIDS else f"{boot}.{namespace}"


def read_process(pid: int) -> Process | None:
    """A process that exists, zombies included."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    name, _, rest = text.partition("(")[2].rpartition(")")  # the name may contain both
    fields = rest.split()
    return Process(
        pid, name, fields[0] in "ZX", int(fields[1]), int(fields[3]), start_time=int(fields[19])
    )


def process_start_time(pid: int) -> int | None:
    """When a live process started; None for none and for a zombie."""
    process = read_process(pid)
    return None if process is None or process.is_zombie else process.start_time


def is_running(identity: Identity) -> bool:
    """Whether that very process lives; meaningful only within the boot it was seen in."""
    return process_start_time(identity.pid) == identity.start_time


def await_end(pid: int, timeout_s: float) -> None:
    """Rests for a time, or until the process ends; nothing is looked at meanwhile."""
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:  # gone already, or a kernel that can't tell
        time.sleep(timeout_s)
        return
    try:
        select.select([descriptor], [], [], timeout_s)
    finally:
        os.close(descriptor)


def own_identity() -> Identity:
    """This process."""
    return Identity(os.getpid(), process_start_time(os.getpid()) or 0)


def all_processes() -> list[Process]:
    """The process table."""
    pids = (int(name) for name in os.listdir("/proc") if name.isdigit())
    return [process for pid in pids if (process := read_process(pid))]


def client_processes(
    table: Iterable[Process], marker: str, session: int | None, ancestor: int | None
) -> dict[Process, str]:
    """The client's live processes, and what each was found by.

    A process may leave session and group and may drop its environment; it cannot leave its
    ancestors, of which the guard is the last resort by being their reaper.
    """
    alive = [p for p in table if not p.is_zombie and p.pid != os.getpid()]
    found = {}
    for process in alive:
        if process.session == session:
            found[process] = "session"
        elif _has_marker(process.pid, marker):
            found[process] = "marker"
    parents = {ancestor} | {process.pid for process in found}
    while more := [p for p in alive if p.parent in parents and p not in found]:
        found |= dict.fromkeys(more, "descent")
        parents |= {process.pid for process in more}
    return found


def _has_marker(pid: int, marker: str) -> bool:
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:  # gone, or of another user and therefore not the client's
        return False
    return f"{MARKER}={marker}".encode() in environment.split(b"\0")


def kill_process(process: Process) -> None:
    """Kills that process and no other that got its pid since."""
    if process_start_time(process.pid) == process.start_time:
        try:
            os.kill(process.pid, signal.SIGKILL)
        except OSError as error:
            complain(f"cannot kill process {process.pid} ({process.name}): {error}")


def shared_memory_of(pids: Iterable[int]) -> set[str]:
    """Names in shared memory that processes name: command line, mappings, open files."""
    semaphores = {
        str(path.lstat().st_ino).encode(): path.name for path in SHARED_MEMORY.glob("sem.mp-*")
    }
    names = set()
    for pid in pids:
        text = b"\0".join(_everything_named_by(Path(f"/proc/{pid}")))
        names |= {name.decode() for name in _SHARED_NAME.findall(text)}
        names |= {semaphores[i] for i in _SEMAPHORE_INODE.findall(text) if i in semaphores}
    return names


def _everything_named_by(folder: Path) -> Iterator[bytes]:
    # The process may end, or close a file, while it is looked at.
    for name in ("cmdline", "maps"):
        with suppress(OSError):
            yield (folder / name).read_bytes()
    with suppress(OSError):
        for link in os.listdir(folder / "fd"):
            with suppress(OSError):
                yield os.readlink(os.fsencode(folder / "fd" / link))


def remove_shared_memory(names: Iterable[str]) -> tuple[str, ...]:
    """Removes entries of shared memory by name, our user's only; returns those that existed."""
    return tuple(name for name in sorted(names) if _remove(SHARED_MEMORY / name))


def _remove(path: Path) -> bool:
    try:
        if path.lstat().st_uid != os.geteuid():
            return False
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        complain(f"cannot remove {path}: {error}")
        return False
    return True


def complain(text: str) -> None:
    """Says something on stderr, which may lie on the disk that is full."""
    with suppress(OSError):
        print(text, file=sys.stderr, flush=True)
