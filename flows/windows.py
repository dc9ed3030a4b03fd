"""Where the client's detector found the steady state of runs, asked once for each (§4.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from core.layout import AttemptPaths
from core.overview import valid_attempt
from core.records import AttemptRecord, CampaignRecord, PointRecord, Records
from core.steady_state import FOUND_EVENT
from flows.prepare import Prepared
from tasks.steady_state import UnreadableError, detect


def windows_of(
    records: Records,
    campaign: CampaignRecord,
    points: Sequence[PointRecord],
    ready: Prepared | None,
) -> tuple[dict[int, dict[str, Any]], list[str]]:
    """Attempt id → what the detector said, from the records or now; and why it said nothing."""
    windows = windows_said(records, campaign.name)
    command = ready.campaign.client.steady_state_command if ready else None
    if ready is None or command is None:
        return windows, []
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


def windows_said(records: Records, name: str) -> dict[int, dict[str, Any]]:
    """Attempt id → what the detector said before."""
    said = records.campaign_events(name, FOUND_EVENT)
    return {e.attempt_id: e.payload["block"] for e in said if e.attempt_id is not None}


def _unasked(
    points: Sequence[PointRecord], windows: Mapping[int, Mapping[str, Any]]
) -> list[AttemptRecord]:
    """Valid attempts of which nobody said where their steady state is."""
    valid = [attempt for point in points if (attempt := valid_attempt(point)) is not None]
    return [a for a in valid if not a.metrics.get("steady_state") and a.id not in windows]
