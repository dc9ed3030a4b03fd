"""The schema: migrations and models agree, and only its own version is opened."""

from __future__ import annotations

from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Engine, inspect, text

from core.errors import SetupError
from core.records import Records, RecordsUnavailableError, open_records, upgrade
from core.records.engine import WRITING, make_engine, parsed_url
from core.records.schema import MIGRATIONS, NEWEST, VERSION_TABLE
from core.records.tables import Base

PG_SCHEMA = """
    SELECT conrelid::regclass::text || ' ' || conname || ' ' || pg_get_constraintdef(oid)
    FROM pg_constraint WHERE connamespace = current_schema()::regnamespace
    UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = current_schema()
    UNION ALL SELECT table_name || ' ' || column_name || ' ' || data_type || ' ' || is_nullable
        || ' ' || coalesce(character_maximum_length::text, '')
    FROM information_schema.columns WHERE table_schema = current_schema()
"""
SQLITE_SCHEMA = "SELECT sql FROM sqlite_master WHERE type IN ('table', 'index') AND sql <> ''"


def engine_of(url: str) -> Engine:
    return make_engine(parsed_url(url))


def schema_of(url: str) -> set[str]:
    """Every table, column, constraint and index as the database describes it, ours only."""
    engine = engine_of(url)
    query = SQLITE_SCHEMA if engine.dialect.name == "sqlite" else PG_SCHEMA
    with engine.begin() as connection:
        lines = set(connection.execute(text(query)).scalars())
    ours = [line for line in lines if VERSION_TABLE not in line]
    return {  # SQLite keeps the statement, whose parts may stand in any order
        f"{statement.partition('(')[0]} {part.strip(' ,')}"
        for statement in ours
        for part in statement.removesuffix("\n)").split("\n\t")
    }


def set_version(url: str, version: str) -> None:
    with engine_of(url).execution_options(**{WRITING: True}).begin() as connection:
        connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '{version}'"))


def test_the_migrations_make_what_the_models_describe(database_url: str) -> None:
    """Alembic finds no difference between the migrated schema and the models."""
    upgrade(database_url)
    with engine_of(database_url).begin() as connection:
        context = MigrationContext.configure(
            connection, opts={"version_table": VERSION_TABLE, "compare_type": True}
        )
        assert compare_metadata(context, Base.metadata) == []


def test_every_check_and_partial_index_of_the_models_is_in_the_migrations(
    database_url: str,
) -> None:
    """Alembic doesn't compare these, so the databases' own descriptions are compared."""
    upgrade(database_url)
    migrated = schema_of(database_url)
    other = engine_of(database_url)
    with other.execution_options(**{WRITING: True}).begin() as connection:
        for table in reversed(Base.metadata.sorted_tables):
            cascade = "CASCADE" if other.dialect.name == "postgresql" else ""
            connection.execute(text(f"DROP TABLE {table.name} {cascade}"))
        Base.metadata.create_all(connection)
    assert schema_of(database_url) == migrated
    assert any("CHECK" in line for line in migrated)
    assert any("WHERE" in line for line in migrated)


def test_every_version_upgrades_to_the_next_and_none_goes_back(database_url: str) -> None:
    """There is one line of versions; a downgrade is refused with what to do instead."""
    upgrade(database_url)
    script = ScriptDirectory(str(MIGRATIONS))
    assert script.get_heads() == [NEWEST]
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    with engine_of(database_url).execution_options(**{WRITING: True}).begin() as connection:
        config.attributes |= {"connection": connection, "version_table": VERSION_TABLE}
        with pytest.raises(CommandError, match="restore a backup"):
            command.downgrade(config, "base")
        assert "attempt" in inspect(connection).get_table_names()


def test_upgrading_again_changes_nothing(database_url: str, records: Records, enter) -> None:
    enter()
    before = schema_of(database_url)
    upgrade(database_url)
    assert schema_of(database_url) == before
    assert records.campaign("unit").name == "unit"


@pytest.mark.parametrize("engine_name", ["sqlite"])
def test_a_fresh_sqlite_file_is_created_with_its_folder(database_url: str, tmp_path: Path) -> None:
    records = open_records(database_url)
    assert records.campaigns() == ()
    assert (tmp_path / "data" / "pareto.db").exists()
    assert open_records(database_url).campaigns() == ()


@pytest.mark.parametrize("engine_name", ["postgresql"])
def test_a_fresh_postgresql_database_is_only_created_on_request(database_url: str) -> None:
    with pytest.raises(SetupError, match="has no records yet; run `pareto db upgrade`"):
        open_records(database_url)
    upgrade(database_url)
    assert open_records(database_url).campaigns() == ()


def test_an_older_database_asks_for_the_upgrade(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    upgrade(database_url)
    monkeypatch.setattr("core.records.schema.NEWEST", "0002")
    with pytest.raises(SetupError, match="needs 0002; run `pareto db upgrade`"):
        open_records(database_url)


def test_a_newer_database_is_neither_opened_nor_changed(
    database_url: str,
) -> None:
    upgrade(database_url)
    set_version(database_url, "9999")
    before = schema_of(database_url)
    for use in (open_records, upgrade):
        with pytest.raises(SetupError, match=r"of version 9999, .* knows only 0001"):
            use(database_url)
    assert schema_of(database_url) == before


@pytest.mark.parametrize("engine_name", ["sqlite"])
def test_a_database_of_another_program_is_not_taken_for_a_fresh_one(
    database_url: str, tmp_path: Path
) -> None:
    (tmp_path / "data").mkdir()
    with engine_of(database_url).execution_options(**{WRITING: True}).begin() as connection:
        connection.execute(text("CREATE TABLE flow_run (id INTEGER)"))
    with pytest.raises(SetupError, match="has no records yet"):
        open_records(database_url)
    with engine_of(database_url).begin() as connection:
        assert inspect(connection).get_table_names() == ["flow_run"]


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    (tmp_path / "notes.db").write_text("not a database, but long enough to have a header" * 9)
    with pytest.raises(RecordsUnavailableError, match=r"notes\.db: file is not a database"):
        open_records(f"sqlite:///{tmp_path / 'notes.db'}")


def test_a_folder_that_cannot_be_created_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SetupError, match=r"records\.folder: can't create .*file/data"):
        open_records(f"sqlite:///{tmp_path / 'file' / 'data' / 'pareto.db'}")


def test_the_migrations_are_inside_importable_packages() -> None:
    """An installed package carries them: each folder is a package, and nothing else is needed."""
    for folder in (MIGRATIONS, MIGRATIONS / "versions"):
        assert (folder / "__init__.py").exists()
    assert MIGRATIONS.parent.name == "records"


def test_a_percent_sign_in_the_path_of_the_program_does_no_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Alembic's configuration would read it as a reference to another value."""
    copied = tmp_path / "100%(x)s"
    copied.symlink_to(MIGRATIONS, target_is_directory=True)
    monkeypatch.setattr("core.records.schema.MIGRATIONS", copied)
    assert open_records(f"sqlite:///{tmp_path / 'pareto.db'}").campaigns() == ()


def test_a_relative_file_is_the_same_one_wherever_it_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process of ours may start in another folder."""
    monkeypatch.chdir(tmp_path)
    url = open_records("sqlite:///pareto.db").url
    assert url.database == str(tmp_path / "pareto.db")
