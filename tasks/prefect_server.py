"""Finds the Prefect server that shows the campaign, or starts one for as long as it is needed.

Prefect shows and drives; the records are the truth. Without an address Prefect would start a
hidden server for each process, so an address is always set before Prefect is imported.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO

import httpx
import psutil

from core.errors import SetupError
from core.files import write_atomic
from tasks.prefect_api import ANSWER_TIMEOUT_S, PrefectApi, login, pages_url
from tasks.tls import tls_context

#: Seconds until a new server must answer; a first start with migrations took 15.6 s.
START_TIMEOUT_S = 120.0
#: Prefect's own port.
USUAL_PORT = 4200
#: Days that a suspended run waits to be resumed.
SUSPENDED_DAYS = 365
#: Seconds for a look at a running flow's state.
LOOK_TIMEOUT_S = 5.0
#: Seconds a server gets to end after SIGTERM.
STOP_TIMEOUT_S = 15.0
#: Prefect's command; it imports nothing of ours, and is found wherever it is started from.
_COMMAND = str(Path(__file__).with_name("prefect_start.py"))
#: Name of the file with a server's address and process in its folder.
_ADDRESS = "server.json"
#: Prefect settings of every process of ours: no outside calls, and patience with an outage (with
#: ten retries a two-minute outage of the server no longer turns a finished flow into a failure).
SETTINGS = {
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "DO_NOT_TRACK": "1",
    "PREFECT_CLIENT_MAX_RETRIES": "10",
    "PREFECT_LOGGING_LEVEL": "WARNING",
    "PREFECT_CLI_PROMPT": "false",
}
#: Background services of a server of ours whose loops of 5 to 20 s cost half a percent of a core
#: while nothing runs (measured); once a minute does for what they do.
_CALM = (
    "CANCELLATION_CLEANUP",
    "CLEANUP_RECONCILER",
    "FOREMAN",
    "LATE_RUNS",
    "PAUSE_EXPIRATIONS",
    "REPOSSESSOR",
    "SCHEDULER_RECENT_DEPLOYMENTS",
)
SERVER_SETTINGS = {
    "PREFECT_SERVER_EVENTS_PROACTIVE_GRANULARITY": "PT60S",  # automations on what fails to happen
    **{f"PREFECT_SERVER_SERVICES_{name}_LOOP_SECONDS": "60" for name in _CALM},
}


@dataclass(frozen=True)
class Server:
    """A Prefect server that answers."""

    api_url: str

    @property
    def ui_url(self) -> str:
        """Address of its pages."""
        return pages_url(self.api_url)


@dataclass(frozen=True)
class At:
    """Where a server of our own listens."""

    host: str = "127.0.0.1"
    port: int | None = None  # None: any free one

    @property
    def is_everywhere(self) -> bool:
        """Whether it listens on all of the machine's addresses."""
        return self.host in ("0.0.0.0", "::")  # noqa: S104 - compared, not bound

    def api_url(self, port: int) -> str:
        """Address of the API as this machine reaches it."""
        return f"http://{'127.0.0.1' if self.is_everywhere else self.host}:{port}/api"

    def ui_api_url(self, port: int) -> str:
        """Address of the API as a reader's browser reaches it."""
        return f"http://{socket.gethostname() if self.is_everywhere else self.host}:{port}/api"


@contextmanager
def prefect_server(folder: Path, at: At = At()) -> Iterator[Server]:
    """The server named by `PREFECT_API_URL`, or one of our own on loopback while the block lasts.

    Sets `PREFECT_API_URL` and `SETTINGS` in this process's environment, so it must come before
    the first import of Prefect.

    Args:
        folder: Folder of a server of our own: its database, log and address. Processes that use
            the same folder at the same time share one server; the last one ends it.
        at: Where a server of our own listens, if none runs there already.

    Raises:
        SetupError: the named server doesn't answer or is of another major version, the port is
            taken, or ours doesn't start.
    """
    set_up()
    named = os.environ.get("PREFECT_API_URL")
    if named:
        if not answers(named):
            raise SetupError(
                f"PREFECT_API_URL: no Prefect server answers at {named}; start it, or unset the"
                " variable and pareto starts one for the run"
            )
        PrefectApi(named).refuse_other_version()
        yield Server(named)
        return
    with _own_server(folder, at) as server:
        os.environ["PREFECT_API_URL"] = server.api_url
        try:
            yield server
        finally:
            os.environ.pop("PREFECT_API_URL", None)


def set_up() -> None:
    """Set `SETTINGS` in this process's environment, where the caller's says nothing else."""
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)


def answers(api_url: str) -> bool:
    """Whether a Prefect server answers there."""
    try:
        return _got(f"{api_url}/health", {}, ANSWER_TIMEOUT_S).is_success
    except (httpx.HTTPError, httpx.InvalidURL):
        return False


def flow_run_state(api_url: str, flow_run_id: str) -> str | None:
    """Type of a flow run's state, e.g. RUNNING; None if the server doesn't say at once."""
    try:
        response = _got(f"{api_url}/flow_runs/{flow_run_id}", login(), LOOK_TIMEOUT_S)
        return str(response.raise_for_status().json()["state_type"])
    except (httpx.HTTPError, ValueError, KeyError):
        return None


def _got(url: str, headers: dict[str, str], timeout_s: float) -> httpx.Response:
    return httpx.get(url, headers=headers, timeout=timeout_s, verify=tls_context())


def suspend(api_url: str, flow_run_id: str) -> None:
    """Let a run that was suspended stay so; the pages' own time-out makes it fail in minutes."""
    until = datetime.now(UTC) + timedelta(days=SUSPENDED_DAYS)
    details = {"pause_timeout": until.isoformat(), "pause_reschedule": True}
    with suppress(SetupError):  # it fails in minutes then, and can be retried
        PrefectApi(api_url).set_state(flow_run_id, "PAUSED", "Suspended", details=details)


def revived(folder: Path, at: At) -> Server:
    """The server of a folder that we use, started again if it has ended."""
    with _turn(folder):
        return find_or_start(folder, at)


def lives(folder: Path) -> bool:
    """Whether the process of a folder's server lives."""
    return _recorded(folder) is not None


def known_api_url(folders: Iterable[Path]) -> str:
    """Where the server of a service is: as named, of one of these folders, or the usual place."""
    named = os.environ.get("PREFECT_API_URL")
    found = (_recorded(folder) for folder in folders)
    return named or next((each[0].api_url for each in found if each), At().api_url(USUAL_PORT))


def find_or_start(folder: Path, at: At = At()) -> Server:
    """The server of a folder: the one that runs there already, or a new one that outlives us.

    Raises:
        SetupError: it doesn't start.
    """
    found = _recorded(folder)
    if found and _comes_up(*found):
        return found[0]
    stop_server(folder)
    return _started(folder, at)


def stop_server(folder: Path) -> None:
    """End the server of a folder, if one runs there, and everything that it started."""
    found = _recorded(folder)
    if found:
        _stop(found[1])
    (folder / _ADDRESS).unlink(missing_ok=True)


@contextmanager
def _own_server(folder: Path, at: At) -> Iterator[Server]:
    """A server that is shared by all who use the folder now; the kernel knows who still does."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "server.users").open("ab") as users:
        with _turn(folder):
            server = find_or_start(folder, at)
            fcntl.flock(users, fcntl.LOCK_SH)
        try:
            yield server
        finally:
            with _turn(folder):
                if _is_last(users):
                    stop_server(folder)


@contextmanager
def _turn(folder: Path) -> Iterator[None]:
    """One process at a time starts or ends the server of a folder."""
    with (folder / "server.turn").open("ab") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        yield


def _is_last(users: IO[bytes]) -> bool:
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _started(folder: Path, at: At) -> Server:
    folder.mkdir(parents=True, exist_ok=True)
    if at.port is not None:
        _refuse_taken(at, at.port)
    port = at.port or _free_port()
    server = Server(at.api_url(port))
    failed = SetupError(f"the Prefect server did not start; see {folder / 'server.log'}")
    try:
        process = psutil.Process(_spawn(folder, at, port).pid)
        created = process.create_time()
    except psutil.NoSuchProcess:  # it ended at once
        raise failed from None
    # Before it answers: if we are killed meanwhile, the next run finds it.
    address = {"api_url": server.api_url, "pid": process.pid, "created": created}
    write_atomic(folder / _ADDRESS, json.dumps(address).encode())
    if not _comes_up(server, process):
        stop_server(folder)
        raise failed
    return server


def _comes_up(server: Server, process: psutil.Process) -> bool:
    """Whether a server answers before its process or our patience ends."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while not answers(server.api_url):
        if not _is_alive(process) or time.monotonic() > deadline:
            return False
        time.sleep(0.2)
    return True


def _refuse_taken(at: At, port: int) -> None:
    """Refuse a port that somebody listens on.

    Raises:
        SetupError: saying who.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((at.host, port))
        except OSError as problem:
            reason = problem.strerror
        else:
            return
    url = at.api_url(port)
    if answers(url):
        raise SetupError(
            f"port {port} is taken by a Prefect server; join it with PREFECT_API_URL={url}, or name"
            " another port with --port"
        )
    raise SetupError(
        f"port {port} of {at.host} can't be listened on ({reason}); name another with --port"
    )


def _spawn(folder: Path, at: At, port: int) -> subprocess.Popen[bytes]:
    own = {"PREFECT_HOME": str(folder), "PREFECT_UI_API_URL": at.ui_api_url(port)}
    env = SERVER_SETTINGS | os.environ | own
    command = [sys.executable, "-P", _COMMAND, "server", "start"]
    with (folder / "server.log").open("ab") as log:
        return subprocess.Popen(
            [*command, "--host", at.host, "--port", str(port)],
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def _recorded(folder: Path) -> tuple[Server, psutil.Process] | None:
    """The server whose process lives, perhaps started by a run that was killed since."""
    try:
        address = json.loads((folder / _ADDRESS).read_bytes())
        process = psutil.Process(address["pid"])
        same = process.create_time() == address["created"]
        return (Server(address["api_url"]), process) if same else None
    except (OSError, ValueError, KeyError, TypeError, psutil.Error):
        return None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _stop(process: psutil.Process) -> None:
    """End a process and everything it started."""
    try:
        family = [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return
    for member in family:
        _signal(member, signal.SIGTERM)
    _, alive = psutil.wait_procs(family, timeout=STOP_TIMEOUT_S)
    for member in alive:
        _signal(member, signal.SIGKILL)
    psutil.wait_procs(alive, timeout=STOP_TIMEOUT_S)


def _is_alive(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _signal(process: psutil.Process, number: int) -> None:
    try:
        process.send_signal(number)
    except psutil.NoSuchProcess:
        return
