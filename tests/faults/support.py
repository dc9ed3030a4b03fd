"""A place where an orchestrator without Prefect runs in this process, with real guards and clients.

What is left of the command line and Prefect makes each case a few seconds long; the cases that are
about processes and signals run the command itself.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import psutil

from core.errors import ParetoError
from core.files import verify
from core.records import AttemptRecord
from core.status import AttemptState
from flows.campaign import run_campaign
from flows.prepare import prepare
from flows.session import Surroundings, enter
from flows.stop import StopRequest
from tasks.client import InstalledClient, inspect_client
from tasks.probe import read_identity
from tests.flows.support import SCORED_ROWS, Place

#: The stand-in client with faults, as a command.
CLIENT = [sys.executable, str(Path(__file__).with_name("client.py"))]
#: Run options: quick to notice, quick to retry.
RUN = {"stall_timeout_s": 2.0, "retries": 0, "backoff_s": 0.1, "recovery_timeout_s": 20.0}
#: The two points that are measured, in run order.
POINTS = ("c0001", "c0002")


@cache
def _installed(environment: tuple[tuple[str, str], ...]) -> InstalledClient:
    return inspect_client(CLIENT, ["concurrency"], dict(environment))


@dataclass
class Lab(Place):
    """A place whose orchestrator may be this process."""

    variables: dict[str, str] = field(default_factory=dict)

    def env(self, **variables: str) -> dict[str, str]:
        """Environment with the lab's own variables."""
        return super().env(**self.variables, **variables)

    def write(self, text: str | None = None, **sections: Any) -> Path:
        """Write the campaign, with the faulty client and quick options."""
        run = {**RUN, **sections.pop("run", {})}
        return super().write(text, client={"command": CLIENT}, run=run, **sections)

    def run(
        self, *labels: str, stop: StopRequest | None = None, **variables: str
    ) -> ParetoError | None:
        """Run points here, without Prefect; how that ended if not well."""
        stop = stop or StopRequest()
        ready = prepare(self.file, self.env(**variables))
        clean = tuple(sorted(self.env().items()))
        client = replace(_installed(clean), command=tuple(CLIENT))
        try:
            identity = read_identity(ready.campaign, ready.env)
            found = Surroundings(client, {"accuracy": SCORED_ROWS}, identity)
            run_campaign(enter(ready, found, stop.asked), stop, labels or POINTS)
        except ParetoError as outcome:
            return outcome
        return None

    def states(self, label: str) -> list[tuple[AttemptState, str | None]]:
        """State and end of each attempt at a point."""
        return [(attempt.state, attempt.ended_by) for attempt in self.attempts(label)]

    def last(self, label: str) -> AttemptRecord:
        """The last attempt at a point."""
        return self.attempts(label)[-1]

    def markers(self) -> set[str]:
        """What marks the processes of this place's attempts."""
        from tasks.supervise import read_status

        found = (read_status(path) for path in self.runs.glob("*/*/*/guard.json"))
        return {status.marker for status in found if status is not None}

    def leftovers(self) -> list[str]:
        """Processes of this place's attempts that live, and guards."""
        markers, runs = self.markers(), str(self.runs)
        return [str(p) for p in psutil.process_iter() if _belongs(p, markers, runs)]

    def assert_sound(self) -> None:
        """No process is left, no valid point was run again, and every record fits its folder."""
        assert self.leftovers() == []
        for label, point in self.points().items():
            states = [attempt.state for attempt in point.attempts]
            assert AttemptState.RUNNING not in states, (label, states)
            assert AttemptState.PREPARED not in states, (label, states)
            if AttemptState.VALID in states:
                assert states.index(AttemptState.VALID) == len(states) - 1, (label, states)
            for attempt in point.attempts:
                self._assert_named(attempt)

    def _assert_named(self, attempt: AttemptRecord) -> None:
        folder = self.runs / attempt.folder / "run"
        if attempt.state is AttemptState.VALID:
            assert attempt.findings == () or not _errors(attempt)
        else:
            assert attempt.reason, attempt
        if folder.is_dir():
            assert verify(folder, self.records.manifest(attempt.id)) == []


def _errors(attempt: AttemptRecord) -> list[str]:
    return [finding["rule"] for finding in attempt.findings if finding["severity"] == "error"]


def _belongs(process: psutil.Process, markers: set[str], runs: str) -> bool:
    with suppress(psutil.Error, OSError):
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        is_guard = any(part.startswith(runs) for part in process.cmdline())
        return is_guard or process.environ().get("PARETO_ATTEMPT") in markers
    return False


class Proxy:
    """A way to a server that can be cut and mended: the server is away, and is back."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._listener: socket.socket | None = None
        self._open: set[socket.socket] = set()
        self.port = 0
        self.mend()

    def mend(self) -> None:
        """Take connections."""
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self.port))
        listener.listen(64)
        self.port = listener.getsockname()[1]
        self._listener = listener
        threading.Thread(target=self._serve, args=(listener,), daemon=True).start()

    def cut(self) -> None:
        """Refuse connections and break those that are open."""
        assert self._listener is not None
        for each in (self._listener, *list(self._open)):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        self._open.clear()
        self._listener = None

    def close(self) -> None:
        """End for good."""
        if self._listener is not None:
            self.cut()

    def _serve(self, listener: socket.socket) -> None:
        while True:
            try:
                near, _ = listener.accept()
                far = socket.create_connection(self._target)
            except OSError:
                return
            self._open |= {near, far}
            for pair in ((near, far), (far, near)):
                threading.Thread(target=self._pump, args=pair, daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        for each in (source, target):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
            self._open.discard(each)


@contextmanager
def away(*paths: Path) -> Iterator[None]:
    """Files that are gone while the block lasts."""
    moved = [path for path in paths if path.exists()]
    for path in moved:
        path.rename(path.with_name(f"{path.name}.away"))
    try:
        yield
    finally:
        for path in moved:
            path.with_name(f"{path.name}.away").rename(path)


def database_files(lab: Lab) -> Sequence[Path]:
    """The SQLite file and what belongs to it."""
    return [lab.data / f"pareto.db{suffix}" for suffix in ("", "-wal", "-shm")]


def shim() -> str:
    """PYTHONPATH that puts the shim before every program."""
    from tests.flows.support import ROOT

    return os.pathsep.join([str(Path(__file__).with_name("shim")), str(ROOT)])
