"""The stand-in client with one fault of its own, named by PARETO_TEST_FAULT: `client.py ARGS…`.

Only a measurement shows the fault; the client's small commands work.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

#: Megabytes that a client of too many words prints.
FLOOD_MB = int(os.environ.get("PARETO_TEST_FLOOD_MB", "1000"))
#: Seconds from the start to a fault in the middle of a run.
MIDDLE_S = 0.8


def later(act) -> None:
    """Do something in the middle of the run."""
    timer = threading.Timer(MIDDLE_S, act)
    timer.daemon = True
    timer.start()


def hang() -> None:
    """Start the timed phase and never end it."""
    print("2026-11-29 16:43:07,382 - x.session - INFO - Starting phase: performance (performance)")
    sys.stdout.flush()
    time.sleep(600)


def flood() -> None:
    """Print a lot of lines that say nothing."""
    block = (b"x" * 99 + b"\n") * 10_000
    for _ in range(FLOOD_MB):
        sys.stdout.buffer.write(block)


def run_folder() -> Path:
    """The folder of this run."""
    import yaml

    config = Path(sys.argv[sys.argv.index("--config") + 1])
    return Path(yaml.safe_load(config.read_text())["report_dir"])


def fault_before(fault: str) -> None:
    """What goes wrong before or during the run."""
    if fault == "exit at start":
        print("no configuration of mine", file=sys.stderr)
        sys.exit(3)
    if fault == "killed":
        later(lambda: os.kill(os.getpid(), signal.SIGKILL))
    if fault == "stubborn":
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        hang()
    if fault == "hang":
        hang()
    if fault == "grandchild":
        code = "import signal, time\nsignal.signal(15, 1)\ntime.sleep(600)"
        subprocess.Popen([sys.executable, "-S", "-c", code], start_new_session=True)
    if fault == "flood":
        flood()


def fault_after(fault: str) -> None:
    """What goes wrong after the run."""
    if fault == "incomplete":
        (run_folder() / "events.jsonl").unlink()
        (run_folder() / "performance" / "result_summary.json").unlink()


def main() -> int:
    """Run the stand-in with the fault."""
    from tasks.rehearsal.client import main as stand_in

    fault = os.environ.get("PARETO_TEST_FAULT", "") if "benchmark" in sys.argv else ""
    fault_before(fault)
    code = stand_in()
    fault_after(fault)
    return code


if __name__ == "__main__":
    sys.exit(main())
