"""The records database: its URL, its connections and how transactions begin.

There is one writer at a time on both engines: SQLite by BEGIN IMMEDIATE, PostgreSQL by an advisory
lock. A writer may thus read, decide and write without losing a race, and events become visible in
the order of their ids. Writers are rare (a few rows a minute) and short.
"""

from __future__ import annotations

import json
import math
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, NullPool, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DataError, DBAPIError, IntegrityError, ProgrammingError

from core.errors import SetupError

#: Seconds a writer waits for another before it gives up; also the time after which PostgreSQL
#: drops the open transaction of a machine that went away. Our transactions take milliseconds.
BUSY_TIMEOUT_S = 10
#: Seconds to wait for PostgreSQL to accept a connection.
CONNECT_TIMEOUT_S = 10
#: Seconds between two tries at switching a new SQLite file to write-ahead logging.
SWITCH_PAUSE_S = 0.01
#: Key of the advisory lock that a PostgreSQL writer holds; "pareto" in ASCII.
WRITER_LOCK = 0x70617265746F
#: Execution option that marks an engine's transactions as writing.
WRITING = "pareto_writing"

_BEGIN_READING = {"sqlite": ["BEGIN"], "postgresql": []}
_BEGIN_WRITING = {
    "sqlite": ["BEGIN IMMEDIATE"],
    "postgresql": [
        f"SET LOCAL lock_timeout = '{BUSY_TIMEOUT_S}s'",
        f"SET LOCAL idle_in_transaction_session_timeout = '{BUSY_TIMEOUT_S}s'",
        f"SELECT pg_advisory_xact_lock({WRITER_LOCK})",
    ],
}


class RecordsUnavailableError(SetupError):
    """The records database can't be reached, read or written; repair it, then go on."""


def parsed_url(url: str) -> URL:
    """The URL with its driver; a SQLite file's path is absolute, wherever it is opened from.

    Raises:
        SetupError: not a URL, or of a database that is not supported.
    """
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):  # the text is not shown: it may hold a password
        raise SetupError(
            "records.database is not a database URL; write sqlite:////data/pareto.db or"
            " postgresql://user@host/database"
        ) from None
    engine = parsed.get_backend_name()
    if engine == "sqlite" and parsed.database not in (None, "", ":memory:"):
        is_path = not parsed.database.startswith("file:")  # SQLite's own form has its own rules
        return parsed.set(database=str(Path(parsed.database).absolute())) if is_path else parsed
    if engine == "postgresql":
        return parsed.set(drivername="postgresql+psycopg")
    raise SetupError(
        f"records.database: {shown(parsed)} is not supported; records need a SQLite file or"
        " PostgreSQL"
    )


def shown(url: URL) -> str:
    """The URL without its password and options, which may be secret too; as it can be typed."""
    if url.get_backend_name() == "sqlite":
        return f"sqlite:///{url.database}"
    return url.set(query={}).render_as_string(hide_password=True)


def make_engine(url: URL) -> Engine:
    """An engine that keeps no connection between transactions; nothing is opened yet."""
    sqlite = url.get_backend_name() == "sqlite"
    waiting = {"timeout": BUSY_TIMEOUT_S} if sqlite else {"connect_timeout": CONNECT_TIMEOUT_S}
    engine = create_engine(
        url,
        poolclass=NullPool,
        connect_args=waiting,
        json_serializer=to_json,
        hide_parameters=True,
    )
    if sqlite:
        event.listen(engine, "connect", _set_up_sqlite)
    event.listen(engine, "begin", _begin)
    return engine


@contextmanager
def reported(url: URL) -> Iterator[None]:
    """Turn failures of the database itself, not of a statement, into a message for the user."""
    try:
        yield
    except (IntegrityError, ProgrammingError, DataError):
        raise
    except DBAPIError as problem:
        cause = str(problem.orig).strip().partition("\n")[0]
        raise RecordsUnavailableError(
            f"records database {shown(url)}: {cause}; check that it can be reached, read and"
            " written, then run the same command again (nothing recorded is lost)"
        ) from problem


def create_parent(url: URL) -> None:
    """Create the folder of a SQLite file.

    Raises:
        SetupError: the folder can't be created.
    """
    if url.get_backend_name() != "sqlite" or url.database is None:
        return
    folder = Path(url.database).parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise SetupError(
            f"records.folder: can't create {folder} for the database: {problem.strerror}"
        ) from None


def to_json(value: Any) -> str:
    """Value → JSON text; numbers that JSON doesn't have (NaN, infinities) become their names."""
    return json.dumps(_finite(value), allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value


def _set_up_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    connection.isolation_level = None  # transactions begin in `_begin`, not in the driver
    connection.execute("PRAGMA foreign_keys = ON")
    _write_ahead(connection)


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Switch the file to WAL, once for good; here SQLite itself doesn't wait for a writer."""
    deadline_s = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as problem:
            if problem.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline_s:
                raise
            time.sleep(SWITCH_PAUSE_S)
        else:
            return


def _begin(connection: Connection) -> None:
    writing = connection.get_execution_options().get(WRITING, False)
    for statement in (_BEGIN_WRITING if writing else _BEGIN_READING)[connection.dialect.name]:
        connection.exec_driver_sql(statement)
