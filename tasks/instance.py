"""Holds an instance: one campaign at a time may load it, on this machine and across machines.

On the machine it is a file lock, whose descriptor the client's guard and the client inherit: it is
free only when the client is gone. Across machines it is a lease in the records, which its holder
keeps alive. No clock decides whether a lease is alive: whoever wants it watches whether it moves.
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
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from core.errors import ParetoError, SetupError
from core.records import LeaseRecord, Owner, Records
from tasks.owner import owner_lives, this_process

#: Seconds between two signs of life of a lease's holder.
BEAT_S = 5.0
#: Seconds without a sign of life after which a lease may be taken over.
LEASE_S = 30.0
#: Seconds between two looks at somebody else's lease.
LOOK_S = 0.5
#: Seconds that a guard which has told its end may still need to be gone.
FREE_S = 10.0
#: Bytes of a lock file: what is written is padded to one size, so that no reader sees a mixture.
_FILE_BYTES = 1024


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

    def acquire(self, wait_s: float = 0.0) -> None:
        """Take the lock; does nothing if it is held already.

        Raises:
            SetupError: somebody else holds it; says who, since when, at which point.
        """
        if self.fd is not None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        deadline_s = time.monotonic() + wait_s
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline_s:
                    os.close(fd)
                    raise SetupError(_refusal(self.wanted, self.holder())) from None
                time.sleep(LOOK_S / 10)
        self.fd = fd
        self.tell(None)

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
        """Write down who holds it, and at which point."""
        assert self.fd is not None
        owner = this_process()
        told = {**vars(self.wanted), **vars(owner), "since": self.since, "label": label}
        os.pwrite(self.fd, json.dumps(told).encode().ljust(_FILE_BYTES), 0)

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
    client_until: float | None = None
    is_lost: bool = False
    on_lost: Callable[[str], None] = lambda _reason: None
    _end: threading.Event = field(default_factory=threading.Event)

    def acquire(self, clock: Callable[[], float] = time.time) -> None:
        """Take the lease, or take it over from a holder that died.

        Raises:
            SetupError: somebody else holds it.
        """
        name = self.wanted.instance
        held = self.records.take_lease(name, self.wanted.campaign, self.owner)
        if held.owner == self.owner:
            return
        if not _may_take_over(self.records, held, clock):
            raise SetupError(_refusal(self.wanted, _told(held)))
        latest = self.records.take_lease(name, self.wanted.campaign, self.owner, seen=held)
        if latest.owner != self.owner:
            raise SetupError(_refusal(self.wanted, _told(latest)))

    def tell(self, label: str | None, client_until: float | None) -> None:
        """Write down at which point the holder is, and how long a client may run there."""
        self.label, self.client_until = label, client_until
        self._beat()

    @contextmanager
    def kept_alive(self, on_lost: Callable[[str], None]) -> Iterator[None]:
        """Keep it alive while the block lasts, then give it back.

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
            self.records.drop_lease(self.wanted.instance, self.owner)

    def _beats(self) -> None:
        while not self._end.wait(BEAT_S):
            try:
                self._beat()
            except ParetoError:  # the records are away for now; the next beat may reach them
                continue

    def _beat(self) -> None:
        name = self.wanted.instance
        alive = self.records.beat_lease(name, self.owner, self.label, self.client_until)
        if not alive and not self.is_lost:
            self.is_lost = True
            self.on_lost(f"the lease of instance {name} was taken over by another campaign")


@dataclass
class Hold:
    """The lock and the lease of one instance."""

    lock: InstanceLock
    lease: Lease

    @classmethod
    def of(cls, wanted: Wanted, path: Path, records: Records) -> Hold:
        """Neither is taken yet."""
        return cls(InstanceLock(wanted, path), Lease(records, wanted))

    def tell(self, label: str | None, client_until: float | None = None) -> None:
        """Write down at which point the holder is, and how long a client may run there."""
        if self.lock.fd is not None:
            self.lock.tell(label)
        self.lease.tell(label, client_until)

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
        except SetupError:
            if not self.lock.is_left_by_us():
                raise
        try:
            self.lease.acquire()
            with self.lease.kept_alive(on_lost):
                yield
        finally:
            self.lock.release()

    def settled(self) -> None:
        """Take the lock from the client of an earlier run, which has ended."""
        self.lock.acquire(FREE_S)


def _may_take_over(records: Records, held: LeaseRecord, clock: Callable[[], float]) -> bool:
    """Whether a lease's holder is dead, and no client of its can be running.

    On the holder's own machine the lock file says whether its client is gone.
    """
    if held.owner.host == this_process().host:
        return not owner_lives(held.owner)
    deadline_s = time.monotonic() + LEASE_S
    while time.monotonic() < deadline_s:
        if records.lease(held.instance) != held:
            return False
        time.sleep(LOOK_S)
    return held.client_until is None or clock() > held.client_until


def _holder_lives(holder: dict[str, Any]) -> bool:
    try:
        owner = Owner(holder["host"], holder["boot_id"], holder["pid"], holder["start_time"])
    except KeyError:
        return True
    return owner_lives(owner)


def _told(held: LeaseRecord) -> dict[str, Any]:
    return {**vars(held.owner), "campaign": held.campaign, "since": held.since, "label": held.label}


def _refusal(wanted: Wanted, holder: dict[str, Any]) -> str:
    """Who holds an instance, since when, and at which point."""
    head = f"instance {wanted.instance!r} is being measured by another campaign"
    tail = "one at a time may load it"
    if not {"campaign", "pid", "host", "since"} <= holder.keys():
        return f"{head}; {tail}"
    since = datetime.fromtimestamp(holder["since"], UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    where = f" at point {holder['label']}," if holder.get("label") else ""
    alive = "" if _holder_lives(holder) or holder["host"] != this_process().host else ", now gone"
    return (
        f"{head}: {holder['campaign']},{where} since {since}, process {holder['pid']} on"
        f" {holder['host']}{alive}; {tail}"
    )
