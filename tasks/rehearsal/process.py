"""Starts the rehearsal endpoint as a process of its own and ends it for certain."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import httpx

import tasks
from core.errors import SetupError

#: Time the endpoint has to answer `/health`, seconds.
START_TIMEOUT_S = 20.0
#: Time it has to end on SIGTERM before it is killed, seconds.
END_TIMEOUT_S = 5.0
#: Time between two looks while waiting, seconds.
_POLL_S = 0.05


@contextlib.contextmanager
def running_endpoint(**options: str | float | Path | None) -> Iterator[str]:
    """Run `python -m tasks.rehearsal.endpoint` in its own session and yield its URL.

    Args:
        **options: The program's flags with underscores (`decode_ms=5`, `request_log=path`); None
            leaves a flag out.

    Raises:
        SetupError: If it does not become healthy; the message holds what it printed.
    """
    with tempfile.TemporaryDirectory(prefix="pareto-rehearsal-") as folder:
        address_file, output = Path(folder) / "address", Path(folder) / "output"
        with output.open("wb") as stream:
            process = _start({**options, "address_file": address_file}, stream.fileno())
        try:
            yield _wait_healthy(process, address_file, output)
        finally:
            _end(process)


def _start(options: dict[str, str | float | Path | None], output: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tasks.rehearsal.endpoint"]
    for name, value in options.items():
        if value is not None:
            command += ["--" + name.replace("_", "-"), str(value)]
    root = str(Path(tasks.__path__[0]).parent)
    path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        env={**os.environ, "PYTHONPATH": path},
        start_new_session=True,
    )


def _wait_healthy(process: subprocess.Popen[bytes], address_file: Path, output: Path) -> str:
    deadline_s = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline_s and process.poll() is None:
        if address_file.exists():
            url = address_file.read_text(encoding="utf-8").strip()
            with contextlib.suppress(httpx.HTTPError):
                if httpx.get(f"{url}/health", trust_env=False).is_success:
                    return url
        time.sleep(_POLL_S)
    said = output.read_text(encoding="utf-8", errors="replace").strip()
    raise SetupError(f"the rehearsal endpoint did not start: {said or 'it printed nothing'}")


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ask the process to end, then end its whole session."""
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(END_TIMEOUT_S)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
