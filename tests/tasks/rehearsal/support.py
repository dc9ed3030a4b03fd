"""What the rehearsal tests share: recorded cases, and calls of the stand-in client."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

import tasks
from tasks.rehearsal.config import load
from tasks.rehearsal.run import benchmark

ROOT = Path(tasks.__path__[0]).parent
#: Seconds after which a test has hung.
PATIENCE_S = 20.0
#: Rows of the recorded datasets.
ROWS = 20


def fixtures_folder() -> Path:
    """Where the recorded run folders lie, at collection time."""
    if named := os.environ.get("PARETO_FIXTURES"):
        return Path(named)
    beside = ROOT.parent / "shared" / "fixtures"
    return beside if beside.is_dir() else ROOT / "tests" / "data" / "fixtures"


def performance_rows() -> list[dict[str, str]]:
    """The rows of the recorded runs' performance dataset."""
    return [
        {"prompt": f"Sample {row}: please explain the number {row} in plain words and be brief."}
        for row in range(ROWS)
    ]


def accuracy_rows(prefix: str = "x") -> list[dict[str, str]]:
    """The rows of the recorded runs' accuracy dataset."""
    return [
        {
            "prompt": f"Problem {row}: What is {3 + row} + {1 + 2 * row}? "
            "Put the answer in \\boxed{}.",
            "ground_truth": f"{prefix}{4 + 3 * row}",
        }
        for row in range(ROWS)
    ]


def point_config(url: str, *, offline: bool = False, accuracy: str | None = None) -> dict[str, Any]:
    """The configuration of the recorded runs.

    Args:
        url: The endpoint.
        offline: Whether all is asked at once.
        accuracy: File of an accuracy dataset.
    """
    pattern: dict[str, Any] = {"type": "max_throughput"}
    if not offline:
        pattern = {"type": "concurrency", "target_concurrency": 4}
    datasets: list[dict[str, Any]] = [{"name": "perf", "type": "performance", "path": "perf.jsonl"}]
    if accuracy is not None:
        scoring = {
            "eval_method": "pass_at_1",
            "ground_truth": "ground_truth",
            "extractor": "boxed_math_extractor",
        }
        datasets.append(
            {"name": "acc", "type": "accuracy", "path": accuracy, "accuracy_config": scoring}
        )
    return {
        "name": "sim-point",
        "type": "offline" if offline else "online",
        "model_params": {
            "name": "sim-model",
            "max_new_tokens": 16,
            "tokenizer_name": "../../tok",
        },
        "datasets": datasets,
        "settings": {
            "runtime": {
                "n_samples_to_issue": 40,
                "min_duration_ms": 0,
                "scheduler_random_seed": 10487924139932647040,
                "dataloader_random_seed": 586478644936801402,
            },
            "load_pattern": pattern,
            "client": {"num_workers": 1, "max_connections": 64, "stream_all_chunks": True},
        },
        "endpoint_config": {"endpoints": [url]},
        "report_dir": "out",
    }


def recorded_config(case: str, url: str) -> dict[str, Any]:
    """The configuration that a recorded run was given."""
    accuracy = "acc.jsonl" if case in ("c02_both_pass", "c04_acc_only", "c21_empty") else None
    config = point_config(url, offline=case == "c05_offline", accuracy=accuracy)
    runtime = config["settings"]["runtime"]
    if case == "c15_warmup_salt_drain":
        runtime["n_samples_to_issue"] = 20
        warmup = {"enabled": True, "n_requests": 6, "salt": True, "drain": True}
        config["settings"]["warmup"] = warmup
    if case == "c17_no_count":
        del runtime["n_samples_to_issue"]
    return config


@dataclass
class Client:
    """The stand-in client in a folder with the recorded datasets."""

    folder: Path
    url: str

    def write(self, config: dict[str, Any] | None = None, **changes: Any) -> Path:
        """Write a configuration, a plain run's if none is given; `a__b` replaces `a: {b: …}`."""
        config = config or point_config(self.url)
        for dotted, value in changes.items():
            *parents, last = dotted.split("__")
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

    def run(self, config: Path | str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run `benchmark from-config`."""
        return self.call("benchmark", "from-config", "--config", str(config), *arguments)

    def benchmark(self, config: Path, mode: str = "perf") -> None:
        """Run `benchmark from-config` within this process; a failure is raised."""
        with contextlib.chdir(self.folder):
            benchmark(load(config), mode)

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
