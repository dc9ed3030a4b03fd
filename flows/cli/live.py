"""Live progress of a campaign: a table in a terminal, plain lines elsewhere.

Looks only at the records and the guard's status file, so it shows a run that another process
drives just as well.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

from rich.console import Group
from rich.live import Live
from rich.text import Text

from core.layout import AttemptPaths
from core.overview import offline_note, point_rows
from core.plan import Plan
from core.progress import Phase
from core.records import AttemptRecord, PointRecord, RecordsUnavailableError
from core.records import Phase as AttemptPhase
from core.status import OPEN_STATES, PointState
from core.texts import duration_text
from flows.cli.show import console, curve_table, reason_lines
from flows.session import Session
from tasks.supervise import GuardStatus, read_status

#: Seconds between two looks.
LOOK_S = 1.0
#: Seconds between two plain lines about the same phase.
LINE_EVERY_S = 15.0


#: Phases in which samples are completed.
_LOADED = (Phase.PERFORMANCE, Phase.ACCURACY)


def is_pilot(attempt: AttemptRecord) -> bool:
    """Whether an attempt is a pilot, which has no total."""
    return attempt.phase == AttemptPhase.PILOT


def attempt_name(attempt: AttemptRecord) -> str:
    """An attempt as people call it."""
    kind = "pilot" if is_pilot(attempt) else "attempt"
    return f"{attempt.label} {kind} {attempt.number}"


@dataclass(frozen=True)
class Now:
    """The attempt that is running, and what its guard says."""

    attempt: AttemptRecord
    status: GuardStatus | None

    def left_s(self) -> float | None:
        """Seconds left of a measurement at the pace of its samples; None before there is one."""
        status = self.status
        if status is None or is_pilot(self.attempt) or not status.done or not status.total:
            return None
        began = next((at for phase, at in status.phases if phase in _LOADED), None)
        if began is None:
            return None
        pace = status.done / max(status.heartbeat_at - began, 1.0)
        return (status.total - status.done) / pace

    def line(self, left_s: float | None) -> str:
        """One line about it."""
        where = attempt_name(self.attempt)
        if self.status is None:
            return f"{where}: preparing"
        status = self.status
        text = f"{where}: {status.phase}"
        if status.total:
            of_total = "" if is_pilot(self.attempt) else f"/{status.total:,}"
            text += f" {status.done:,}{of_total}"
        if status.errors:
            text += f", {status.errors} errors"
        point_s = self.left_s()
        if point_s is not None:
            text += f", {duration_text(point_s)} left"
        if left_s is not None:
            text += f" (campaign: {duration_text(left_s)})"
        return text


@contextmanager
def live_view(session: Session) -> Iterator[None]:
    """Show the campaign's progress while the block lasts."""
    ended = threading.Event()
    show = _in_terminal if sys.stdout.isatty() else _as_lines
    look = _Look(replace(session, records=session.records.impatient()))
    thread = threading.Thread(target=show, args=(look, ended), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@dataclass(frozen=True)
class _Look:
    """Looks at a campaign in the records."""

    session: Session

    @property
    def plan(self) -> Plan:
        return self.session.plan

    def points(self) -> tuple[PointRecord, ...]:
        return self.session.points()

    def now(self, points: tuple[PointRecord, ...]) -> Now | None:
        for point in points:
            for attempt in point.attempts:
                if attempt.state in OPEN_STATES:
                    paths = AttemptPaths(self.session.prepared.paths.runs / attempt.folder)
                    return Now(attempt, read_status(paths.guard_status))
        return None

    def left_s(self, points: tuple[PointRecord, ...], now: Now) -> float:
        """Seconds left: of the running attempt its rest, of the other points what is expected."""
        labels = {point.label for point in points if point.state is not PointState.VALID}
        running_s = now.left_s()
        if running_s is not None:
            labels.discard(now.attempt.label)
        return self.session.estimate(labels).wall_s.expected + (running_s or 0.0)


def _in_terminal(look: _Look, ended: threading.Event) -> None:
    rehearsal = look.plan.time_scale is not None
    with Live(console=console(), refresh_per_second=2) as live:
        last = False
        while not last:
            last = ended.wait(LOOK_S)
            try:
                points = look.points()
            except RecordsUnavailableError as problem:
                live.update(Text(f"the run goes on; {problem}"))
                continue
            rows = point_rows(points)
            table = curve_table(look.plan.campaign, rows, rehearsal=rehearsal)
            now = look.now(points)
            line = now.line(look.left_s(points, now)) if now else ""
            lines = [*reason_lines(rows), offline_note(rows, look.plan.c_max) or "", line]
            live.update(Group(table, *(Text(text) for text in lines if text)))


def _as_lines(look: _Look, ended: threading.Event) -> None:
    """Print lines until the end; a reader that has seen enough doesn't stop the campaign."""
    with suppress(BrokenPipeError):
        _print_lines(look, ended)


def _print_lines(look: _Look, ended: threading.Event) -> None:
    told: set[int] | None = None
    compared: str | None = None
    before, at, trouble = "", 0.0, ""
    last = False
    while not last:
        last = told is not None and ended.wait(LOOK_S)
        try:
            points = look.points()
        except RecordsUnavailableError as problem:
            if str(problem) != trouble:
                trouble = str(problem)
                print(f"the run goes on; {trouble}", flush=True)
            last = ended.wait(LOOK_S)
            continue
        if told is None:
            told = {attempt.id for attempt in _ended(points)}
            compared = offline_note(point_rows(points), look.plan.c_max)
        for attempt in _ended(points):
            if attempt.id not in told:
                told.add(attempt.id)
                why = f": {attempt.reason}" if attempt.reason else ""
                print(f"{attempt_name(attempt)}: {attempt.state}{why}", flush=True)
        if compared is None:  # as soon as both are valid, while a re-run is still cheap
            compared = offline_note(point_rows(points), look.plan.c_max)
            if compared is not None:
                print(compared, flush=True)
        now = look.now(points)
        if now is None:
            continue
        phase = f"{now.attempt.id} {now.status.phase if now.status else ''}"
        if phase != before or time.monotonic() - at >= LINE_EVERY_S:
            before, at = phase, time.monotonic()
            print(now.line(look.left_s(points, now)), flush=True)


def _ended(points: tuple[PointRecord, ...]) -> list[AttemptRecord]:
    """Every attempt that ended, in plan order."""
    attempts = (attempt for point in points for attempt in point.attempts)
    return [attempt for attempt in attempts if attempt.state not in OPEN_STATES]
