"""Starts a guard, reads its status, asks it to stop, and clears up after one that was killed.

The guard owns the client (`tasks/guard.py`); whoever has the status file can follow it, whether
or not it started it. Of a dead guard the client is ended, never taken over: nobody watched it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path

from core.errors import SetupError
from core.layout import AttemptPaths
from tasks.guard_files import (
    EndedBy,
    GuardEnd,
    GuardSpec,
    GuardState,
    GuardStatus,
    Leftover,
    StopRequest,
    give_room_back,
    write_json,
    write_last_words,
)
from tasks.processes import (
    IMPORT_ROOT,
    Identity,
    Process,
    all_processes,
    await_end,
    boot_id,
    client_processes,
    is_running,
    kill_process,
    own_identity,
    process_start_time,
    remove_shared_memory,
)

__all__ = [
    "FINAL_STATES",
    "EndedBy",
    "GuardEnd",
    "GuardSpec",
    "GuardState",
    "GuardStatus",
    "Identity",
    "Leftover",
    "boot_id",
    "end_orphaned_client",
    "follow",
    "is_alive",
    "own_identity",
    "process_start_time",
    "read_status",
    "request_stop",
    "start",
]

#: States after which a status never changes.
FINAL_STATES = frozenset({GuardState.ENDED, GuardState.LOST})
#: Seconds for a guard to start its client; a tenth of a second is usual.
START_TIMEOUT_S = 30.0
#: Seconds between two looks at a guard that starts.
START_POLL_S = 0.05
#: Seconds after which an unchanged status is told again, so that a follower can act on silence.
SILENCE_S = 5.0
#: Seconds for killed processes to be gone.
KILL_TIMEOUT_S = 10.0
#: Seconds between two looks at processes that are being killed.
KILL_POLL_S = 0.05


def start(spec: GuardSpec, env: Mapping[str, str]) -> None:
    """Starts a guard in a session of its own; returns once its client runs.

    `env` is the client's environment, API key included: it is handed over in memory alone.
    Raises SetupError when guard or client cannot be started.
    """
    files = _beside(spec)
    if spec.status_path.exists():
        raise SetupError(
            f"{spec.status_path} exists: another guard belongs to this attempt. "
            "Follow that one, or start a new attempt in a folder of its own."
        )
    write_json(files.guard_spec, spec.to_json())
    with files.guard_log.open("ab") as log:
        guard = subprocess.Popen(
            # The working directory is what "-m" imports from first; the caller's is not asked.
            [sys.executable, "-m", "tasks.guard", str(files.guard_spec)],
            cwd=IMPORT_ROOT,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            pass_fds=[] if spec.lock_fd is None else [spec.lock_fd],
        )
    threading.Thread(target=guard.wait, daemon=True).start()  # leaves no zombie behind
    _await_start(spec, guard)


def _beside(spec: GuardSpec) -> AttemptPaths:
    """The files of the attempt whose status file the guard writes."""
    return AttemptPaths(spec.status_path.absolute().parent)


def _await_start(spec: GuardSpec, guard: subprocess.Popen[bytes]) -> None:
    until_s = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < until_s:
        is_gone = guard.poll() is not None
        status = read_status(spec.status_path)
        if status is not None and status.state is not GuardState.STARTING:
            return _check_started(status)
        if is_gone:
            raise SetupError(_no_start(spec, f"ended with exit code {guard.returncode}"))
        time.sleep(START_POLL_S)
    request_stop(spec.stop_path, "the guard took too long to start", at_once=True)
    raise SetupError(_no_start(spec, f"started no client within {START_TIMEOUT_S:g} s"))


def _check_started(status: GuardStatus) -> None:
    if status.end is not None and status.end.ended_by is EndedBy.NOT_STARTED:
        raise SetupError(f"{status.end.reason}. Check the client's command and working directory.")


def _no_start(spec: GuardSpec, what: str) -> str:
    log = _beside(spec).guard_log
    last = log.read_text(errors="replace").strip().splitlines()[-1:] or ["nothing"]
    return f"the guard of {spec.status_path} {what}; its last words in {log}: {last[0]}"


def read_status(path: Path) -> GuardStatus | None:
    """The status in a file; None for a missing one, and for one that is being written."""
    try:
        document = json.loads(path.read_bytes())
    except (FileNotFoundError, json.JSONDecodeError, UnicodeDecodeError):
        return None
    except OSError as error:
        raise SetupError(f"cannot read the guard's status {path}: {error}") from error
    try:
        return GuardStatus.from_json(document)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise SetupError(
            f"{path} is no guard status that this version reads ({error}): "
            "use the version that started the run."
        ) from error


def is_alive(status: GuardStatus) -> bool:
    """Whether the guard itself lives: the same pid, start time and boot."""
    return status.boot_id == boot_id() and is_running(status.guard)


def request_stop(stop_path: Path, reason: str, at_once: bool = False) -> None:
    """Asks the guard to end the client: with grace, or at once; the later request counts."""
    write_last_words(stop_path, asdict(StopRequest(reason, at_once)))


def follow(status_path: Path, poll_s: float = 0.5) -> Iterator[GuardStatus]:
    """Yields each change of a guard's status up to a final one.

    A heartbeat is a change. An unchanged status is told again every SILENCE_S. When the guard died
    without an end, the last status is LOST, and nothing of the client is left.
    """
    last: GuardStatus | None = None
    told_s = time.monotonic()
    while last is None or last.state not in FINAL_STATES:
        status = _look(status_path)
        silence_s = time.monotonic() - told_s
        if status is not None and (status != last or silence_s >= SILENCE_S):
            last, told_s = status, time.monotonic()
            yield status
        elif status is None and silence_s >= START_TIMEOUT_S:
            raise SetupError(f"no guard status at {status_path}: was the guard started?")
        elif status is None:
            time.sleep(poll_s)
        else:  # the end is told at once, and costs no looks before
            await_end(status.guard.pid, poll_s)


def _look(status_path: Path) -> GuardStatus | None:
    status = read_status(status_path)
    if status is None or status.state in FINAL_STATES or is_alive(status):
        return status
    status = read_status(status_path) or status  # it may have ended between the two looks
    if status.state in FINAL_STATES:
        return status
    end = end_orphaned_client(status)
    give_room_back(status_path)
    return replace(status, state=GuardState.LOST, end=end)


def end_orphaned_client(status: GuardStatus) -> GuardEnd:
    """Kills what a dead guard left of its client; returns when nothing of it runs any more."""
    if status.boot_id != boot_id():
        return GuardEnd(EndedBy.LOST_GUARD, "the machine was restarted", time.time())
    if is_alive(status):
        raise ValueError(f"guard {status.guard.pid} is alive: its client is no orphan")
    killed = _kill_client(status)
    leftovers = tuple(
        Leftover(process.pid, process.name, found_by)
        for process, found_by in killed.items()
        if status.client is None or process.pid != status.client.pid
    )
    return GuardEnd(
        EndedBy.LOST_GUARD,
        f"the guard (process {status.guard.pid}) died",
        time.time(),
        signals=("SIGKILL",) if killed else (),
        leftovers_killed=leftovers,
        shared_memory_removed=remove_shared_memory(status.shared_memory),
    )


def _kill_client(status: GuardStatus) -> dict[Process, str]:
    # A session's number is free again when its leader and members are gone: it counts only
    # while the leader is the process that the guard started. The marker counts always.
    has_leader = status.client is not None and is_running(status.client)
    session = status.client.pid if status.client and has_leader else None
    killed: dict[Process, str] = {}
    until_s = time.monotonic() + KILL_TIMEOUT_S
    empty_looks = 0
    while empty_looks < 2:  # noqa: PLR2004 - one look can miss a child forked meanwhile
        left = client_processes(all_processes(), status.marker, session, ancestor=None)
        empty_looks = 0 if left else empty_looks + 1
        if left and time.monotonic() > until_s:
            pids = ", ".join(str(process.pid) for process in left)
            raise SetupError(
                f"processes {pids} of a client without guard survive SIGKILL: end them"
            )
        for process in left:
            kill_process(process)
        killed |= left
        time.sleep(KILL_POLL_S)
    return killed
