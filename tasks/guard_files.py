"""The files between the guard and its orchestrator: spec, status and stop request.

Both sides use these definitions, so a guard of one version may be read by another: the version
is checked before anything else. Standard library only: the guard imports this.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from core.progress import Phase
from core.watchdog import Limits
from tasks.processes import Identity

#: Version of the spec and of the status file.
FORMAT_VERSION = 1


class GuardState(StrEnum):
    """Where a guard is."""

    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    ENDED = "ended"
    #: Concluded by a reader, never written: the guard died before it could say how it ended.
    LOST = "lost"


class EndedBy(StrEnum):
    """What ended the client."""

    ITSELF = "itself"
    STOP_REQUEST = "stop-request"
    WATCHDOG = "watchdog"
    DEADLINE = "deadline"
    ORPHAN_STOP = "orphan-stop"
    NOT_STARTED = "not-started"
    GUARD_FAILURE = "guard-failure"
    LOST_GUARD = "lost-guard"


@dataclass(frozen=True)
class GuardSpec:
    """What to run and how to watch it. The API key stays in the environment, never in here."""

    command: tuple[str, ...]
    cwd: Path
    stdout_path: Path
    stderr_path: Path
    status_path: Path
    stop_path: Path
    #: Inherited descriptor of the instance's lock, held until the client's last process is gone.
    lock_fd: int | None = None
    limits: Limits = field(default_factory=Limits)
    deadline_s: float | None = None
    #: From the interrupt to the kill; 0 kills at once.
    grace_s: float = 10.0
    #: What to do when the orchestrator is gone: "finish" or "stop".
    when_orphaned: str = "finish"
    #: The orchestrator; None to never be orphaned.
    parent: Identity | None = None
    #: Touched whenever the lease of the instance was renewed, gone once it is lost; None: no other
    #: machine can want the instance.
    beat_path: Path | None = None
    #: Seconds without a touch after which the client has to be gone: then the lease ends.
    beat_timeout_s: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """The document that the guard is started with; paths become absolute."""
        paths = {k: str(v.absolute()) for k, v in vars(self).items() if isinstance(v, Path)}
        return {"version": FORMAT_VERSION, **asdict(self), **paths}

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> GuardSpec:
        """The spec in a document; raises ValueError, TypeError or KeyError for another format."""
        values = dict(document)
        check_version(values.pop("version", None))
        if values["when_orphaned"] not in ("finish", "stop"):
            raise ValueError(f"when_orphaned is {values['when_orphaned']!r}: use finish or stop")
        values["command"] = tuple(values["command"])
        values["limits"] = Limits(**values["limits"])
        values["parent"] = values["parent"] and Identity(**values["parent"])
        paths = {k: Path(v) for k, v in values.items() if v and (k == "cwd" or k.endswith("_path"))}
        return cls(**{**values, **paths})


@dataclass(frozen=True)
class Leftover:
    """A process that had to be killed, other than the client's main one."""

    pid: int
    name: str
    #: "session", "marker" or "descent".
    found_by: str


@dataclass(frozen=True)
class GuardEnd:
    """How the client ended and what that took; nothing of it is left when this is written."""

    ended_by: EndedBy
    reason: str
    ended_at: float
    #: Seconds from the guard's start to the end, whatever was done to the clock; None: not known.
    elapsed_s: float | None = None
    #: Negative for a signal; None when the client was never started or the guard died.
    return_code: int | None = None
    #: Signals sent to the client, in order.
    signals: tuple[str, ...] = ()
    leftovers_killed: tuple[Leftover, ...] = ()
    shared_memory_removed: tuple[str, ...] = ()


@dataclass(frozen=True)
class GuardStatus:
    """The status file; times ending in `_at` are unix seconds."""

    marker: str
    boot_id: str
    guard: Identity
    started_at: float
    heartbeat_at: float
    state: GuardState = GuardState.STARTING
    version: int = FORMAT_VERSION
    #: The client's main process, leader of its session and of the process group `pgid`.
    client: Identity | None = None
    pgid: int | None = None
    phase: Phase = Phase.STARTUP
    done: int = 0
    total: int | None = None
    errors: int = 0
    #: When each phase was entered; exact to a fifth of a second.
    phases: tuple[tuple[Phase, float], ...] = ()
    #: The client's last lines.
    tail: tuple[str, ...] = ()
    stop_reason: str | None = None
    orphaned_at: float | None = None
    #: Names in shared memory that the client's processes use.
    shared_memory: tuple[str, ...] = ()
    end: GuardEnd | None = None

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> GuardStatus:
        """The status in a document; raises ValueError for another version."""
        check_version(document.get("version"))
        end = document["end"]
        structured = {
            "state": GuardState(document["state"]),
            "guard": Identity(**document["guard"]),
            "client": document["client"] and Identity(**document["client"]),
            "phase": Phase(document["phase"]),
            "phases": tuple((Phase(phase), at) for phase, at in document["phases"]),
            "tail": tuple(document["tail"]),
            "shared_memory": tuple(document["shared_memory"]),
            "end": end and _end_from_json(end),
        }
        return cls(**{**document, **structured})


def _end_from_json(document: dict[str, Any]) -> GuardEnd:
    structured = {
        "ended_by": EndedBy(document["ended_by"]),
        "signals": tuple(document["signals"]),
        "leftovers_killed": tuple(Leftover(**each) for each in document["leftovers_killed"]),
        "shared_memory_removed": tuple(document["shared_memory_removed"]),
    }
    return GuardEnd(**{**document, **structured})


@dataclass(frozen=True)
class StopRequest:
    """What lies at a spec's `stop_path` when somebody wants the client to end."""

    reason: str
    #: Without grace: what is measured so far is lost.
    at_once: bool = False


def read_stop_request(path: Path) -> StopRequest | None:
    """The stop request, None without one; an unreadable one is a gentle one."""
    try:
        document = json.loads(path.read_bytes())
        return StopRequest(str(document["reason"]), bool(document["at_once"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError):
        return StopRequest(f"unreadable stop request {path}")


def check_version(version: object) -> None:
    """Raises ValueError for a format that this program does not read."""
    if version != FORMAT_VERSION:
        raise ValueError(f"format version is {version!r}, this program reads {FORMAT_VERSION}")


def write_json(path: Path, document: object, *, durable: bool = False) -> None:
    """Replaces a file in one step where the file system can; `durable` outlasts a power cut."""
    data = json.dumps(document, indent=1).encode()
    partial = path.with_name(path.name + ".tmp")
    with partial.open("wb") as file:
        file.write(data)
        if durable:
            file.flush()
            os.fsync(file.fileno())
    try:
        partial.replace(path)
    except OSError:
        path.write_bytes(data)  # no rename here: readers take a torn file for a missing one
