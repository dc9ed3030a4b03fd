"""The database's address, its secrets, and what its failures look like to a user."""

from __future__ import annotations

import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from core.errors import SetupError
from core.records import Records, RecordsUnavailableError, open_records, upgrade
from core.records import engine as engine_module
from core.records.engine import WRITING, make_engine, parsed_url, reported, shown, to_json


@pytest.mark.parametrize("scheme", ["postgresql", "postgresql+psycopg", "postgresql+psycopg2"])
def test_every_postgresql_url_uses_the_driver_that_is_installed(scheme: str) -> None:
    url = parsed_url(f"{scheme}://me@host/db")
    assert url.drivername == "postgresql+psycopg"
    assert make_engine(url).dialect.driver == "psycopg"


@pytest.mark.parametrize(
    "url", ["mysql://me:geheim@host/db", "sqlite://", "sqlite:///:memory:", "oracle://u:geheim@h/d"]
)
def test_a_database_that_cannot_hold_records_is_refused(url: str) -> None:
    with pytest.raises(SetupError, match="need a SQLite file or PostgreSQL") as caught:
        parsed_url(url)
    assert "geheim" not in str(caught.value)


@pytest.mark.parametrize("url", ["", "pareto.db", "postgresql://me:geheim@host:port/db"])
def test_text_that_is_no_url_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(SetupError, match="is not a database URL") as caught:
        parsed_url(url)
    assert "geheim" not in str(caught.value)


def test_a_shown_url_has_neither_password_nor_options() -> None:
    url = parsed_url("postgresql://me:geheim@host/db?password=geheim2&sslpassword=geheim3")
    assert shown(url) == "postgresql+psycopg://me:***@host/db"


def test_a_server_that_is_away_is_named_without_the_password() -> None:
    for use in (open_records, upgrade):
        with pytest.raises(RecordsUnavailableError, match=r"me:[*]+@127\.0\.0\.1:1/db") as caught:
            use("postgresql://me:geheim@127.0.0.1:1/db")
        assert "geheim" not in str(caught.value)
        assert caught.value.exit_code == 3


def test_sqlite_connections_enforce_keys_and_write_ahead(tmp_path: Path) -> None:
    records = open_records(f"sqlite:///{tmp_path / 'pareto.db'}")
    with make_engine(records.url).begin() as connection:
        assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA busy_timeout").scalar() == 10_000


def test_a_new_file_that_another_writes_is_waited_for(tmp_path: Path) -> None:
    """Two programs that open a new file at once: SQLite fails the second's switch to WAL."""
    path = tmp_path / "pareto.db"
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(lambda: make_engine(parsed_url(f"sqlite:///{path}")).connect())
        with pytest.raises(TimeoutError):
            waiting.result(timeout=0.3)
        other.execute("COMMIT")
        with waiting.result() as connection:
            assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
    other.close()


def test_a_new_file_that_another_never_lets_go_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_module, "BUSY_TIMEOUT_S", 0.1)
    path = tmp_path / "pareto.db"
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(RecordsUnavailableError, match="database is locked"):
        open_records(f"sqlite:///{path}")
    other.close()


def short_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a blocked writer give up soon."""
    monkeypatch.setattr(engine_module, "BUSY_TIMEOUT_S", 0.1)
    statements = engine_module._BEGIN_WRITING["postgresql"]
    quick = ["SET LOCAL lock_timeout = '100ms'", *statements[1:]]
    monkeypatch.setitem(engine_module._BEGIN_WRITING, "postgresql", quick)


def test_a_database_that_stays_locked_is_reported_and_works_again_afterwards(
    records: Records, enter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Readers go on meanwhile; the writer is told, and nothing of its change is left."""
    enter()
    short_wait(monkeypatch)
    blocked = open_records(records.url.render_as_string(hide_password=False))
    holding = make_engine(records.url).execution_options(**{WRITING: True})
    with holding.begin():
        assert blocked.campaign("unit").name == "unit"
        with pytest.raises(RecordsUnavailableError, match=r"lock.*run the same command again"):
            blocked.append_event("unit", "note", {})
    assert blocked.append_event("unit", "note", {}).kind == "note"
    assert [event.kind for event in records.events("unit")] == ["campaign.entered", "note"]


def test_a_writer_waits_for_the_one_before_it(records: Records, enter) -> None:
    """A short wait is not an error: the second writer goes on when the first has ended."""
    enter()
    done: list[str] = []
    holding = make_engine(records.url).execution_options(**{WRITING: True})
    with holding.begin():
        writer = threading.Thread(
            target=lambda: done.append(records.append_event("unit", "note", {}).kind)
        )
        writer.start()
        writer.join(0.2)
        assert done == []
    writer.join()
    assert done == ["note"]


@pytest.mark.parametrize(
    ("state", "statement", "message"),
    [
        ("max_page_count = 1", "CREATE TABLE x AS SELECT zeroblob(9000000)", "disk is full"),
        ("query_only = ON", "CREATE TABLE x (y)", "readonly database"),
    ],
)
def test_a_database_that_takes_no_more_says_why_and_loses_nothing(
    tmp_path: Path, state: str, statement: str, message: str
) -> None:
    """A full disk and a file without write permission, as SQLite reports them."""
    records = open_records(f"sqlite:///{tmp_path / 'pareto.db'}")

    def write() -> None:
        engine = make_engine(records.url).execution_options(**{WRITING: True})
        with reported(records.url), engine.begin() as connection:
            connection.exec_driver_sql(f"PRAGMA {state}")
            connection.exec_driver_sql(statement)

    with pytest.raises(RecordsUnavailableError, match=message):
        write()
    assert records.campaigns() == ()


def test_a_row_that_is_refused_stays_a_bug(records: Records) -> None:
    """Only failures of the database are a user's business; a mistake of ours has its traceback."""
    engine = make_engine(records.url).execution_options(**{WRITING: True})
    with (
        pytest.raises(IntegrityError),
        reported(records.url),
        engine.begin() as connection,
    ):
        connection.execute(text("INSERT INTO event (kind) VALUES ('x')"))


def test_json_has_no_numbers_that_json_does_not_have() -> None:
    value = {"a": [float("nan"), (float("-inf"), 1.5)], "b": 2**70, "c": None}
    assert to_json(value) == f'{{"a": ["nan", ["-inf", 1.5]], "b": {2**70}, "c": null}}'
