"""What makes a curve illegal, and what a user should know of a legal one (§5.3–5.7)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from core.campaign import CUSTOM, Campaign
from core.regions import (
    MANDATORY_BANDS,
    Regions,
    band_bounds,
    band_name,
    classify_concurrency,
    uncovered_bands,
)
from core.seeds import SeedSet

#: Fewest fixed-concurrency points of a curve (§5.3: 1 + 3 + 3); a dedicated Offline run is extra.
MIN_LEVELS = 7
#: Most points of a curve, a dedicated Offline run included (§5.3; checker `_MAX_POINTS`).
MAX_POINTS = 32


def label_of(level: int) -> str:
    """Label of a fixed-concurrency point."""
    return f"c{level:04d}"


def statement_errors(campaign: Campaign, rows: int | None) -> list[str]:
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


def curve_errors(campaign: Campaign, levels: Sequence[int], regions: Regions) -> list[str]:
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


def warnings_of(
    campaign: Campaign, levels: Sequence[int], seed_set: SeedSet, rows: int | None
) -> list[str]:
    """What is legal and yet worth knowing."""
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


def listed(reasons: list[str]) -> str:
    """All reasons against a curve as one message."""
    return "this curve can't be legal:\n" + "\n".join(f"  - {reason}" for reason in reasons)
