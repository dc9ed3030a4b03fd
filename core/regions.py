"""Regions, minimum durations and accuracy bands of a curve (§5.3–5.5, §6.2).

The only importer of the official region functions; nothing of the rules is computed here.
"""

from __future__ import annotations

from collections.abc import Iterable

from submission_checker.messages import Invalid
from submission_checker.models.aggregate.context import accuracy_bands, match_accuracy_bands
from submission_checker.models.regions import (
    REGION_NAMES,
    SUBMITTERS_CHOICE,
    ULTRA_LOW_CONCURRENCY_MAX,
    RegionBounds,
    Regions,
    classify_concurrency,
    covered_region,
    min_duration_ms,
)
from submission_checker.models.regions import compute_regions as _official_regions

from core.errors import InputError

__all__ = [
    "MANDATORY_BANDS",
    "REGION_NAMES",
    "SUBMITTERS_CHOICE",
    "ULTRA_LOW_CONCURRENCY_MAX",
    "RegionBounds",
    "Regions",
    "accuracy_bands",
    "band_bounds",
    "band_name",
    "classify_concurrency",
    "compute_regions",
    "covered_region",
    "match_accuracy_bands",
    "min_duration_ms",
    "uncovered_bands",
]

#: The four bands that need a point and an accuracy result each (§5.3), lowest first, with the
#: names that submitters read.
MANDATORY_BANDS = {
    "ultra_low_concurrency": "Ultra Low",
    "low_concurrency": "Low",
    "med_concurrency": "Medium",
    "high_concurrency": "High",
}


def compute_regions(c_max: int, c_min: int, *, c_min_overridden: bool = False) -> Regions:
    """Region boundaries by the official function, with its refusals as `InputError` (§5.5).

    The official function checks no types; callers pass validated integers.
    """
    try:
        return _official_regions(c_max, c_min, c_min_overridden=c_min_overridden)
    except Invalid as refusal:
        raise InputError(str(refusal)) from None
    except OverflowError:
        raise InputError(f"c_max {c_max} is too large for the region formula") from None


def band_bounds(band: str, regions: Regions) -> RegionBounds:
    """Inclusive level range of a mandatory band."""
    bounds: RegionBounds = getattr(regions, band)
    return bounds


def uncovered_bands(levels: Iterable[int], regions: Regions) -> list[str]:
    """Mandatory bands without any of the levels: each needs at least one point (§5.4)."""
    filled = {band for level in levels for band in accuracy_bands(level, regions)}
    return [band for band in MANDATORY_BANDS if band not in filled]


def band_name(band: str | None) -> str:
    """A band or region as submitters read it."""
    names = MANDATORY_BANDS | {"low_latency": "Ultra Low", "margin": "margin"}
    return names.get(band or "", "–")
