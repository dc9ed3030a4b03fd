"""The records of a campaign as rows that people and programs read: one per point, plain values.

The official quantities are named as the checker names them (`system_tps`, `tps_per_user`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.plan import Role
from core.records.tables import Wish
from core.records.values import AttemptRecord, CampaignRecord, PointRecord
from core.status import AttemptState, PointState

#: Least system throughput of a dedicated Offline run over that of the C_max point (§5.7.2; checker
#: `_OFFLINE_TPS_MARGIN`).
OFFLINE_MARGIN = 0.98
#: Milliseconds in a second.
MS_PER_S = 1000


@dataclass(frozen=True)
class PointRow:
    """One point of a curve as it stands."""

    label: str
    concurrency: int
    region: str
    role: str
    accuracy_planned: bool
    state: PointState
    attempts: int
    samples: int | None
    issue_time_s: float | None
    system_tps: float | None
    tps_per_user: float | None  # 1000 / TPOT P90 in ms
    ttft_p90_ms: float | None
    qps: float | None
    scores: Mapping[str, Mapping[str, float]]  # dataset → metric → value
    reason: str | None  # why the last attempt is not valid
    folder: str | None  # of the attempt shown, relative to the runs folder


def point_rows(points: Sequence[PointRecord]) -> list[PointRow]:
    """One row per point, by level; numbers are those of the valid attempt, else none."""
    return [_row(point) for point in sorted(points, key=lambda point: point.concurrency)]


def offline_ratio(rows: Sequence[PointRow], c_max: int) -> float | None:
    """System throughput of the dedicated Offline run over the C_max point's; None until both are.

    Args:
        rows: The points.
        c_max: The declared maximum concurrency.
    """
    offline = next((row.system_tps for row in rows if row.role == Role.OFFLINE), None)
    levels = (row for row in rows if row.role != Role.OFFLINE and row.concurrency == c_max)
    highest = next((row.system_tps for row in levels), None)
    return offline / highest if offline and highest else None


def offline_note(rows: Sequence[PointRow], c_max: int) -> str | None:
    """The Offline run against the C_max point in one line; None until both are valid."""
    ratio = offline_ratio(rows, c_max)
    if ratio is None:
        return None
    text = f"offline has {ratio:.3f} × the tokens/s of C_max"
    if ratio >= OFFLINE_MARGIN:
        return f"{text}; at least {OFFLINE_MARGIN} × are needed"
    return (
        f"{text}, but at least {OFFLINE_MARGIN} × are needed (§5.7.2): the curve would be rejected;"
        " look for the reason and measure both again under another campaign name"
    )


def campaign_state(points: Sequence[PointRecord], wish: Wish | None = None) -> str:
    """One word for a campaign: valid, running, paused, or what is missing."""
    return state_word([point.state for point in points], wish)


def state_word(of_points: Sequence[PointState], wish: Wish | None = None) -> str:
    """One word for a campaign whose points are in these states."""
    states = set(of_points)
    if states == {PointState.VALID}:
        return "valid"
    if PointState.RUNNING in states:
        return "running"
    if wish is Wish.PAUSE:
        return "paused"
    if states <= {PointState.PENDING}:
        return "pending"
    return "incomplete"


def as_json(
    campaign: CampaignRecord,
    points: Sequence[PointRecord],
    left: Mapping[str, Any] | None = None,
    unattended: Sequence[str] = (),
) -> dict[str, Any]:
    """The overview as plain JSON values; its form carries a version.

    Args:
        campaign: The campaign.
        points: Its points.
        left: What the points that are not valid still cost; None: nothing, or it isn't known.
        unattended: Labels of the points that are measured without an orchestrator.
    """
    rows = point_rows(points)
    return {
        "version": 1,
        "campaign": campaign.name,
        "rehearsal": campaign.rehearsal,
        "time_scale": campaign.time_scale,
        "state": campaign_state(points, campaign.wish),
        "wish": campaign.wish,
        "unattended": list(unattended),
        "c_max": campaign.c_max,
        "c_min": campaign.c_min,
        "seed_set": campaign.seed_set.id,
        "runs_folder": campaign.runs_folder,
        "points": [{**vars(row), "state": str(row.state)} for row in rows],
        "offline_ratio": offline_ratio(rows, campaign.c_max),
        "left": left,
    }


def valid_attempt(point: PointRecord) -> AttemptRecord | None:
    """The attempt that decides a point."""
    return next((a for a in point.measurements if a.state is AttemptState.VALID), None)


def _row(point: PointRecord) -> PointRow:
    valid = valid_attempt(point)
    last = point.measurements[-1] if point.measurements else None
    shown = valid or last
    metrics = valid.metrics if valid else {}
    tpot_p90_ms = metrics.get("tpot_ms", {}).get("90")
    return PointRow(
        label=point.label,
        concurrency=point.concurrency,
        region=point.region,
        role=point.role,
        accuracy_planned=point.accuracy,
        state=point.state,
        attempts=len(point.measurements),
        samples=metrics.get("issued"),
        issue_time_s=metrics.get("issue_span_s"),
        system_tps=_system_tps(metrics),
        tps_per_user=MS_PER_S / tpot_p90_ms if tpot_p90_ms else None,
        ttft_p90_ms=metrics.get("ttft_ms", {}).get("90"),
        qps=metrics.get("qps"),
        scores=metrics.get("accuracy_scores", {}),
        reason=(last.reason if last else point.skipped) if valid is None else None,
        folder=shown.folder if shown else None,
    )


def _system_tps(metrics: Mapping[str, Any]) -> float | None:
    """Output tokens per second over the whole run (§4.1)."""
    tokens, duration_s = metrics.get("output_tokens"), metrics.get("duration_s")
    return tokens / duration_s if tokens and duration_s else None
