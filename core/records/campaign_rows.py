"""From a plan to the rows of its campaign and points, and what a new plan changes in them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.orm import Session

from core.plan import Plan, Point, as_plain
from core.records.tables import CampaignRow, PointRow, SeedSetRow, storable
from core.records.transactions import as_json
from core.seeds import SeedSet

#: What of a planned point its measurements depend on.
_MEASURED_BY = (
    "concurrency",
    "region",
    "accuracy",
    "load_pattern",
    "min_duration_ms",
)


def new_campaign(plan: Plan, text: str, source: Path, runs_folder: Path, now: float) -> CampaignRow:
    """The row of a campaign that is new; what it states and whose it is is not in it yet."""
    return CampaignRow(
        name=plan.campaign,
        text=text,
        text_sha256=sha256_of(text),
        source=str(source),
        runs_folder=str(runs_folder),
        created_at=now,
        rehearsal=plan.time_scale is not None,
        time_scale=plan.time_scale,
        plan=as_json(as_plain(plan)),
        c_max=plan.c_max,
        c_min=plan.c_min,
        baseline=1,
    )


def seed_set_row(session: Session, seed_set: SeedSet) -> SeedSetRow:
    """The row of these very seeds."""
    columns = {
        "name": seed_set.id,
        "scheduler_rng_seed": seed_set.scheduler_rng_seed,
        "sample_index_rng_seed": seed_set.sample_index_rng_seed,
        "model_seed": seed_set.model_seed,
        "cohorts": ",".join(seed_set.cohorts),
    }
    return session.scalar(select(SeedSetRow).filter_by(**columns)) or SeedSetRow(**columns)


def add_points(session: Session, campaign: CampaignRow, points: Sequence[Point]) -> None:
    """Add the points of a new campaign, in their order."""
    session.add_all(_new_point(campaign.id, index, point) for index, point in enumerate(points))


def update_points(session: Session, campaign: CampaignRow, points: Sequence[Point]) -> None:
    """Take order and roles of a new plan, and points that it adds."""
    rows = _point_rows(session, campaign)
    for position, point in enumerate(points):
        row = rows.get(point.label)
        if row is None:
            session.add(_new_point(campaign.id, position, point))
        else:
            row.position, row.role = position, point.role


def plan_differences(session: Session, campaign: CampaignRow, plan: Plan) -> list[str]:
    """Where the plan would measure otherwise than the one on record."""
    pairs: list[tuple[str, object, object]] = [
        ("c_max", campaign.c_max, plan.c_max),
        ("c_min", campaign.c_min, plan.c_min),
        ("rehearsal.time_scale", campaign.time_scale, plan.time_scale),
        ("seed set", _seeds(campaign.seed_set), _seeds(plan.seed_set)),
    ]
    planned = {point.label: point for point in plan.points}
    for label, row in _point_rows(session, campaign).items():
        point = planned.get(label)
        for name in _MEASURED_BY:
            new = getattr(point, name, "no such point")
            pairs.append((f"point {label}, {name}", getattr(row, name), new))
    return [f"{what}: {old} → {new}" for what, old, new in pairs if old != new]


def changed_campaign(name: str, altering: Sequence[str]) -> str:
    """Why a campaign of that name can't be joined."""
    changes = "\n".join(f"  {change}" for change in altering)
    return (
        f"campaign {name!r} is on record with another text, and these changes could alter a"
        f" measurement:\n{changes}\nUndo them, or give the changed file another name in `campaign:`"
    )


def sha256_of(text: str) -> str:
    """Digest of a campaign's text as it is stored."""
    return hashlib.sha256(storable(text).encode()).hexdigest()


def _new_point(campaign_id: int, position: int, point: Point) -> PointRow:
    return PointRow(
        campaign_id=campaign_id,
        label=point.label,
        position=position,
        role=point.role,
        **{name: getattr(point, name) for name in _MEASURED_BY},
    )


def _point_rows(session: Session, campaign: CampaignRow) -> dict[str, PointRow]:
    rows = session.scalars(select(PointRow).where(PointRow.campaign_id == campaign.id))
    return {row.label: row for row in rows}


def _seeds(source: SeedSet | SeedSetRow) -> tuple[int, int, int]:
    return source.scheduler_rng_seed, source.sample_index_rng_seed, source.model_seed
