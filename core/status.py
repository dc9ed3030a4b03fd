"""States of attempts and points, and their legal transitions in one function.

A point's state is derived from its attempts and never stored. `interrupted` is never complete.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from core.errors import ParetoError


class AttemptState(StrEnum):
    """State of one try at a point."""

    PREPARED = "prepared"  # row and folder exist; the client was not started
    RUNNING = "running"  # a guard owns a client
    VALID = "valid"  # measured; no finding of severity error
    INVALID = "invalid"  # the client finished, but findings make it unusable
    FAILED = "failed"  # no usable end: crash, stall, endpoint lost, set-up refused
    INTERRUPTED = "interrupted"  # stopped on request, or its machine or guard died


class PointState(StrEnum):
    """State of a point, derived from its attempts."""

    PENDING = "pending"
    RUNNING = "running"
    VALID = "valid"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    SKIPPED = "skipped"  # does not fit the campaign's budget; not tried


#: Legal successors of each attempt state; a state without successors is final.
TRANSITIONS: dict[AttemptState, frozenset[AttemptState]] = {
    AttemptState.PREPARED: frozenset(
        {AttemptState.RUNNING, AttemptState.FAILED, AttemptState.INTERRUPTED}
    ),
    AttemptState.RUNNING: frozenset(
        {
            AttemptState.VALID,
            AttemptState.INVALID,
            AttemptState.FAILED,
            AttemptState.INTERRUPTED,
        }
    ),
    AttemptState.VALID: frozenset(),
    AttemptState.INVALID: frozenset(),
    AttemptState.FAILED: frozenset(),
    AttemptState.INTERRUPTED: frozenset(),
}

#: Attempts in these states still own, or may own, a client.
OPEN_STATES = frozenset({AttemptState.PREPARED, AttemptState.RUNNING})


class IllegalTransitionError(ParetoError):
    """An attempt can't go from its state to the wanted one (it is final, or the step skips)."""


def transition(now: AttemptState, wanted: AttemptState) -> AttemptState:
    """Return `wanted` if an attempt may go there from `now`.

    Raises:
        IllegalTransitionError: the step is not in `TRANSITIONS`.
    """
    if wanted not in TRANSITIONS[now]:
        raise IllegalTransitionError(f"an attempt that is {now} can't become {wanted}")
    return wanted


def point_state(attempts: Sequence[AttemptState]) -> PointState:
    """State of a point from its attempts in order; one valid attempt decides for good."""
    if AttemptState.VALID in attempts:
        return PointState.VALID
    if not attempts:
        return PointState.PENDING
    last = attempts[-1]
    if last in OPEN_STATES:
        return PointState.RUNNING
    if last is AttemptState.INTERRUPTED:
        return PointState.INTERRUPTED
    return PointState.FAILED
