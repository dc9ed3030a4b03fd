"""`pareto` with a stopwatch at its steps: `python -m bench.timed …` takes the command's arguments.

Writes to `PARETO_BENCH_SEGMENTS`, a line each: what the main thread was busy with, from when to
when, and the processor time that it took. Steps inside one another are told apart: each second
belongs to the innermost.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from bench.client import now_s

#: What the main thread does where nothing else is said.
ELSE = "other"


class Stopwatch:
    """Tells which step of the main thread each moment belongs to."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()
        self._stack = [ELSE]
        self._since_s = now_s()
        self._since_cpu_s = time.thread_time()
        self.segments: list[tuple[str, float, float, float]] = []

    def _turn(self) -> None:
        now, cpu_s = now_s(), time.thread_time()
        spent_s = cpu_s - self._since_cpu_s
        self.segments.append((self._stack[-1], self._since_s, now, spent_s))
        self._since_s, self._since_cpu_s = now, cpu_s

    def timed(self, what: str, work: Callable[..., Any]) -> Callable[..., Any]:
        """The function, its time told under a name."""

        @wraps(work)
        def measured(*args: Any, **kwargs: Any) -> Any:
            if threading.get_ident() != self._thread:
                return work(*args, **kwargs)
            self._turn()
            self._stack.append(what)
            try:
                return work(*args, **kwargs)
            finally:
                self._turn()
                self._stack.pop()

        return measured


def attach(watch: Stopwatch) -> None:
    """Put the stopwatch at the steps of a point."""
    from core.records import Records  # noqa: PLC0415 - Prefect reads its settings when imported
    from flows import (  # noqa: PLC0415 - slow; timed from here
        attempt,
        client_run,
        point,
        running,
        steps,
        system,
        verdict,
    )

    places = (
        (attempt, "follow_client", "notice the end"),
        (attempt, "configure", "configure"),
        (client_run, "start", "start the guard"),
        (verdict, "collect", "read and hash"),
        (verdict, "make_read_only", "read and hash"),
        (verdict, "validate", "validate"),
        (verdict, "write_atomic", "record"),
        (point, "_await_endpoint", "preflight"),
        (point, "room_for", "preflight"),
        (system, "look", "fingerprint"),
    )
    for module, name, what in places:
        setattr(module, name, watch.timed(what, getattr(module, name)))
    for name in dir(Records):
        method = getattr(Records, name)
        if callable(method) and not name.startswith("_"):
            setattr(Records, name, watch.timed("record", method))
    shown: Callable[..., Any] = steps.step

    def step(name: str, marks: set[str], work: Callable[[], Any], *more: Any) -> Any:
        return watch.timed("Prefect", shown)(name, marks, watch.timed(ELSE, work), *more)

    setattr(running, "step", step)  # noqa: B010 - the name that an attempt calls; typed otherwise


def main() -> None:
    """Run the command and write what took how long."""
    import flows.cli.drive as driven  # noqa: PLC0415 - as above
    from flows.cli import main as pareto  # noqa: PLC0415 - after the clocks are in place

    watch = Stopwatch()
    flow = driven._flow

    def followed(*args: Any, **kwargs: Any) -> Any:
        attach(watch)
        return flow(*args, **kwargs)

    driven._flow = followed
    try:
        pareto(sys.argv[1:])
    finally:
        watch._turn()
        lines = (json.dumps(segment) + "\n" for segment in watch.segments)
        Path(os.environ["PARETO_BENCH_SEGMENTS"]).write_text("".join(lines))


if __name__ == "__main__":
    main()
