"""Records on both databases: a SQLite file, and a PostgreSQL server that the tests start."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from core.plan import Plan, make_plan
from core.records import CampaignRecord, Owner, Records, open_records, upgrade
from tests.campaigns import make_campaign
from tests.postgres import schema


@pytest.fixture(params=["sqlite", "postgresql"])
def engine_name(request: pytest.FixtureRequest) -> str:
    """Runs the test on both databases."""
    return request.param


@pytest.fixture
def database_url(engine_name: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """An empty place of the test's own, without tables: a file, or a schema of the server.

    A schema takes milliseconds, a PostgreSQL database a third of a second.
    """
    if engine_name == "sqlite":
        yield f"sqlite:///{tmp_path / 'data' / 'pareto.db'}"
        return
    with schema(request.getfixturevalue("postgres_url")) as url:
        yield url


@pytest.fixture
def records(database_url: str) -> Records:
    """Empty records."""
    upgrade(database_url)
    return open_records(database_url)


@pytest.fixture
def plan() -> Plan:
    """The plan of the small campaign `unit`."""
    return make_plan(make_campaign(), 1000)


@pytest.fixture
def owner() -> Owner:
    """A process that owns attempts."""
    return Owner(host="box", boot_id="b00t", pid=4242, start_time=77)


Enter = Callable[..., CampaignRecord]


@pytest.fixture
def enter(records: Records, plan: Plan) -> Enter:
    """Enters the small campaign; keywords replace what it states."""

    def entered(**changes: object) -> CampaignRecord:
        stated = {
            "plan": plan,
            "text": "campaign: unit\n",
            "statement": {"campaign": "unit"},
            "system": "box",
            "source": Path("/home/u/unit.yaml"),
            "runs_folder": Path("/data/runs"),
            "differences": lambda _old: [],
        }
        return records.enter_campaign(**(stated | changes))

    return entered
