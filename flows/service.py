"""The service: records up to date, a Prefect server, dead runs settled, the deployments served.

Its own process imports no Prefect and does little: it starts the others and starts them again.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType

from core.errors import SetupError
from core.records import open_records, upgrade
from core.records.engine import shown
from flows.reconcile import left_open, reconcile
from flows.source import DATABASE_ENV
from tasks.kept import keep_running
from tasks.prefect_api import PrefectApi
from tasks.prefect_server import At, lives, prefect_server, revived

#: The module that serves the deployments.
_RUNNER = "flows.serve"


def run_service(folder: Path, database: str, at: At, tell: Callable[[str], None]) -> None:
    """Serve campaigns until a signal ends it.

    Args:
        folder: The data folder: Prefect's database and logs lie in it.
        database: URL of the records.
        at: Where a Prefect server of our own listens.
        tell: Takes each line for the user.

    Raises:
        SetupError: no server, or the records can't be opened.
    """
    stop = end_on_signals()
    upgrade(database)
    records = open_records(database)
    os.environ[DATABASE_ENV] = records.url.render_as_string(hide_password=False)
    home = folder.absolute() / "prefect"
    home.mkdir(parents=True, exist_ok=True)
    is_joined = bool(os.environ.get("PREFECT_API_URL"))
    with prefect_server(home, at) as server:
        os.environ.setdefault("PREFECT_HOME", str(home))
        for line in [*reconcile(PrefectApi(server.api_url)), *left_open(records)]:
            tell(line)
        tell(f"records   {shown(records.url)}")
        tell(f"watch, submit and retry at {server.ui_url}")

        def look() -> None:
            if not is_joined and not lives(home):
                tell("the Prefect server ended; starting it again")
                with suppress(SetupError):  # the next look tries again
                    revived(home, at)

        keep_running(_RUNNER, home / "runner.log", stop, tell, look, home / "alive")
    tell("stopped; campaigns that were running go on when the service starts again")


def end_on_signals() -> threading.Event:
    """An event that SIGINT and SIGTERM set."""
    stop = threading.Event()

    def ask(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, ask)
    return stop
