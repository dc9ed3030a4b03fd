"""Fixtures of all tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import session
from tests.postgres import Postgres, running_postgres

_REPOSITORY = Path(__file__).resolve().parents[1]


def _fixtures_dir() -> Path:
    """Run folders recorded from the real client: all of them if they are here, else a few."""
    if named := os.environ.get("PARETO_FIXTURES"):
        return Path(named)
    beside = _REPOSITORY.parent / "shared" / "fixtures"
    return beside if beside.is_dir() else _REPOSITORY / "tests" / "data" / "fixtures"


@pytest.fixture(scope="session")
def fixtures_dir() -> Path:
    """The recorded folders: PARETO_FIXTURES, ../shared/fixtures, or the copies in tests/data."""
    return _fixtures_dir()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test with the argument `recorded` once for each recorded folder."""
    if "recorded" in metafunc.fixturenames:
        cases = sorted(case.parent for case in _fixtures_dir().glob("*/case.json"))
        metafunc.parametrize("recorded", cases, ids=[case.name for case in cases])


#: Long tests run by `make test-long`; those with the real client where one is named.
collect_ignore = [
    folder
    for folder, variable in (("long", "PARETO_TEST_LONG"), ("real", "PARETO_TEST_CLIENT"))
    if not os.environ.get(variable)
]


def pytest_configure(config: pytest.Config) -> None:
    """Make the folder that all workers share."""
    session.begin(config)


def pytest_unconfigure(config: pytest.Config) -> None:
    """End what the workers shared."""
    session.end(config)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with whole campaigns: then no worker is left with a long test when the others end."""
    items.sort(key=lambda item: item.path.is_relative_to(_REPOSITORY / "tests" / "core"))


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server for the tests of this process, started when the first one asks."""
    with running_postgres() as server:
        yield server


@pytest.fixture(scope="session")
def postgres_url(request: pytest.FixtureRequest) -> str:
    """Address of a PostgreSQL server where schemas may be made: the one named, or our own."""
    if given := os.environ.get("PARETO_TEST_POSTGRES_URL"):
        return given
    server: Postgres = request.getfixturevalue("postgres")
    return server.url


@pytest.fixture(scope="session")
def prefect_api_url() -> str:
    """The one Prefect server of this run of the tests, started on first use."""
    return session.prefect_api_url()
