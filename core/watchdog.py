"""Progress samples and a monotonic clock in; running, stalled or overdue out.

No progress, not elapsed time, decides a stall: the client hangs for ever on a silent endpoint,
while a long run that completes samples is fine. Standard library only: the guard imports this.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from core.progress import PHASES_WITH_SAMPLES, Phase, Progress


@dataclass(frozen=True)
class Limits:
    """How long each phase may go without progress; phases without samples as a whole."""

    #: Loading dataset and tokenizer, starting workers (24 s with ten workers on two cores).
    startup_timeout_s: float = 600.0
    #: The whole warm-up: its requests are on no bar.
    warmup_timeout_s: float = 1800.0
    #: Between two completed samples while samples are issued. The client's bar may lag by 10 s.
    stall_timeout_s: float = 300.0
    #: Between two completed samples when all are issued: the last answers come far apart.
    draining_timeout_s: float = 600.0
    #: Tokenizing, scoring and reporting together.
    finishing_timeout_s: float = 1800.0

    def of(self, phase: Phase) -> tuple[str, float]:
        """Name and value of the limit that holds in a phase."""
        name = _LIMIT_NAMES[phase]
        return name, float(getattr(self, name))


_LIMIT_NAMES = {
    Phase.STARTUP: "startup_timeout_s",
    Phase.WARMUP: "warmup_timeout_s",
    Phase.PERFORMANCE: "stall_timeout_s",
    Phase.ACCURACY: "stall_timeout_s",
    Phase.DRAINING: "draining_timeout_s",
    Phase.FINISHING: "finishing_timeout_s",
}


class RunState(StrEnum):
    """What the watchdog thinks of a run."""

    RUNNING = "running"
    STALLED = "stalled"
    OVERDUE = "overdue"


@dataclass(frozen=True)
class Verdict:
    """What the watchdog thinks of a run, and why."""

    state: RunState
    reason: str = ""


@dataclass(frozen=True)
class Watch:
    """What is remembered of a run to judge it; times are of one monotonic clock."""

    limits: Limits
    #: Outer limit for the whole run from its start; None for none.
    deadline_s: float | None
    started_s: float
    progressed_s: float
    progress: Progress

    @classmethod
    def begin(cls, limits: Limits, deadline_s: float | None, now_s: float) -> Watch:
        """The watch over a run that starts now."""
        return cls(limits, deadline_s, now_s, now_s, Progress())

    def saw(self, progress: Progress, now_s: float) -> Watch:
        """The watch after another look at the run."""
        progressed_s = now_s if _is_progress(self.progress, progress) else self.progressed_s
        return replace(self, progress=progress, progressed_s=progressed_s)

    def verdict(self, now_s: float) -> Verdict:
        """Whether the run may go on."""
        if self.deadline_s is not None and now_s - self.started_s > self.deadline_s:
            return Verdict(
                RunState.OVERDUE,
                f"not finished {self.deadline_s:g} s after its start (deadline_s), "
                f"in phase {self.progress.phase}",
            )
        name, limit_s = self.limits.of(self.progress.phase)
        if now_s - self.progressed_s > limit_s:
            return Verdict(RunState.STALLED, _stall_reason(self.progress, name, limit_s))
        return Verdict(RunState.RUNNING)


def _is_progress(before: Progress, after: Progress) -> bool:
    if after.phase is not before.phase:
        return True
    return after.phase in PHASES_WITH_SAMPLES and after.done != before.done


def _stall_reason(progress: Progress, name: str, limit_s: float) -> str:
    if progress.phase in PHASES_WITH_SAMPLES:
        of_total = "" if progress.total is None else f" of {progress.total}"
        return (
            f"no sample completed for {limit_s:g} s ({name}) in phase {progress.phase}, "
            f"{progress.done}{of_total} done"
        )
    return f"phase {progress.phase} lasted longer than {limit_s:g} s ({name})"
