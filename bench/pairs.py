"""Pairs of measurements: a campaign of `pareto run`, then a bare loop of the same client, in turn.

The loop gets the very configurations of the campaign, on the same endpoint; only folders differ.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from bench.client import now_s
from bench.place import Place, stamps_of
from bench.watch import Watched, children, watched
from core.layout import AttemptPaths

#: Length of a point, s, and how many pairs are measured; and in a short measurement.
POINT_S, COUNT = 30.0, 2
QUICK_POINT_S, QUICK_COUNT = 4.0, 1


@dataclass(frozen=True)
class Pair:
    """One campaign, and one bare loop after it."""

    point_s: float
    points: int
    campaign_s: float  # the whole command
    clients_s: float  # from its first client's start to its last one's end
    loop_s: float
    measured: Mapping[str, Mapping[str, Any]]  # label → the client's summary, in the campaign
    bare: Mapping[str, Mapping[str, Any]]  # and in the loop
    watched: Watched
    spans: list[tuple[float, float]]  # in which a client ran


@cache
def _pairs(key: tuple[int, bool]) -> list[Pair]:  # noqa: ARG001 - one list a place
    return []


def pairs_of(place: Place) -> list[Pair]:
    """The pairs, measured once for all who ask."""
    kept = _pairs((id(place), place.quick))
    if not kept:
        point_s, count = (QUICK_POINT_S, QUICK_COUNT) if place.quick else (POINT_S, COUNT)
        kept += [_pair(place, f"pair-{number}", point_s) for number in range(count)]
    return kept


def _pair(place: Place, name: str, point_s: float) -> Pair:
    stamps = place.folder / f"{name}.stamps"
    # The loop runs the same configurations to their ends, so nothing cuts them short here either.
    file, server = place.write(name, point_s, run={"fail_fast": False}), place.prefect
    began_s = now_s()
    process = place.start("run", file, PREFECT_API_URL=server, PARETO_BENCH_STAMPS=str(stamps))
    with watched(lambda: _pids(process.pid)) as seen:
        place.finish(process)
    campaign_s = now_s() - began_s
    spans = [(client["began_s"], client["ended_s"]) for client in stamps_of(stamps)]
    attempts = sorted(place.runs(name).glob("*/attempt-01"), key=_started)
    began_s = now_s()
    _loop(place, name, attempts)
    loop_s = now_s() - began_s
    return Pair(
        point_s,
        len(attempts),
        campaign_s,
        spans[-1][1] - spans[0][0],
        loop_s,
        {a.parent.name: _summary(AttemptPaths(a).run.path) for a in attempts},
        {a.parent.name: _summary(_bare(place, name) / a.parent.name) for a in attempts},
        seen,
        spans,
    )


def _pids(pareto: int) -> dict[str, list[int]]:
    guards = children(pareto, "tasks.guard")
    keepers = children(pareto, "tasks.lease_keeper")
    pictures = children(pareto, "tasks.curve_picture")
    return {
        "pareto": [pareto],
        "guard": guards,
        "picture": pictures,
        "all of it": [pareto, *guards, *keepers, *pictures],
    }


def _started(attempt: Path) -> float:
    return AttemptPaths(attempt).client_yaml.stat().st_mtime


def _bare(place: Place, name: str) -> Path:
    return place.folder / f"bare-{name}"


def _loop(place: Place, name: str, attempts: list[Path]) -> None:
    """A shell's loop over the same configurations."""
    folder = _bare(place, name)
    folder.mkdir()
    lines = []
    for attempt in attempts:
        label = attempt.parent.name
        config = yaml.safe_load(AttemptPaths(attempt).client_yaml.read_text())
        config["report_dir"] = str(folder / label)
        (folder / f"{label}.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
        command = json.loads(AttemptPaths(attempt).guard_spec.read_text())["command"]
        mode = command[command.index("--mode") + 1]
        lines.append(f"{shlex.quote(str(folder / label))}.yaml {mode}")
    client = shlex.join([sys.executable, "-m", "bench.client"])
    script = (
        f"while read config mode; do {client} benchmark from-config --config $config --mode $mode"
        " < /dev/null || exit 1; done"
    )
    with (folder / "log").open("w") as log:
        subprocess.run(
            ["sh", "-c", script],  # noqa: S607 - the user's shell
            input="\n".join([*lines, ""]),
            text=True,
            cwd=place.folder,
            env=place.env(),
            stdout=log,
            stderr=log,
            check=True,
        )


def _summary(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / "performance" / "result_summary.json").read_text())
    return found
