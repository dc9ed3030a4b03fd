"""The batch plays the speed model exactly, whenever it is asked."""

from __future__ import annotations

import pytest

from tasks.rehearsal.batch import Batch, Sequence
from tasks.rehearsal.speed import SpeedModel

MODEL = SpeedModel(
    prefill_ms=10,
    prefill_ms_per_token=0,
    decode_ms=8,
    decode_ms_per_sequence=2,
    output_tokens=4,
    max_batch=2,
)


def play(batch: Batch, until_s: float = 10.0) -> list[tuple[float, Sequence]]:
    """Every token with the model time at which it is yielded."""
    tokens = []
    while (due_s := batch.next_deadline_s()) is not None and due_s <= until_s:
        tokens += [(due_s, sequence) for sequence in batch.advance(due_s)]
    return tokens


def times(tokens: list[tuple[float, Sequence]], sequence: Sequence) -> list[float]:
    return [round(due_s, 6) for due_s, one in tokens if one is sequence]


def test_a_lone_request_gets_its_first_token_after_prefill_and_one_each_step() -> None:
    batch, alone = Batch(MODEL), Sequence(5, 4)
    batch.submit(alone, 1.0)
    assert times(play(batch), alone) == [1.010, 1.020, 1.030, 1.040]
    assert alone.finished
    assert batch.running == 0


def test_two_requests_share_steps_that_take_longer() -> None:
    """A step carries both sequences and lasts 12 ms instead of 10 ms."""
    batch, first, second = Batch(MODEL), Sequence(5, 4), Sequence(5, 4)
    batch.submit(first, 0.0)
    batch.submit(second, 0.0)
    tokens = play(batch)
    # Both prefills end at 10 ms; the first one's end starts a step before the second's counts.
    assert times(tokens, first) == [0.010, 0.020, 0.032, 0.044]
    assert times(tokens, second) == [0.010, 0.032, 0.044, 0.054]


def test_a_request_above_the_batch_size_waits_for_a_place() -> None:
    """The third of two places is admitted when the first request ends, not earlier."""
    batch = Batch(MODEL)
    asked = [Sequence(5, 4) for _ in range(3)]
    for sequence in asked:
        batch.submit(sequence, 0.0)
    assert (batch.running, batch.waiting) == (2, 1)
    tokens = play(batch)
    end_of_first = max(due_s for due_s, one in tokens if one is asked[0])
    first_of_third = min(due_s for due_s, one in tokens if one is asked[2])
    assert first_of_third == pytest.approx(end_of_first + 0.010)


def test_a_late_caller_gets_the_same_tokens_at_once() -> None:
    """What was due meanwhile is yielded in order, and the model runs on from its own time."""
    batch, late = Batch(MODEL), Sequence(5, 4)
    batch.submit(late, 0.0)
    assert batch.advance(0.025) == [late, late]
    assert batch.next_deadline_s() == pytest.approx(0.030)


def test_a_dropped_request_yields_nothing_and_frees_its_place() -> None:
    batch, gone, stays = Batch(MODEL), Sequence(5, 4), Sequence(5, 4)
    batch.submit(gone, 0.0)
    batch.submit(stays, 0.0)
    batch.advance(0.010)
    gone.dropped = True
    assert {id(sequence) for _, sequence in play(batch)} == {id(stays)}
    assert batch.running == 0


def test_an_empty_batch_has_nothing_due() -> None:
    assert Batch(MODEL).next_deadline_s() is None
    assert Batch(MODEL).advance(99.0) == []
