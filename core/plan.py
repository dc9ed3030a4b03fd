"""Campaign → plan: which points a curve has, what each is for, and in which order (§5.3–5.7).

Touches nothing outside: the row count of the dataset is handed in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

from core.campaign import Campaign
from core.errors import InputError
from core.legality import curve_errors, label_of, listed, statement_errors, warnings_of
from core.levels import accuracy_levels, c_min_of, levels_of, regions_of, spares_of
from core.point_size import point_sizing, target
from core.regions import (
    SUBMITTERS_CHOICE,
    Regions,
    band_name,
    classify_concurrency,
    min_duration_ms,
)
from core.seeds import SeedSet, bound_seed_set
from core.sizing import Rate, Sizing, Target, issue_rate

#: Version of a plan's plain form; raise it when `Plan` or `Point` change.
PLAN_VERSION = 1
#: Load pattern of every fixed-concurrency point, of agentic points, and of a dedicated Offline run.
CONCURRENCY, AGENTIC, MAX_THROUGHPUT = "concurrency", "agentic_inference", "max_throughput"
#: Label of the dedicated Offline point.
OFFLINE_LABEL = "offline"


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
    reasons = statement_errors(campaign, dataset_rows)
    if reasons:
        raise InputError(listed(reasons))
    levels = levels_of(campaign)
    c_min = c_min_of(campaign, levels, dataset_rows)
    regions = regions_of(campaign, c_min)
    reasons = curve_errors(campaign, levels, regions)
    if reasons:
        raise InputError(listed(reasons))
    with_accuracy = accuracy_levels(campaign, levels, regions)
    spares = spares_of(campaign, levels, with_accuracy, regions)
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
        warnings=tuple(warnings_of(campaign, levels, seed_set, dataset_rows)),
        dataset_rows=dataset_rows,
        time_scale=campaign.rehearsal.time_scale if campaign.rehearsal else None,
    )


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


# --- Sizes --------------------------------------------------------------------------------------


def target_of(campaign: Campaign, point: Point, rows: int | None) -> Target:
    """What a point's size must reach."""
    return target(campaign, point.concurrency, point.region, point.min_duration_ms, rows)


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


def as_plain(plan: Plan) -> dict[str, Any]:
    """The plan as plain values with the version of their form; its seeds are named by their set.

    The seeds themselves exceed what a JSON reader keeps exact.
    """
    return {"version": PLAN_VERSION, **asdict(plan), "seed_set": plan.seed_set.id}
