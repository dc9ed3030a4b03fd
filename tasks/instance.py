"""Holds an instance: one campaign at a time may load it, on this machine and across machines.

On the machine it is a file lock, whose descriptor the client's guard and the client inherit: it is
free only when the client is gone. Across machines it is a lease in the records, which its holder
keeps alive. No clock decides whether a lease is alive: whoever wants it watches whether it moves.

A client outlives its orchestrator. So a keeper (`tasks/lease_keeper.py`) goes on renewing the lease
while the lock is held, and the client's guard ends the client before a lease that nobody could
renew runs out.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from core.errors import InputError, ParetoError, SetupError
from core.layout import instance_beat_path
from core.records import LeaseRecord, Owner, Records
from core.texts import time_text
from tasks.lease_keeper import Keeper, is_locked, touch
from tasks.owner import is_here, owner_lives, this_process, was_here

#: Seconds between two signs of life of a lease's holder.
BEAT_S = 5.0
#: Seconds without a sign of life after which a lease may be taken over.
LEASE_S = 30.0
#: Seconds for which a lease holds after its last sign of life while a client may still run: an
#: outage of the records of that length ends no measurement, and a machine that is gone blocks its
#: instance no longer, unless `pareto unlock` frees it before.
TERM_S = 2 * 3600.0
#: Seconds before that at which the guard ends its client, for the client to be gone in time.
TERM_MARGIN_S = 300.0
#: Seconds between two looks at somebody else's lease.
LOOK_S = 0.5
#: Seconds that a guard which has told its end may still need to be gone.
FREE_S = 10.0
#: Seconds that somebody's look at the lock may take: nobody is refused for that.
GLIMPSE_S = 0.2
#: Bytes of a lock file, or a multiple: what is written is padded, so that no reader sees a mixture.
_FILE_BYTES = 1024
#: Tries at a dead holder's lease: its keeper may have renewed it just then.
_TRIES = 3


class BusyError(SetupError):
    """Another campaign holds the instance; wait for it."""


@dataclass(frozen=True)
class Wanted:
    """Which instance is wanted, by whom."""

    instance: str
    campaign: str
    #: Database of the campaign, to tell it from one of the same name in other records.
    database: str


@dataclass
class InstanceLock:
    """The lock file of an instance, and what it tells others."""

    wanted: Wanted
    path: Path
    since: float = field(default_factory=time.time)
    #: Descriptor to hand on to the client's guard; None: not held.
    fd: int | None = None

    def acquire(self, wait_s: float = GLIMPSE_S) -> None:
        """Take the lock; does nothing if it is held already.

        Raises:
            BusyError: somebody else holds it; says who, since when, at which point.
            SetupError: there can't be such a file.
        """
        if self.fd is not None:
            return
        fd = _opened(self.path)
        deadline_s = time.monotonic() + wait_s
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline_s:
                    os.close(fd)
                    raise BusyError(_refusal(self.wanted, self.holder())) from None
                time.sleep(LOOK_S / 10)
        self.fd = fd
        try:
            self.tell(None)
        except SetupError:
            self.release()
            raise

    def holder(self) -> dict[str, Any]:
        """What the holder wrote; empty if that can't be read."""
        try:
            found = json.loads(self.path.read_bytes())
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def is_left_by_us(self) -> bool:
        """Whether it is held by the client of an earlier run of this very campaign, that died.

        Looks twice: who has just taken the lock may not have written yet who it is.
        """
        for pause_s in (0.0, LOOK_S):
            time.sleep(pause_s)
            holder = self.holder()
            theirs = holder.get("campaign"), holder.get("database")
            if theirs != (self.wanted.campaign, self.wanted.database) or _holder_lives(holder):
                return False
        return True

    def tell(self, label: str | None) -> None:
        """Write down who holds it, and at which point.

        Raises:
            SetupError: the file takes nothing.
        """
        assert self.fd is not None
        owner = this_process()
        told = {**vars(self.wanted), **vars(owner), "since": self.since, "label": label}
        text = json.dumps(told).encode()
        size_bytes = -(-len(text) // _FILE_BYTES) * _FILE_BYTES
        try:
            os.pwrite(self.fd, text.ljust(size_bytes), 0)
            os.ftruncate(self.fd, size_bytes)
        except OSError as problem:
            raise _unusable(self.path, problem) from None

    def release(self) -> None:
        """Let go of it; a client that inherited it holds it on."""
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None


@dataclass
class Lease:
    """The lease of an instance in the records, kept alive by a thread."""

    records: Records
    wanted: Wanted
    owner: Owner = field(default_factory=this_process)
    label: str | None = None
    #: Whether a client may be running.
    has_client: bool = False
    #: Touched at each sign of life; None: nobody looks.
    beat_path: Path | None = None
    is_lost: bool = False
    on_lost: Callable[[str], None] = lambda _reason: None
    clock: Callable[[], float] = time.time
    _end: threading.Event = field(default_factory=threading.Event)

    def acquire(self) -> None:
        """Take the lease, or take it over from a holder that died.

        Raises:
            SetupError: somebody else holds it.
        """
        name = self.wanted.instance
        held = self.records.take_lease(name, self.wanted.campaign, self.owner)
        for _ in range(_TRIES):
            if held.owner == self.owner or not _may_take_over(self.records, held, self.clock):
                break
            held = self.records.take_lease(name, self.wanted.campaign, self.owner, seen=held)
        if held.owner != self.owner:
            raise taken(self.wanted, held)

    def tell(self, label: str | None, *, has_client: bool) -> None:
        """Write down at which point the holder is, and whether a client may run there."""
        self.label, self.has_client = label, has_client
        self.beat()

    @contextmanager
    def kept_alive(self, on_lost: Callable[[str], None]) -> Iterator[None]:
        """Keep it alive while the block lasts, then give it back unless a client may still run.

        Args:
            on_lost: Told why, if another campaign took it over.
        """
        self.on_lost = on_lost
        thread = threading.Thread(target=self._beats, name="lease", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._end.set()
            thread.join()
            if not self.has_client:
                self.records.drop_lease(self.wanted.instance, self.owner)

    def _beats(self) -> None:
        while not self._end.wait(BEAT_S):
            try:
                self.beat()
            except ParetoError:  # the records are away for now; the next beat may reach them
                continue

    def beat(self) -> None:
        """Say that the holder lives; tell `on_lost` once if the lease is no longer its own."""
        name = self.wanted.instance
        until = self.clock() + TERM_S if self.has_client else None
        if self.records.beat_lease(name, self.owner, self.label, until):
            touch(self.beat_path)
        elif not self.is_lost:
            self.is_lost = True
            self.on_lost(f"the lease of instance {name} was taken over by another campaign")


@dataclass
class Hold:
    """The lock and the lease of one instance."""

    lock: InstanceLock
    lease: Lease
    #: Renews the lease of a client that outlives us; None: no other machine can want the instance.
    keeper: Keeper | None = None

    @classmethod
    def of(cls, wanted: Wanted, path: Path, records: Records) -> Hold:
        """Neither is taken yet."""
        lock, lease = InstanceLock(wanted, path), Lease(records, wanted)
        if records.url.get_backend_name() == "sqlite":  # of one machine, where the lock is enough
            return cls(lock, lease)
        lease.beat_path = instance_beat_path(path)
        url = records.url.render_as_string(hide_password=False)
        keeper = Keeper(url, wanted.instance, lease.owner, path, lease.beat_path, BEAT_S, TERM_S)
        return cls(lock, lease, keeper)

    @property
    def beat_path(self) -> Path | None:
        """What a client's guard watches; see `GuardSpec`."""
        return self.lease.beat_path

    def tell(self, label: str | None, *, has_client: bool = False) -> None:
        """Write down at which point the holder is, and whether a client may run there."""
        if self.lock.fd is not None:
            self.lock.tell(label)
        self.lease.tell(label, has_client=has_client)

    @contextmanager
    def held(self, on_lost: Callable[[str], None]) -> Iterator[None]:
        """Hold the instance while the block lasts.

        If the client of an earlier run of this campaign still runs, only the lease is held at
        first: once it is gone, `settled` takes the lock.

        Raises:
            SetupError: somebody else holds it; says who, since when, at which point.
        """
        try:
            self.lock.acquire()
        except BusyError:
            if not self.lock.is_left_by_us():
                raise
            self.lease.has_client = True
        try:
            self.lease.acquire()
            self.lease.beat()
            with self._kept(), self.lease.kept_alive(on_lost):
                yield
        finally:
            self.lock.release()

    @contextmanager
    def _kept(self) -> Iterator[None]:
        """The keeper stands by while the block lasts, and goes on if that left a client."""
        if self.keeper is None:
            yield
            return
        self.keeper.start()
        try:
            yield
        finally:
            self.keeper.leave(to_go_on=self.lease.has_client)

    def settled(self) -> None:
        """Take the lock from the client of an earlier run, which has ended."""
        self.lock.acquire(FREE_S)
        self.lease.has_client = False


def free(records: Records, held: LeaseRecord, lock: Path, reason: str) -> None:
    """Take a lease from a machine that is gone, before its term.

    Args:
        records: The records.
        held: The lease.
        lock: The instance's lock file on this machine.
        reason: Why, for the records.

    Raises:
        InputError: its holder shows signs of life, or its client runs on this machine.
    """
    who = f"process {held.owner.pid} on {held.owner.host}"
    stop = f"`pareto cancel {held.campaign}` ends it"
    if owner_lives(held.owner) or not _is_still(records, held):
        raise InputError(f"instance {held.instance}: {who} is alive and measures it; {stop}")
    if is_here(held.owner) and is_locked(lock):
        raise InputError(f"instance {held.instance}: a client left by {who} still runs; {stop}")
    if not records.free_lease(held, reason):
        raise InputError(f"instance {held.instance}: its lease moved just now; look again")


def _may_take_over(records: Records, held: LeaseRecord, clock: Callable[[], float]) -> bool:
    """Whether a lease's holder is dead, and no client of its can be running.

    On the holder's own machine the lock file says whether its client is gone, and a restart of the
    machine ends both. A machine may be the copy of another, so signs of life are watched for then.
    """
    if is_here(held.owner):
        return not owner_lives(held.owner)
    if not _is_still(records, held):
        return False
    return was_here(held.owner) or held.client_until is None or clock() > held.client_until


def _is_still(records: Records, held: LeaseRecord) -> bool:
    """Whether a lease shows no sign of life; looks for as long as one may take."""
    deadline_s = time.monotonic() + LEASE_S
    while time.monotonic() < deadline_s:
        if records.lease(held.instance) != held:
            return False
        time.sleep(LOOK_S)
    return True


def _opened(path: Path) -> int:
    """Descriptor of a lock file. It is not appended to, so that what is told can be told anew."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as problem:
        raise _unusable(path, problem) from None


def _unusable(path: Path, problem: OSError) -> SetupError:
    return SetupError(
        f"{path}: can't be written ({problem.strerror}); look at its folder and whose it is, or"
        " name another with PARETO_STATE_DIR"
    )


def _holder_lives(holder: dict[str, Any]) -> bool:
    try:
        owner = Owner(holder["host"], holder["boot_id"], holder["pid"], holder["start_time"])
    except KeyError:
        return True
    return owner_lives(owner)


def taken(wanted: Wanted, held: LeaseRecord) -> SetupError:
    """The refusal of an instance that another campaign has the lease of."""
    return SetupError(_refusal(wanted, {**vars(held), **vars(held.owner)}))


def _refusal(wanted: Wanted, holder: dict[str, Any]) -> str:
    """Who holds an instance, since when, at which point, and what to do if it is dead."""
    head = f"instance {wanted.instance!r} is being measured by another campaign"
    tail = "one at a time may load it"
    if not {"campaign", "pid", "host", "since"} <= holder.keys():
        return f"{head}; {tail}"
    where = f" at point {holder['label']}," if holder.get("label") else ""
    is_gone = holder["host"] == this_process().host and not _holder_lives(holder)
    return (
        f"{head}: {holder['campaign']},{where} since {time_text(holder['since'])}, process"
        f" {holder['pid']} on {holder['host']}{', now gone' if is_gone else ''}; {tail}"
        + _way_out(holder)
    )


def _way_out(holder: dict[str, Any]) -> str:
    """How a lease is freed whose machine shows no sign of life."""
    if not holder.get("client_until"):
        return ""
    return (
        f"; without a sign of life its lease ends at {time_text(holder['client_until'])}, or with"
        f" `pareto unlock {holder['campaign']} --reason …` once that machine is known to be off"
    )
