"""Fixtures of the rehearsal tests; `case` runs a test once for each recorded folder of `CASES`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from tasks.rehearsal.process import running_endpoint
from tests.tasks.rehearsal.support import (
    Client,
    accuracy_rows,
    fixtures_folder,
    performance_rows,
)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test with the argument `case` for each of its module's cases that is recorded."""
    if "case" in metafunc.fixturenames:
        cases = [case for case in metafunc.module.CASES if (fixtures_folder() / case).is_dir()]
        metafunc.parametrize("case", cases)


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


@pytest.fixture
def client(tmp_path: Path, endpoint: str) -> Client:
    """The stand-in client in a folder with the recorded datasets, set up against the endpoint."""
    datasets = {
        "perf.jsonl": performance_rows(),
        "acc.jsonl": accuracy_rows(),
        "acc_num.jsonl": accuracy_rows(prefix=""),
    }
    for name, rows in datasets.items():
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return Client(tmp_path, endpoint)
