"""The guard: a small process that owns one client, from its start until nothing of it is left.

`python -m tasks.guard SPEC.json`, in a session of its own with the client in another, so that a
measurement outlives the orchestrator that asked for it. It inherits the instance's lock, watches
progress, writes the status file and takes a stop request; it does not exit before the client's
last process is gone. Standard library only, and so is all that it imports: nothing that is
upgraded or broken around it can stop it.

Exit codes: 0 the client ran and is gone, 2 unusable spec, 4 client not startable.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
import traceback
import uuid
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from io import FileIO
from pathlib import Path
from typing import Any, NamedTuple

from core.progress import Phase, ProgressParser, Stream
from core.watchdog import RunState, Watch
from tasks.guard_files import (
    EndedBy,
    GuardEnd,
    GuardSpec,
    GuardState,
    GuardStatus,
    Leftover,
    give_room_back,
    keep_room,
    read_stop_request,
    write_json,
    write_last_words,
)
from tasks.processes import (
    MARKER,
    SHARED_MEMORY,
    Identity,
    Process,
    all_processes,
    await_end,
    boot_id,
    client_processes,
    complain,
    is_running,
    kill_process,
    own_identity,
    process_start_time,
    remove_shared_memory,
    shared_memory_of,
)

#: Seconds between two looks at the client.
TICK_S = 0.2
#: Seconds between two heartbeats in the status file.
HEARTBEAT_S = 1.0
#: Bytes read from a log at once, and how many times a tick; the next tick reads on.
CHUNK_BYTES, CHUNKS_PER_TICK = 256 * 1024, 32
#: Seconds that helpers of an ended client have to end too, as multiprocessing's tracker does.
SETTLE_S = 1.0
#: Seconds of grace for a client without orchestrator: with SETTLE_S and ticks it stays under 10.
ORPHAN_GRACE_S = 5.0
#: Seconds between two looks at the shared memory that the client names, beside one at each new
#: phase: its names appear while it starts, and looking disturbs a measurement.
MEMORY_STARTUP_S, MEMORY_RUN_S = 1.0, 30.0
#: Seconds for which the last status is tried again while the disk refuses it.
LAST_STATUS_S = 60
#: Entries of the phase history that are kept.
MAX_PHASES = 64
#: `prctl` option that makes orphaned descendants the guard's own children.
PR_SET_CHILD_SUBREAPER = 36


class Stop(NamedTuple):
    """Why the client has to end, and how long it may take to save what it has."""

    ended_by: EndedBy
    reason: str
    grace_s: float


@dataclass
class Guard:
    """One client under guard."""

    spec: GuardSpec
    status: GuardStatus
    watch: Watch
    #: Signals that asked the guard itself to stop.
    asked: list[str]
    parser: ProgressParser = field(default_factory=ProgressParser)
    logs: dict[Stream, FileIO] = field(default_factory=dict)
    signals: list[str] = field(default_factory=list)
    killed: dict[Process, str] = field(default_factory=dict)
    foreign_memory: frozenset[str] = frozenset()
    heartbeat_due_s: float = 0.0
    memory_due_s: float = 0.0
    #: When the lease was renewed by the file's own time, and when that was seen.
    beat: int = 0
    beat_seen_s: float = 0.0
    _client: subprocess.Popen[bytes] | None = None

    @property
    def client(self) -> subprocess.Popen[bytes]:
        """The client's main process, once it is started."""
        assert self._client is not None, "the client is not started yet"
        return self._client

    # Status

    def publish(self, **changes: Any) -> None:
        """Writes the status file; a disk that refuses it must not end a measurement."""
        self.status = replace(self.status, heartbeat_at=time.time(), **changes)
        self.heartbeat_due_s = time.monotonic() + HEARTBEAT_S
        try:
            write_json(self.spec.status_path, asdict(self.status))
        except OSError as error:
            complain(f"cannot write {self.spec.status_path}: {error}")

    def publish_last(self, **changes: Any) -> None:
        """Writes the last status for good, and again while the disk refuses it."""
        self.status = replace(self.status, heartbeat_at=time.time(), **changes)
        for _ in range(LAST_STATUS_S):
            try:
                write_last_words(self.spec.status_path, asdict(self.status))
                break
            except OSError as error:
                complain(f"cannot write {self.spec.status_path}: {error}")
                time.sleep(1)
        for path in self.spec.last_words:
            give_room_back(path)

    # Start

    def release_lock(self) -> None:
        """Lets go of the instance, before the end is told: who reads that may lock at once."""
        if self.spec.lock_fd is not None:
            os.close(self.spec.lock_fd)

    def start_client(self) -> None:
        """Starts the client in its own session; raises OSError when that is impossible."""
        self.foreign_memory = frozenset(os.listdir(SHARED_MEMORY))
        environment = {**os.environ, MARKER: self.status.marker}
        for name in ("COLUMNS", "LINES"):  # the bar would be cut to a terminal that is not there
            environment.pop(name, None)
        paths = {Stream.STDOUT: self.spec.stdout_path, Stream.STDERR: self.spec.stderr_path}
        with ExitStack() as stack:
            out = {s: stack.enter_context(p.open("ab", buffering=0)) for s, p in paths.items()}
            self.logs = {stream: path.open("rb", buffering=0) for stream, path in paths.items()}
            self._client = subprocess.Popen(
                self.spec.command,
                cwd=self.spec.cwd,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out[Stream.STDOUT],
                stderr=out[Stream.STDERR],
                start_new_session=True,
                # The client holds the lock too: it stays locked when the guard is killed.
                pass_fds=[] if self.spec.lock_fd is None else [self.spec.lock_fd],
            )

    # Watch

    def follow_client(self) -> Stop | None:
        """Watches until the client ended by itself (None) or has to be ended."""
        pid = self.client.pid
        identity = Identity(pid, process_start_time(pid) or 0)
        self.publish(state=GuardState.RUNNING, client=identity, pgid=pid)
        while self.client.poll() is None:
            self.tick()
            if stop := self.needed_stop():
                return stop
        return None

    def tick(self) -> None:
        """One look at everything, then a rest unless the logs are ahead of us."""
        phase_before = self.status.phase
        is_behind = self.read_logs()
        self.look_at_parent()
        is_new_phase = self.status.phase is not phase_before
        if is_new_phase or time.monotonic() >= self.memory_due_s:
            self.remember_shared_memory()
        if is_new_phase or time.monotonic() >= self.heartbeat_due_s:
            self.publish()
        if not is_behind:
            await_end(self.client.pid, TICK_S)

    def read_logs(self) -> bool:
        """Takes in what the client wrote, up to a bound; True when there is more."""
        is_behind = False
        entered: list[Phase] = []
        for stream, log in self.logs.items():
            for _ in range(CHUNKS_PER_TICK):
                data = log.read(CHUNK_BYTES)
                entered += self.parser.feed(stream, data)
                if len(data) < CHUNK_BYTES:
                    break
            else:
                is_behind = True
        progress = self.parser.progress
        self.watch = self.watch.saw(progress, time.monotonic())
        phases = (*self.status.phases, *((phase, time.time()) for phase in entered))[:MAX_PHASES]
        self.status = replace(self.status, **vars(progress), phases=phases, tail=self.parser.tail)
        return is_behind

    def look_at_parent(self) -> None:
        """Notes when the orchestrator was first seen to be gone."""
        parent = self.spec.parent
        if parent and self.status.orphaned_at is None and not is_running(parent):
            self.publish(orphaned_at=time.time())

    def remember_shared_memory(self) -> None:
        """Notes the shared memory that the client's processes name while they live."""
        pause_s = MEMORY_STARTUP_S if self.status.phase is Phase.STARTUP else MEMORY_RUN_S
        self.memory_due_s = time.monotonic() + pause_s
        names = shared_memory_of(process.pid for process in self.processes())
        known = set(self.status.shared_memory) | (names - self.foreign_memory)
        self.status = replace(self.status, shared_memory=tuple(sorted(known)))

    def processes(self) -> dict[Process, str]:
        """The client's live processes; reaps the dead ones that were left to the guard."""
        table = all_processes()
        for process in table:
            is_left_to_us = process.parent == os.getpid() and process.pid != self.client.pid
            if process.is_zombie and is_left_to_us:
                os.waitpid(process.pid, os.WNOHANG)
        return client_processes(table, self.status.marker, self.client.pid, os.getpid())

    # Stop

    def needed_stop(self) -> Stop | None:
        """Whether, why and how the client has to end now."""
        if request := self.requested_stop():
            return request
        if self.status.orphaned_at is not None and self.spec.when_orphaned == "stop":
            grace_s = min(self.spec.grace_s, ORPHAN_GRACE_S)
            return Stop(EndedBy.ORPHAN_STOP, "the orchestrator is gone", grace_s)
        if lost := self.lost_lease():
            return Stop(EndedBy.STOP_REQUEST, lost, self.spec.grace_s)
        verdict = self.watch.verdict(time.monotonic())
        if verdict.state is RunState.RUNNING:
            return None
        is_overdue = verdict.state is RunState.OVERDUE
        ended_by = EndedBy.DEADLINE if is_overdue else EndedBy.WATCHDOG
        return Stop(ended_by, verdict.reason, self.spec.grace_s)

    def lost_lease(self) -> str | None:
        """Why another machine may load the instance from now on, or soon; None: it may not."""
        if self.spec.beat_path is None:
            return None
        now_s = time.clock_gettime(time.CLOCK_BOOTTIME)  # it goes on while the machine sleeps
        try:
            beat = self.spec.beat_path.stat().st_mtime_ns
        except FileNotFoundError:
            return "the lease of the instance was taken over"
        except OSError:
            beat = self.beat
        if beat != self.beat:
            self.beat, self.beat_seen_s = beat, now_s
        silence_s = now_s - self.beat_seen_s
        if silence_s < self.spec.beat_timeout_s:
            return None
        return f"the lease of the instance could not be renewed for {silence_s:.0f} s"

    def requested_stop(self) -> Stop | None:
        """A signal to the guard, of which a second one means at once, or the stop file."""
        if self.asked:
            grace_s = self.spec.grace_s if len(self.asked) == 1 else 0.0
            return Stop(EndedBy.STOP_REQUEST, f"{self.asked[0]} to the guard", grace_s)
        if request := read_stop_request(self.spec.stop_path):
            grace_s = 0.0 if request.at_once else self.spec.grace_s
            return Stop(EndedBy.STOP_REQUEST, request.reason, grace_s)
        return None

    def interrupt_client(self, stop: Stop) -> None:
        """Interrupts the main process alone and gives it time to save what it has.

        An interrupt to the group would empty the client's events: their writer would end too.
        """
        self.remember_shared_memory()
        self.publish(state=GuardState.STOPPING, stop_reason=stop.reason)
        until_s = time.monotonic() + stop.grace_s
        if stop.grace_s and self.client.poll() is None:
            self.client.send_signal(signal.SIGINT)
            self.signals.append("SIGINT")
        while self.client.poll() is None and time.monotonic() < until_s:
            request = self.requested_stop()
            if request and not request.grace_s:
                return
            self.tick()

    # End

    def end(self, stop: Stop | None) -> None:
        """Leaves nothing of the client behind, releases the lock, says what it took."""
        self.remember_shared_memory()
        self.clear_processes()
        is_parser_sound = stop is None or stop.ended_by is not EndedBy.GUARD_FAILURE
        while is_parser_sound and self.read_logs():
            self.publish()
        removed = remove_shared_memory(self.status.shared_memory)
        self.release_lock()
        end = GuardEnd(
            ended_by=stop.ended_by if stop else EndedBy.ITSELF,
            reason=stop.reason if stop else "",
            ended_at=time.time(),
            elapsed_s=time.monotonic() - self.watch.started_s,
            return_code=self.client.wait(),
            signals=tuple(self.signals),
            leftovers_killed=tuple(Leftover(p.pid, p.name, by) for p, by in self.killed.items()),
            shared_memory_removed=removed,
        )
        self.publish_last(state=GuardState.ENDED, end=end)

    def clear_processes(self) -> None:
        """Kills what is left of the client until two looks in a row find nothing."""
        settle_s = 0.0 if self.client.poll() is None else SETTLE_S
        until_s = time.monotonic() + settle_s
        empty_looks = 0
        while empty_looks < 2:  # noqa: PLR2004 - one look can miss a child forked meanwhile
            left = self.processes()
            empty_looks = 0 if left else empty_looks + 1
            if left and time.monotonic() >= until_s:
                self.kill(left)
            if time.monotonic() >= self.heartbeat_due_s:
                self.publish()
            if empty_looks < 2:  # noqa: PLR2004 - as above
                time.sleep(TICK_S / 4)

    def kill(self, left: dict[Process, str]) -> None:
        """Kills the client's group as a whole while its leader lives, and each process."""
        if self.client.poll() is None:
            os.killpg(self.client.pid, signal.SIGKILL)
            if "SIGKILL" not in self.signals:
                self.signals.append("SIGKILL")
        for process, found_by in left.items():
            kill_process(process)
            if process.pid != self.client.pid:
                self.killed[process] = found_by


def prepare_signals() -> list[str]:
    """Undoes what scripts do to background processes; returns the list that requests land in.

    The client inherits the result: the defaults for all of these.
    """
    asked: list[str] = []
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for number in (signal.SIGQUIT, signal.SIGCHLD, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_DFL)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda n, _frame: asked.append(signal.Signals(n).name))
    return asked


def new_guard(spec: GuardSpec) -> Guard:
    """The guard before it has done anything."""
    now_at = time.time()
    status = GuardStatus(
        marker=uuid.uuid4().hex,
        boot_id=boot_id(),
        guard=own_identity(),
        started_at=now_at,
        heartbeat_at=now_at,
        phases=((Phase.STARTUP, now_at),),
    )
    watch = Watch.begin(spec.limits, spec.deadline_s, time.monotonic())
    return Guard(spec, status, watch, asked=prepare_signals())


def run(guard: Guard) -> int:
    """Guards one client from start to end; returns the exit code."""
    try:
        for path in guard.spec.last_words:
            keep_room(path)
        guard.publish()  # the marker is on record before a process carries it
        guard.start_client()
    except OSError as error:
        guard.release_lock()
        end = GuardEnd(EndedBy.NOT_STARTED, f"client not started: {error}", time.time())
        guard.publish_last(state=GuardState.ENDED, end=end)
        return 4
    stop = None
    try:
        if stop := guard.follow_client():
            guard.interrupt_client(stop)
    except Exception as error:  # a bug of ours must not leave a load generator running
        complain(traceback.format_exc())
        stop = Stop(EndedBy.GUARD_FAILURE, f"bug in the guard, see its log: {error!r}", 0.0)
    guard.end(stop)
    return 0


def main(spec_path: Path) -> int:
    """Runs the guard with a spec file."""
    try:
        spec = GuardSpec.from_json(json.loads(spec_path.read_bytes()))
    except (OSError, ValueError, TypeError, KeyError) as error:
        complain(f"{spec_path} is no usable spec: {error!r}")
        return 2
    if spec.status_path.exists():
        complain(f"{spec.status_path} exists: it belongs to another guard")
        return 2
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    return run(new_guard(spec))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
