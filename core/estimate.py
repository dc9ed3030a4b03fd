"""What a campaign costs, told before it is paid: wall time, accelerator-hours and disk.

Every number is a span: where a rate or a size is a guess, from the cheapest to the dearest that the
guess allows. `docs/sizing.md` derives the numbers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import zip_longest
from statistics import median
from typing import TYPE_CHECKING, Any

from core.campaign import Campaign
from core.errors import InputError
from core.pilot import REQUESTS_PER_STREAM, pilot_dataset, scaled_s
from core.plan import Plan, Point, Role
from core.status import AttemptState

if TYPE_CHECKING:  # the records load SQL, which a plan can do without
    from core.records.values import PointRecord

#: Start-up, shutdown and reporting of one client run, seconds: the reference client took 11–12 s
#: with one worker and 24 s with its default of ten, before validation and hashing; the rehearsal's
#: stand-in takes 1–3 s.
FIRST_OVERHEAD_S, REHEARSAL_OVERHEAD_S = 30.0, 3.0
#: Bytes of `events.jsonl` a sample without its chunks, and each streamed chunk (measured).
BYTES_PER_SAMPLE, BYTES_PER_CHUNK = 730, 162
#: Most new tokens where the campaign doesn't say: the default of the client's template.
DEFAULT_MAX_TOKENS = 1024
#: How far a guessed rate may be off, either way.
GUESS_FACTOR = 2.0
SECONDS_PER_HOUR = 3600
#: Longest time between two attempts that the first one still costs, seconds; beyond, it is the
#: user who paused.
LONGEST_GAP_S = 60.0


@dataclass(frozen=True)
class Span:
    """An amount from the lowest to the highest that is likely; `high` None: no bound is known."""

    low: float
    expected: float
    high: float | None

    @classmethod
    def exact(cls, amount: float) -> Span:
        """An amount that is known."""
        return cls(amount, amount, amount)

    def __add__(self, other: Span) -> Span:
        unknown = self.high is None or other.high is None
        high = None if unknown else (self.high or 0.0) + (other.high or 0.0)
        return Span(self.low + other.low, self.expected + other.expected, high)

    def less(self, amount: float) -> Span:
        """The span without an amount that is behind; never below nothing."""
        high = None if self.high is None else max(0.0, self.high - amount)
        return Span(max(0.0, self.low - amount), max(0.0, self.expected - amount), high)

    def more(self, amount: float) -> Span:
        """The span with an amount on top."""
        return self + Span.exact(amount)

    def times(self, factor: float) -> Span:
        """The span scaled."""
        high = None if self.high is None else self.high * factor
        return Span(self.low * factor, self.expected * factor, high)


@dataclass(frozen=True)
class Costs:
    """What one client run costs beside its load: learned from recorded runs, or a first guess."""

    overhead_s: float
    accuracy_factor: float  # time of an accuracy run over its samples at the measured rate
    bytes_per_sample: Span
    learned: bool


@dataclass(frozen=True)
class PointEstimate:
    """What one point costs."""

    label: str
    wall_s: Span
    disk_bytes: Span


@dataclass(frozen=True)
class Estimate:
    """What the points of a campaign cost, together and one by one."""

    points: tuple[PointEstimate, ...]
    wall_s: Span
    disk_bytes: Span
    accelerators: int

    def after(self, seconds: float) -> Estimate:
        """What is left when a time has passed."""
        return replace(self, wall_s=self.wall_s.less(seconds))

    @property
    def accelerator_hours(self) -> Span:
        """Exclusive time of every accelerator of the instance."""
        return self.wall_s.times(self.accelerators / SECONDS_PER_HOUR)


def first_costs(campaign: Campaign) -> Costs:
    """What is assumed before anything was recorded."""
    most = BYTES_PER_SAMPLE + BYTES_PER_CHUNK * _max_tokens(campaign)
    span = Span(BYTES_PER_SAMPLE + BYTES_PER_CHUNK, (BYTES_PER_SAMPLE + most) / 2, most)
    overhead_s = REHEARSAL_OVERHEAD_S if campaign.rehearsal else FIRST_OVERHEAD_S
    return Costs(overhead_s, accuracy_factor=1.0, bytes_per_sample=span, learned=False)


def learned_costs(campaign: Campaign, points: Sequence[PointRecord], scored: int) -> Costs:
    """What recorded attempts of the campaign show; the first guess for what they don't.

    Args:
        campaign: The campaign.
        points: Its points with their attempts.
        scored: Samples of one accuracy run.
    """
    first = first_costs(campaign)
    valid = [
        (point, attempt)
        for point in points
        for attempt in point.measurements
        if attempt.state is AttemptState.VALID and attempt.metrics.get("rate_qps")
    ]
    if not valid:
        return first
    outside_s = _outside_load_s(points)
    plain = [outside_s[attempt.id] for point, attempt in valid if not point.accuracy]
    overhead_s = max(0.0, median(plain)) if plain else first.overhead_s
    factors = [
        max(0.0, outside_s[attempt.id] - overhead_s) * attempt.metrics["rate_qps"] / scored
        for point, attempt in valid
        if point.accuracy and scored
    ]
    sizes = [
        attempt.run_folder.total_bytes
        / (attempt.metrics["issued"] + (scored if point.accuracy else 0))
        for point, attempt in valid
        if attempt.run_folder
    ]
    return Costs(
        overhead_s=overhead_s,
        accuracy_factor=median(factors) if factors else first.accuracy_factor,
        bytes_per_sample=Span.exact(median(sizes)) if sizes else first.bytes_per_sample,
        learned=True,
    )


def estimate(
    campaign: Campaign,
    plan: Plan,
    costs: Costs,
    *,
    scored: int,
    labels: Collection[str] | None = None,
) -> Estimate:
    """What the points still cost.

    Args:
        campaign: The campaign.
        plan: Its plan, sized by the rates that are known.
        costs: What a run costs beside its load.
        scored: Samples of one accuracy run, over all accuracy datasets.
        labels: Points to count; default: all.
    """
    wanted = [point for point in plan.points if labels is None or point.label in labels]
    points = tuple(_point(campaign, point, costs, scored) for point in wanted)
    none = Span.exact(0.0)
    return Estimate(
        points=points,
        wall_s=sum((point.wall_s for point in points), none),
        disk_bytes=sum((point.disk_bytes for point in points), none),
        accelerators=campaign.instance.accelerators,
    )


def scored_samples(campaign: Campaign, rows: Mapping[str, int]) -> int:
    """Samples of one accuracy run; a dataset whose rows are not known counts none."""
    datasets = campaign.datasets.accuracy
    return sum(rows.get(d.name, d.rows or 0) * d.repeats for d in datasets)


def cheapest_hours(campaign: Campaign, plan: Plan, costs: Costs, scored: int) -> float:
    """Least wall time of a legal curve: every point but the spares, at the cheapest, hours."""
    needed = [point.label for point in plan.points if point.role is not Role.SPARE]
    found = estimate(campaign, plan, costs, scored=scored, labels=needed)
    return found.wall_s.low / SECONDS_PER_HOUR


def refuse_small_budget(campaign: Campaign, plan: Plan, scored: int) -> None:
    """Refuse a budget that no legal curve fits into.

    Raises:
        InputError: with the least that a curve takes.
    """
    budget = campaign.run.budget_hours
    if budget is None:
        return
    least = cheapest_hours(campaign, plan, first_costs(campaign), scored)
    if budget < least:
        raise InputError(
            f"run.budget_hours: {budget:g} h, but the cheapest legal curve takes {least:.4g} h;"
            " raise the budget"
        )


def as_plain(costs: Estimate, now: float) -> dict[str, Any]:
    """An estimate as plain values, with the Unix times at which it would be done."""
    done = Span.exact(now) + costs.wall_s
    hours = costs.accelerator_hours
    return {**asdict(costs), "accelerator_hours": asdict(hours), "done_at": asdict(done)}


def over_budget(budget_hours: float, spent_s: float, needed: Span) -> str | None:
    """Why a point no longer fits the budget; None: it does."""
    spent_h, needed_h = spent_s / SECONDS_PER_HOUR, needed.expected / SECONDS_PER_HOUR
    if spent_h + needed_h <= budget_hours:
        return None
    return (
        f"budget: {spent_h:.2f} h spent, {needed_h:.2f} h needed,"
        f" run.budget_hours is {budget_hours:g}"
    )


def _point(campaign: Campaign, point: Point, costs: Costs, scored: int) -> PointEstimate:
    samples = (point.sizing.samples or 0) + (scored if point.accuracy else 0)
    return PointEstimate(
        label=point.label,
        wall_s=sum(
            (
                _pilot_s(campaign, point, costs),
                _timed_s(campaign, point),
                _accuracy_s(point, costs, scored),
            ),
            Span.exact(costs.overhead_s),
        ),
        disk_bytes=_disk_bytes(point, costs, samples),
    )


def _disk_bytes(point: Point, costs: Costs, samples: int) -> Span:
    """Size of the run folder; without a rate the count may grow, so no upper bound is known."""
    span = costs.bytes_per_sample.times(samples)
    return span if point.sizing.rate else replace(span, high=None)


def _pilot_s(campaign: Campaign, point: Point, costs: Costs) -> Span:
    """A pilot where the rate is not known: its time, or two requests per stream, and overhead."""
    rate = point.sizing.rate
    if (rate is not None and not rate.guess) or pilot_dataset(campaign, point) is None:
        return Span.exact(0.0)
    seconds = scaled_s(campaign, campaign.run.pilot.seconds)
    shortest_s = seconds + costs.overhead_s
    if rate is None:
        return Span(shortest_s, shortest_s, None)
    requests_s = REQUESTS_PER_STREAM * point.concurrency / rate.qps
    expected_s, longest_s = max(seconds, requests_s), max(seconds, requests_s * GUESS_FACTOR)
    return Span(shortest_s, expected_s + costs.overhead_s, longest_s + costs.overhead_s)


def _timed_s(campaign: Campaign, point: Point) -> Span:
    """The timed phase from its first request to its last answer; never below the minimum."""
    rate, samples, minimum_s = point.sizing.rate, point.sizing.samples, point.min_duration_ms / 1000
    if rate is None or samples is None:
        shortest_s = minimum_s * campaign.run.duration_margin
        return Span(shortest_s, shortest_s, None)
    expected_s = samples / rate.qps
    if not rate.guess:
        return Span.exact(expected_s)
    lowest_s = min(expected_s, max(minimum_s, expected_s / GUESS_FACTOR))
    return Span(lowest_s, expected_s, expected_s * GUESS_FACTOR)


def _accuracy_s(point: Point, costs: Costs, scored: int) -> Span:
    """The accuracy run where the point carries one, at the point's own rate."""
    rate = point.sizing.rate
    if not point.accuracy:
        return Span.exact(0.0)
    if rate is None:
        return Span(0.0, 0.0, None)
    expected_s = costs.accuracy_factor * scored / rate.qps
    if not rate.guess:
        return Span.exact(expected_s)
    return Span(expected_s / GUESS_FACTOR, expected_s, expected_s * GUESS_FACTOR)


def _max_tokens(campaign: Campaign) -> int:
    """Most new tokens of an answer, as far as the campaign says."""
    params = campaign.client.overrides.get("model_params")
    tokens = params.get("max_new_tokens") if isinstance(params, Mapping) else None
    return tokens if type(tokens) is int and tokens > 0 else DEFAULT_MAX_TOKENS


def _outside_load_s(points: Sequence[PointRecord]) -> dict[int, float]:
    """Time of each attempt that tells a rate outside its timed phase, by its id.

    It lasts from its preparation to that of the next attempt by the same process, if one follows.
    """
    attempts = sorted((a for point in points for a in point.attempts), key=lambda a: a.created_at)
    found = {}
    for attempt, following in zip_longest(attempts, attempts[1:]):
        if not attempt.metrics.get("rate_qps") or "issued" not in attempt.metrics:
            continue  # a pilot tells a rate alone
        ended_at = attempt.ended_at or attempt.created_at
        if following is not None and following.owner == attempt.owner:
            gap_s = following.created_at - ended_at
            ended_at = following.created_at if 0 <= gap_s <= LONGEST_GAP_S else ended_at
        load_s = attempt.metrics["issued"] / attempt.metrics["rate_qps"]
        found[attempt.id] = ended_at - attempt.created_at - load_s
    return found
