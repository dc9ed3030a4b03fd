"""A run that can no longer become valid is ended; one that can is left alone."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.failfast import Glimpse, Hopeless, reason_to_stop
from core.sizing import Basis, Rate, Target, size

TARGET = Target(
    level=16,
    rows=100,
    min_duration_ms=600_000,
    margin=1.25,
    min_passes=1,
    basis=Basis.MINIMUM,
    max_point_s=21_600.0,
)


@pytest.mark.parametrize(
    ("glimpse", "samples", "kind"),
    [
        (Glimpse(done=1, failed=1, load_s=0.1), 7500, Hopeless.FAILED_REQUEST),
        (Glimpse(done=7000, failed=1, load_s=700), 7500, Hopeless.FAILED_REQUEST),
        (Glimpse(done=0, failed=0, load_s=0), 7500, None),
        (Glimpse(done=400, failed=0, load_s=40), 7500, None),  # 10/s, as planned
        (Glimpse(done=400, failed=0, load_s=10), 7500, Hopeless.TOO_FAST),  # 40/s: 188 s
        (Glimpse(done=40, failed=0, load_s=1), 7500, None),  # the first bunch tells nothing
        (Glimpse(done=60, failed=0, load_s=100), 7500, Hopeless.TOO_SLOW),  # 0.6/s: 3.5 h
        (Glimpse(done=60, failed=0, load_s=10), 7500, None),  # 6/s: somewhat slow
        (Glimpse(done=7400, failed=0, load_s=7000), 7500, None),  # nearly there: let it end
    ],
)
def test_a_run_is_stopped_for_a_reason(
    glimpse: Glimpse, samples: int, kind: Hopeless | None
) -> None:
    stop = reason_to_stop(glimpse, samples, TARGET)
    assert (stop.kind if stop else None) is kind
    assert stop is None or str(glimpse.failed or samples) in stop.reason


@given(
    qps=st.floats(0.01, 5000),
    share=st.floats(0.01, 1),
    level=st.integers(1, 512),
    noise=st.floats(0.9, 1.15),
)
def test_a_run_near_its_planned_rate_is_never_stopped(
    qps: float, share: float, level: int, noise: float
) -> None:
    """With the default margin of 1.25, a rate up to 15 % off is no reason."""
    target = Target(level, 100, 600_000, 1.25, 1, Basis.MINIMUM, 21_600.0)
    samples = size(Rate(qps, "plan", guess=False), target).samples
    assert samples is not None
    done = int(samples * share)
    assert reason_to_stop(Glimpse(done, 0, done / (qps * noise)), samples, target) is None


@pytest.mark.parametrize(
    ("issued_s", "stops"), [(500.0, True), (598.9, True), (599.1, False), (700.0, False)]
)
def test_no_accuracy_run_after_a_timed_phase_that_was_too_short(
    issued_s: float, stops: bool
) -> None:
    """All is issued; the guard's clock may be a second off."""
    glimpse = Glimpse(done=7600, failed=0, load_s=issued_s, all_issued=True)
    stop = reason_to_stop(glimpse, 7500, TARGET)
    assert (stop is not None) is stops
    assert stop is None or stop.kind is Hopeless.TOO_FAST


def test_bursts_and_conversations_are_ended_for_failures_only() -> None:
    """Their completions don't tell how far they are."""
    burst = replace(TARGET, level=0)
    for glimpse in (Glimpse(400, 0, 10), Glimpse(60, 0, 100), Glimpse(400, 0, 1, all_issued=True)):
        assert reason_to_stop(glimpse, 7500, burst) is None
        assert reason_to_stop(replace(glimpse, failed=1), 7500, burst) is not None
