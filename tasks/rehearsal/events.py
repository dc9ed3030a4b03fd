"""The events of a run: their wire form in `events.jsonl`, and where they are kept meanwhile."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, NamedTuple

import orjson

#: Where the reference client keeps its events until the end, if there is one.
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 — the client's own choice, not a guessable name
#: Events between two writes.
FLUSH_EVERY = 1000
#: The worker that the stand-in names; it has but one.
WORKER = 0

STARTED = "session.started"
START_TRACKING = "session.start_performance_tracking"
STOP_TRACKING = "session.stop_performance_tracking"
ENDED = "session.ended"
ISSUED = "sample.issued"
FIRST = "sample.recv_first"
NEXT = "sample.recv_non_first"
COMPLETE = "sample.complete"
ERROR = "error.generic"


class Event(NamedTuple):
    """One event; `timestamp_ns` is monotonic."""

    event_type: str
    timestamp_ns: int
    sample_uuid: str = ""
    data: Any = None
    finish_reason: str | None = None
    worker_id: int | None = None

    def line(self) -> bytes:
        """Return the event as a line of `events.jsonl`."""
        record: dict[str, Any] = {
            "event_type": self.event_type,
            "timestamp_ns": self.timestamp_ns,
            "sample_uuid": self.sample_uuid,
            "conversation_id": "",
            "turn": None,
            "data": self.data,
        }
        if self.finish_reason is not None:
            record["finish_reason"] = self.finish_reason
        if self.worker_id is not None:
            record["worker_id"] = self.worker_id
        return orjson.dumps(record) + b"\n"


def prompt_data(prompt: str) -> list[Any]:
    """Return the data of an issued sample."""
    return ["PromptData", prompt, None, None, None, None, None, None]


def output_data(output: str | list[str]) -> list[Any]:
    """Return the data of a completed sample: a list of first chunk and rest if it was streamed."""
    return ["TextModelOutput", output, None, None]


def error_data(kind: str, message: str) -> list[Any]:
    """Return the data of a failed sample."""
    return ["ErrorData", kind, message]


class EventLog:
    """Takes events, hands them to an observer, keeps them in a file that has no name.

    The file lies in shared memory, as the reference client's does, but vanishes with the process.
    """

    def __init__(self, observe: Callable[[Event], None]) -> None:
        folder = SHARED_MEMORY if SHARED_MEMORY.is_dir() else None
        # It stays open for the whole run; `close` gives it up.
        self._file: IO[bytes] = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - as above
        self._observe = observe
        self._pending: list[bytes] = []

    def add(self, event: Event) -> None:
        """Record an event."""
        self._observe(event)
        self._pending.append(event.line())
        if len(self._pending) >= FLUSH_EVERY:
            self._flush()

    def session(self, event_type: str) -> None:
        """Record an event of the session itself, now."""
        self.add(Event(event_type, time.monotonic_ns()))

    def copy_to(self, path: Path) -> None:
        """Write all events so far to a file."""
        self._flush()
        self._file.seek(0)
        with path.open("wb") as target:
            shutil.copyfileobj(self._file, target)

    def close(self) -> None:
        """Give up the hidden file."""
        self._file.close()

    def _flush(self) -> None:
        self._file.write(b"".join(self._pending))
        self._file.flush()
        self._pending.clear()
