"""`pareto worker`: run beside an instance what is submitted for it."""

from __future__ import annotations

import os
from pathlib import Path


def worker(instance: str, *, folder: Path = Path()) -> int:
    """Take campaigns for an instance from a Prefect server, one at a time, until Ctrl-C.

    Example: `pareto worker h200-8 --folder /data`

    PREFECT_API_URL names the server, PARETO_DATABASE the records that all machines share. Run it
    on the machine that loads the instance, with the official client installed, under a supervisor
    such as systemd.

    Args:
        instance: Name of the instance, as campaigns have it in `instance.name`.
        folder: Where its runs work; the same on every machine beside this instance.
    """
    from flows.worker import run_worker, surroundings

    api_url, database = surroundings(os.environ)
    run_worker(instance, folder, api_url, database, lambda line: print(line, flush=True))
    return 0
