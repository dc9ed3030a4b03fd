"""What the size of a point must reach by the campaign, and the size that follows (§6.2)."""

from __future__ import annotations

from collections.abc import Mapping

from core.campaign import Campaign
from core.regions import SUBMITTERS_CHOICE
from core.sizing import Basis, Rate, Sizing, Target, rate_for, size

#: Official region name → its name in `run.basis`.
_SHORT = {
    "low_latency": "ultra_low",
    "low_concurrency": "low",
    "med_concurrency": "medium",
    "high_concurrency": "high",
    "margin": "margin",
}


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
    rate = rate_for(level, measured, campaign.run.expected_qps)
    return size(rate, target(campaign, level, region, duration_ms, rows))


def target(
    campaign: Campaign, level: int, region: str, duration_ms: int, rows: int | None
) -> Target:
    """What the size of a level must reach."""
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
