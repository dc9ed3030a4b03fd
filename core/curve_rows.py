"""Makes a campaign's curve of its records (§4): the official quantities of each valid point.

They have the checker's names and arithmetic.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from core.curve import Curve, Row, highest, standings
from core.overview import MS_PER_S, system_tps, valid_attempt
from core.plan import AGENTIC, Role
from core.records.values import AttemptRecord, CampaignRecord, PointRecord
from core.regions import REGION_NAMES, band_name
from core.steady_state import basis_of, coverage_of_events

#: Decimal places of `system_tps_per_kw` (§4.5.2).
_PER_KW_DECIMALS = 1

#: Loss of throughput from one level to the next that is no noise, as a share. Our choice.
FALL = 0.02
#: Levels apart by this factor, with TTFT P90 apart by less than that share: nobody queued. Ours.
FLAT_LEVELS, FLAT_TTFT = 8, 0.05
#: Spread of a score over its mean from which on it drifts, with at least so many results. Ours.
SCORE_SPREAD, SCORES_NEEDED = 0.02, 3


def make_curve(
    campaign: CampaignRecord,
    points: Sequence[PointRecord],
    *,
    windows: Mapping[int, Mapping[str, Any]] | None = None,
    power_kw: Mapping[str, float] | None = None,
) -> Curve:
    """The curve of a campaign.

    Args:
        campaign: The campaign.
        points: Its points with their attempts.
        windows: Attempt id → steady-state block that the client's detector made afterwards.
        power_kw: Label → power of the point in kW, where it is known.
    """
    found = [
        _row(campaign, point, attempt, windows or {}, power_kw or {})
        for point in sorted(points, key=lambda point: (point.concurrency, point.label))
        if (attempt := valid_attempt(point)) is not None
    ]
    rows = _with_shares(found)
    return Curve(
        name=campaign.name,
        rehearsal=campaign.rehearsal,
        agentic=any(point.load_pattern == AGENTIC for point in points),
        rows=rows,
        regions={region: band_name(region) for region in REGION_NAMES},
        offline_tps=_offline_tps(campaign, rows),
        notes=tuple(plausibility_notes(rows)),
    )


def plausibility_notes(rows: Sequence[Row]) -> Iterator[str]:
    """What a reviewer would ask about, of points by level."""
    levels = [row for row in rows if row["role"] != Role.OFFLINE]
    yield from _falls(levels)
    yield from _flat_ttft(levels)
    yield from _drifting_scores(rows)


# --- Rows ------------------------------------------------------------------------------------


def _row(
    campaign: CampaignRecord,
    point: PointRecord,
    attempt: AttemptRecord,
    windows: Mapping[int, Mapping[str, Any]],
    power_kw: Mapping[str, float],
) -> dict[str, Any]:
    metrics = attempt.metrics
    is_offline = point.role == Role.OFFLINE  # latency metrics don't apply to it (§5.7.1)
    tpot_p90_ms = None if is_offline else metrics.get("tpot_ms", {}).get("90")
    tps, kw = system_tps(metrics), power_kw.get(point.label)
    per_user = MS_PER_S / tpot_p90_ms if tpot_p90_ms else None
    e2e = None if is_offline else metrics.get("e2e_avg_interactivity")
    coverage = coverage_of_events(
        passes=_passes(campaign, attempt),
        issue_span_s=metrics.get("issue_span_s"),
        min_duration_ms=point.min_duration_ms,
    )
    basis = basis_of(metrics.get("steady_state"), windows.get(attempt.id), coverage)
    scores = metrics.get("accuracy_scores") or {}
    return {
        "campaign": campaign.name,
        "rehearsal": campaign.rehearsal,
        "label": point.label,
        "concurrency": point.concurrency,
        "region": point.region,
        "role": str(point.role),
        "load_pattern": point.load_pattern,
        "system_tps": tps,
        "tps_per_user": per_user,
        "e2e_avg_interactivity": e2e,
        "interactivity": e2e if point.load_pattern == AGENTIC else per_user,
        "ttft_p90_ms": None if is_offline else metrics.get("ttft_ms", {}).get("90"),
        "tpot_p90_ms": tpot_p90_ms,
        "tps_utilization": None,  # system_tps over the curve's highest: known of all together
        "system_tps_per_kw": round(tps / kw, _PER_KW_DECIMALS) if tps and kw else None,
        "standing": "",
        "basis": basis.name,
        "basis_why": basis.why,
        "coverage": basis.coverage,
        "steady_state_status": basis.status or "",
        "steady_state_verdict": basis.verdict or "",
        "samples": metrics.get("issued"),
        "duration_s": metrics.get("duration_s"),
        "issue_time_s": metrics.get("issue_span_s"),
        "accuracy": point.accuracy,
        "scores": json.dumps(scores, sort_keys=True) if scores else "",
        "attempt": attempt.number,
        "client_version": attempt.client_version or "",
        "folder": attempt.folder,
    }


def _with_shares(rows: Sequence[Row]) -> tuple[Row, ...]:
    """The rows with what follows from all of them together."""
    best = highest(rows, "system_tps")
    places = [(row["interactivity"], row["system_tps"]) for row in rows]
    return tuple(
        {**row, "tps_utilization": _share(row["system_tps"], best), "standing": standing}
        for row, standing in zip(rows, standings(places), strict=True)
    )


def _share(tps: float | None, best: float | None) -> float | None:
    return tps / best if tps is not None and best else None


def _passes(campaign: CampaignRecord, attempt: AttemptRecord) -> float | None:
    """Passes issued; of conversations, which issue once a turn, the planned ones."""
    if attempt.planned_passes is not None:
        return attempt.planned_passes
    rows, issued = campaign.plan.get("dataset_rows"), attempt.metrics.get("issued")
    return issued / rows if rows and issued is not None else None


def _offline_tps(campaign: CampaignRecord, rows: Sequence[Row]) -> float | None:
    """Throughput of the dedicated Offline run, else of the point elected for it (§5.7)."""
    planned = campaign.plan.get("points", ())
    elected = [p.get("label") for p in planned if p.get("offline") == "elected"]
    dedicated = [row["system_tps"] for row in rows if row["role"] == Role.OFFLINE]
    found = dedicated or [row["system_tps"] for row in rows if row["label"] in elected]
    return found[0] if found else None


# --- Plausibility ----------------------------------------------------------------------------


def _falls(levels: Sequence[Row]) -> Iterator[str]:
    """Throughput that falls from one level to the next though it rises again later."""
    by_level = [(row["label"], row["system_tps"]) for row in levels if row["system_tps"]]
    for index, ((low, before), (high, after)) in enumerate(pairwise(by_level)):
        later = [tps for _, tps in by_level[index + 2 :]]
        if after < before * (1 - FALL) and any(tps > before for tps in later):
            yield (
                f"{high}: {after:,.1f} tokens/s, less than the {before:,.1f} of {low}, and higher"
                " levels have more: something else may have used the system during that run"
            )


def _flat_ttft(levels: Sequence[Row]) -> Iterator[str]:
    """TTFT that does not rise with the level."""
    known = [(row["concurrency"], row["ttft_p90_ms"]) for row in levels if row["ttft_p90_ms"]]
    if not known:
        return
    low, high = known[0][0], known[-1][0]
    lowest, most = min(ttft for _, ttft in known), max(ttft for _, ttft in known)
    if high >= FLAT_LEVELS * low and most <= lowest * (1 + FLAT_TTFT):
        yield (
            f"TTFT P90 is {lowest:.1f} to {most:.1f} ms from level {low} to {high}: suspiciously"
            " flat; does something before the model answer first, or from a cache?"
        )


def _drifting_scores(rows: Sequence[Row]) -> Iterator[str]:
    """Scores that differ between points: the same model answers the same questions."""
    by_metric: dict[tuple[str, str], dict[str, float]] = {}
    for row in rows:
        for dataset, metrics in json.loads(row["scores"] or "{}").items():
            for metric, value in metrics.items():
                by_metric.setdefault((dataset, metric), {})[row["label"]] = value
    for (dataset, metric), values in by_metric.items():
        mean = sum(values.values()) / len(values)
        low, high = min(values, key=values.__getitem__), max(values, key=values.__getitem__)
        spread = values[high] - values[low]
        if len(values) >= SCORES_NEEDED and spread > SCORE_SPREAD * abs(mean):
            yield (
                f"{dataset}, {metric}: {values[low]:.4g} at {low}, {values[high]:.4g} at {high};"
                " the same model should answer alike at every level"
            )
