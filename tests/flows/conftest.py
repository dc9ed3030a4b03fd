"""Fixtures of the end-to-end tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.flows.support import Place, write_datasets


@pytest.fixture
def place(tmp_path: Path, prefect_api_url: str) -> Place:
    """A place to run campaigns in, shown by the Prefect server of this run of the tests."""
    write_datasets(tmp_path)
    return Place(tmp_path, prefect_api_url)


@pytest.fixture
def bare_place(tmp_path: Path) -> Place:
    """A place for commands that end before they need a Prefect server: there is none."""
    write_datasets(tmp_path)
    return Place(tmp_path, "http://127.0.0.1:9/api")
