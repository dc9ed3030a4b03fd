"""The schema version of a records database: checked before anything else, raised on request.

A fresh SQLite file is the user's own and is created at the newest version on first use. A
PostgreSQL database is shared between machines, so only `upgrade` (`pareto db upgrade`) changes it.
"""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import URL, Connection, Engine, column, inspect, select, table

from core.errors import SetupError
from core.records.engine import WRITING, create_parent, make_engine, parsed_url, reported, shown

#: Table with the schema version; not Alembic's default name, which Prefect's database uses.
VERSION_TABLE = "pareto_version"
#: The newest schema version: that of the last migration.
NEWEST = "0001"
#: Folder of the migrations, inside the installed package.
MIGRATIONS = Path(__file__).parent / "migrations"


def upgrade(url: str) -> None:
    """Bring a database to the newest schema version; safe if several processes do so at once.

    Raises:
        SetupError: the database can't be reached, or is of a newer version.
    """
    from alembic import command  # noqa: PLC0415 - a tenth of a second, and seldom needed
    from alembic.config import Config  # noqa: PLC0415 - likewise

    parsed = parsed_url(url)
    create_parent(parsed)
    engine = make_engine(parsed).execution_options(**{WRITING: True})
    with reported(parsed), engine.begin() as connection:
        version = _version(connection)
        if version is not None and version not in _known():
            raise SetupError(_newer(parsed, version))
        config = Config()
        config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
        config.attributes |= {"connection": connection, "version_table": VERSION_TABLE}
        command.upgrade(config, "head")


def opened_engine(url: str) -> Engine:
    """An engine on a database of this code's schema version; creates a fresh SQLite file.

    Raises:
        SetupError: the database can't be reached, or is of another version.
    """
    parsed = parsed_url(url)
    create_parent(parsed)
    engine = make_engine(parsed)
    with reported(parsed), engine.begin() as connection:
        version = _version(connection)
        empty = not inspect(connection).get_table_names()
    if parsed.get_backend_name() == "sqlite" and empty:
        upgrade(url)
    elif version != NEWEST:
        raise SetupError(_other_version(parsed, version))
    return engine


def _other_version(url: URL, version: str | None) -> str:
    if version is None:
        return f"records database {shown(url)} has no records yet; run `pareto db upgrade`"
    if version not in _known():
        return _newer(url, version)
    return (
        f"records database {shown(url)} is of version {version}, this pareto needs {NEWEST};"
        " run `pareto db upgrade`"
    )


def _newer(url: URL, version: str) -> str:
    return (
        f"records database {shown(url)} is of version {version}, this pareto knows only"
        f" {NEWEST}; use the newer pareto that wrote it"
    )


def _version(connection: Connection) -> str | None:
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    versions = table(VERSION_TABLE, column("version_num"))
    return connection.scalars(select(versions.c.version_num)).one_or_none()


def _known() -> set[str]:
    from alembic.script import ScriptDirectory  # noqa: PLC0415 - likewise

    return {script.revision for script in ScriptDirectory(str(MIGRATIONS)).walk_revisions()}
