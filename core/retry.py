"""What to do after an attempt that is not valid: try again, go on, or stop the campaign.

Only failures that can differ next time are tried again by themselves. There is no shopping for a
better accuracy score (§4.3), and what is wrong with the configuration would repeat at every point.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from typing import Any

from core.rules_ahead import POINT_RULES

#: Findings that repeat until a person changes something; they stop the campaign.
REPEATING = frozenset(
    {
        "accuracy-below-threshold",
        "accuracy-concurrency",
        "accuracy-ungated",
        "accuracy-unplanned",
        "chunks-off",
        "concurrency",
        "drift",
        "load-pattern",
        "no-token-metrics",
        "osl-range",
        "seeds",
        "stale-files",
        "streaming-off",
        "warmup-unsalted",
    }
)
#: A finding → findings that it explains away: what is missing may come with the next attempt.
EXPLAINS = {
    "accuracy-incomplete": {"accuracy-below-threshold"},
    "failed-requests": {"no-token-metrics"},
    "empty-answers": {"no-token-metrics"},
    "instance-changed": {"accuracy-below-threshold", "no-token-metrics"},
}
#: The finding that an accuracy result is below its threshold.
MISSED = "accuracy-below-threshold"
#: The finding that a run issued for less than its minimum duration.
TOO_SHORT = "too-short"
#: Client exit code for a configuration that it refuses (mlcommons/endpoints `exceptions.py`).
CLIENT_INPUT_ERROR = 2


class Next(StrEnum):
    """What follows an attempt."""

    GO_ON = "go on"  # to the next point
    RETRY = "retry"  # the failure may not repeat
    RESIZE = "resize"  # measured well, but too short: again with a count from the measured rate
    STOP = "stop"  # the failure would repeat at every point


def is_miss(findings: Iterable[Mapping[str, Any]], exit_code: int | None) -> bool:
    """Whether an attempt on record missed its accuracy, with nothing else to explain the score."""
    rules = {f["rule"] for f in findings if f.get("severity") == "error"}
    return MISSED in rules and after_failure(rules, exit_code) is Next.STOP


def after_failure(rules: Collection[str], exit_code: int | None) -> Next:
    """The step after an attempt with these error findings: retry, resize or stop.

    Args:
        rules: Rule ids of the findings of severity error.
        exit_code: The client's exit code; None: it was never known.
    """
    own = set(rules) - POINT_RULES
    if rules and not own:  # only the official checker would reject it, and would again
        return Next.STOP
    rules = own
    explained = {found for rule in rules for found in EXPLAINS.get(rule, ())}
    if exit_code == CLIENT_INPUT_ERROR or REPEATING.intersection(rules) - explained:
        return Next.STOP
    return Next.RESIZE if set(rules) == {TOO_SHORT} else Next.RETRY
