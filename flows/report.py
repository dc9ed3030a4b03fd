"""Puts a campaign's report together: curve, steady state, time spent, looks at the system."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.curve import Curve, make_curve
from core.drift import Difference, differences
from core.errors import InputError, ParetoError, SetupError
from core.estimate import Estimate, Span, estimate, first_costs, scored_samples
from core.layout import AttemptPaths
from core.overview import valid_attempt
from core.records import AttemptRecord, CampaignRecord, PointRecord, Records
from core.report import Comparison, Report, Standing, at_equal, ratios, spending
from core.steady_state import FOUND_EVENT
from flows.costs import costs_left
from flows.drift import drift_overview
from flows.prepare import Prepared, prepared
from tasks.campaign_file import load_recorded


@dataclass(frozen=True)
class Found:
    """A campaign on record with its curve."""

    campaign: CampaignRecord
    points: tuple[PointRecord, ...]
    curve: Curve
    ready: Prepared | None  # None: its file can't be planned from here
    notes: tuple[str, ...]


def find_curve(records: Records, name: str, env: Mapping[str, str]) -> Found:
    """The curve of a campaign; the client's detector is asked about runs that it wasn't before.

    Args:
        records: Records that hold it.
        name: Its name.
        env: The environment, for the variables of its file and for the detector.

    Raises:
        InputError: no such campaign.
    """
    campaign = records.campaign(name)
    points = records.points_with_attempts(name)
    ready, notes = _planned(campaign, env)
    windows, problems = _windows(records, campaign, points, ready)
    curve = make_curve(campaign, points, windows=windows)
    return Found(campaign, points, curve, ready, (*notes, *problems))


def make_report(records: Records, name: str, env: Mapping[str, str]) -> Report:
    """Everything that a report shows; raises as `find_curve` does."""
    found, now = find_curve(records, name, env), time.time()
    notes = list(found.notes)
    try:
        drift = drift_overview(records, found.campaign)
        looks, history, has_drift = drift.rows, drift.lines, drift.has_drift
    except ParetoError as problem:
        looks, history, has_drift = (), (), False
        notes.append(f"fingerprints: {problem}")
    ready = found.ready
    left = costs_left(ready, records) if ready else None
    return Report(
        campaign=found.campaign,
        points=found.points,
        curve=found.curve,
        spending=spending(
            found.points,
            _first_estimate(ready) if ready else None,
            ready.campaign.instance.accelerators if ready else None,
            now,
        ),
        looks=looks,
        history=history,
        has_drift=has_drift,
        notes=tuple(notes),
        left=left.wall_s if left and left.points else None,
        made_at=now,
    )


def standing(records: Records, name: str, left: Estimate | None) -> Standing:
    """Where a campaign stands, by its records alone.

    Args:
        records: Records that hold it.
        name: Its name.
        left: What it still costs; None: nothing, or it isn't known.
    """
    campaign, points = records.campaign(name), records.points_with_attempts(name)
    curve = make_curve(campaign, points, windows=_said(records, name))
    return Standing(campaign, points, curve, left.wall_s if left else None)


def compare(wheres: Sequence[tuple[Records, str]], env: Mapping[str, str]) -> Comparison:
    """Campaigns against the first of them; raises as `find_curve` does."""
    curves = tuple(find_curve(records, name, env).curve for records, name in wheres)
    (base_records, base), *others = wheres
    return Comparison(
        curves=curves,
        ratios=ratios(curves),
        at_equal=at_equal(curves),
        differs=tuple(_differences(base_records, base, *other) for other in others),
        made_at=time.time(),
    )


def _differences(
    base_records: Records, base: str, records: Records, name: str
) -> tuple[Difference, ...] | None:
    """What differs between the fingerprints of two curves; None: one has none."""
    old, new = base_records.baseline(base), records.baseline(name)
    return differences(old.fingerprint, new.fingerprint) if old and new else None


def _planned(
    campaign: CampaignRecord, env: Mapping[str, str]
) -> tuple[Prepared | None, tuple[str, ...]]:
    """The campaign planned from its text on record, or why not from here."""
    try:
        loaded = load_recorded(campaign.text, Path(campaign.source), env)
        return prepared(loaded, env), ()
    except (InputError, SetupError) as problem:
        first = str(problem).splitlines()[0]
        return None, (f"planned time and accelerators are not known here: {first}",)


def _first_estimate(ready: Prepared) -> Span:
    """Wall time of all points by the campaign file alone."""
    campaign = ready.campaign
    scored = scored_samples(campaign, {})
    return estimate(campaign, ready.plan, first_costs(campaign), scored=scored).wall_s


def _windows(
    records: Records,
    campaign: CampaignRecord,
    points: Sequence[PointRecord],
    ready: Prepared | None,
) -> tuple[dict[int, dict[str, Any]], list[str]]:
    """Attempt id → what the detector said, from the records or now; and why it said nothing."""
    windows = _said(records, campaign.name)
    command = ready.campaign.client.steady_state_command if ready else None
    if ready is None or command is None:
        return windows, []
    from tasks.steady_state import UnreadableError, detect  # noqa: PLC0415 - loads httpx

    problems = []
    for attempt in _unasked(points, windows):
        folder = AttemptPaths(Path(campaign.runs_folder) / attempt.folder).run.path
        try:
            block = detect(command, folder, ready.env)
        except UnreadableError as problem:
            problems.append(f"client.steady_state_command on {attempt.folder}: {problem}")
        else:
            payload = {"block": block, "command": list(command)}
            records.append_event(campaign.name, FOUND_EVENT, payload, attempt.id)
            windows[attempt.id] = block
    return windows, problems


def _said(records: Records, name: str) -> dict[int, dict[str, Any]]:
    """Attempt id → what the detector said before."""
    said = records.campaign_events(name, FOUND_EVENT)
    return {e.attempt_id: e.payload["block"] for e in said if e.attempt_id is not None}


def _unasked(
    points: Sequence[PointRecord], windows: Mapping[int, Mapping[str, Any]]
) -> list[AttemptRecord]:
    """Valid attempts of which nobody said where their steady state is."""
    valid = [attempt for point in points if (attempt := valid_attempt(point)) is not None]
    return [a for a in valid if not a.metrics.get("steady_state") and a.id not in windows]
