"""Progress from the client's output: recorded logs, in any pieces, and hostile ones."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.progress import (
    MAX_LINE_BYTES,
    TAIL_LINE_BYTES,
    TAIL_LINES,
    LineCutter,
    Phase,
    Progress,
    ProgressParser,
    Stream,
)

#: Pieces of the client's two outputs, with what makes cutting them hard.
STDOUT = (
    b"2026-11-29 16:43:00,826 - x.execute - INFO - Mode: TestMode.BOTH, Expected samples: 60\n"
    b"2026-11-29 16:43:07,382 - x.session - INFO - Starting phase: performance (performance)\n"
    b"2026-11-29 16:43:07,763 - x.session - INFO - Draining 3 in-flight responses...\r\n"
    b"\xff\xfe\x00 not text \xe2\x96\n"
    b"2026-11-29 16:43:07,765 - x.session - INFO - Phase performance complete: 40 samples issued\n"
    b"2026-11-29 16:43:07,766 - x.session - INFO - Starting phase: acc (accuracy)\n"
)
STDERR = (
    "\rorg/model-1/2 (Streaming: True):   0%|          | 0/60 [00:00<?, ?it/s]"
    "\rorg/model-1/2 (Streaming: True):  40%|████▏     | 25/60 [00:06<00:09, errors=1]"
    "\rorg/model-1/2 (Streaming: True):  82%|████████▏ | 49/60 [00:07<00:01, errors=27]"
).encode()


def read(*pieces: tuple[Stream, bytes]) -> tuple[ProgressParser, list[Phase]]:
    parser = ProgressParser()
    entered = []
    for stream, data in pieces:
        entered += parser.feed(stream, data)
    return parser, entered


def recorded(folder: Path) -> tuple[Progress, list[Phase]]:
    parser, entered = read(
        (Stream.STDOUT, (folder / "stdout.log").read_bytes()),
        (Stream.STDERR, (folder / "stderr.log").read_bytes()),
    )
    return parser.progress, entered


S, W, P, D, A, F = (
    Phase.STARTUP,
    Phase.WARMUP,
    Phase.PERFORMANCE,
    Phase.DRAINING,
    Phase.ACCURACY,
    Phase.FINISHING,
)


@pytest.mark.parametrize(
    ("case", "progress", "entered"),
    [
        ("c01_perf_c4", Progress(F, 40, 40, 0), [P, D, F]),
        ("c02_both_pass", Progress(F, 60, 60, 0), [P, D, F, A, D, F]),
        ("c04_acc_only", Progress(F, 20, 20, 0), [A, D, F]),
        ("c05_offline", Progress(F, 40, 40, 0), [P, D, F]),
        ("c06_err500", Progress(F, 40, 40, 2), [P, D, F]),
        ("c07_sigint_startup", Progress(S, 0, None, 0), []),
        ("c07_sigint_service_start", Progress(S, 0, 400, 0), []),
        ("c08_sigterm", Progress(P, 29, 400, 0), [P]),
        ("c10_stall_acc_phase", Progress(A, 42, 60, 0), [P, F, A]),
        ("c10_stall_hang", Progress(P, 20, 40, 0), [P]),
        ("c10_stall_tail_drain", Progress(F, 38, 40, 0), [P, D, F]),
        ("c10_stall_warmup", Progress(W, 0, 40, 0), [W]),
        ("c11_dies", Progress(F, 40, 40, 24), [P, D, F]),
        ("c12_unreachable", Progress(S, 0, 40, 0), []),
        ("c13_wrong_model", Progress(F, 60, 60, 60), [P, D, F, A, D, F]),
        ("c14_syntax", Progress(S, 0, None, 0), []),
        ("c15_warmup_salt", Progress(F, 20, 20, 0), [W, P, D, F]),
        ("c15_warmup_salt_drain", Progress(F, 20, 20, 0), [W, P, D, F]),
    ],
)
def test_recorded_logs(
    fixtures_dir: Path, case: str, progress: Progress, entered: list[Phase]
) -> None:
    """What the real client wrote is read as what the real client did."""
    assert recorded(fixtures_dir / case) == (progress, entered)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 1000])
@pytest.mark.parametrize("case", ["c02_both_pass", "c06_err500", "c15_warmup_salt_drain"])
def test_recorded_logs_in_pieces_of_one_size(fixtures_dir: Path, case: str, size: int) -> None:
    """A recorded log in pieces of any size gives what it gives in one."""
    folder = fixtures_dir / case
    parser = ProgressParser()
    entered = []
    for stream in Stream:
        data = (folder / f"{stream}.log").read_bytes()
        for start in range(0, len(data), size):
            entered += parser.feed(stream, data[start : start + size])
    assert (parser.progress, entered) == recorded(folder)


@settings(max_examples=200, deadline=None)
@given(
    out_cuts=st.lists(st.integers(0, len(STDOUT)), max_size=30),
    err_cuts=st.lists(st.integers(0, len(STDERR)), max_size=30),
    order=st.randoms(use_true_random=False),
)
def test_any_cutting_and_interleaving_gives_the_same(
    out_cuts: list[int], err_cuts: list[int], order: Random
) -> None:
    """Where text is cut, and how the two outputs interleave, changes nothing."""
    queues = {
        Stream.STDOUT: pieces_of(STDOUT, out_cuts),
        Stream.STDERR: pieces_of(STDERR, err_cuts),
    }
    parser = ProgressParser()
    entered = []
    while any(queues.values()):
        stream = order.choice([s for s, queue in queues.items() if queue])
        entered += parser.feed(stream, queues[stream].pop(0))
    assert parser.progress == Progress(Phase.ACCURACY, 49, 60, 27)
    assert entered == [P, D, F, A]


def test_a_number_that_is_still_being_written_is_not_read() -> None:
    """At every single byte the counts are ones that the client wrote in full."""
    parser = ProgressParser()
    seen = set()
    for n in range(len(STDERR)):
        parser.feed(Stream.STDERR, STDERR[n : n + 1])
        seen.add((parser.progress.done, parser.progress.total, parser.progress.errors))
    assert seen == {
        (0, None, 0),
        (0, 60, 0),
        (25, 60, 0),
        (25, 60, 1),
        (49, 60, 1),
        (49, 60, 27),
    }


def pieces_of(data: bytes, cuts: list[int]) -> list[bytes]:
    bounds = [0, *sorted(cuts), len(data)]
    return [data[a:b] for a, b in pairwise(bounds)]


@given(st.lists(st.binary(max_size=200), max_size=20), st.sampled_from(list(Stream)))
def test_any_bytes_are_survived(pieces: list[bytes], stream: Stream) -> None:
    """No bytes can break the parser, and its tail is text."""
    parser, _ = read(*((stream, piece) for piece in pieces))
    assert all(isinstance(line, str) for line in parser.tail)
    "\n".join(parser.tail).encode()


def test_an_endless_line_takes_bounded_memory() -> None:
    """A flood without line breaks is cut, and the line after it is read as usual."""
    cutter = LineCutter()
    for _ in range(50):
        assert cutter.feed(b"x" * 100_000) == []
        assert len(cutter.open_line) <= MAX_LINE_BYTES
    assert cutter.feed(b"y\nnext\n") == [b"x" * MAX_LINE_BYTES, b"next"]


def test_the_tail_is_bounded_and_without_bars() -> None:
    """The tail keeps the last lines of both outputs, each cut, and no drawing of the bar."""
    lines = b"".join(b"line %d %s\n" % (n, b"z" * 1000) for n in range(100))
    parser, _ = read((Stream.STDOUT, lines), (Stream.STDERR, STDERR + b"\nlast words \xff\n"))
    assert len(parser.tail) == TAIL_LINES
    assert parser.tail[-1] == "last words \ufffd"
    assert max(len(line) for line in parser.tail) == TAIL_LINE_BYTES
    assert not any("it/s" in line for line in parser.tail)


def test_bars_of_others_do_not_count_beside_the_clients_own() -> None:
    """Dataset loaders and scorers draw bars too; once the client's is seen it alone counts."""
    parser, _ = read((Stream.STDERR, b"\rMap: 50%|##   | 7/14 [00:01<00:01, 7it/s]"))
    assert (parser.progress.done, parser.progress.total) == (7, 14)
    parser.feed(Stream.STDERR, STDERR)
    parser.feed(Stream.STDERR, b"\rLCB Evaluation: 1%|   | 3/999 [00:01<00:01, 7it/s]")
    assert parser.progress == Progress(Phase.STARTUP, 49, 60, 27)


@pytest.mark.parametrize(
    "line",
    [
        b"INFO - answer: the log says 'Starting phase: acc (accuracy)' somewhere",
        b"a - prompt was: Starting phase: acc (accuracy)",
        b"INFO - Starting phase: acc (other)",
        b"INFO - Starting phase: acc (accuracy) is what a model said",
        b"error error ERROR failed",
        b"| 99999999999999999999999999/1 [ | 5 / 6 [",
    ],
)
def test_lookalikes_change_nothing(line: bytes) -> None:
    """Text that merely contains the words of a phase line or a bar is not one."""
    parser, entered = read((Stream.STDOUT, line + b"\n"))
    assert (parser.progress, entered) == (Progress(), [])
