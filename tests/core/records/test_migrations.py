"""Migrations with data in the database: nothing is lost or loosened on the way up.

Each version that was followed by another one has its rows kept in `tests/data/records`, as
`VERSION.json` in the form that `rows_of` gives; they are written before the next one is added.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, MetaData, text
from sqlalchemy.exc import IntegrityError

from core.errors import SetupError
from core.files import ManifestEntry
from core.records import Owner, Records, open_records, schema, upgrade
from core.records.engine import WRITING, make_engine, parsed_url, to_json
from core.records.schema import MIGRATIONS, VERSION_TABLE
from core.status import AttemptState
from tests.postgres import schema as empty_schema

KEPT = Path(__file__).parents[2] / "data" / "records"
#: A version that follows the newest one: what most real ones do.
MADE_UP = '''
"""Version 9999: a note on every attempt, and a table of notes."""

import sqlalchemy as sa
from alembic import op

revision = "9999"
down_revision = "{head}"


def upgrade() -> None:
    """Add a column and a table."""
    op.add_column("attempt", sa.Column("note", sa.Text(), nullable=False, server_default="none"))
    op.create_table("note", sa.Column("id", sa.Integer(), primary_key=True))
'''


def versions() -> list[str]:
    """Every version from the first to the newest."""
    found = ScriptDirectory(str(MIGRATIONS)).walk_revisions()
    return [script.revision for script in found][::-1]


def engine_of(url: str) -> Engine:
    """An engine that writes."""
    return make_engine(parsed_url(url)).execution_options(**{WRITING: True})


def rows_of(url: str) -> dict[str, list[dict[str, Any]]]:
    """Every row of every table, as JSON has it; tables in the order in which they can be filled."""
    tables = MetaData()
    with engine_of(url).begin() as connection:
        tables.reflect(connection)
        found = {
            table.name: [
                dict(row._mapping)
                for row in connection.execute(table.select().order_by(*table.primary_key))
            ]
            for table in tables.sorted_tables
            if table.name != VERSION_TABLE
        }
    return json.loads(to_json(found))


def fill(url: str, version: str, rows: dict[str, list[dict[str, Any]]]) -> None:
    """Make a database of a version with these rows."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    tables = MetaData()
    with engine_of(url).begin() as connection:
        config.attributes |= {"connection": connection, "version_table": VERSION_TABLE}
        command.upgrade(config, version)
        tables.reflect(connection)
        for table in tables.sorted_tables:
            if rows.get(table.name):
                connection.execute(table.insert(), rows[table.name])
            if connection.dialect.name == "postgresql" and "id" in table.c:
                numbers = f"pg_get_serial_sequence('{table.name}', 'id')"
                newest = f"(SELECT max(id) FROM {table.name})"
                connection.execute(text(f"SELECT setval({numbers}, {newest})"))


@pytest.fixture
def filled(records: Records, enter, owner: Owner) -> Records:
    """Records with something in every table."""
    enter()
    valid = records.new_attempt("unit", "c0064", owner=owner, samples=640, passes=2)
    records.record_folder(valid.id, Path("/data/runs/r"), (ManifestEntry("a.yaml", 1, "a" * 64),))
    records.change_state(valid.id, AttemptState.RUNNING)
    records.change_state(valid.id, AttemptState.VALID, metrics={"rate_qps": 6.5}, findings=[])
    failed = records.new_attempt("unit", "c0001", owner=owner)
    records.change_state(failed.id, AttemptState.FAILED, reason="ä \x00 \udcff")
    records.take_lease("box", "unit", owner)
    with engine_of(records.url.render_as_string(hide_password=False)).begin() as connection:
        connection.execute(
            text(
                "INSERT INTO fingerprint (attempt_id, moment, at, sha256, content)"
                f" VALUES ({valid.id}, 'before', 1.5, '{'b' * 64}', '{{}}')"
            )
        )
    assert all(rows_of(records.url.render_as_string(hide_password=False)).values())
    return records


def seen(records: Records) -> list[object]:
    """What the records tell of the small campaign."""
    points = records.points_with_attempts("unit")
    manifests = [records.manifest(a.id) for point in points for a in point.attempts]
    campaign = records.campaign("unit")
    return [campaign, points, manifests, records.events("unit"), records.leases()]


def test_every_version_that_was_followed_has_its_rows_kept() -> None:
    """So that each can be brought up with data."""
    kept = {path.stem for path in KEPT.glob("*.json")}
    assert kept == set(versions()[:-1])


@pytest.mark.usefixtures("filled")
def test_data_of_every_earlier_version_comes_up(
    database_url: str, engine_name: str, postgres_url: str, tmp_path: Path
) -> None:
    """From the rows of each, today's among them: all are there, and the campaign goes on."""

    def brought_up(url: str, version: str, rows: dict[str, list[dict[str, Any]]]) -> Records:
        fill(url, version, rows)
        upgrade(url)
        assert {name: len(found) for name, found in rows.items()}.items() <= {
            name: len(found) for name, found in rows_of(url).items()
        }.items()
        found = open_records(url)
        assert found.new_attempt("unit", "c0001", owner=Owner("b", "c", 1, 2)).id > 0
        return found

    own = rows_of(database_url)
    kept = {
        version: json.loads((KEPT / f"{version}.json").read_text()) for version in versions()[:-1]
    }
    for version, rows in {**kept, versions()[-1]: own}.items():
        if engine_name == "sqlite":
            brought_up(f"sqlite:///{tmp_path / version}.db", version, rows)
        else:
            with empty_schema(postgres_url) as url:
                brought_up(url, version, rows)


def test_data_goes_up_to_a_new_version_whole_and_guarded(
    database_url: str, filled: Records, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Old rows keep their values, what is final stays so, and the old program refuses the new."""
    before, told = rows_of(database_url), seen(filled)
    newer = tmp_path / "migrations"
    shutil.copytree(MIGRATIONS, newer)
    (newer / "versions" / "v9999_made_up.py").write_text(MADE_UP.format(head=versions()[-1]))
    with monkeypatch.context() as patched:
        patched.setattr(schema, "MIGRATIONS", newer)
        patched.setattr(schema, "NEWEST", "9999")
        with pytest.raises(SetupError, match="needs 9999; run `pareto db upgrade`"):
            open_records(database_url)
        upgrade(database_url)
        upgrade(database_url)
        assert seen(open_records(database_url)) == told
    after = rows_of(database_url)
    assert {row.pop("note") for row in after["attempt"]} == {"none"}
    assert after.pop("note") == []
    assert after == before
    for change in ("UPDATE event SET kind = 'x'", "UPDATE attempt SET note = 'x'"):
        with pytest.raises(IntegrityError), engine_of(database_url).begin() as connection:
            connection.execute(text(change))
    for use in (open_records, upgrade):
        with pytest.raises(SetupError, match=r"of version 9999, .* knows only"):
            use(database_url)


def test_an_upgrade_that_fails_leaves_all_as_it_was(
    database_url: str, filled: Records, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A version is one transaction, on both databases."""
    before = rows_of(database_url)
    newer = tmp_path / "migrations"
    shutil.copytree(MIGRATIONS, newer)
    broken = MADE_UP.format(head=versions()[-1]) + "    op.execute('SELECT id FROM nowhere')\n"
    (newer / "versions" / "v9999_broken.py").write_text(broken)
    with monkeypatch.context() as patched:
        patched.setattr(schema, "MIGRATIONS", newer)
        with pytest.raises(Exception, match="nowhere"):
            upgrade(database_url)
    assert rows_of(database_url) == before
    assert open_records(database_url).campaign("unit") == filled.campaign("unit")
