"""A view of a campaign from outside: its points, the attempt that is running, the time left.

Only the records and the guard's status file are read, so it sees a run that another process
drives just as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from core.estimate import Estimate
from core.layout import AttemptPaths
from core.plan import Plan
from core.progress import Phase
from core.records import AttemptRecord, EventRecord, PointRecord, Records
from core.status import OPEN_STATES, PointState
from core.texts import duration_text
from flows.costs import costs_of
from flows.prepare import Prepared
from flows.session import Session
from tasks.supervise import GuardStatus, read_status

#: Phases in which samples are completed.
_LOADED = (Phase.PERFORMANCE, Phase.ACCURACY)


def attempt_name(attempt: AttemptRecord) -> str:
    """An attempt as people call it."""
    kind = "pilot" if attempt.is_pilot else "attempt"
    return f"{attempt.label} {kind} {attempt.number}"


@dataclass(frozen=True)
class Now:
    """The attempt that is running, and what its guard says."""

    attempt: AttemptRecord
    status: GuardStatus | None

    @property
    def done_fraction(self) -> float:
        """How much of the client's samples is completed, 0 to 1; 0 of a pilot."""
        status = self.status
        if status is None or self.attempt.is_pilot or not status.total:
            return 0.0
        return min(1.0, status.done / status.total)

    def left_s(self) -> float | None:
        """Seconds left of a measurement at the pace of its samples; None before there is one."""
        status = self.status
        if status is None or self.attempt.is_pilot or not status.done or not status.total:
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
            of_total = "" if self.attempt.is_pilot else f"/{status.total:,}"
            text += f" {status.done:,}{of_total}"
        if status.errors:
            text += f", {status.errors} errors"
        point_s = self.left_s()
        if point_s is not None:
            text += f", {duration_text(point_s)} left"
        if left_s is not None:
            text += f" (campaign: {duration_text(left_s)})"
        return text


@dataclass
class _Last:
    """The points as they were after an event: a view is asked each second."""

    event_id: int | None = None
    points: tuple[PointRecord, ...] = ()


@dataclass(frozen=True)
class View:
    """A campaign as the records show it."""

    prepared: Prepared
    records: Records
    accuracy_rows: Mapping[str, int] = field(default_factory=dict)  # where they are known
    _last: _Last = field(default_factory=_Last, repr=False, compare=False)

    @classmethod
    def of(cls, session: Session) -> View:
        """The campaign of a session, by records that say at once that they are away."""
        return cls(session.prepared, session.records.impatient(), session.accuracy_rows)

    @property
    def plan(self) -> Plan:
        """The plan."""
        return self.prepared.plan

    def points(self) -> tuple[PointRecord, ...]:
        """The points as they stand; read again only if an event tells of a change."""
        name = self.plan.campaign
        latest = self.records.latest_event(name)
        if self._last.event_id != latest:
            self._last.points = self.records.points_with_attempts(name)
            self._last.event_id = latest
        return self._last.points

    def events_after(self, event_id: int) -> tuple[EventRecord, ...]:
        """Events after one, up to the look that `points` last took; mostly there are none."""
        latest = self._last.event_id
        if latest is None or latest == event_id:
            return ()
        found = self.records.events(self.plan.campaign, event_id)
        return tuple(event for event in found if event.id <= latest)

    def now(self, points: tuple[PointRecord, ...]) -> Now | None:
        """The attempt that is running; None: none is."""
        for point in points:
            for attempt in point.attempts:
                if attempt.state in OPEN_STATES:
                    paths = self.paths(attempt)
                    return Now(attempt, read_status(paths.guard_status))
        return None

    def paths(self, attempt: AttemptRecord) -> AttemptPaths:
        """An attempt's files."""
        return self.prepared.paths.attempt(attempt.folder)

    def left(self, points: tuple[PointRecord, ...], now: Now | None) -> Estimate:
        """What is left: of the running attempt its rest, of the other points what is expected."""
        labels = {point.label for point in points if point.state is not PointState.VALID}
        running_s = None if now is None else now.left_s()
        if now is not None and running_s is not None:
            labels.discard(now.attempt.label)
        found = costs_of(self.prepared, self.records, self.accuracy_rows, labels)
        return replace(found, wall_s=found.wall_s.more(running_s or 0.0))
