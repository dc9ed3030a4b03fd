"""The benchmarks find the parts that they measure."""

from __future__ import annotations

import subprocess
import sys


def test_the_stopwatch_finds_its_places() -> None:
    """They are named by text: only trying tells that one has moved."""
    program = (
        "from bench.timed import Stopwatch, attach; attach(Stopwatch());"
        "from core.records import Records; print(Records.change_state.__qualname__,"
        " hasattr(Records.change_state, '__wrapped__'))"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True
    )
    assert found.stdout.split()[-1:] == ["True"], found.stderr
