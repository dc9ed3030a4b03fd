"""The curve (§4): a row per valid point with the official quantities, steps and frontier.

Nothing is interpolated: between two points the curve has the throughput of the faster-answering
one. The official quantities have the checker's names and arithmetic.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pandas as pd

from core.errors import InputError
from core.overview import MS_PER_S, system_tps, valid_attempt
from core.plan import AGENTIC, Role
from core.records.values import AttemptRecord, CampaignRecord, PointRecord
from core.regions import REGION_NAMES
from core.steady_state import basis_of, coverage_of_events

#: Columns of a curve and their types; the order is that of the exported files.
COLUMNS: dict[str, str] = {
    "campaign": "str",
    "rehearsal": "bool",
    "label": "str",
    "concurrency": "int64",
    "region": "str",
    "role": "str",
    "load_pattern": "str",
    "system_tps": "float64",
    "tps_per_user": "float64",  # 1000 / TPOT P90 in ms
    "e2e_avg_interactivity": "float64",  # tokens/s, all answers
    "interactivity": "float64",  # the curve's abscissa: the former, of agentic points the latter
    "ttft_p90_ms": "float64",
    "tpot_p90_ms": "float64",
    "tps_utilization": "float64",  # system_tps over the curve's highest
    "system_tps_per_kw": "float64",
    "standing": "str",
    "basis": "str",
    "basis_why": "str",
    "coverage": "str",
    "steady_state_status": "str",
    "steady_state_verdict": "str",
    "samples": "Int64",
    "duration_s": "float64",
    "issue_time_s": "float64",
    "accuracy": "bool",
    "scores": "str",  # JSON: dataset → metric → value; empty: none
    "attempt": "int64",
    "client_version": "str",
    "folder": "str",
}
#: Standing of a point: no other has both quantities at least as high, but for those with the very
#: same two (tied); another has (dominated); it has no interactivity (a dedicated Offline run).
FRONTIER, TIED, DOMINATED, OFFLINE = "frontier", "tied", "dominated", "offline"
#: Decimal places of `system_tps_per_kw` (§4.5.2).
_PER_KW_DECIMALS = 1

#: Loss of throughput from one level to the next that is no noise, as a share. Our choice.
FALL = 0.02
#: Levels apart by this factor, with TTFT P90 apart by less than that share: nobody queued. Ours.
FLAT_LEVELS, FLAT_TTFT = 8, 0.05
#: Spread of a score over its mean from which on it drifts, with at least so many results. Ours.
SCORE_SPREAD, SCORES_NEEDED = 0.02, 3


@dataclass(frozen=True)
class Curve:
    """The valid points of a campaign's present baseline, and what is to be said of them."""

    name: str
    rehearsal: bool
    agentic: bool
    frame: pd.DataFrame
    offline_tps: float | None  # throughput of the Offline result; None: there is none yet
    notes: tuple[str, ...] = field(default=())

    @property
    def points(self) -> pd.DataFrame:
        """The rows that have a place on the curve, by rising interactivity."""
        placed = self.frame[self.frame["interactivity"].notna()]
        return placed.sort_values(["interactivity", "system_tps"])


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
    rows = [
        _row(campaign, point, attempt, windows or {}, power_kw or {})
        for point in sorted(points, key=lambda point: (point.concurrency, point.label))
        if (attempt := valid_attempt(point)) is not None
    ]
    frame = _with_shares(pd.DataFrame(rows, columns=list(COLUMNS)).astype(COLUMNS))
    return Curve(
        name=campaign.name,
        rehearsal=campaign.rehearsal,
        agentic=any(point.load_pattern == AGENTIC for point in points),
        frame=frame,
        offline_tps=_offline_tps(campaign, frame),
        notes=tuple(plausibility_notes(frame)),
    )


def standings(frame: pd.DataFrame) -> list[str]:
    """The standing of each row."""
    places = list(zip(frame["interactivity"], frame["system_tps"], strict=True))
    return [_standing(place, places) for place in places]


def steps(frame: pd.DataFrame) -> pd.DataFrame:
    """The step function's corners, by rising interactivity.

    Up to and with the interactivity of a corner, from that of the corner before it, the system
    delivers the corner's throughput. Beyond the last one there is nothing.
    """
    best = frame[frame["standing"].isin((FRONTIER, TIED))]
    corners = best[["interactivity", "system_tps"]].drop_duplicates()
    return corners.sort_values("interactivity").reset_index(drop=True)


def throughput_at(corners: pd.DataFrame, interactivity: float) -> float | None:
    """What the step function has at an interactivity; None: no point answers that fast."""
    reached = corners[corners["interactivity"] >= interactivity]
    return None if reached.empty else float(reached["system_tps"].iloc[0])


def best_by_region(curve: Curve) -> pd.DataFrame:
    """Highest throughput and highest interactivity in each region; NaN where it has no point."""
    best = curve.points.groupby("region")[["system_tps", "interactivity"]].max()
    return best.reindex(list(REGION_NAMES))


def export(curve: Curve, suffix: str) -> bytes:
    """The table as a file's content.

    Args:
        curve: The curve.
        suffix: .csv, .parquet or .json.

    Raises:
        InputError: there is no such form.
    """
    form = _FORMS.get(suffix)
    if form is None:
        raise InputError(f"{suffix or 'no suffix'}: a curve is written as {', '.join(_FORMS)}")
    return form(curve)


def plausibility_notes(frame: pd.DataFrame) -> Iterator[str]:
    """What a reviewer would ask about."""
    levels = frame[frame["role"] != Role.OFFLINE]
    yield from _falls(levels)
    yield from _flat_ttft(levels)
    yield from _drifting_scores(frame)


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


def _with_shares(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with what follows from all rows together."""
    highest = frame["system_tps"].max()
    return frame.assign(
        tps_utilization=frame["system_tps"] / highest,
        standing=pd.Series(standings(frame), index=frame.index, dtype="str"),
    )


def _standing(place: tuple[float, float], places: Sequence[tuple[float, float]]) -> str:
    if any(pd.isna(value) for value in place):
        return OFFLINE
    others = [other for other in places if not any(pd.isna(value) for value in other)]
    if any(x >= place[0] and y >= place[1] and (x, y) != place for x, y in others):
        return DOMINATED
    return TIED if others.count(place) > 1 else FRONTIER


def _passes(campaign: CampaignRecord, attempt: AttemptRecord) -> float | None:
    """Passes issued; of conversations, which issue once a turn, the planned ones."""
    if attempt.planned_passes is not None:
        return attempt.planned_passes
    rows, issued = campaign.plan.get("dataset_rows"), attempt.metrics.get("issued")
    return issued / rows if rows and issued is not None else None


def _offline_tps(campaign: CampaignRecord, frame: pd.DataFrame) -> float | None:
    """Throughput of the dedicated Offline run, else of the point elected for it (§5.7)."""
    dedicated = frame[frame["role"] == Role.OFFLINE]["system_tps"]
    if not dedicated.empty:
        return float(dedicated.iloc[0])
    planned = campaign.plan.get("points", ())
    elected = [p.get("label") for p in planned if p.get("offline") == "elected"]
    found = frame[frame["label"].isin(elected)]["system_tps"]
    return None if found.empty else float(found.iloc[0])


# --- Plausibility ----------------------------------------------------------------------------


def _falls(levels: pd.DataFrame) -> Iterator[str]:
    """Throughput that falls from one level to the next though it rises again later."""
    by_level = list(zip(levels["label"], levels["system_tps"], strict=True))
    for index, ((low, before), (high, after)) in enumerate(pairwise(by_level)):
        later = [tps for _, tps in by_level[index + 2 :]]
        if after < before * (1 - FALL) and any(tps > before for tps in later):
            yield (
                f"{high}: {after:,.1f} tokens/s, less than the {before:,.1f} of {low}, and higher"
                " levels have more: something else may have used the system during that run"
            )


def _flat_ttft(levels: pd.DataFrame) -> Iterator[str]:
    """TTFT that does not rise with the level."""
    known = levels[levels["ttft_p90_ms"] > 0]
    if known.empty:
        return
    low, high = known["concurrency"].min(), known["concurrency"].max()
    lowest, highest = known["ttft_p90_ms"].min(), known["ttft_p90_ms"].max()
    if high >= FLAT_LEVELS * low and highest <= lowest * (1 + FLAT_TTFT):
        yield (
            f"TTFT P90 is {lowest:.1f} to {highest:.1f} ms from level {low} to {high}: suspiciously"
            " flat; does something before the model answer first, or from a cache?"
        )


def _drifting_scores(frame: pd.DataFrame) -> Iterator[str]:
    """Scores that differ between points: the same model answers the same questions."""
    by_metric: dict[tuple[str, str], dict[str, float]] = {}
    for label, text in zip(frame["label"], frame["scores"], strict=True):
        for dataset, metrics in json.loads(text or "{}").items():
            for metric, value in metrics.items():
                by_metric.setdefault((dataset, metric), {})[label] = value
    for (dataset, metric), values in by_metric.items():
        mean = sum(values.values()) / len(values)
        low, high = min(values, key=values.__getitem__), max(values, key=values.__getitem__)
        spread = values[high] - values[low]
        if len(values) >= SCORES_NEEDED and spread > SCORE_SPREAD * abs(mean):
            yield (
                f"{dataset}, {metric}: {values[low]:.4g} at {low}, {values[high]:.4g} at {high};"
                " the same model should answer alike at every level"
            )


# --- Files -----------------------------------------------------------------------------------


def _csv(curve: Curve) -> bytes:
    return curve.frame.to_csv(index=False).encode()


def _parquet(curve: Curve) -> bytes:
    file = io.BytesIO()
    curve.frame.to_parquet(file, index=False)
    return file.getvalue()


def _json(curve: Curve) -> bytes:
    rows = json.loads(curve.frame.to_json(orient="records"))
    corners = json.loads(steps(curve.frame).to_json(orient="records"))
    for row in rows:
        row["scores"] = json.loads(row["scores"] or "{}")
    document = {
        "version": 1,
        "campaign": curve.name,
        "rehearsal": curve.rehearsal,
        "offline_tps": curve.offline_tps,
        "points": rows,
        "steps": corners,
        "notes": list(curve.notes),
    }
    return json.dumps(document, indent=2).encode() + b"\n"


_FORMS: dict[str, Callable[[Curve], bytes]] = {".csv": _csv, ".parquet": _parquet, ".json": _json}
