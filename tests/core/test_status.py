"""States change only as the table says, and a point's state follows from its attempts."""

from itertools import product

import pytest

from core.errors import ParetoError
from core.status import (
    OPEN_STATES,
    TRANSITIONS,
    AttemptState,
    IllegalTransitionError,
    PointState,
    point_state,
    transition,
)

S = AttemptState
LEGAL = {
    (S.PREPARED, S.RUNNING),
    (S.PREPARED, S.FAILED),
    (S.PREPARED, S.INTERRUPTED),
    (S.RUNNING, S.VALID),
    (S.RUNNING, S.INVALID),
    (S.RUNNING, S.FAILED),
    (S.RUNNING, S.INTERRUPTED),
}


@pytest.mark.parametrize(("now", "wanted"), list(product(AttemptState, repeat=2)))
def test_every_step_is_legal_or_refused(now: AttemptState, wanted: AttemptState) -> None:
    """All 36 pairs; a refusal names both states and is the user's to act on."""
    if (now, wanted) in LEGAL:
        assert transition(now, wanted) is wanted
    else:
        with pytest.raises(IllegalTransitionError, match=f"{now} can't become {wanted}"):
            transition(now, wanted)


def test_a_refused_step_is_not_a_bug() -> None:
    assert issubclass(IllegalTransitionError, ParetoError)


def test_open_states_are_those_that_can_still_change() -> None:
    assert {state for state in AttemptState if TRANSITIONS[state]} == OPEN_STATES


def test_every_open_attempt_can_be_ended() -> None:
    """Whatever an attempt is at, it can be recorded as failed or interrupted."""
    for state in OPEN_STATES:
        assert {S.FAILED, S.INTERRUPTED} <= TRANSITIONS[state]


def test_valid_is_reached_from_running_only() -> None:
    assert [now for now in AttemptState if S.VALID in TRANSITIONS[now]] == [S.RUNNING]


BY_LAST = {
    S.PREPARED: PointState.RUNNING,
    S.RUNNING: PointState.RUNNING,
    S.INVALID: PointState.FAILED,
    S.FAILED: PointState.FAILED,
    S.INTERRUPTED: PointState.INTERRUPTED,
}


@pytest.mark.parametrize("length", range(4))
def test_a_point_is_valid_for_good_and_else_as_its_last_attempt(length: int) -> None:
    """Every sequence of up to three attempts."""
    for attempts in product(AttemptState, repeat=length):
        if S.VALID in attempts:
            expected = PointState.VALID
        else:
            expected = BY_LAST[attempts[-1]] if attempts else PointState.PENDING
        assert point_state(attempts) is expected, attempts
