"""Fixtures of the fault suite: a lab that is looked through after every case."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.support import Lab
from tests.flows.support import write_datasets


def _lab(tmp_path: Path, api_url: str) -> Iterator[Lab]:
    write_datasets(tmp_path)
    lab = Lab(tmp_path, api_url)
    try:
        yield lab
        lab.assert_sound()
    finally:
        for text in lab.leftovers():
            os.kill(int(text.partition("pid=")[2].partition(",")[0]), signal.SIGKILL)


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    """A lab without a Prefect server."""
    yield from _lab(tmp_path, "http://127.0.0.1:9/api")


@pytest.fixture
def shown_lab(tmp_path: Path, prefect_api_url: str) -> Iterator[Lab]:
    """A lab that the Prefect server of this run of the tests shows."""
    yield from _lab(tmp_path, prefect_api_url)
