"""Finds the Prefect server that shows the campaign, or starts one for as long as it is needed.

Prefect shows and drives; the records are the truth. Without an address Prefect would start a
hidden server for each process, so an address is always set before Prefect is imported.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil

from core.errors import SetupError
from core.files import write_atomic

#: Seconds until a new server must answer; a first start with migrations took 15.6 s.
START_TIMEOUT_S = 120.0
#: Seconds a server gets to end after SIGTERM.
STOP_TIMEOUT_S = 15.0
#: Prefect settings of every process of ours: no outside calls, and patience with an outage (with
#: ten retries a two-minute outage of the server no longer turns a finished flow into a failure).
SETTINGS = {
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "DO_NOT_TRACK": "1",
    "PREFECT_CLIENT_MAX_RETRIES": "10",
    "PREFECT_LOGGING_LEVEL": "WARNING",
    "PREFECT_CLI_PROMPT": "false",
}


@dataclass(frozen=True)
class Server:
    """A Prefect server that answers."""

    api_url: str
    started_here: bool

    @property
    def ui_url(self) -> str:
        """Address of its pages."""
        return self.api_url.removesuffix("/api")


@contextmanager
def prefect_server(folder: Path) -> Iterator[Server]:
    """The server named by `PREFECT_API_URL`, or one of our own on loopback while the block lasts.

    Sets `PREFECT_API_URL` and `SETTINGS` in this process's environment, so it must come before
    the first import of Prefect.

    Args:
        folder: Folder of a server of our own: its database, log and address.

    Raises:
        SetupError: the named server doesn't answer, or ours doesn't start.
    """
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    named = os.environ.get("PREFECT_API_URL")
    if named:
        if not answers(named):
            raise SetupError(
                f"PREFECT_API_URL: no Prefect server answers at {named}; start it, or unset the"
                " variable and pareto starts one for the run"
            )
        yield Server(named, started_here=False)
        return
    server, process = _own_server(folder)
    os.environ["PREFECT_API_URL"] = server.api_url
    try:
        yield server
    finally:
        os.environ.pop("PREFECT_API_URL", None)
        _stop(process)
        (folder / "server.json").unlink(missing_ok=True)


def answers(api_url: str) -> bool:
    """Whether a Prefect server answers there."""
    try:
        return httpx.get(f"{api_url}/health", timeout=5.0).is_success
    except httpx.HTTPError:
        return False


def _own_server(folder: Path) -> tuple[Server, psutil.Process]:
    """A server of ours that an earlier, killed run left behind, or a new one."""
    left = _left_behind(folder)
    if left is not None:
        return left
    folder.mkdir(parents=True, exist_ok=True)
    port = _free_port()
    api_url = f"http://127.0.0.1:{port}/api"
    process = _spawn(folder, port, api_url)
    deadline = time.monotonic() + START_TIMEOUT_S
    while not answers(api_url):
        if process.poll() is not None or time.monotonic() > deadline:
            _stop(psutil.Process(process.pid) if process.poll() is None else None)
            raise SetupError(f"the Prefect server did not start; see {folder / 'server.log'}")
        time.sleep(0.2)
    owned = psutil.Process(process.pid)
    address = {"api_url": api_url, "pid": owned.pid, "created": owned.create_time()}
    write_atomic(folder / "server.json", json.dumps(address).encode())
    return Server(api_url, started_here=True), owned


def _spawn(folder: Path, port: int, api_url: str) -> subprocess.Popen[bytes]:
    env = os.environ | {"PREFECT_HOME": str(folder), "PREFECT_UI_API_URL": api_url}
    command = [sys.executable, "-m", "prefect", "server", "start"]
    with (folder / "server.log").open("ab") as log:
        return subprocess.Popen(
            [*command, "--host", "127.0.0.1", "--port", str(port)],
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def _left_behind(folder: Path) -> tuple[Server, psutil.Process] | None:
    try:
        address = json.loads((folder / "server.json").read_bytes())
        process = psutil.Process(address["pid"])
        same = process.create_time() == address["created"]
    except (OSError, ValueError, KeyError, psutil.Error):
        return None
    if same and answers(address["api_url"]):
        return Server(address["api_url"], started_here=True), process
    return None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _stop(process: psutil.Process | None) -> None:
    """End a server of ours and everything it started."""
    if process is None:
        return
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


def _signal(process: psutil.Process, number: int) -> None:
    try:
        process.send_signal(number)
    except psutil.NoSuchProcess:
        return
