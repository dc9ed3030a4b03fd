"""Which levels an automatic curve has, and which levels carry accuracy runs (§5.3, §5.4)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

from core.campaign import Campaign
from core.errors import InputError
from core.legality import MAX_POINTS, MIN_LEVELS
from core.regions import (
    MANDATORY_BANDS,
    RegionBounds,
    Regions,
    accuracy_bands,
    compute_regions,
    match_accuracy_bands,
    uncovered_bands,
)

#: Candidates per band kept in the accuracy choice: each other band can take at most one of them.
_CANDIDATES = len(MANDATORY_BANDS)


def levels_of(campaign: Campaign) -> list[int]:
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
    levels = _spread(lowest, count, regions_of(campaign, curve.c_min_override or lowest))
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


def spares_of(
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


def c_min_of(campaign: Campaign, levels: Sequence[int], rows: int | None) -> int:
    """C_min: the override, or the lowest of all points, clamped to 32 (§5.4)."""
    if campaign.curve.c_min_override is not None:
        return campaign.curve.c_min_override
    dedicated = [rows] if campaign.offline == "dedicated" and rows else []
    return min(*levels, *dedicated, 32)


def regions_of(campaign: Campaign, c_min: int) -> Regions:
    """The regions' boundaries, by the official function."""
    return compute_regions(
        campaign.curve.c_max, c_min, c_min_overridden=campaign.curve.c_min_override is not None
    )


def accuracy_levels(campaign: Campaign, levels: Sequence[int], regions: Regions) -> dict[int, str]:
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
