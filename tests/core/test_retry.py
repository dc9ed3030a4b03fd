"""Only failures that can differ are tried again; what repeats stops the campaign."""

import pytest

from core.retry import REPEATING, Next, after_failure


@pytest.mark.parametrize(
    ("rules", "exit_code", "wanted"),
    [
        (["failed-requests"], 0, Next.RETRY),
        (["ended-by-watchdog", "no-summary"], -9, Next.RETRY),
        (["too-short"], 0, Next.RESIZE),
        (["too-short", "failed-requests"], 0, Next.RETRY),
        (["exit-code", "no-folder"], 2, Next.STOP),
        (["exit-code", "no-summary"], 3, Next.RETRY),
        (["exit-code"], None, Next.RETRY),
        (["accuracy-below-threshold"], 0, Next.STOP),
        (["failed-requests", "accuracy-below-threshold"], 0, Next.STOP),
        (["seeds"], 0, Next.STOP),
        (["no-token-metrics"], 0, Next.STOP),
        (["no-token-metrics", "failed-requests"], 0, Next.RETRY),
        (["accuracy-incomplete", "accuracy-below-threshold", "empty-answers"], 0, Next.RETRY),
    ],
)
def test_the_step_after_a_failure(rules: list[str], exit_code: int | None, wanted: Next) -> None:
    assert after_failure(rules, exit_code) is wanted


def test_a_score_is_never_shopped_for() -> None:
    """§4.3: an accuracy miss is never a reason to try again."""
    assert "accuracy-below-threshold" in REPEATING
    assert after_failure(["accuracy-below-threshold"], 0) is Next.STOP


def test_what_only_the_official_checker_rejects_is_not_tried_again() -> None:
    """It would say it again; beside findings of our own it has no say."""
    assert after_failure({"accuracy-gate"}, 0) is Next.STOP
    assert after_failure({"metric-consistency-accounting", "failed-requests"}, 0) is Next.RETRY
