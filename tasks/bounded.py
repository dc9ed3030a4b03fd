"""Reads what a command prints, bounded in time and size; never through a shell."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

#: Bytes read at once.
CHUNK_BYTES = 64 * 1024
#: Bytes of a command's errors that are kept to be shown.
_SHOWN_BYTES = 8000


class UnreadableError(Exception):
    """It can't be read; the text says why, for a message that says what was to be read."""


@dataclass(frozen=True)
class Bounds:
    """How much is waited for and taken."""

    timeout_s: float
    max_bytes: int


@dataclass(frozen=True)
class Ended:
    """How a command ended by itself, and what it said."""

    code: int
    printed: bytes
    #: The last bytes of its errors.
    complaints: bytes

    @property
    def last_line(self) -> str:
        """What it said last: of its errors, if it said any."""
        text = (self.complaints.strip() or self.printed).decode("utf-8", "replace")
        return (text.strip().splitlines() or ["nothing"])[-1]


def run_bounded(
    command: Sequence[str],
    env: Mapping[str, str],
    bounds: Bounds,
    cwd: Path | None = None,
    told: bytes = b"",
) -> Ended:
    """Run a command to its end; it and what it started are gone when this returns.

    Args:
        command: Program and arguments.
        env: All of its environment.
        bounds: How long it may take, and how much it may print.
        cwd: Where it runs; None: here.
        told: What it reads on its standard input.

    Raises:
        OSError, ValueError: it can't be started.
        UnreadableError: it took or printed too much.
    """
    with _readable(told) as stdin:
        process = subprocess.Popen(
            list(command),
            env=dict(env),
            cwd=cwd,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    with process:
        try:
            printed, complaints = _both(process, bounds)
            code = process.wait(max(0.0, bounds.timeout_s))
        except subprocess.TimeoutExpired:
            raise UnreadableError(too_slow(bounds)) from None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    return Ended(code, printed, complaints)


def command_output(command: Sequence[str], env: Mapping[str, str], bounds: Bounds) -> bytes:
    """What a command prints; it and what it started are gone when this returns.

    Raises:
        UnreadableError: not there, failed, took or printed too much.
    """
    try:
        ended = run_bounded(command, env, bounds)
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise UnreadableError(f"{command[0]!r} can't be run: {reason}") from None
    if ended.code != 0:
        raise UnreadableError(f"ended with exit code {ended.code}, saying {ended.last_line!r}")
    return ended.printed


@contextlib.contextmanager
def _readable(told: bytes) -> Iterator[int | IO[bytes]]:
    """What a process reads from: a file, which takes any size at once, where a pipe would not."""
    if not told:
        yield subprocess.DEVNULL
        return
    with tempfile.TemporaryFile() as file:
        file.write(told)
        file.seek(0)
        yield file


def _both(process: subprocess.Popen[bytes], bounds: Bounds) -> tuple[bytes, bytes]:
    """Output and errors up to their ends; of the errors only the last bytes are kept."""
    assert process.stdout is not None
    assert process.stderr is not None
    deadline_s = time.monotonic() + bounds.timeout_s
    kept = {process.stdout: b"", process.stderr: b""}
    with selectors.DefaultSelector() as selector:
        for stream in kept:
            selector.register(stream, selectors.EVENT_READ, stream)
        while selector.get_map():
            left_s = deadline_s - time.monotonic()
            ready = selector.select(left_s) if left_s > 0 else []
            if not ready:
                raise UnreadableError(too_slow(bounds))
            for key, _ in ready:
                data = os.read(key.fd, CHUNK_BYTES)
                if not data:
                    selector.unregister(key.fileobj)
                kept[key.data] += data
            kept[process.stderr] = kept[process.stderr][-_SHOWN_BYTES:]
            if len(kept[process.stdout]) > bounds.max_bytes:
                raise UnreadableError(too_much(bounds))
    return kept[process.stdout], kept[process.stderr]


def too_slow(bounds: Bounds) -> str:
    """Why it is unreadable: it took too long."""
    return f"no end after {bounds.timeout_s:g} s"


def too_much(bounds: Bounds) -> str:
    """Why it is unreadable: it sent too much."""
    return f"more than {bounds.max_bytes:,} bytes"
