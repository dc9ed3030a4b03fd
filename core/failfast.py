"""A run in progress → stop it or let it run: what can no longer become valid is ended at once.

Any failed request makes a point non-conforming (checker rule `metric-consistency-accounting`), and
a count that was sized for another rate ends too early or far too late.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from core.sizing import Rate, Target, issue_time_s, size

#: Completions per concurrent stream before a rate is believed: the first ones come in a bunch.
EVIDENCE_REQUESTS = 3
#: Share of the planned time that must have passed before a rate is believed.
EVIDENCE_SHARE = 0.05
#: How far the times of two phases, as the guard sees them, may be off, seconds.
CLOCK_SLACK_S = 1.0
#: A count that a re-plan would at least halve is worth stopping for.
WORTHWHILE = 0.5


class Hopeless(StrEnum):
    """Why a run is ended early."""

    FAILED_REQUEST = "failed-request"
    TOO_FAST = "too-fast"  # the planned count ends before the minimum duration
    TOO_SLOW = "too-slow"  # the planned count takes far longer than the point needs
    ENDPOINT_LOST = "endpoint-lost"  # its health path can't be reached any more
    NO_ROOM = "no-room"  # the disk, or the client's event buffer, is about to be full


@dataclass(frozen=True)
class Glimpse:
    """A run in its timed phase, as its progress shows it."""

    done: int  # completions, failed ones included
    failed: int
    load_s: float  # since the timed phase began; up to its last issue once all are issued
    all_issued: bool = False


@dataclass(frozen=True)
class Stop:
    """A run to end, and why."""

    kind: Hopeless
    reason: str


def reason_to_stop(glimpse: Glimpse, samples: int, target: Target) -> Stop | None:
    """Why a run can no longer become what it is for; None while it can.

    Args:
        glimpse: The run as it is.
        samples: Samples that it issues.
        target: What its size must reach.
    """
    if glimpse.failed:
        return Stop(
            Hopeless.FAILED_REQUEST,
            f"{glimpse.failed} failed of {glimpse.done} requests; one is enough to lose the point",
        )
    if target.level == 0:  # a burst, or conversations: completions don't tell its progress
        return None
    minimum_s = target.min_duration_ms / 1000
    if glimpse.all_issued:
        return _issued_too_early(glimpse.load_s, minimum_s, samples)
    if not _has_evidence(glimpse, samples, target):
        return None
    qps = glimpse.done / glimpse.load_s
    predicted_s = issue_time_s(samples, target.level, qps)
    if predicted_s < minimum_s:
        return Stop(
            Hopeless.TOO_FAST,
            f"at {qps:.3g}/s the {samples} samples are issued in {predicted_s:.1f} s, the minimum"
            f" is {minimum_s:g} s",
        )
    needed = size(Rate(qps, "this run", guess=False), target).samples
    if needed is not None and needed <= WORTHWHILE * (samples - glimpse.done):
        return Stop(
            Hopeless.TOO_SLOW,
            f"at {qps:.3g}/s the {samples} samples take {predicted_s:.0f} s; {needed} are enough",
        )
    return None


def _issued_too_early(issue_s: float, minimum_s: float, samples: int) -> Stop | None:
    """Why an accuracy run after this timed phase would be in vain; None: it would not."""
    if issue_s >= minimum_s - CLOCK_SLACK_S:
        return None
    return Stop(
        Hopeless.TOO_FAST,
        f"the {samples} samples were issued in {issue_s:.1f} s, the minimum is {minimum_s:g} s",
    )


def _has_evidence(glimpse: Glimpse, samples: int, target: Target) -> bool:
    """Whether the run has gone on long enough to tell its rate."""
    enough = max(EVIDENCE_REQUESTS * target.level, EVIDENCE_SHARE * samples)
    # A slow run may never reach its share of the count: its share of the time counts too.
    long_enough_s = target.min_duration_ms / 1000 * EVIDENCE_SHARE
    return (
        glimpse.load_s > 0
        and glimpse.done >= EVIDENCE_REQUESTS * target.level
        and (glimpse.done >= enough or glimpse.load_s >= long_enough_s)
    )
