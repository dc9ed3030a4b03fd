"""Watches processes from outside: processor time and memory, told by /proc."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench.client import now_s

#: Seconds between two looks.
LOOK_S = 0.5
#: Bytes in a megabyte.
MB = 1_000_000


@dataclass(frozen=True)
class Look:
    """A process at one moment."""

    at_s: float
    cpu_s: float
    pss_bytes: int  # resident; pages that processes share in equal parts


@dataclass
class Watched:
    """The looks at some processes, each under a name."""

    looks: dict[str, list[Look]] = field(default_factory=dict)

    def cpu_share(self, name: str, within: list[tuple[float, float]]) -> float:
        """Processor time of a process over the time of spans."""
        cpu_s = wall_s = 0.0
        for began_s, ended_s in within:
            inside = [k for k in self.looks.get(name, []) if began_s <= k.at_s <= ended_s]
            if len(inside) > 1:
                cpu_s += inside[-1].cpu_s - inside[0].cpu_s
                wall_s += inside[-1].at_s - inside[0].at_s
        return cpu_s / wall_s if wall_s else 0.0

    def cpu_share_at(self, name: str, within: list[tuple[float, float]], span_s: float) -> float:
        """The same if the spans were so long, each going on as its second half does."""
        halves = [((began_s + ended_s) / 2, ended_s) for began_s, ended_s in within]
        steady, share = self.cpu_share(name, halves), self.cpu_share(name, within)
        measured_s = sum(ended_s - began_s for began_s, ended_s in within) / len(within)
        return steady + (share - steady) * measured_s / span_s

    def most_memory_mb(self, name: str) -> float:
        """The most memory of a process."""
        return max((k.pss_bytes for k in self.looks.get(name, [])), default=0) / MB


def look_at(pid: int) -> Look | None:
    """A process now; None: it is gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except (OSError, IndexError):
        return None
    cpu_s = (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")
    kb = next((line.split()[1] for line in rollup.splitlines() if line.startswith("Pss:")), "0")
    return Look(now_s(), cpu_s, int(kb) * 1024)


def children(of: int, marked: str) -> list[int]:
    """Children of a process whose command line has a word in it."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            stat = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
            command = Path(f"/proc/{name}/cmdline").read_bytes()
        except OSError:
            continue
        if int(stat[1]) == of and marked.encode() in command:
            found.append(int(name))
    return found


@contextmanager
def watched(pids: Callable[[], dict[str, list[int]]]) -> Iterator[Watched]:
    """Look at processes while the block lasts; several under one name are counted together."""
    seen, ended = Watched(), threading.Event()
    gone: dict[str, dict[int, float]] = {}

    def watch() -> None:
        while not ended.wait(LOOK_S):
            for name, wanted in pids().items():
                spent = gone.setdefault(name, {})
                looks = {pid: look for pid in wanted if (look := look_at(pid))}
                spent |= {pid: look.cpu_s for pid, look in looks.items()}
                pss_bytes = sum(look.pss_bytes for look in looks.values())
                look = Look(now_s(), sum(spent.values()), pss_bytes)
                seen.looks.setdefault(name, []).append(look)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        ended.set()
        thread.join()
