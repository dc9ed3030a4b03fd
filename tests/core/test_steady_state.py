"""The basis of a result: the client's window or the whole run; the events never make a window."""

from __future__ import annotations

import json

import pytest

from core.steady_state import (
    UNDECIDED,
    WHOLE_RUN,
    WINDOW,
    Basis,
    basis_of,
    coverage_of_events,
    parse_block,
)

WINDOWABLE = {"status": "windowable", "verdict": "STEADY STATE"}


def test_the_clients_window_is_the_basis() -> None:
    assert basis_of(WINDOWABLE, None, UNDECIDED) == Basis(
        WINDOW, "the client found a window", "windowable", "STEADY STATE", "windowable"
    )


def test_another_status_falls_back_to_the_whole_run() -> None:
    """The status is told; the detector's word stands above what the events allow."""
    found = basis_of({"status": "insufficient_passes"}, None, UNDECIDED)
    assert (found.name, found.status, found.coverage) == (
        WHOLE_RUN,
        "insufficient_passes",
        "insufficient_passes",
    )
    assert "insufficient_passes" in found.why


def test_a_window_found_afterwards_does_not_change_numbers() -> None:
    """The client's summary is of the whole run then, and so is the result."""
    found = basis_of(None, WINDOWABLE, UNDECIDED)
    assert (found.name, found.status) == (WHOLE_RUN, "windowable")
    assert "afterwards" in found.why


@pytest.mark.parametrize("coverage", [UNDECIDED, "insufficient_passes"])
def test_without_a_detector_that_is_said(coverage: str) -> None:
    found = basis_of(None, None, coverage)
    assert (found.name, found.status, found.coverage) == (WHOLE_RUN, None, coverage)
    assert "no steady-state report" in found.why


@pytest.mark.parametrize(
    ("passes", "span_s", "coverage"),
    [
        (0.5, 2000, "partial_dataset"),
        (4, 2000, "insufficient_passes"),
        (5, 1199.9, "insufficient_duration"),
        (5, 1200, UNDECIDED),
        (None, None, UNDECIDED),
    ],
)
def test_events_only_rule_a_window_out(
    passes: float | None, span_s: float | None, coverage: str
) -> None:
    """More than four passes and the minimum duration are needed; having them proves nothing."""
    seen = coverage_of_events(passes=passes, issue_span_s=span_s, min_duration_ms=1_200_000)
    assert seen == coverage


def test_a_block_is_read_from_either_form() -> None:
    """The document itself, or under the key that the client's summary has it under."""
    assert parse_block(json.dumps(WINDOWABLE).encode()) == WINDOWABLE
    assert parse_block(json.dumps({"steady_state": WINDOWABLE}).encode()) == WINDOWABLE


@pytest.mark.parametrize("text", [b"", b"[]", b"null", b"no", b'{"status": "fine"}', b"\xff", b"{"])
def test_anything_else_is_no_block(text: bytes) -> None:
    assert parse_block(text) is None
