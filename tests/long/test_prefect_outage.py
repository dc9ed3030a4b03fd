"""The Prefect server goes away in the middle of a campaign: what is on record stays right.

Slow, because Prefect's client is patient: run by `make test-long`.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.status import AttemptState
from tasks.prefect_server import find_or_start, stop_server
from tests.flows.support import Place, finish, wait_until, write_datasets


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A place with a Prefect server of its own."""
    write_datasets(tmp_path)
    server = tmp_path / "prefect"
    try:
        yield Place(tmp_path, find_or_start(server).api_url)
    finally:
        stop_server(server)


def test_an_outage_stops_no_measurement(place: Place) -> None:
    """The server never comes back: every point is measured and recorded, and the end is told."""
    with place.endpoint():
        place.write()
        impatient = {"PREFECT_CLIENT_MAX_RETRIES": "1"}
        process = place.start("run", place.file, "--points", "1,2", **impatient)
        place.wait_for_attempt("c0001", state=AttemptState.RUNNING)
        stop_server(place.folder / "prefect")
        done = finish(process)
    assert done.code == 1, done
    assert "the Prefect server went away" in done.err
    assert "Traceback" not in done.err
    for label in ("c0001", "c0002"):
        assert [a.state for a in place.attempts(label)] == [AttemptState.VALID]
    assert place.folders() == {"c0001": 1, "c0002": 1}


def test_an_outage_can_be_left(place: Place) -> None:
    """While Prefect's client waits for its server it looks at no request; the third one raises."""
    with place.endpoint():
        place.write()
        process = place.start("run", place.file, "--points", "1,2")
        place.wait_for_attempt("c0001", state=AttemptState.RUNNING)
        stop_server(place.folder / "prefect")
        place.wait_for_attempt("c0001", state=AttemptState.VALID)

        def ended() -> bool:
            process.send_signal(signal.SIGINT)
            return process.poll() is not None

        wait_until(ended, "the end", pause_s=2.0)
        done = finish(process)
    assert done.code in (130, -signal.SIGINT), done  # the last one may meet a process that ends
    assert place.attempts("c0001")[0].state is AttemptState.VALID
