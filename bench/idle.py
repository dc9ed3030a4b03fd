"""What a served installation costs while it does nothing: CPU time and memory of all its processes.

    python bench/idle.py --seconds 60

Starts `pareto serve` in a folder of its own, waits until it serves and has settled, and reports.
Memory is proportional (PSS): pages that processes share are counted once.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx
import psutil

ROOT = Path(__file__).resolve().parents[1]
#: Seconds until it must serve, and seconds that it gets to settle afterwards.
SERVED_WITHIN_S, SETTLE_S = 180.0, 30.0
MEBIBYTE = 1 << 20


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    seconds = parser.parse_args().seconds
    with tempfile.TemporaryDirectory(prefix="pareto-idle-") as folder:
        port = free_port()
        service = start(Path(folder), port)
        try:
            wait_until_served(port)
            time.sleep(SETTLE_S)
            report(psutil.Process(service.pid), seconds)
        finally:
            service.send_signal(signal.SIGTERM)
            service.wait()


def start(folder: Path, port: int) -> subprocess.Popen[bytes]:
    """Start the service."""
    foreign = ("PREFECT_", "PARETO_")
    env = {k: v for k, v in os.environ.items() if not k.startswith(foreign)}
    return subprocess.Popen(
        [sys.executable, "-m", "flows.cli", "serve", str(folder / "data"), "--port", str(port)],
        cwd=folder,
        env=env | {"PYTHONPATH": str(ROOT), "PARETO_STATE_DIR": str(folder / "state")},
    )


def wait_until_served(port: int) -> None:
    """Wait for the deployment."""
    deadline_s = time.monotonic() + SERVED_WITHIN_S
    while True:
        try:
            url = f"http://127.0.0.1:{port}/api/deployments/name/campaign/campaign"
            if httpx.get(url).is_success:
                return
        except httpx.HTTPError:
            pass
        assert time.monotonic() < deadline_s, "it does not serve"
        time.sleep(0.5)


def report(service: psutil.Process, seconds: float) -> None:
    """CPU time over a while, and memory at its end, by process and in all."""
    before = {process: cpu_s(process) for process in family(service)}
    time.sleep(seconds)
    total_cpu_s = total_bytes = 0.0
    for process in family(service):
        spent_s = cpu_s(process) - before.get(process, 0.0)
        pss = process.memory_full_info().pss
        total_cpu_s, total_bytes = total_cpu_s + spent_s, total_bytes + pss
        what = " ".join(process.cmdline()[1:5])
        print(f"{spent_s / seconds:6.2%} of a core  {pss / MEBIBYTE:6.0f} MiB  {what}")
    print(f"{total_cpu_s / seconds:6.2%} of a core  {total_bytes / MEBIBYTE:6.0f} MiB  in all")


def family(service: psutil.Process) -> list[psutil.Process]:
    """The service and everything that it started."""
    return [service, *service.children(recursive=True)]


def cpu_s(process: psutil.Process) -> float:
    """CPU time of a process so far."""
    times = process.cpu_times()
    return float(times.user + times.system)


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    main()
