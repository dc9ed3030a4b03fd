"""A place where the command `pareto` is run as a process of its own, and what it left there.

The endpoint needs a tenth of a second a request, so that its speed and not that of the machine
decides how long a point takes: the rates stated in the campaign are never exceeded, and a point
that is sized by them, with the margin that the campaign takes, is not too short.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import httpx
import orjson
import yaml

import flows
from core.client_config import merged
from core.records import AttemptRecord, PointRecord, Records, open_records
from core.status import AttemptState
from tasks.prefect_api import PrefectApi
from tasks.rehearsal.process import running_endpoint

T = TypeVar("T")

ROOT = Path(flows.__path__[0]).parent
#: What stands before every program of a place that says to be another machine.
SHIM = Path(__file__).parents[1] / "faults" / "shim"
#: Seconds after which a test has hung; a busy machine is slow.
PATIENCE_S = 120.0
#: Rows of the performance dataset, and of the accuracy dataset: more than the highest level, so
#: that the scored requests reach the level too.
ROWS, SCORED_ROWS = 8, 36
#: Milliseconds that a request takes: prefill, and one decode step for each further token.
PREFILL_MS, DECODE_MS, TOKENS = 20, 20, 5
REQUEST_S = (PREFILL_MS + DECODE_MS * (TOKENS - 1)) / 1000
#: A client that notes what it is called with, and then is the stand-in.
NOTING = """import sys
from pathlib import Path
from tasks.rehearsal.client import main
with Path({log!r}).open("a") as log:
    log.write(" ".join(sys.argv[1:]) + "\\n")
sys.exit(main())
"""
#: The highest level, and the levels in run order.
C_MAX = 33
LABELS = ("c0033", "c0001", "c0020", "c0009", "c0003", "c0006", "c0002")
#: The points with an accuracy run.
SCORED = {"c0033", "c0020", "c0009", "c0003"}
#: Queries per second that the endpoint can't exceed, by level.
EXPECTED_QPS = {int(label[1:]): int(label[1:]) / REQUEST_S for label in LABELS}


def performance_prompt(row: int) -> str:
    """The prompt of a row of the performance dataset."""
    return f"Sample {row}: please explain the number {row} in plain words."


def accuracy_prompt(row: int) -> str:
    """The prompt of a row of the accuracy dataset."""
    return f"Problem {row}: What is {row} + {2 * row}? Put the answer in \\boxed{{}}."


def write_datasets(folder: Path, rows: int = ROWS) -> None:
    """Write both datasets."""
    performance = [{"prompt": performance_prompt(row)} for row in range(rows)]
    accuracy = [
        {"prompt": accuracy_prompt(row), "ground_truth": f"x{3 * row}"}
        for row in range(SCORED_ROWS)
    ]
    for name, data in (("performance", performance), ("accuracy", accuracy)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in data))


def campaign_dict(url: str, **sections: Any) -> dict[str, Any]:
    """A whole campaign against an endpoint; sections given are merged in."""
    base: dict[str, Any] = {
        "campaign": "curve",
        "benchmark": "custom",
        "model": {"name": "rehearsal-model"},
        "endpoint": {"urls": [url]},
        "instance": {"name": "box"},
        "datasets": {
            "performance": {"path": "performance.jsonl"},
            "accuracy": [
                {
                    "path": "accuracy.jsonl",
                    "rows": SCORED_ROWS,
                    "scorer": {
                        "eval_method": "pass_at_1",
                        "ground_truth": "ground_truth",
                        "extractor": "boxed_math_extractor",
                    },
                    "targets": {"score": 0.9},
                }
            ],
        },
        "curve": {"c_max": C_MAX, "spares": 0},
        "run": {
            "retries": 0,
            "backoff_s": 0.1,
            "expected_qps": EXPECTED_QPS,
            "basis": "minimum",
            "duration_margin": 2.0,
            "pilot": {"enabled": False},
            "fail_fast": False,
        },
        "seeds": {"target_cohort": "2026-12-C0"},
        "client": {"command": [sys.executable, "-m", "tasks.rehearsal.client"]},
        "records": {"folder": "data"},
        "rehearsal": {"time_scale": 0.0002},
    }
    return merged(base, sections)


@dataclass(frozen=True)
class Done:
    """How a call of `pareto` ended."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Request:
    """One line of the endpoint's request log."""

    received_at: float
    kind: str  # performance, accuracy, or other: a preflight's, for one token
    in_flight: int
    status: int
    finish: str | None


@dataclass
class Place:
    """A folder with datasets, a campaign and all that running it leaves."""

    folder: Path
    prefect_api_url: str
    name: str = "curve"  # of the campaign
    url: str = "http://127.0.0.1:9"  # of the endpoint; the default is nobody's
    database: str | None = None  # address of records that it shares; default: its own SQLite file
    machine: str | None = None  # name of the machine that it says to be; default: this one

    @property
    def file(self) -> Path:
        """The campaign file."""
        return self.folder / "campaign.yaml"

    def noting_client(self) -> list[str]:
        """Command of a client that notes its calls in this place."""
        client, log = self.folder / "noting.py", self.folder / "calls.txt"
        client.write_text(NOTING.format(log=str(log)))
        return [sys.executable, str(client)]

    def confirmed(self) -> list[str]:
        """The points whose configurations that client was asked to confirm, in any order."""
        calls = [line.split() for line in (self.folder / "calls.txt").read_text().splitlines()]
        return [Path(call[-1]).stem for call in calls if call[0] == "validate-yaml"]

    @property
    def data(self) -> Path:
        """The data folder."""
        return self.folder / "data"

    @property
    def runs(self) -> Path:
        """Run folders."""
        return self.data / "runs"

    @property
    def log(self) -> Path:
        """The endpoint's request log."""
        return self.folder / "requests.jsonl"

    def write(self, text: str | None = None, **sections: Any) -> Path:
        """Write the campaign file: this text, or a whole campaign with sections merged in."""
        if text is None:
            sections = {"campaign": self.name, **sections}
            if self.database is not None:
                sections = merged(sections, {"records": {"database": self.database}})
            text = yaml.safe_dump(campaign_dict(self.url, **sections), sort_keys=False)
        self.file.write_text(text)
        return self.file

    # --- The command -----------------------------------------------------------------------------

    def env(self, **variables: str) -> dict[str, str]:
        """Environment of the command: this server, this place, nothing of the caller's."""
        ours = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        elsewhere = {} if self.machine is None else {"PARETO_TEST_MACHINE": self.machine}
        return {
            **ours,
            **elsewhere,
            "PYTHONPATH": str(ROOT) if self.machine is None else f"{SHIM}:{ROOT}",
            "PREFECT_API_URL": self.prefect_api_url,
            "PREFECT_HOME": str(self.folder / "prefect-home"),
            "PARETO_STATE_DIR": str(self.folder / "state"),
            **variables,
        }

    def start(self, *arguments: str | Path, **variables: str) -> subprocess.Popen[str]:
        """Start `pareto` in this place, in a session of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "flows.cli", *map(str, arguments)],
            cwd=self.folder,
            env=self.env(**variables),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def pareto(self, *arguments: str | Path, **variables: str) -> Done:
        """Run `pareto` to its end."""
        return finish(self.start(*arguments, **variables))

    # --- What it left ----------------------------------------------------------------------------

    @property
    def records(self) -> Records:
        """The records."""
        return open_records(self.database or f"sqlite:///{self.data / 'pareto.db'}")

    def points(self) -> dict[str, PointRecord]:
        """The points on record by label, in run order; empty before there is a record."""
        if self.database is None and not (self.data / "pareto.db").is_file():
            return {}
        if self.name not in {campaign.name for campaign in self.records.campaigns()}:
            return {}
        return {p.label: p for p in self.records.points_with_attempts(self.name)}

    def attempts(self, label: str) -> tuple[AttemptRecord, ...]:
        """The attempts at a point."""
        points = self.points()
        return points[label].attempts if label in points else ()

    def folders(self) -> Counter[str]:
        """Run folders on the disk by point."""
        return Counter(path.parts[-3] for path in self.runs.glob("*/*/attempt-*/run"))

    def requests(self) -> list[Request]:
        """The endpoint's requests in the order of their arrival, preflight requests left out."""
        return [request for request in self.all_requests() if request.kind != "other"]

    def all_requests(self) -> list[Request]:
        """The endpoint's requests in the order of their arrival."""
        kinds = {_digest(performance_prompt(row)): "performance" for row in range(99)}
        kinds |= {_digest(accuracy_prompt(row)): "accuracy" for row in range(SCORED_ROWS)}
        entries = [orjson.loads(line) for line in self.log.read_bytes().splitlines()]
        found = [
            Request(
                entry["received_at"],
                kinds.get(entry["prompt_sha256"], "other"),
                entry["in_flight"],
                entry["status"],
                entry["finish"],
            )
            for entry in entries
        ]
        return sorted(found, key=lambda request: request.received_at)

    # --- The endpoint ----------------------------------------------------------------------------

    @contextmanager
    def endpoint(self, **options: Any) -> Iterator[str]:
        """Run the rehearsal endpoint with this place's request log."""
        speed = {
            "prefill_ms": PREFILL_MS,
            "prefill_ms_per_token": 0,
            "decode_ms": DECODE_MS,
            "decode_ms_per_sequence": 0,
            "output_tokens": TOKENS,
        }
        options = {"model": "rehearsal-model", "request_log": self.log, **speed, **options}
        with running_endpoint(**options) as self.url:
            yield self.url

    def set_faults(self, **faults: int | None) -> None:
        """Replace the endpoint's faults."""
        httpx.post(f"{self.url}/rehearsal/faults", json=faults, trust_env=False).raise_for_status()

    def in_flight(self) -> int:
        """Requests that the endpoint works on."""
        text = httpx.get(f"{self.url}/metrics", trust_env=False).text
        return int(text.partition("rehearsal_requests_in_flight ")[2].split()[0])

    # --- Waiting ---------------------------------------------------------------------------------

    def wait_for_attempt(
        self, label: str, number: int = 1, state: AttemptState | None = None
    ) -> AttemptRecord:
        """Wait until an attempt is on record, and in a state if one is given."""

        def found() -> AttemptRecord | None:
            attempts = self.attempts(label)
            if len(attempts) < number or state not in (None, attempts[number - 1].state):
                return None
            return attempts[number - 1]

        return wait_until(found, f"{label} attempt {number}")

    def guard(self, label: str, number: int = 1) -> dict[str, Any]:
        """The guard's status file of an attempt."""
        path = self.runs / self.name / label / f"attempt-{number:02d}" / "guard.json"
        status: dict[str, Any] = json.loads(path.read_bytes())
        return status


def finish(process: subprocess.Popen[str]) -> Done:
    """Wait for a call of `pareto` to end."""
    try:
        out, err = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
    return Done(process.returncode, out, err)


def wait_until(look: Callable[[], T | None], what: str, pause_s: float = 0.05) -> T:
    """Look until there is something."""
    deadline = time.monotonic() + PATIENCE_S
    while not (found := look()):
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(pause_s)
    return found


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits to be reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def kill(pid: int) -> None:
    """Kill a process and wait until it is gone."""
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not is_alive(pid), f"the end of process {pid}")


def disk_manifest(folder: Path) -> dict[str, tuple[int, str]]:
    """Name → size and SHA-256 of every file below a folder."""
    return {
        path.relative_to(folder).as_posix(): (
            path.stat().st_size,
            hashlib.sha256(path.read_bytes()).hexdigest(),
        )
        for path in folder.rglob("*")
        if path.is_file()
    }


def tree(folder: Path) -> set[str]:
    """Names of everything below a folder."""
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


def flow_runs(place: Place) -> list[dict[str, Any]]:
    """Prefect's runs of a place's campaign, oldest first."""
    wanted = {"name": {"any_": [f"{place.name} @ box"]}}
    found = _filtered(
        place.prefect_api_url, "flow_runs", {"flow_runs": wanted, "sort": "START_TIME_ASC"}
    )
    return [run for run in found if run["parameters"]["campaign"] == str(place.file)]


def prefect(api_url: str) -> PrefectApi:
    """The Prefect server, which a busy machine makes slow; one whose database is locked is asked
    again."""
    return PrefectApi(api_url, timeout_s=60.0)


def task_runs(api_url: str, flow_run_id: str) -> list[dict[str, Any]]:
    """Prefect's tasks of a run in the order in which they began."""
    wanted = {
        "task_runs": {"flow_run_id": {"any_": [flow_run_id]}},
        "sort": "EXPECTED_START_TIME_ASC",
    }
    return _filtered(api_url, "task_runs", wanted)


def _filtered(api_url: str, what: str, wanted: Mapping[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = prefect(api_url).ask("POST", f"/{what}/filter", dict(wanted))
    return found


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
