"""Campaign → plan: which points a curve has, what each is for, and in which order (§5.3–5.7).

Touches nothing outside: the row count of the dataset is handed in.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from itertools import product
from typing import Any

from core.campaign import CUSTOM, Campaign
from core.errors import InputError
from core.regions import (
    MANDATORY_BANDS,
    SUBMITTERS_CHOICE,
    RegionBounds,
    Regions,
    accuracy_bands,
    band_bounds,
    classify_concurrency,
    compute_regions,
    match_accuracy_bands,
    min_duration_ms,
    uncovered_bands,
)
from core.seeds import SeedSet, bound_seed_set
from core.sizing import Basis, Rate, Sizing, Target, issue_rate, rate_for, size

#: Fewest fixed-concurrency points of a curve (§5.3: 1 + 3 + 3); a dedicated Offline run is extra.
MIN_LEVELS = 7
#: Most points of a curve, a dedicated Offline run included (§5.3; checker `_MAX_POINTS`).
MAX_POINTS = 32
#: Version of a plan's plain form; raise it when `Plan` or `Point` change.
PLAN_VERSION = 1
#: Load pattern of every fixed-concurrency point, of agentic points, and of a dedicated Offline run.
CONCURRENCY, AGENTIC, MAX_THROUGHPUT = "concurrency", "agentic_inference", "max_throughput"
#: Official region name → its name in `run.basis`.
_SHORT = {
    "low_latency": "ultra_low",
    "low_concurrency": "low",
    "med_concurrency": "medium",
    "high_concurrency": "high",
    "margin": "margin",
}
#: Label of the dedicated Offline point.
OFFLINE_LABEL = "offline"
#: Candidates per band kept in the accuracy choice: each other band can take at most one of them.
_CANDIDATES = len(MANDATORY_BANDS)


class Role(StrEnum):
    """What a point is for."""

    MANDATORY = "mandatory"
    CHOICE = "choice"
    SPARE = "spare"
    OFFLINE = "offline"


@dataclass(frozen=True)
class Point:
    """One planned measurement point."""

    label: str  # c0064, or offline; names its folder
    concurrency: int  # target level; of a dedicated Offline run: rows of its dataset
    region: str  # official region name, or submitters_choice for a dedicated Offline run
    role: Role
    band: str | None  # the mandatory band that its accuracy result fills
    accuracy: bool
    load_pattern: str
    offline: str | None  # elected, dedicated, or None
    min_duration_ms: int  # of issue time; scaled in a rehearsal
    purpose: str
    sizing: Sizing


@dataclass(frozen=True)
class Plan:
    """A legal curve: its points in run order and the boundaries that they follow from."""

    campaign: str
    c_max: int
    c_min: int
    regions: Regions
    seed_set: SeedSet
    points: tuple[Point, ...]
    warnings: tuple[str, ...]
    dataset_rows: int | None
    time_scale: float | None  # None: a measurement; else: a rehearsal

    def point(self, label: str) -> Point:
        """The point of that label."""
        return next(point for point in self.points if point.label == label)


def make_plan(campaign: Campaign, dataset_rows: int | None) -> Plan:
    """The plan that follows from a campaign.

    Args:
        campaign: The validated campaign.
        dataset_rows: Rows of the performance dataset; None when it isn't known yet.

    Raises:
        InputError: the curve can't be legal; the message lists every reason.
    """
    seed_set = bound_seed_set(
        campaign.seeds.set, campaign.seeds.target_cohort, campaign.seeds.registry
    )
    reasons = _statement_errors(campaign, dataset_rows)
    if reasons:
        raise InputError(_listed(reasons))
    levels = _levels(campaign)
    c_min = _c_min(campaign, levels, dataset_rows)
    regions = _regions(campaign, c_min)
    reasons = _curve_errors(campaign, levels, regions)
    if reasons:
        raise InputError(_listed(reasons))
    with_accuracy = _accuracy_levels(campaign, levels, regions)
    spares = _spares(campaign, levels, with_accuracy, regions)
    points = [
        _point(campaign, level, regions, with_accuracy, level in spares, dataset_rows)
        for level in levels
    ]
    if campaign.offline == "dedicated":
        points.append(_dedicated(campaign, regions, dataset_rows))
    return Plan(
        campaign=campaign.campaign,
        c_max=campaign.curve.c_max,
        c_min=c_min,
        regions=regions,
        seed_set=seed_set,
        points=tuple(_ordered(campaign, points)),
        warnings=tuple(_warnings(campaign, levels, seed_set, dataset_rows)),
        dataset_rows=dataset_rows,
        time_scale=campaign.rehearsal.time_scale if campaign.rehearsal else None,
    )


def label_of(level: int) -> str:
    """Label of a fixed-concurrency point."""
    return f"c{level:04d}"


def band_name(band: str | None) -> str:
    """A band or region as submitters read it."""
    names = MANDATORY_BANDS | {"low_latency": "Ultra Low", "margin": "margin"}
    return names.get(band or "", "–")


# --- What the user stated --------------------------------------------------------------------


def _statement_errors(campaign: Campaign, rows: int | None) -> list[str]:
    """Reasons that need no boundaries."""
    curve = campaign.curve
    reasons = []
    if curve.c_max <= 32:  # noqa: PLR2004 - §5.4's limit, in the official function too
        reasons.append(f"curve.c_max: {curve.c_max} must be above 32 (§5.4, region-computation)")
    if isinstance(curve.levels, tuple):
        reasons += _list_errors(campaign, curve.levels)
    elif curve.c_min is not None and curve.c_min > 32:  # noqa: PLR2004 - §5.4
        reasons.append(f"curve.c_min: {curve.c_min} must be 32 or lower (§5.4)")
    warmup = _warmup(campaign)
    if warmup.get("enabled") and not warmup.get("salt"):
        reasons.append(
            "client.overrides: settings.warmup sends performance samples unsalted, which the rules"
            " forbid; set its salt: true"
        )
    pilot = campaign.run.pilot.dataset
    if pilot is not None and pilot == campaign.datasets.performance.path:
        reasons.append(
            f"run.pilot.dataset: {pilot} is the performance dataset, which is forbidden outside"
            " the timed phase unless salted, and the client salts only warm-ups; name another file"
        )
    return reasons + _offline_errors(campaign, rows)


def _warmup(campaign: Campaign) -> dict[str, Any]:
    """The client's warm-up settings, where the user changes them."""
    settings = campaign.client.overrides.get("settings")
    warmup = settings.get("warmup") if isinstance(settings, dict) else None
    return warmup if isinstance(warmup, dict) else {}


def _list_errors(campaign: Campaign, levels: Sequence[int]) -> list[str]:
    curve = campaign.curve
    reasons = []
    twice = [level for level, count in Counter(levels).items() if count > 1]
    if twice:
        reasons.append(
            f"curve.levels: {', '.join(map(str, sorted(twice)))} listed more than once;"
            " each level is one point"
        )
    distinct = set(levels)
    extra = 1 if campaign.offline == "dedicated" else 0
    if len(distinct) < MIN_LEVELS:
        reasons.append(
            f"curve.levels: {len(distinct)} levels, at least {MIN_LEVELS} are needed (§5.3,"
            " point-count)"
        )
    if len(distinct) + extra > MAX_POINTS:
        reasons.append(
            f"curve.levels: {len(distinct) + extra} points, at most {MAX_POINTS} are allowed (§5.3,"
            " point-cap)"
        )
    if distinct and curve.c_min is not None and min(distinct) != curve.c_min:
        reasons.append(
            f"curve.c_min: {curve.c_min} is not the lowest of curve.levels ({min(distinct)})"
        )
    if curve.c_min_override is not None and curve.c_min_override not in distinct:
        reasons.append(
            f"curve.c_min_override: no point has level {curve.c_min_override} (§5.4,"
            " c-min-override); add it to curve.levels"
        )
    if campaign.offline == "elected" and curve.c_max not in distinct:
        reasons.append(
            f"curve.offline: elected needs a point at exactly c_max ({curve.c_max}) (§5.7,"
            f" offline-point-present); add {curve.c_max} to curve.levels"
        )
    return reasons


def _offline_errors(campaign: Campaign, rows: int | None) -> list[str]:
    offline, c_max = campaign.offline, campaign.curve.c_max
    if campaign.agentic and offline != "none":
        return [
            f"curve.offline: {offline}, but an agentic curve may have no Offline point (§5.7,"
            " offline-point-present)"
        ]
    if offline == "none" and not campaign.agentic and campaign.benchmark != CUSTOM:
        return [
            "curve.offline: none, but the official checker rejects a single-turn curve without"
            " an Offline point (§5.7, offline-point-present); use elected or dedicated"
        ]
    if offline != "dedicated":
        return []
    if rows is None:
        return [
            "curve.offline: dedicated runs at a concurrency equal to the dataset's rows, which"
            " are not known; set datasets.performance.rows or provide the file"
        ]
    if rows < c_max:
        return [
            f"curve.offline: dedicated needs a dataset of at least c_max = {c_max} rows (§5.7.2),"
            f" this one has {rows}; elect the c_max point instead"
        ]
    levels = campaign.curve.levels
    if rows in (levels if isinstance(levels, tuple) else (c_max,)):
        return [
            f"curve.offline: the dedicated run's concurrency is the dataset's rows, {rows}, and a"
            " point has that level too; the official builder refuses such duplicates"
        ]
    return []


# --- Levels ------------------------------------------------------------------------------------


def _levels(campaign: Campaign) -> list[int]:
    """Levels in ascending (auto) or listed order."""
    levels = campaign.curve.levels
    return list(levels) if isinstance(levels, tuple) else _auto_levels(campaign)


def _auto_levels(campaign: Campaign) -> list[int]:
    """The minimum plus the spares, even in log2 inside each region, ending exactly at C_max."""
    curve = campaign.curve
    lowest = curve.c_min or 1
    count = MIN_LEVELS + curve.spares
    if count + (campaign.offline == "dedicated") > MAX_POINTS:
        raise InputError(f"curve.spares: {curve.spares} exceed the cap of {MAX_POINTS} points")
    levels = _spread(lowest, count, _regions(campaign, curve.c_min_override or lowest))
    if len(levels) < count:
        raise InputError(
            f"curve: only {len(levels)} levels exist from {lowest} to {curve.c_max},"
            f" {count} are wanted; lower curve.c_min or curve.spares"
        )
    return levels


def _spread(lowest: int, count: int, regions: Regions) -> list[int]:
    """`count` levels: the lowest, and the rest shared by Low, Medium and High, High first."""
    bands = [regions.high_concurrency, regions.low_concurrency, regions.med_concurrency]
    levels = {lowest, regions.low_latency.end}  # an override needs a point of its own
    if lowest < regions.low_latency.end:  # and leaves levels inside Ultra Low
        bands.append(RegionBounds(lowest + 1, regions.low_latency.end - 1))
    room = [max(0, band.end - band.start + 1) for band in bands]
    share = [0] * len(bands)
    left = count - len(levels)
    while left and share != room:
        for index in range(len(bands)):
            if left and share[index] < room[index]:
                share[index] += 1
                left -= 1
    for band, number in zip(bands, share, strict=True):
        levels |= _even(band, number, to_end=band is regions.high_concurrency)
    return sorted(levels)


def _even(band: RegionBounds, count: int, *, to_end: bool) -> set[int]:
    """`count` distinct levels of a band, even in log2; the last is its end if `to_end`."""
    offset = 1.0 if to_end else 0.5
    ratio = math.log2(band.end / band.start) if count else 0.0
    levels: list[int] = []
    for index in range(count):
        ideal = round(band.start * 2 ** (ratio * (index + offset) / count))
        after = levels[-1] + 1 if levels else band.start
        levels.append(min(max(ideal, after), band.end - (count - 1 - index)))
    return set(levels)


def _spares(
    campaign: Campaign, levels: list[int], accuracy: dict[int, str], regions: Regions
) -> frozenset[int]:
    """Which levels of an automatic curve it can lose without losing a boundary or a band."""
    spares: set[int] = set()
    fixed = {min(levels), campaign.curve.c_max, *accuracy}
    for level in sorted(set(levels) - fixed, reverse=True):
        rest = [other for other in levels if other != level and other not in spares]
        if len(rest) >= MIN_LEVELS and not uncovered_bands(rest, regions):
            spares.add(level)
    return frozenset(spares) if campaign.curve.levels == "auto" else frozenset()


# --- Boundaries and legality -------------------------------------------------------------------


def _c_min(campaign: Campaign, levels: Sequence[int], rows: int | None) -> int:
    """C_min: the override, or the lowest of all points, clamped to 32 (§5.4)."""
    if campaign.curve.c_min_override is not None:
        return campaign.curve.c_min_override
    dedicated = [rows] if campaign.offline == "dedicated" and rows else []
    return min(*levels, *dedicated, 32)


def _regions(campaign: Campaign, c_min: int) -> Regions:
    return compute_regions(
        campaign.curve.c_max, c_min, c_min_overridden=campaign.curve.c_min_override is not None
    )


def _curve_errors(campaign: Campaign, levels: Sequence[int], regions: Regions) -> list[str]:
    """Reasons that follow from the boundaries."""
    c_max = campaign.curve.c_max
    empty = [
        band_name(band)
        for band in MANDATORY_BANDS
        if band_bounds(band, regions).end < band_bounds(band, regions).start
    ]
    if empty:
        return [
            f"curve: with c_max {c_max} and C_min {regions.low_latency.end} the"
            f" {' and '.join(empty)} region is empty, so no curve can cover it;"
            " raise c_max or measure a lower level"
        ]
    reasons = []
    above = [level for level in levels if classify_concurrency(level, regions) is None]
    if above:
        reasons.append(
            f"curve.levels: {', '.join(map(str, above))} above the margin, which ends at"
            f" {regions.margin.end} (10 % over c_max {c_max}) (§5.4, concurrency-in-range)"
        )
    for band in uncovered_bands(levels, regions):
        bounds = band_bounds(band, regions)
        reasons.append(
            f"curve.levels: no point in the {band_name(band)} region, {bounds.start}–{bounds.end}"
            f" (§5.4, {band.replace('_', '-')}-coverage); add one"
        )
    return reasons


def _warnings(
    campaign: Campaign, levels: Sequence[int], seed_set: SeedSet, rows: int | None
) -> list[str]:
    warnings = []
    above = [label_of(level) for level in levels if rows is not None and level > rows]
    if above:
        warnings.append(
            f"the performance dataset has {rows} rows, fewer than the concurrency of"
            f" {', '.join(above)}: samples are in flight twice there, and one pass does not fill"
            " the streams"
        )
    if campaign.curve.c_max not in levels:
        warnings.append(
            f"no point at exactly c_max ({campaign.curve.c_max}); a curve usually has one"
        )
    if not campaign.datasets.accuracy:
        warnings.append("no accuracy dataset: the curve can't be submitted")
    if len(levels) == MIN_LEVELS:
        warnings.append("no spare: a point withdrawn in review can't be replaced")
    if not seed_set.cohorts:
        warnings.append("the seed registry names no cohorts: adoption can't be checked")
    if _warmup(campaign).get("enabled") and not _warmup(campaign).get("drain"):
        warnings.append("the warm-up is not drained and overlaps the timed phase; set drain: true")
    if campaign.offline == "none" and not campaign.agentic:
        warnings.append("no Offline point: the official checker wants one on single-turn curves")
    return warnings


# --- Accuracy placement ------------------------------------------------------------------------


def _accuracy_levels(campaign: Campaign, levels: Sequence[int], regions: Regions) -> dict[int, str]:
    """Level → the band its accuracy fills: exactly one per band, the cheapest legal choice (§5.3).

    An elected C_max point always carries one: it is the Offline result too. Otherwise higher
    levels are preferred, because the same samples take less time there.
    """
    if not campaign.datasets.accuracy:
        return {}
    elected = campaign.curve.c_max if campaign.offline == "elected" else None
    options = []
    for band in MANDATORY_BANDS:
        fitting = sorted((x for x in levels if band in accuracy_bands(x, regions)), reverse=True)
        options.append([elected] if band == "high_concurrency" and elected else fitting)
    choices = (
        chosen
        for chosen in product(*(fitting[:_CANDIDATES] for fitting in options))
        if len(set(chosen)) == len(chosen)
    )
    # A choice exists: C_min fills only Ultra Low, and the other three bands are disjoint.
    best = min(choices, key=lambda chosen: sum(1 / level for level in chosen))
    return _as_matched(best, elected, regions)


def _as_matched(chosen: Sequence[int], elected: int | None, regions: Regions) -> dict[int, str]:
    """The chosen levels with their bands as the official matching assigns them."""
    candidates = [(x, accuracy_bands(x, regions), x == elected) for x in sorted(chosen)]
    owners = match_accuracy_bands(sorted(candidates, key=lambda item: item[2]))
    return {level: band for band, level in owners.items()}


# --- Points ------------------------------------------------------------------------------------


def _point(
    campaign: Campaign,
    level: int,
    regions: Regions,
    accuracy: dict[int, str],
    spare: bool,
    rows: int | None,
) -> Point:
    region = classify_concurrency(level, regions)
    assert region is not None, "levels above the margin were refused"
    band = accuracy.get(level)
    role = Role.MANDATORY if band else Role.SPARE if spare else Role.CHOICE
    elected = campaign.offline == "elected" and level == campaign.curve.c_max
    duration = _scaled(campaign, min_duration_ms(region, level, agentic=campaign.agentic))
    return Point(
        label=label_of(level),
        concurrency=level,
        region=region,
        role=role,
        band=band,
        accuracy=band is not None,
        load_pattern=AGENTIC if campaign.agentic else CONCURRENCY,
        offline="elected" if elected else None,
        min_duration_ms=duration,
        purpose=_purpose(campaign, level, role, band, region),
        sizing=point_sizing(campaign, level, region, duration, rows, {}),
    )


def _dedicated(campaign: Campaign, regions: Regions, rows: int | None) -> Point:
    """The dedicated Offline run; beyond the margin it has no minimum (checker `point_result`)."""
    assert rows is not None, "a dedicated Offline run without rows was refused"
    region = classify_concurrency(rows, regions) or SUBMITTERS_CHOICE
    duration = _scaled(campaign, min_duration_ms(region, rows, agentic=campaign.agentic))
    return Point(
        label=OFFLINE_LABEL,
        concurrency=rows,
        region=SUBMITTERS_CHOICE,
        role=Role.OFFLINE,
        band=None,
        accuracy=bool(campaign.datasets.accuracy),
        load_pattern=MAX_THROUGHPUT,
        offline="dedicated",
        min_duration_ms=duration,
        purpose="dedicated Offline result, with its own accuracy result",
        sizing=point_sizing(campaign, rows, SUBMITTERS_CHOICE, duration, rows, {}),
    )


def _scaled(campaign: Campaign, duration_ms: int) -> int:
    if campaign.rehearsal is None:
        return duration_ms
    return max(1, round(duration_ms * campaign.rehearsal.time_scale))


def point_sizing(
    campaign: Campaign,
    level: int,
    region: str,
    duration_ms: int,
    rows: int | None,
    measured: Mapping[int, Rate],
) -> Sizing:
    """How many samples a level issues, from the best rate known.

    Args:
        campaign: The campaign.
        level: Target concurrency.
        region: Official name of the level's region.
        duration_ms: Minimum issue time, scaled in a rehearsal.
        rows: Rows of the performance dataset, if known.
        measured: Level → measured rate.
    """
    target = _target(campaign, level, region, duration_ms, rows)
    return size(rate_for(level, measured, campaign.run.expected_qps), target)


def target_of(campaign: Campaign, point: Point, rows: int | None) -> Target:
    """What a point's size must reach."""
    return _target(campaign, point.concurrency, point.region, point.min_duration_ms, rows)


def rate_shown(
    point: Point, *, planned: int, issued: int, issue_span_s: float | None, qps: float | None
) -> float | None:
    """The rate that a run of a point shows, in the unit that its size is counted in.

    Args:
        point: The point.
        planned: Samples planned; of an agentic point: conversations.
        issued: Requests issued.
        issue_span_s: First to last issue; None: not known.
        qps: Completions per second over the whole run.
    """
    if point.load_pattern == MAX_THROUGHPUT:  # all are issued at once
        return qps
    if issue_span_s is None:
        return None
    if point.load_pattern == AGENTIC:  # conversations are planned, and their requests issued
        return planned / issue_span_s if issue_span_s > 0 else None
    return issue_rate(issued, point.concurrency, issue_span_s, qps or 0.0)


def _target(
    campaign: Campaign, level: int, region: str, duration_ms: int, rows: int | None
) -> Target:
    run = campaign.run
    scale = campaign.rehearsal.time_scale if campaign.rehearsal else 1.0
    is_burst = region == SUBMITTERS_CHOICE  # a dedicated Offline run issues all at once
    return Target(
        level=0 if is_burst or campaign.agentic else level,
        rows=rows,
        min_duration_ms=duration_ms,
        margin=run.duration_margin,
        min_passes=run.min_passes,
        basis=Basis.MINIMUM if is_burst else _basis(campaign, region),
        max_point_s=run.max_point_hours * 3600 * scale,
    )


def _basis(campaign: Campaign, region: str) -> Basis | None:
    """The basis that the user wants for a region; None: what fits."""
    wanted = campaign.run.basis
    if isinstance(wanted, dict):
        return next(
            (Basis(basis) for name, basis in wanted.items() if name == _SHORT[region]), None
        )
    return None if wanted is None else Basis(wanted)


def resized(campaign: Campaign, plan: Plan, measured: Mapping[int, Rate]) -> Plan:
    """The plan with every point sized by the rates measured meanwhile."""
    points = (
        replace(
            point,
            sizing=point_sizing(
                campaign,
                point.concurrency,
                point.region,
                point.min_duration_ms,
                plan.dataset_rows,
                measured,
            ),
        )
        for point in plan.points
    )
    return replace(plan, points=tuple(points))


def _purpose(campaign: Campaign, level: int, role: Role, band: str | None, region: str) -> str:
    parts = []
    if level == campaign.curve.c_max:
        parts.append("declared C_max")
        if campaign.offline == "elected":
            parts.append("elected Offline result")
    if band:
        parts.append(f"mandatory {band_name(band)} point with its accuracy result")
    elif role is Role.SPARE:
        parts.append(f"spare in {band_name(region)}")
    elif region == "margin":
        parts.append("beyond C_max; covers no region")
    else:
        parts.append(f"submitter's choice in {band_name(region)}")
    return ", ".join(parts)


def _ordered(campaign: Campaign, points: list[Point]) -> list[Point]:
    """Points in run order; a spare and what depends on nothing comes last."""
    if campaign.run.order == "listed":
        return points
    if campaign.run.order != "boundaries-first":
        return sorted(
            points, key=lambda p: p.concurrency, reverse=campaign.run.order == "descending"
        )
    lowest = min(point.concurrency for point in points)

    def rank(point: Point) -> tuple[int, int]:
        if point.concurrency == campaign.curve.c_max:
            return (0, 0)
        if point.concurrency == lowest:
            return (1, 0)
        by_role = {Role.MANDATORY: 2, Role.OFFLINE: 3, Role.CHOICE: 4, Role.SPARE: 5}
        return (by_role[point.role], -point.concurrency)

    return sorted(points, key=rank)


def _listed(reasons: list[str]) -> str:
    return "this curve can't be legal:\n" + "\n".join(f"  - {reason}" for reason in reasons)


def as_plain(plan: Plan) -> dict[str, Any]:
    """The plan as plain values with the version of their form; its seeds are named by their set.

    The seeds themselves exceed what a JSON reader keeps exact.
    """
    return {"version": PLAN_VERSION, **asdict(plan), "seed_set": plan.seed_set.id}
