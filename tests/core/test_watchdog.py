"""The watchdog: no progress decides, not elapsed time and not log text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.progress import PHASES_WITH_SAMPLES, Phase, Progress
from core.watchdog import Limits, RunState, Verdict, Watch

LIMITS = Limits(
    startup_timeout_s=10,
    warmup_timeout_s=20,
    stall_timeout_s=30,
    draining_timeout_s=40,
    finishing_timeout_s=50,
)
LIMIT_S = {
    Phase.STARTUP: 10,
    Phase.WARMUP: 20,
    Phase.PERFORMANCE: 30,
    Phase.ACCURACY: 30,
    Phase.DRAINING: 40,
    Phase.FINISHING: 50,
}


def begin(deadline_s: float | None = None) -> Watch:
    return Watch.begin(LIMITS, deadline_s, now_s=1000.0)


def state(watch: Watch, now_s: float) -> RunState:
    return watch.verdict(now_s).state


@pytest.mark.parametrize("phase", list(Phase))
def test_each_phase_has_its_limit(phase: Phase) -> None:
    """Without progress a phase may last exactly its own limit."""
    watch = begin().saw(Progress(phase, 5, 10), 1000.0)
    assert state(watch, 1000.0 + LIMIT_S[phase]) is RunState.RUNNING
    assert state(watch, 1000.5 + LIMIT_S[phase]) is RunState.STALLED


@pytest.mark.parametrize("phase", sorted(PHASES_WITH_SAMPLES))
def test_completed_samples_keep_a_run_alive_for_any_time(phase: Phase) -> None:
    """A slow run that completes samples never stalls, however long it takes."""
    watch = begin()
    for n in range(200):
        now_s = 1000.0 + n * 29
        watch = watch.saw(Progress(phase, n, 1000), now_s)
        assert state(watch, now_s + 29) is RunState.RUNNING


@pytest.mark.parametrize("phase", sorted(set(Phase) - PHASES_WITH_SAMPLES))
def test_a_bar_that_moves_does_not_prolong_a_phase_without_samples(phase: Phase) -> None:
    """Start-up, warm-up and finishing have a limit as a whole: a scorer's bar is no progress."""
    watch = begin().saw(Progress(phase), 1000.0)
    for n in range(100):
        watch = watch.saw(Progress(phase, n, 1000), 1000.0 + n)
    assert state(watch, 1099.0) is RunState.STALLED


def test_a_change_of_phase_is_progress() -> None:
    """Each phase has its limit from the moment it begins."""
    watch = begin().saw(Progress(Phase.PERFORMANCE, 0, 10), 1009.0)
    assert state(watch, 1038.0) is RunState.RUNNING
    watch = watch.saw(Progress(Phase.FINISHING, 10, 10), 1038.0)
    assert state(watch, 1087.0) is RunState.RUNNING


@given(
    phase=st.sampled_from(list(Phase)),
    looks=st.lists(st.tuples(st.floats(0, 5), st.integers(0, 9)), max_size=60),
)
def test_looks_without_progress_never_postpone_a_stall(
    phase: Phase, looks: list[tuple[float, int]]
) -> None:
    """However often the run is looked at, and however its errors grow, only progress counts.

    This is what a flooding log comes to: many looks at the same counts.
    """
    watch = begin().saw(Progress(phase, 3, 9), 1000.0)
    now_s = 1000.0
    for step_s, errors in looks:
        now_s += step_s
        watch = watch.saw(Progress(phase, 3, 9, errors), now_s)
    assert (state(watch, now_s) is RunState.STALLED) == (now_s - 1000.0 > LIMIT_S[phase])


def test_the_deadline_holds_while_samples_complete() -> None:
    """The outer limit ends even a run that progresses, and counts from the start."""
    watch = begin(deadline_s=100).saw(Progress(Phase.PERFORMANCE, 7, 10), 1100.0)
    assert state(watch, 1100.0) is RunState.RUNNING
    assert watch.verdict(1100.1) == Verdict(
        RunState.OVERDUE, "not finished 100 s after its start (deadline_s), in phase performance"
    )


def test_reasons_name_limit_phase_and_counts() -> None:
    """A verdict says which limit was exceeded, where, and how far the run was."""
    performance = begin().saw(Progress(Phase.PERFORMANCE, 41, 60), 1000.0)
    assert performance.verdict(1031.0).reason == (
        "no sample completed for 30 s (stall_timeout_s) in phase performance, 41 of 60 done"
    )
    assert begin().verdict(1011.0).reason == (
        "phase startup lasted longer than 10 s (startup_timeout_s)"
    )
    assert begin().verdict(1001.0) == Verdict(RunState.RUNNING)


def test_the_defaults_are_those_of_the_campaign_file() -> None:
    """`run.stall_timeout_s` is 300 by default."""
    assert Limits().of(Phase.PERFORMANCE) == ("stall_timeout_s", 300.0)
