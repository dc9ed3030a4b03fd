"""A folder to measure in: datasets, campaigns, the rehearsal endpoint, `pareto` as a process.

Everything it starts is ended again, and the folder is removed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

import bench
from core.client_config import merged
from core.records import Records, open_records
from tasks.prefect_server import SETTINGS, find_or_start, stop_server
from tasks.rehearsal.process import running_endpoint

#: The repository.
ROOT = Path(bench.__path__[0]).parent
#: Rows of the datasets; one pass is short, so that a point may be.
ROWS, SCORED_ROWS = 8, 36
#: The highest level and all levels: the seven points that the rules ask for.
C_MAX, LEVELS = 33, (33, 1, 20, 9, 3, 6, 2)
#: Minimum duration of a point that the time scale shortens, s (§6.2).
MINIMUM_S = 600.0
#: A request of the endpoint: prefill and one decode step for each further token, ms and tokens.
PREFILL_MS, DECODE_MS, TOKENS = 50, 30, 16
REQUEST_S = (PREFILL_MS + DECODE_MS * (TOKENS - 1)) / 1000
#: Queries per second at each level, that the endpoint can't exceed.
QPS = {level: level / REQUEST_S for level in LEVELS}
#: Longest time that one command may take, s.
PATIENCE_S = 1500.0


def campaign_of(name: str, url: str, point_s: float, **sections: Any) -> dict[str, Any]:
    """A campaign whose points take about so many seconds; sections given are merged in."""
    base: dict[str, Any] = {
        "campaign": name,
        "benchmark": "custom",
        "model": {"name": "rehearsal-model"},
        "endpoint": {"urls": [url]},
        "instance": {"name": "box"},
        "datasets": {
            "performance": {"path": "performance.jsonl"},
            "accuracy": [_accuracy()],
        },
        "curve": {"c_max": C_MAX, "spares": 0},
        "run": {
            "expected_qps": QPS,
            "basis": "minimum",
            "pilot": {"enabled": False},
            "duration_margin": 1.25,
            "retries": 0,
        },
        "seeds": {"target_cohort": "2026-12-C0"},
        "client": {"command": [sys.executable, "-m", "bench.client"], "overrides": _overrides()},
        "records": {"folder": f"data-{name}"},
        "rehearsal": {"time_scale": point_s / MINIMUM_S / 1.25 / 1.5},
    }
    return merged(base, sections)


def _overrides() -> dict[str, Any]:
    """What the real client needs to be light on two cores."""
    if not real_client():
        return {}
    client = {"num_workers": 1, "warmup_connections": 4, "max_connections": 64}
    return {"settings": {"client": client}}


def real_client() -> str | None:
    """Path of the real client, if one is named."""
    return os.environ.get("PARETO_TEST_CLIENT")


def _accuracy() -> dict[str, Any]:
    scorer = {
        "eval_method": "pass_at_1",
        "ground_truth": "ground_truth",
        "extractor": "boxed_math_extractor",
    }
    return {
        "path": "accuracy.jsonl",
        "rows": SCORED_ROWS,
        "scorer": scorer,
        "targets": {"score": 0.9},
    }


def write_datasets(folder: Path) -> None:
    """Write both datasets."""
    performance = [{"prompt": f"Sample {row}: explain {row}."} for row in range(ROWS)]
    question = "Problem {0}: What is {0} + {1}? Put the answer in \\boxed{{}}."
    accuracy = [
        {"prompt": question.format(row, 2 * row), "ground_truth": f"x{3 * row}"}
        for row in range(SCORED_ROWS)
    ]
    for name, rows in (("performance", performance), ("accuracy", accuracy)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


@dataclass
class Place:
    """A folder with datasets, and what it started."""

    folder: Path
    quick: bool
    stack: ExitStack
    _endpoint: str | None = field(default=None, init=False)
    _prefect: str | None = field(default=None, init=False)

    @property
    def endpoint(self) -> str:
        """The rehearsal endpoint's URL; started on first use."""
        if self._endpoint is None:
            self._endpoint = self.stack.enter_context(new_endpoint())
        return self._endpoint

    @property
    def prefect(self) -> str:
        """API URL of a Prefect server that runs already; started on first use."""
        if self._prefect is None:
            home = self.folder / "prefect"
            os.environ.update({k: v for k, v in SETTINGS.items() if k not in os.environ})
            self.stack.callback(stop_server, home)
            self._prefect = find_or_start(home).api_url
        return self._prefect

    def write(self, name: str, point_s: float, **sections: Any) -> Path:
        """Write a campaign file."""
        url = sections.pop("url", None) or self.endpoint
        if tokenizer := os.environ.get("PARETO_TEST_TOKENIZER"):
            sections = merged({"model": {"tokenizer": tokenizer}}, sections)
        file = self.folder / f"{name}.yaml"
        campaign = campaign_of(name, url, point_s, **sections)
        file.write_text(yaml.safe_dump(campaign, sort_keys=False))
        return file

    def runs(self, name: str) -> Path:
        """The folders of a campaign's points."""
        return self.folder / f"data-{name}" / "runs" / name

    def records(self, name: str) -> Records:
        """The records of a campaign."""
        return open_records(f"sqlite:///{self.folder / f'data-{name}' / 'pareto.db'}")

    def env(self, **variables: str) -> dict[str, str]:
        """Environment of the command: byte code is kept, as in an installation."""
        ours = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        real = {"PARETO_BENCH_CLIENT": client} if (client := real_client()) else {}
        return {
            **ours,
            "PYTHONPATH": str(ROOT),
            "PYTHONPYCACHEPREFIX": str(self.folder / "bytecode"),
            "PREFECT_HOME": str(self.folder / "prefect-home"),
            "PARETO_STATE_DIR": str(self.folder / "state"),
            **real,
            **variables,
        }

    def start(
        self, *arguments: str | Path, module: str = "flows.cli", **variables: str
    ) -> subprocess.Popen[str]:
        """Start `pareto` here."""
        log = self.folder / "pareto.log"
        with log.open("a") as output:
            return subprocess.Popen(
                [sys.executable, "-m", module, *map(str, arguments)],
                cwd=self.folder,
                env=self.env(**variables),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                text=True,
                start_new_session=True,
            )

    def run(
        self, *arguments: str | Path, module: str = "flows.cli", **variables: str
    ) -> subprocess.Popen[str]:
        """Run `pareto` to its end, which must be a good one."""
        process = self.start(*arguments, module=module, **variables)
        self.finish(process)
        return process

    def finish(self, process: subprocess.Popen[str]) -> None:
        """Wait for a command; it must have ended well."""
        code = process.wait(PATIENCE_S)
        if code != 0:
            said = (self.folder / "pareto.log").read_text()[-3000:]
            raise RuntimeError(f"exit code {code} from {process.args!r}:\n{said}")


@contextmanager
def new_endpoint() -> Iterator[str]:
    """A rehearsal endpoint whose speed and not the machine's decides how long a request takes."""
    speed: Mapping[str, float] = {
        "prefill_ms": PREFILL_MS,
        "prefill_ms_per_token": 0,
        "decode_ms": DECODE_MS,
        "decode_ms_per_sequence": 0,
        "output_tokens": TOKENS,
    }
    with running_endpoint(model="rehearsal-model", **speed) as url:
        yield url


@contextmanager
def new_place(*, quick: bool) -> Iterator[Place]:
    """A new folder, gone afterwards with all that was started in it."""
    folder = Path(tempfile.mkdtemp(prefix="pareto-bench-"))
    try:
        write_datasets(folder)
        with ExitStack() as stack:
            yield Place(folder, quick, stack)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def stamps_of(file: Path) -> list[dict[str, Any]]:
    """The clients' stamps, in the order of their beginnings."""
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    return sorted(lines, key=lambda line: float(line["began_s"]))
