"""Keeps the lease of an instance alive for a client that outlives its orchestrator.

`python -m tasks.lease_keeper` stands by beside an orchestrator, asleep on a pipe that it holds.
When that ends without a word, the keeper renews the lease while anyone holds the instance's lock,
which is while the client runs; then it gives the lease back and ends. The database's address comes
through the pipe, never in the process list.
"""

from __future__ import annotations

import fcntl
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from core.errors import ParetoError, SetupError
from tasks.processes import IMPORT_ROOT

if TYPE_CHECKING:  # a sleeping keeper loads no SQL
    from core.records import Owner, Records

T = TypeVar("T")

#: What an orchestrator writes whose client is gone.
DONE = b"done\n"


@dataclass
class Keeper:
    """The keeper of one lease, as its orchestrator sees it."""

    url: str = field(repr=False)  # with its password
    instance: str
    owner: Owner
    lock: Path
    beat: Path
    beat_s: float
    term_s: float
    _process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it; it sleeps for as long as this process lives, or until it is left."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tasks.lease_keeper"],
            cwd=IMPORT_ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        threading.Thread(target=self._process.wait, daemon=True).start()  # leaves no zombie
        self._write(json.dumps(self._told()).encode() + b"\n")

    def leave(self, *, to_go_on: bool) -> None:
        """Let it end, or go on for a client that is left."""
        if self._process is None or self._process.stdin is None:
            return
        if not to_go_on:
            self._write(DONE)
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        if not to_go_on:
            self._process.wait()

    def _write(self, line: bytes) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it died; the guard ends the client before the lease does
            self._process.stdin.write(line)
            self._process.stdin.flush()

    def _told(self) -> dict[str, Any]:
        plain = {name: getattr(self, name) for name in ("url", "instance", "beat_s", "term_s")}
        paths = {name: str(getattr(self, name).absolute()) for name in ("lock", "beat")}
        return {**plain, **paths, "owner": asdict(self.owner)}


def touch(path: Path | None) -> None:
    """Say to a client's guard that the lease was renewed."""
    if path is not None:
        with suppress(OSError):
            path.touch()


def is_locked(lock: Path) -> bool:
    """Whether anyone holds an instance's lock; looks without keeping it.

    Raises:
        SetupError: it may not be looked at.
    """
    try:
        with lock.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    except OSError as problem:
        raise SetupError(f"{lock}: can't be read ({problem.strerror}); see whose it is") from None
    return False


def keep(records: Records, told: dict[str, Any], owner: Owner) -> None:
    """Renew the lease while the lock is held, then give it back."""
    lock = Path(told["lock"])
    while is_locked(lock):
        with suppress(ParetoError):  # the records are away for now
            if not _renewed(records, told, owner):
                return
        time.sleep(told["beat_s"])
    _until_reached(lambda: records.drop_lease(told["instance"], owner), told["beat_s"])


def _renewed(records: Records, told: dict[str, Any], owner: Owner) -> bool:
    """Renew it; False: it has another holder. One on another machine is not to meet our client."""
    beat, name = Path(told["beat"]), told["instance"]
    held = records.lease(name)
    until = time.time() + told["term_s"]
    if held is not None and records.beat_lease(name, owner, held.label, until):
        touch(beat)
        return True
    held = records.lease(name)
    if held is None or held.owner.boot_id != owner.boot_id:
        beat.unlink(missing_ok=True)
    return False


def _until_reached(ask: Callable[[], T], pause_s: float) -> T:
    """Ask records that may be away, again and again."""
    while True:
        with suppress(ParetoError):
            return ask()
        time.sleep(pause_s)


def main() -> None:
    """Sleep until the orchestrator is gone, then keep the lease for what it left."""
    for number in (signal.SIGINT, signal.SIGHUP):  # for the orchestrator, not for what it leaves
        signal.signal(number, signal.SIG_IGN)
    told = json.loads(sys.stdin.buffer.readline())
    if sys.stdin.buffer.readline() != DONE:
        from core.records import Owner, open_records  # noqa: PLC0415 - asleep it needs no SQL

        records = _until_reached(lambda: open_records(told["url"]), told["beat_s"])
        keep(records, told, Owner(**told["owner"]))


if __name__ == "__main__":
    main()
