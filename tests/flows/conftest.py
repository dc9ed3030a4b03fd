"""Fixtures of the end-to-end tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.flows.support import Done, Place, write_datasets


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


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    """Calls `pareto` in a place, but in this process: for what ends before anything is started."""
    from flows.cli import main

    def pareto(place: Place, *arguments: str | Path, **variables: str) -> Done:
        for name, value in place.env(**variables).items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(place.folder)
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        assert isinstance(ended.value.code, int)
        return Done(ended.value.code, *capfd.readouterr())

    return pareto
