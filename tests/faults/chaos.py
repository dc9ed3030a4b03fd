"""Rehearsal campaigns with a random fault each: `python -m tests.faults.chaos --campaigns 100`.

Every one must end valid or with a named reason; afterwards, without the fault, the same campaign
must become valid without measuring a finished point again. Seeded: `--seed` repeats a sequence.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from core.status import AttemptState
from flows.stop import StopRequest
from tasks.supervise import read_status, request_stop
from tests.faults.support import POINTS, Lab, away, database_files
from tests.flows.support import write_datasets

#: Faults that the endpoint shows from the start.
ENDPOINT = (
    {"stall_after": 5},
    {"stall_midway_after": 5},
    {"error_rate_percent": 10},
    {"busy_rate_percent": 10},
    {"drop_rate_percent": 10},
    {"empty_rate_percent": 20},
    {"cut_next": 1},
    {"slow_after": 10},
)
#: Faults of the client.
CLIENT = ("exit at start", "killed", "hang", "grandchild", "incomplete")
#: Longest time from the start of a campaign to a fault from outside, seconds.
LATEST_S = 4.0


def kill_guard(lab: Lab) -> None:
    """End a guard that lives."""
    _kill(lab, "guard")


def kill_client(lab: Lab) -> None:
    """End a client that lives."""
    _kill(lab, "client")


def stop_client(lab: Lab) -> None:
    """Ask a guard to end its client, as `pareto cancel` does."""
    for path in lab.runs.glob("*/*/*/guard.json"):
        request_stop(path.with_name("stop.json"), "chaos")


def lose_database(lab: Lab) -> None:
    """The records are away for a moment."""
    with away(*database_files(lab)):
        time.sleep(1.0)


def _kill(lab: Lab, who: str) -> None:
    for path in lab.runs.glob("*/*/*/guard.json"):
        status = read_status(path)
        process = status and getattr(status, who)
        if status is not None and process is not None and status.end is None:
            with suppress(ProcessLookupError):  # it ended since
                os.kill(process.pid, signal.SIGKILL)


#: Faults from outside at a random time.
OUTSIDE: tuple[Callable[[Lab], None], ...] = (kill_guard, kill_client, stop_client, lose_database)


def one_campaign(lab: Lab, chance: random.Random) -> str:
    """Run a campaign with a fault, then without; what the fault was."""
    kind = chance.choice(["endpoint", "client", "outside", "ctrl-c"])
    stop, late_s = StopRequest(), chance.uniform(0.2, LATEST_S)
    fault, variables, act = kind, {}, None
    if kind == "endpoint":
        faults = chance.choice(ENDPOINT)
        lab.set_faults(**faults)
        fault = str(faults)
    elif kind == "client":
        fault = variables["PARETO_TEST_FAULT"] = chance.choice(CLIENT)
    elif kind == "outside":
        act = chance.choice(OUTSIDE)
        fault = act.__name__
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(lab.run, *POINTS, stop=stop, **variables)
        if kind in ("outside", "ctrl-c"):
            time.sleep(late_s)
            act(lab) if act else stop.ask("chaos")
        run.result()
    lab.assert_sound()
    lab.set_faults()
    lab.run(*POINTS)
    lab.assert_sound()
    for label in POINTS:
        states = [attempt.state for attempt in lab.attempts(label)]
        assert states[-1:] == [AttemptState.VALID], (fault, label, states, lab.attempts(label))
    return f"{fault} after {late_s:.1f} s"


def chaos(campaigns: int, seed: int, folder: Path) -> Iterator[str]:
    """Run campaigns one after another on one endpoint; tells the fault of each."""
    chance = random.Random(seed)
    host = Lab(folder, "http://127.0.0.1:9/api")
    with host.endpoint() as url:
        for number in range(campaigns):
            place = folder / f"{number:03d}"
            place.mkdir()
            write_datasets(place)
            lab = Lab(place, host.prefect_api_url, url=url)
            lab.write(run={"stall_timeout_s": 1.5, "fail_fast": True, "retries": 1})
            yield f"{number}: {one_campaign(lab, chance)}"


def main() -> None:
    """Run chaos from the command line."""
    command = argparse.ArgumentParser(description=__doc__)
    command.add_argument("--campaigns", type=int, default=100)
    command.add_argument("--seed", type=int, default=1)
    arguments = command.parse_args()
    with tempfile.TemporaryDirectory(prefix="pareto-chaos-") as folder:
        for line in chaos(arguments.campaigns, arguments.seed, Path(folder)):
            print(line, flush=True)


if __name__ == "__main__":
    main()
