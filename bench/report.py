"""Times `pareto report` for 32 points and `pareto compare` of five campaigns, processes included.

Run it on a quiet machine: `python -m bench.report`. It exits with 1 where a median is over its
limit.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.curves import MANY, Place

ROOT = Path(__file__).resolve().parents[1]
#: Calls of each command; the first, which may have to fill caches, is not counted.
CALLS = 6
#: Name → arguments, and the limit of the median in seconds (issue 7).
MEASURED: dict[str, tuple[list[str], float]] = {
    "report, 32 points": (["report", "c0"], 3.0),
    "compare, five campaigns of 32 points": (["compare", "c0", "c1", "c2", "c3", "c4"], 5.0),
}


def main() -> int:
    """Time both commands."""
    with tempfile.TemporaryDirectory(prefix="pareto-bench-") as folder:
        place = Place(Path(folder))
        for number in range(5):
            place.campaign(f"c{number}", MANY, speed=1 + number / 10, driver=str(number))
        return max(_time(place, name, *of) for name, of in MEASURED.items())


def _time(place: Place, name: str, arguments: list[str], limit_s: float) -> int:
    before_s = _cpu_s()
    times = [_call(place, arguments) for _ in range(CALLS)][1:]
    cpu_s = (_cpu_s() - before_s) / CALLS
    median_s = statistics.median(times)
    listed = " ".join(f"{seconds:.2f}" for seconds in sorted(times))
    print(f"{name}: median {median_s:.2f} s of {listed}; limit {limit_s:g} s; CPU {cpu_s:.2f} s")
    return int(median_s > limit_s)


def _cpu_s() -> float:
    """CPU time of all processes that were waited for: on a busy machine it says more."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _call(place: Place, arguments: list[str]) -> float:
    """Seconds of one call of the command, the start of its process included."""
    command = [sys.executable, "-m", "flows.cli", *arguments, "--database", place.url]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    began = time.perf_counter()
    subprocess.run(command, cwd=place.folder, env=env, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


if __name__ == "__main__":
    sys.exit(main())
