"""The speed model is plain arithmetic with the stated shape."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tasks.rehearsal.speed import SpeedModel

MODEL = SpeedModel(
    prefill_ms=20,
    prefill_ms_per_token=0.5,
    decode_ms=10,
    decode_ms_per_sequence=1,
    output_tokens=11,
    max_batch=8,
)


def test_prefill_is_a_constant_plus_a_share_for_each_prompt_token() -> None:
    assert MODEL.prefill_s(0) == pytest.approx(0.020)
    assert MODEL.prefill_s(40) == pytest.approx(0.040)


def test_a_step_is_a_constant_plus_a_share_for_each_sequence() -> None:
    assert MODEL.step_s(1) == pytest.approx(0.011)
    assert MODEL.step_s(8) == pytest.approx(0.018)


def test_a_request_is_its_prefill_and_a_step_for_each_further_token() -> None:
    assert MODEL.request_s(40, 2) == pytest.approx(0.040 + 10 * 0.012)


def test_throughput_rises_with_concurrency_and_ends_at_the_batch_size() -> None:
    """More concurrency gives more throughput, ever less so, and none above `max_batch`."""
    rates = [MODEL.requests_per_s(concurrency, 10) for concurrency in range(1, 9)]
    gains = [after - before for before, after in pairwise(rates)]
    assert all(gain > 0 for gain in gains)
    assert gains == sorted(gains, reverse=True)
    assert MODEL.requests_per_s(100, 10) == rates[-1]
    assert rates[-1] * MODEL.output_tokens < 1000 / MODEL.decode_ms_per_sequence


def test_one_token_takes_no_decode_step() -> None:
    assert SpeedModel(prefill_ms=5, prefill_ms_per_token=0, output_tokens=1).request_s(
        9, 1
    ) == pytest.approx(0.005)
