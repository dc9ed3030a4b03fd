"""Start-up: `pareto --help`, `plan` cold, and `run` to its first client with a running server."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from bench.client import now_s
from bench.dead_time import replayable
from bench.figures import Figure, median_of
from bench.place import Place, stamps_of

#: Targets, s.
HELP_S, PLAN_S, RUN_S = 0.3, 1.0, 8.0
#: Repetitions, and how many in a short measurement.
TIMES, QUICK_TIMES = 15, 5


def measure(place: Place) -> list[Figure]:
    """Time the commands in turn; the first call of each, which compiles, is not counted."""
    times = QUICK_TIMES if place.quick else TIMES
    file = place.write("start", 2.0)
    commands = {"--help": ["--help"], "plan": ["plan", str(file)], "python -c pass": None}
    took_s: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(times + 1):
        for name, arguments in commands.items():
            seconds = _seconds(place, arguments)
            if number:
                took_s[name].append(seconds)
    first_client_s = [_to_first_client(place, f"start-{n}") for n in range(2 if place.quick else 4)]
    return [
        median_of("pareto --help", took_s["--help"], "s", HELP_S),
        median_of("pareto plan", took_s["plan"], "s", PLAN_S),
        median_of("  of that: an empty Python", took_s["python -c pass"], "s"),
        median_of(
            "pareto run to the first client's start",
            first_client_s,
            "s",
            RUN_S,
            note="Prefect server running; seven configurations validated",
        ),
    ]


def _seconds(place: Place, arguments: list[str] | None) -> float:
    code = ["-c", "pass"] if arguments is None else ["-m", "flows.cli", *arguments]
    began_s = time.perf_counter()
    subprocess.run(
        [sys.executable, *code],
        cwd=place.folder,
        env=place.env(),
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return time.perf_counter() - began_s


def _to_first_client(place: Place, name: str) -> float:
    """Seconds from the command to the client's start; only the last point is run."""

    template, stamps = replayable(place), Path(place.folder / f"{name}.stamps")
    file = place.write(name, 2.0)
    server = place.prefect
    began_s = now_s()
    process = place.start(
        "run",
        file,
        "--points",
        "2",
        PREFECT_API_URL=server,
        PARETO_BENCH_REPLAY=str(template),
        PARETO_BENCH_STAMPS=str(stamps),
    )
    process.wait()  # exit code 1: the other points were not asked for
    return float(stamps_of(stamps)[0]["began_s"]) - began_s
