"""`python -m bench [--quick] [--json PATH] [NAME…]`: measure, print one table, write JSON."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import signal
import sys
import time
from pathlib import Path
from typing import Any

from bench.figures import Figure, table
from bench.place import ROOT, new_place, real_client

#: The questions, in the order in which they are asked.
NAMES = ("start_up", "dead_time", "read_folder", "growth", "estimate", "shell_loop", "disturbance")
#: Where results go, unless a path is given.
RESULTS = ROOT / "bench" / "results"


def main() -> int:
    """Ask every question that is named."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what was started is ended all the same
    asked = _arguments()
    figures: list[Figure] = []
    blocks: list[dict[str, Any]] = []
    began_at = time.time()
    with new_place(quick=asked.quick) as place:
        for name in asked.names or NAMES:
            started_s, load = time.monotonic(), os.getloadavg()[0]
            found = importlib.import_module(f"bench.{name}").measure(place)
            took_s = time.monotonic() - started_s
            print(f"\n{name} ({took_s:.0f} s, load {load:.1f})\n{table(found)}", flush=True)
            figures += found
            blocks.append(
                {
                    "name": name,
                    "seconds": took_s,
                    "load_before": load,
                    "figures": [figure.as_json() for figure in found],
                }
            )
    path = asked.json or RESULTS / f"{time.strftime('%Y%m%dT%H%M%S')}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(_machine(began_at) | {"blocks": blocks}, indent=2) + "\n")
    missed = [figure for figure in figures if figure.miss > 1]
    print(f"\n{len(figures)} figures, {len(missed)} targets missed; {path}")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter repetitions")
    parser.add_argument("--json", type=Path, help="where the results go")
    parser.add_argument("names", nargs="*", choices=[*NAMES, []], metavar="NAME", help=str(NAMES))
    return parser.parse_args()


def _machine(began_at: float) -> dict[str, Any]:
    """Where and when."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return {
        "version": 1,
        "date": time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(began_at)),
        "command": " ".join(["python -m bench", *sys.argv[1:]]),
        "machine": f"{len(names)} × {names[0] if names else platform.processor()}",
        "kernel": platform.release(),
        "python": platform.python_version(),
        "client": "the official client" if real_client() else "stand-in",
    }


if __name__ == "__main__":
    sys.exit(main())
