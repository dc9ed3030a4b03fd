"""What the rehearsal tests share: an endpoint, and calls of the stand-in client."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

import tasks
from tasks.rehearsal.process import running_endpoint

ROOT = Path(tasks.__path__[0]).parent
#: Seconds after which a test has hung.
PATIENCE_S = 20.0


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """A fast endpoint, as the recorded folders had one: 12 tokens, the same model name."""
    with running_endpoint(
        model="sim-model", prefill_ms=5, prefill_ms_per_token=0, decode_ms=1, output_tokens=12
    ) as url:
        yield url


@pytest.fixture
def set_faults(endpoint: str) -> Iterator[Callable[..., None]]:
    """Replaces the endpoint's faults; they are off again after the test."""

    def replace(**faults: int) -> None:
        httpx.post(f"{endpoint}/rehearsal/faults", json=faults).raise_for_status()

    replace()
    yield replace
    replace()


@dataclass
class Client:
    """The stand-in client in a folder with the recorded datasets."""

    folder: Path
    url: str
    fixtures: Path

    def write(self, case: str, **changes: Any) -> Path:
        """Write a recorded case's configuration against this endpoint, with `a.b.c` replaced."""
        config = yaml.safe_load((self.fixtures / case / "config.in.yaml").read_text())
        config["endpoint_config"]["endpoints"] = [self.url]
        for path, value in changes.items():
            *parents, last = path.split("__")
            target = config
            for parent in parents:
                target = target.setdefault(parent, {})
            target[last] = value
        path = self.folder / "config.yaml"
        path.write_text(yaml.safe_dump(config, sort_keys=False))
        return path

    def start(self, *arguments: str, **env: str) -> subprocess.Popen[str]:
        """Start the client with these arguments in its folder."""
        return subprocess.Popen(
            [sys.executable, "-m", "tasks.rehearsal.client", *arguments],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(ROOT), **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def call(self, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        """Run the client to its end."""
        process = self.start(*arguments, **env)
        try:
            out, err = process.communicate(timeout=PATIENCE_S)
        finally:
            process.kill()
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def run(self, config: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run `benchmark from-config`."""
        return self.call("benchmark", "from-config", "--config", str(config), *arguments)

    def wait_for(self, path: str) -> None:
        """Wait until the run folder has a file."""
        deadline = time.monotonic() + PATIENCE_S
        while not (self.folder / "out" / path).exists():
            assert time.monotonic() < deadline, f"{path} did not appear"
            time.sleep(0.02)

    def json(self, path: str) -> Any:
        """A JSON file of the run folder."""
        return json.loads((self.folder / "out" / path).read_bytes())

    def events(self) -> list[dict[str, Any]]:
        """The events of the run folder."""
        lines = (self.folder / "out" / "events.jsonl").read_bytes().splitlines()
        return [json.loads(line) for line in lines]


@pytest.fixture
def client(tmp_path: Path, endpoint: str, fixtures_dir: Path) -> Client:
    """The stand-in client, set up against the endpoint."""
    for name in ("perf.jsonl", "acc.jsonl", "acc_num.jsonl"):
        shutil.copy(fixtures_dir / "data" / name, tmp_path)
    return Client(tmp_path, endpoint, fixtures_dir)
