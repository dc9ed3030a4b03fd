"""A campaign whose first accuracy run misses its target, shown in a terminal."""

from __future__ import annotations

import os
import subprocess
import sys

from core.status import AttemptState, PointState
from tests.flows.support import PATIENCE_S, Place, flow_runs


def in_terminal(place: Place, *arguments: str) -> tuple[int, str]:
    """Exit code of `pareto` under a terminal of 200 columns, and what that terminal was sent."""
    ours, theirs = os.openpty()
    env = place.env(TERM="xterm-256color", COLUMNS="200", LINES="60")
    process = subprocess.Popen(
        [sys.executable, "-m", "flows.cli", *arguments],
        cwd=place.folder,
        env=env,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    sent = bytearray()
    try:
        while chunk := _read(ours):
            sent += chunk
        return process.wait(PATIENCE_S), sent.decode("utf-8", "replace")
    finally:
        process.kill()
        os.close(ours)


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # the other side is closed
        return b""


def test_an_accuracy_miss_stops_the_campaign(place: Place) -> None:
    """Exit 4: the miss would repeat, so it is not retried and no other point is run.

    The terminal gets a table that is drawn again and again, and the reason in the end.
    """
    with place.endpoint(wrong_answer_percent=100):
        place.write(run={"retries": 2})
        code, shown = in_terminal(place, "run", str(place.file))
    assert code == 4, shown
    (attempt,) = place.attempts("c0033")
    assert attempt.state is AttemptState.INVALID
    assert attempt.reason == "accuracy-below-threshold"
    states = [point.state for label, point in place.points().items() if label != "c0033"]
    assert states == [PointState.PENDING] * 6
    assert attempt.metrics["accuracy_scores"]["accuracy"]["score"] == 0
    assert {request.kind for request in place.requests()} == {"performance", "accuracy"}
    (run,) = flow_runs(place)
    assert run["state_type"] == "FAILED"
    assert shown.count("\x1b[") > 10  # drawn again
    assert "REHEARSAL" in shown
    assert "c0033 attempt 1: " in shown
    assert "accuracy-below-threshold" in shown
    assert "Traceback" not in shown
