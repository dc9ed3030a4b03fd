"""The worker beside an instance: takes what is submitted for it, for as long as it runs.

Its own process imports no Prefect and does little: it waits for server and records, settles what
dead processes of this machine left, and keeps the process that does the work running.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from core.errors import InputError, SetupError
from core.layout import worker_folder
from core.records import Records, RecordsUnavailableError, open_records
from core.records.engine import shown
from flows.reconcile import left_open, reconcile
from flows.service import end_on_signals
from flows.source import DATABASE_ENV
from tasks.kept import keep_running
from tasks.prefect_api import PrefectApi
from tasks.prefect_server import answers, set_up

#: Variables that tell the process that does the work which instance is its own, and where it runs.
INSTANCE_ENV, FOLDER_ENV = "PARETO_INSTANCE", "PARETO_WORK_FOLDER"
#: The module of that process.
_WORK = "flows.work"
#: Seconds between two looks for a server or records that are away, and for submitted runs.
_LOOK_S, _POLL_S = 2.0, 5


def pool_of(instance: str) -> str:
    """Name of an instance's work pool."""
    return f"pareto-{instance}"


def run_worker(
    instance: str, folder: Path, api_url: str, database: str, tell: Callable[[str], None]
) -> None:
    """Take campaigns for an instance until a signal ends it.

    Args:
        instance: Name of the instance, as campaigns have it in `instance.name`.
        folder: Where runs work; relative paths of a campaign without a file start there.
        api_url: Address of the Prefect server.
        database: URL of the records.
        tell: Takes each line for the user.

    Raises:
        InputError: a name that can't be a folder's.
        SetupError: the records are of another version, or the server is.
    """
    stop = end_on_signals()
    home = worker_folder(instance, os.environ)
    if not folder.is_dir():
        raise InputError(f"--folder: {folder} is no folder; make it, or name another")
    records = _opened(database, stop, tell)
    _await_server(api_url, stop, tell)
    if records is None or stop.is_set():
        return
    home.mkdir(parents=True, exist_ok=True)
    set_up()
    os.environ.setdefault("PREFECT_WORKER_QUERY_SECONDS", str(_POLL_S))
    os.environ.setdefault("PREFECT_HOME", str(home / "prefect"))
    os.environ |= {INSTANCE_ENV: instance, FOLDER_ENV: str(folder.absolute())}
    api = PrefectApi(api_url)
    api.refuse_other_version()
    for line in [*reconcile(api, instance), *left_open(records)]:
        tell(line)
    tell(f"records   {shown(records.url)}")
    tell(f"takes what is submitted for {instance} at {api.ui_url}")
    keep_running(_WORK, home / "worker.log", stop, tell, alive=home / "alive")
    tell("stopped; a client that was running goes on, and the next worker takes it in")


def _opened(database: str, stop: threading.Event, tell: Callable[[str], None]) -> Records | None:
    """The records, waited for while they are away; None: asked to stop."""
    told = ""
    while not stop.is_set():
        try:
            return open_records(database)
        except RecordsUnavailableError as problem:
            if str(problem) != told:
                told = str(problem)
                tell(f"waiting: {told}")
            stop.wait(_LOOK_S)
    return None


def _await_server(api_url: str, stop: threading.Event, tell: Callable[[str], None]) -> None:
    is_told = False
    while not answers(api_url) and not stop.is_set():
        if not is_told:
            is_told = True
            tell(f"waiting: no Prefect server answers at {api_url}")
        stop.wait(_LOOK_S)


def surroundings(env: Mapping[str, str]) -> tuple[str, str]:
    """Address of the Prefect server and URL of the records, which a worker shares with others.

    Raises:
        SetupError: a variable is not set.
    """
    for name, what in (
        ("PREFECT_API_URL", "the Prefect server's API, e.g. http://head-node:4200/api"),
        (DATABASE_ENV, "the records that all share, e.g. postgresql://pareto@head-node/pareto"),
    ):
        if not env.get(name):
            raise SetupError(f"{name} is not set; name {what}")
    return env["PREFECT_API_URL"], env[DATABASE_ENV]
