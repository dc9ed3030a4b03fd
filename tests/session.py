"""What one run of the tests shares: a folder for all workers, and one Prefect server in it.

The process that pytest was started in makes the folder; the workers of pytest-xdist find it
through the environment. Whatever is shared is made once, by the worker that needs it first, while
the others wait for it. The keeper (`tests/keeper.py`) clears all of it away, also after a run that
was killed.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import keeper
from tests.keeper import FOLDER_ENV

#: Variables of the caller that would change what the programs under test do.
_FOREIGN = ("PREFECT_", "PARETO_DATABASE", "PARETO_STATE_DIR", "PARETO_REHEARSAL")

#: Seconds until a new service must serve.
_SERVED_WITHIN_S = 120.0

#: The keeper's process, in the stash of the process that pytest was started in.
_KEEPER = pytest.StashKey["subprocess.Popen[bytes]"]()


def begin(config: pytest.Config) -> None:
    """Make the shared folder and start its keeper, unless this is a worker."""
    if _is_worker(config):
        return
    for name in [name for name in os.environ if name.startswith(_FOREIGN)]:
        del os.environ[name]
    folder = tempfile.mkdtemp(prefix="pareto-tests-")
    config.stash[_KEEPER] = subprocess.Popen(
        [sys.executable, keeper.__file__, folder], stdin=subprocess.PIPE, start_new_session=True
    )
    os.environ[FOLDER_ENV] = folder
    os.environ["PARETO_STATE_DIR"] = str(Path(folder) / "state")  # not the caller's own


def end(config: pytest.Config) -> None:
    """Let the keeper end what was shared and remove the folder, unless this is a worker."""
    if _is_worker(config):
        return
    del os.environ[FOLDER_ENV], os.environ["PARETO_STATE_DIR"]
    config.stash[_KEEPER].communicate()


def prefect_api_url() -> str:
    """Address of the one Prefect server of this run of the tests."""
    from tasks.prefect_server import SETTINGS, find_or_start

    def start(folder: Path) -> None:
        os.environ.update(SETTINGS)
        (folder / "api_url").write_text(find_or_start(folder).api_url)

    return (shared("prefect", start) / "api_url").read_text()


def service_api_url() -> str:
    """Address of that server, once the one service of this run of the tests serves campaigns."""
    api_url = prefect_api_url()

    def start(folder: Path) -> None:
        env = {**os.environ, "PREFECT_API_URL": api_url, "PARETO_STATE_DIR": str(folder / "state")}
        env |= {"PYTHONPATH": str(Path(__file__).resolve().parents[1])}
        with (folder / "service.log").open("ab") as log:
            subprocess.Popen(
                [sys.executable, "-m", "flows.cli", "serve", str(folder / "data")],
                env={**env, "PREFECT_RUNNER_POLL_FREQUENCY": "1"},
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        _wait_for_deployment(api_url, "campaign/campaign")

    shared("service", start)
    return api_url


def _wait_for_deployment(api_url: str, name: str) -> None:
    from tasks.prefect_api import PrefectApi

    server, deadline_s = PrefectApi(api_url, timeout_s=30.0), time.monotonic() + _SERVED_WITHIN_S
    while server.deployment(name) is None:
        assert time.monotonic() < deadline_s, "the service does not serve campaigns"
        time.sleep(0.3)


def shared(name: str, make: Callable[[Path], None]) -> Path:
    """A folder that `make` filled, in this worker or in another.

    Args:
        name: Name of the folder.
        make: Fills the new folder; called once in a run of the tests, and again where it failed.
    """
    session = Path(os.environ[FOLDER_ENV])
    folder, done = session / name, session / f"{name}.done"
    with (session / f"{name}.lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            done.touch()
    return folder


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")
