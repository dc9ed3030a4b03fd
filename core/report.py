"""What a report tells beside the curve: attempts, findings, time, fingerprints (§4.6).

Plain values, put together from the records; `tasks/report/` makes pages of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.curve import Curve, best_in, steps, throughput_at
from core.drift import Difference, DriftRow
from core.estimate import SECONDS_PER_HOUR, Span
from core.records.values import AttemptRecord, CampaignRecord, PointRecord
from core.status import AttemptState


@dataclass(frozen=True)
class Spending:
    """Time that a campaign took its instance for, seconds of wall clock."""

    valid_s: float  # attempts that count for the curve
    lost_s: float  # other attempts at points: failed, interrupted, invalid, of an earlier baseline
    pilot_s: float
    planned_s: Span | None  # by the campaign file alone; None: it can't be planned from here
    accelerators: int | None  # of the instance; None: the campaign file can't be read from here

    @property
    def total_s(self) -> float:
        """Everything together."""
        return self.valid_s + self.lost_s + self.pilot_s

    def accelerator_hours(self, seconds: float) -> float | None:
        """A time as exclusive hours of all accelerators; None: their number is not known."""
        if self.accelerators is None:
            return None
        return seconds * self.accelerators / SECONDS_PER_HOUR


@dataclass(frozen=True)
class Report:
    """Everything that a report page shows."""

    campaign: CampaignRecord
    stated: tuple[tuple[str, str], ...]  # what the campaign file says is measured, name and text
    points: tuple[PointRecord, ...]
    curve: Curve
    spending: Spending
    looks: tuple[DriftRow, ...]  # at the system, before and after each attempt
    history: tuple[str, ...]  # differences, restarts and rebases, a line each
    has_drift: bool
    notes: tuple[str, ...]  # what the report itself could not find out
    left: Span | None  # time that what is not valid still takes, seconds
    made_at: float

    @property
    def attempts(self) -> list[AttemptRecord]:
        """All attempts, pilots and earlier baselines included, as they were begun."""
        every = (attempt for point in self.points for attempt in point.attempts)
        return sorted(every, key=lambda attempt: attempt.id)


@dataclass(frozen=True)
class Standing:
    """Where a campaign stands."""

    campaign: CampaignRecord
    points: tuple[PointRecord, ...]
    curve: Curve
    left: Span | None  # time that what is not valid still takes, seconds; None: none, or not known


@dataclass(frozen=True)
class Ratio:
    """One campaign in one region, over the first campaign compared."""

    tps: float | None  # the highest throughput; None: no valid point there
    tps_ratio: float | None  # None: one of the two has none
    interactivity: float | None
    interactivity_ratio: float | None


@dataclass(frozen=True)
class AtEqual:
    """What each system delivers at one interactivity."""

    interactivity: float
    cells: tuple[tuple[float | None, float | None], ...]  # tokens/s, and over the first curve's


@dataclass(frozen=True)
class Comparison:
    """Curves over each other; the first is what the others are compared with."""

    curves: tuple[Curve, ...]
    ratios: Mapping[str, tuple[Ratio, ...]]  # region as people read it → one per curve
    at_equal: tuple[AtEqual, ...]  # at the interactivity of each corner of the first curve
    differs: tuple[tuple[Difference, ...] | None, ...]  # of the second on; None: not known
    made_at: float

    @property
    def rehearsal(self) -> bool:
        """Whether any of it is no measurement."""
        return any(curve.rehearsal for curve in self.curves)


def spending(
    points: Sequence[PointRecord], planned_s: Span | None, accelerators: int | None, now: float
) -> Spending:
    """What a campaign spent.

    Args:
        points: Its points with their attempts.
        planned_s: What its file alone lets expect.
        accelerators: Those of the instance.
        now: Until when an attempt that is open is counted.
    """
    valid_s = lost_s = pilot_s = 0.0
    for point in points:
        for attempt in point.attempts:
            seconds = took_s(attempt, now)
            if attempt.is_pilot:
                pilot_s += seconds
            elif attempt.state is AttemptState.VALID and attempt.baseline == point.baseline:
                valid_s += seconds
            else:
                lost_s += seconds
    return Spending(valid_s, lost_s, pilot_s, planned_s, accelerators)


def took_s(attempt: AttemptRecord, now: float) -> float:
    """How long an attempt had the instance, its preparation included."""
    return max(0.0, (attempt.ended_at or now) - attempt.created_at)


def ratios(curves: Sequence[Curve]) -> dict[str, tuple[Ratio, ...]]:
    """The best of each curve in each region that any has, and over that of the first."""
    found = {}
    for region, name in curves[0].regions.items():
        cells = [best_in(curve, region) for curve in curves]
        if any(tps for _, tps in cells):
            base_x, base_tps = cells[0]
            found[name] = tuple(
                Ratio(tps, _over(tps, base_tps), x, _over(x, base_x)) for x, tps in cells
            )
    return found


def at_equal(curves: Sequence[Curve]) -> tuple[AtEqual, ...]:
    """The step functions at each corner of the first one: the same answer speed for every user."""
    corners = [steps(curve.rows) for curve in curves]
    found = []
    for interactivity, _ in corners[0]:
        delivered = [throughput_at(other, interactivity) for other in corners]
        cells = tuple((tps, _over(tps, delivered[0])) for tps in delivered)
        found.append(AtEqual(interactivity, cells))
    return tuple(found)


def _over(value: float | None, base: float | None) -> float | None:
    return value / base if value is not None and base else None
