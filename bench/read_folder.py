"""Reading a run folder: counts, issue span and hash of a large `events.jsonl` in one pass.

Compared, in turn, with `sha256sum` on the same file and with a bare orjson loop over its lines.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from uuid import UUID

from bench.figures import Figure, median_of
from bench.place import Place

#: Size of the file, GB, and in a short measurement.
SIZE_GB, QUICK_SIZE_GB = 2.0, 0.5
#: Targets: speed over that of `sha256sum`; time over that of an orjson loop; memory, MB.
OF_SHA256, OF_ORJSON, MEMORY_MB = 0.7, 2.0, 64.0
#: Rounds.
TIMES, QUICK_TIMES = 5, 3
#: Streams at once, and tokens of an answer: one chunk each.
STREAMS, TOKENS = 64, 500
#: Bytes in a gigabyte.
GB = 1_000_000_000


def measure(place: Place) -> list[Figure]:
    """Read one file in three ways, in turn."""
    run = place.folder / "large-run"
    run.mkdir()
    file = run / "events.jsonl"
    write_events(file, int((QUICK_SIZE_GB if place.quick else SIZE_GB) * GB))
    took_s: dict[str, list[float]] = {"collect": [], "sha256sum": [], "orjson": []}
    memory_mb = []
    for _ in range(QUICK_TIMES if place.quick else TIMES):
        took_s["sha256sum"].append(_sha256sum(file))
        for way in ("collect", "orjson"):
            told = _in_own_process(place, way, file)
            took_s[way].append(told["seconds"])
            if way == "collect":
                memory_mb.append(told["memory_mb"])
    size_mb = file.stat().st_size / 1e6
    pairs = list(zip(took_s["collect"], took_s["sha256sum"], took_s["orjson"], strict=True))
    file.unlink()
    return [
        median_of("collect (counts, span, hash)", [size_mb / s for s in took_s["collect"]], "MB/s"),
        median_of("sha256sum", [size_mb / s for s in took_s["sha256sum"]], "MB/s"),
        median_of("bare orjson loop", [size_mb / s for s in took_s["orjson"]], "MB/s"),
        median_of(
            "collect over sha256sum",
            [s / c for c, s, _ in pairs],
            "×",
            OF_SHA256,
            at_least=True,
            note="speed; either this target or the next is to be met",
        ),
        median_of(
            "collect over an orjson loop", [c / o for c, _, o in pairs], "×", OF_ORJSON, note="time"
        ),
        median_of(
            "memory above the start", memory_mb, "MB", MEMORY_MB, note=f"file of {size_mb:.0f} MB"
        ),
    ]


def write_events(path: Path, size_bytes: int) -> None:
    """Events as the client writes them: streams side by side, a record for each chunk."""

    def line(event: str, stamp_ns: int, sample: str, more: str = "") -> str:
        return (
            f'{{"event_type":"{event}","timestamp_ns":{stamp_ns},"sample_uuid":"{sample}",'
            f'"conversation_id":"","turn":null,"data":null{more}}}\n'
        )

    written = number = 0
    stamp_ns = 10**12
    with path.open("w") as file:
        file.write(line("session.start_performance_tracking", stamp_ns, ""))
        while written < size_bytes:
            ids = [UUID(int=number + stream).hex for stream in range(STREAMS)]
            number += STREAMS
            lines = [line("sample.issued", stamp_ns, one) for one in ids]
            lines += [line("sample.recv_first", stamp_ns, one) for one in ids]
            for token in range(TOKENS - 1):
                stamp_ns += 10**7
                lines += [line("sample.recv_non_first", stamp_ns + token, one) for one in ids]
            done = ',"finish_reason":"stop"'
            lines += [line("sample.complete", stamp_ns, one, done) for one in ids]
            written += file.write("".join(lines))
        file.write(line("session.stop_performance_tracking", stamp_ns, ""))
        file.write(line("session.ended", stamp_ns, ""))


def _sha256sum(file: Path) -> float:
    began_s = time.perf_counter()
    program = ["sha256sum", str(file)]  # the system's own, wherever it lies
    subprocess.run(program, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began_s


def _in_own_process(place: Place, way: str, file: Path) -> dict[str, float]:
    code = f"from bench.read_folder import read_{way}; read_{way}({str(file)!r})"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=place.env(),
        check=True,
        capture_output=True,
        text=True,
    )
    told: dict[str, float] = json.loads(done.stdout)
    return told


def read_collect(file: str) -> None:
    """Read the folder as after a point, and tell time and memory above the start."""
    from tasks.collect import collect  # noqa: PLC0415 - in a process of its own

    before_mb = _peak_mb()
    began_s = time.perf_counter()
    facts, _ = collect(Path(file).parent, attempt_started_at=0.0, exit_code=0, ended_by="itself")
    took_s = time.perf_counter() - began_s
    assert not isinstance(facts.events, tuple | type(None))
    assert facts.events.issued == facts.events.completed > 0
    assert facts.events.session_ended
    print(json.dumps({"seconds": took_s, "memory_mb": _peak_mb() - before_mb}))


def read_orjson(file: str) -> None:
    """Parse every line and keep nothing."""
    import orjson  # noqa: PLC0415 - in a process of its own

    began_s = time.perf_counter()
    with Path(file).open("rb") as lines:
        for line in lines:
            orjson.loads(line)
    print(json.dumps({"seconds": time.perf_counter() - began_s}))


def _peak_mb() -> float:
    """Most memory that this process had so far, MB."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024 / 1e6
