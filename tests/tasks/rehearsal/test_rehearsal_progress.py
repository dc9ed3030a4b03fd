"""The bar is read by the parser that reads the reference client's bar."""

from __future__ import annotations

import io

import pytest

from core.progress import ProgressParser, Stream
from tasks.rehearsal.progress import Progress


def test_the_bar_is_drawn_like_the_recorded_one() -> None:
    bar = Progress("sim-model (Streaming: True)", 60, io.StringIO())
    assert bar.line(0.0) == "sim-model (Streaming: True):   0%|          | 0/60 [00:00<?, ?it/s]"
    for _ in range(13):
        bar.add(failed=False)
    assert bar.line(6.7) == (
        "sim-model (Streaming: True):  22%|██▏       | 13/60 [00:06<00:24,  1.94it/s]"
    )


@pytest.mark.parametrize("errors", [0, 3])
def test_the_parser_reads_done_total_and_errors(errors: int) -> None:
    stream, parser = io.StringIO(), ProgressParser()
    bar = Progress("m (Streaming: False)", 40, stream)
    for number in range(40):
        bar.add(failed=number < errors)
    bar.close()
    assert stream.getvalue().startswith("\r")
    parser.feed(Stream.STDERR, stream.getvalue().encode())
    found = parser.progress
    assert (found.done, found.total, found.errors) == (40, 40, errors)


def test_an_hour_and_a_slow_rate_are_shown() -> None:
    bar = Progress("m", 2, io.StringIO())
    bar.add(failed=False)
    assert bar.line(3661.0).endswith("1/2 [1:01:01<1:01:01, 3661.00s/it]")
    assert "100%" not in bar.line(1.0)
