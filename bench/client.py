"""The client of the measurements: the stand-in or the real one with stamps, or a replayed folder.

`python -m bench.client …` takes the arguments of `inference-endpoint`. The process writes when it
began and ended, on the clock that all of them share. Only `benchmark` is changed:

* `PARETO_BENCH_REPLAY=FOLDER`: no load; that level's folder is copied from an earlier run.
* `PARETO_BENCH_PAD_MB=200`: the copied `events.jsonl` is filled up to that size.
* `PARETO_BENCH_CLIENT=COMMAND`: the real client in the place of the stand-in.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

#: Bytes in a megabyte.
MB = 1_000_000
#: Bytes of padding written at once.
_BLOCK_BYTES = 8 * MB


def now_s() -> float:
    """Seconds since boot: the clock that process start times are told in."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def began_s() -> float:
    """When this process began."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    return int(fields[19]) / os.sysconf("SC_CLK_TCK")


def main(arguments: list[str]) -> int:
    """Run the client; stamp a measurement."""
    if arguments[:1] != ["benchmark"]:
        return _client(arguments)
    config = Path(arguments[arguments.index("--config") + 1])
    replay = os.environ.get("PARETO_BENCH_REPLAY")
    code = _replayed(Path(replay), config) if replay else _client(arguments)
    _stamp(config)
    return code


def _stamp(config: Path) -> None:
    stamps = os.environ.get("PARETO_BENCH_STAMPS")
    if stamps is None:
        return
    with Path(stamps).open("a") as file:
        line = {"config": str(config), "began_s": began_s(), "ended_s": now_s()}
        file.write(json.dumps(line) + "\n")


def _client(arguments: list[str]) -> int:
    """The real client where one is named, else the stand-in."""
    if real := os.environ.get("PARETO_BENCH_CLIENT"):
        import subprocess  # noqa: PLC0415 - a replay needs none of it

        return subprocess.run([real, *arguments], check=False).returncode
    from tasks.rehearsal import client  # noqa: PLC0415 - a replay needs none of it

    return client.main(arguments)


def _replayed(folders: Path, config: Path) -> int:
    """Copy the run folder of the same level; its files are as new as those of a client."""
    import shutil  # noqa: PLC0415 - only here

    attempt = config.parent
    run = next((folders / attempt.parent.name).glob("attempt-*/run"))
    shutil.copytree(run, attempt / "run", copy_function=shutil.copyfile)
    size_bytes = int(os.environ.get("PARETO_BENCH_PAD_MB", "0")) * MB
    if size_bytes:
        pad(run / "events.jsonl", attempt / "run" / "events.jsonl", size_bytes)
    return 0


def pad(source: Path, target: Path, size_bytes: int) -> None:
    """Write events again with one answer made so long that the file reaches a size."""
    lines = source.read_bytes().splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if b'"sample.recv_first"' in line) + 1
    further = lines[at - 1].replace(b'"sample.recv_first"', b'"sample.recv_non_first"')
    block = further * (_BLOCK_BYTES // len(further))
    with target.open("wb") as file:
        file.writelines(lines[:at])
        for _ in range(max(0, size_bytes - sum(map(len, lines))) // len(block)):
            file.write(block)
        file.writelines(lines[at:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
