"""Live progress of a campaign: a table in a terminal, plain lines elsewhere.

Looks only at the records and the guard's status file, so it shows a run that another process
drives just as well.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Group
from rich.live import Live
from rich.text import Text

from core.overview import offline_note, point_rows
from core.records import AttemptRecord, PointRecord, RecordsUnavailableError
from core.status import OPEN_STATES
from flows.cli.show import console, curve_table, reason_lines
from flows.view import View, attempt_name

#: Seconds between two looks.
LOOK_S = 1.0
#: Seconds between two plain lines about the same phase.
LINE_EVERY_S = 15.0


@contextmanager
def live_view(view: View) -> Iterator[None]:
    """Show the campaign's progress while the block lasts."""
    ended = threading.Event()
    show = _in_terminal if sys.stdout.isatty() else _as_lines
    thread = threading.Thread(target=show, args=(view, ended), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _in_terminal(view: View, ended: threading.Event) -> None:
    rehearsal = view.plan.time_scale is not None
    with Live(console=console(), refresh_per_second=2) as live:
        last = False
        while not last:
            last = ended.wait(LOOK_S)
            try:
                points = view.points()
            except RecordsUnavailableError as problem:
                live.update(Text(f"the run goes on; {problem}"))
                continue
            rows = point_rows(points)
            table = curve_table(view.plan.campaign, rows, rehearsal=rehearsal)
            now = view.now(points)
            line = now.line(view.left(points, now).wall_s.expected) if now else ""
            lines = [*reason_lines(rows), offline_note(rows, view.plan.c_max) or "", line]
            live.update(Group(table, *(Text(text) for text in lines if text)))


def _as_lines(view: View, ended: threading.Event) -> None:
    told: set[int] | None = None
    compared: str | None = None
    before, at, trouble = "", 0.0, ""
    last = False
    while not last:
        last = told is not None and ended.wait(LOOK_S)
        try:
            points = view.points()
        except RecordsUnavailableError as problem:
            if str(problem) != trouble:
                trouble = str(problem)
                print(f"the run goes on; {trouble}", flush=True)
            last = ended.wait(LOOK_S)
            continue
        if told is None:
            told = {attempt.id for attempt in _ended(points)}
            compared = offline_note(point_rows(points), view.plan.c_max)
        for attempt in _ended(points):
            if attempt.id not in told:
                told.add(attempt.id)
                why = f": {attempt.reason}" if attempt.reason else ""
                print(f"{attempt_name(attempt)}: {attempt.state}{why}", flush=True)
        if compared is None:  # as soon as both are valid, while a re-run is still cheap
            compared = offline_note(point_rows(points), view.plan.c_max)
            if compared is not None:
                print(compared, flush=True)
        now = view.now(points)
        if now is None:
            continue
        phase = f"{now.attempt.id} {now.status.phase if now.status else ''}"
        if phase != before or time.monotonic() - at >= LINE_EVERY_S:
            before, at = phase, time.monotonic()
            print(now.line(view.left(points, now).wall_s.expected), flush=True)


def _ended(points: tuple[PointRecord, ...]) -> list[AttemptRecord]:
    """Every attempt that ended, in plan order."""
    attempts = (attempt for point in points for attempt in point.attempts)
    return [attempt for attempt in attempts if attempt.state not in OPEN_STATES]
