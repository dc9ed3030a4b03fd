"""The schema version of a records database: checked before anything else, raised on request.

A fresh SQLite file is the user's own and is created at the newest version on first use. A
PostgreSQL database is shared between machines, so only `upgrade` (`pareto db upgrade`) changes it.
"""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import URL, Connection, Engine, inspect

from core.errors import SetupError
from core.records.engine import WRITING, create_parent, make_engine, parsed_url, reported, shown

#: Table with the schema version; not Alembic's default name, which Prefect's database uses.
VERSION_TABLE = "pareto_version"
#: Folder of the migrations, inside the installed package.
MIGRATIONS = Path(__file__).parent / "migrations"


def upgrade(url: str) -> None:
    """Bring a database to the newest schema version; safe if several processes do so at once.

    Raises:
        SetupError: the database can't be reached, or is of a newer version.
    """
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
    elif version != _head():
        raise SetupError(_other_version(parsed, version))
    return engine


def _other_version(url: URL, version: str | None) -> str:
    if version is None:
        return f"records database {shown(url)} has no records yet; run `pareto db upgrade`"
    if version not in _known():
        return _newer(url, version)
    return (
        f"records database {shown(url)} is of version {version}, this pareto needs {_head()};"
        " run `pareto db upgrade`"
    )


def _newer(url: URL, version: str) -> str:
    return (
        f"records database {shown(url)} is of version {version}, this pareto knows only"
        f" {_head()}; use the newer pareto that wrote it"
    )


def _version(connection: Connection) -> str | None:
    context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
    return context.get_current_revision()


def _head() -> str | None:
    return ScriptDirectory(str(MIGRATIONS)).get_current_head()


def _known() -> set[str]:
    return {script.revision for script in ScriptDirectory(str(MIGRATIONS)).walk_revisions()}
