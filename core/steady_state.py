"""What a point's official numbers are measured over: the steady-state window, or the run (§4.4).

The window is found by the client, or afterwards by its own detector
(`client.steady_state_command`), never here. Where neither spoke, the events only tell which
coverage is still possible.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from submission_checker.models.file.steady_state import (
    MIN_TREND_N,
    OFFICIAL_STATUS,
    STEADY_STATE_STATUSES,
)

#: The two bases of a result.
WINDOW, WHOLE_RUN = "steady-state window", "whole run"
#: Coverage where the events rule nothing out: only a detector can tell.
UNDECIDED = "not decided"
#: Kind of the event that keeps what the detector said of an attempt afterwards.
FOUND_EVENT = "steady-state.found"
_MS_PER_S = 1000


@dataclass(frozen=True)
class Basis:
    """What a result is measured over, and why."""

    name: str  # WINDOW or WHOLE_RUN
    why: str
    status: str | None  # the detector's; None: none spoke
    verdict: str | None
    coverage: str  # one of the official statuses, or UNDECIDED


def basis_of(
    client_block: Mapping[str, Any] | None, found: Mapping[str, Any] | None, coverage: str
) -> Basis:
    """The basis of a point's numbers.

    Args:
        client_block: The block in the client's own summary; None: it made none.
        found: What the client's detector said afterwards; None: it wasn't asked.
        coverage: What the events allow.
    """
    block = client_block or found
    if block is None:
        return Basis(WHOLE_RUN, _without_detector(coverage), None, None, coverage)
    status, verdict = _text(block, "status"), _text(block, "verdict")
    known = coverage if status is None else status
    if status != OFFICIAL_STATUS:
        return Basis(WHOLE_RUN, f"the client calls it {status or '?'}", status, verdict, known)
    if client_block is None:
        why = "there is a window, found afterwards; the client's summary is of the whole run"
        return Basis(WHOLE_RUN, why, status, verdict, known)
    return Basis(WINDOW, "the client found a window", status, verdict, known)


def coverage_of_events(
    *, passes: float | None, issue_span_s: float | None, min_duration_ms: int
) -> str:
    """The coverage status that the events allow: the first that they can't exceed, or UNDECIDED.

    Args:
        passes: Passes over the dataset that were issued; None: not known.
        issue_span_s: Time from the first to the last issue; None: not known.
        min_duration_ms: The region's minimum (§6.2).
    """
    if passes is not None and passes < 1:
        return "partial_dataset"
    if passes is not None and passes <= MIN_TREND_N:
        return "insufficient_passes"
    if issue_span_s is not None and issue_span_s * _MS_PER_S < min_duration_ms:
        return "insufficient_duration"
    return UNDECIDED


def parse_block(text: bytes) -> dict[str, Any] | None:
    """The block in what a detector printed or wrote; None: there is none.

    It is the whole document, or lies under `steady_state` as in the client's summary.
    """
    try:
        document = json.loads(text)
    except ValueError:
        return None
    if isinstance(document, dict) and isinstance(document.get("steady_state"), dict):
        document = document["steady_state"]
    is_block = isinstance(document, dict) and document.get("status") in STEADY_STATE_STATUSES
    return document if is_block else None


def _without_detector(coverage: str) -> str:
    if coverage == UNDECIDED:
        return "no steady-state report; the events rule a window neither in nor out"
    return f"no steady-state report; by its events at most {coverage}"


def _text(block: Mapping[str, Any], key: str) -> str | None:
    value = block.get(key)
    return value if isinstance(value, str) else None
