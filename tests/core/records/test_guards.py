"""The database itself refuses what must not happen, whatever program asks."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from core.files import ManifestEntry
from core.records import Owner, Records
from core.records.engine import WRITING, make_engine
from core.status import OPEN_STATES, TRANSITIONS, AttemptState


@pytest.fixture
def attempt_id(records: Records, enter, owner: Owner) -> int:
    """A prepared attempt with a recorded folder."""
    enter()
    attempt = records.new_attempt("unit", "c0064", owner=owner)
    records.record_folder(attempt.id, Path("/r"), (ManifestEntry("config.yaml", 1, "a" * 64),))
    return attempt.id


def run(records: Records, statement: str, **values: object) -> None:
    """Run SQL as a foreign program would."""
    engine = make_engine(records.url).execution_options(**{WRITING: True})
    with engine.begin() as connection:
        connection.execute(text(statement), values)


def bring_to(records: Records, attempt_id: int, state: AttemptState) -> None:
    if state is AttemptState.PREPARED:
        return
    records.change_state(attempt_id, AttemptState.RUNNING)
    if state is not AttemptState.RUNNING:
        records.change_state(attempt_id, state)


APPEND_ONLY = [
    ("UPDATE event SET kind = 'x'", "the event log is append-only"),
    ("DELETE FROM event", "the event log is append-only"),
    ("UPDATE run_file SET sha256 = :other", "a recorded manifest is never changed"),
    ("DELETE FROM run_file", "a recorded manifest is never changed"),
    ("DELETE FROM attempt", "attempts are never deleted"),
]


@pytest.mark.parametrize(("statement", "reason"), APPEND_ONLY)
def test_what_is_append_only_is_neither_changed_nor_deleted(
    records: Records, attempt_id: int, statement: str, reason: str
) -> None:
    before = (records.events("unit"), records.manifest(attempt_id), records.attempt(attempt_id))
    values = {"other": "b" * 64} if ":other" in statement else {}
    with pytest.raises(IntegrityError, match=reason):
        run(records, statement, **values)
    after = (records.events("unit"), records.manifest(attempt_id), records.attempt(attempt_id))
    assert after == before


@pytest.mark.parametrize("engine_name", ["postgresql"])
@pytest.mark.parametrize("table", ["event", "run_file", "fingerprint", "attempt"])
def test_what_is_append_only_is_not_emptied(records: Records, attempt_id: int, table: str) -> None:
    with pytest.raises(IntegrityError, match="is never emptied"):
        run(records, f"TRUNCATE {table} CASCADE")
    assert records.manifest(attempt_id)
    assert records.events("unit")


@pytest.mark.parametrize("state", sorted(set(AttemptState) - OPEN_STATES))
def test_an_attempt_in_a_final_state_is_never_changed(
    records: Records, attempt_id: int, state: AttemptState
) -> None:
    bring_to(records, attempt_id, state)
    ended = records.attempt(attempt_id)
    for change in ("reason = 'x'", "state = 'running'", "metrics = NULL"):
        with pytest.raises(IntegrityError, match="a final state is never changed"):
            run(records, f"UPDATE attempt SET {change}")
    assert records.attempt(attempt_id) == ended


def test_every_state_without_successors_is_guarded() -> None:
    """The trigger's list of open states is that of the transitions."""
    assert {state for state, following in TRANSITIONS.items() if following} == OPEN_STATES


def copy_of_attempt(**changes: str) -> str:
    """SQL that inserts the attempt's row once more, with other values in some columns."""
    columns = ["point_id", "number", "phase", "baseline", "state", "folder", "created_at"]
    columns += ["host", "boot_id", "pid", "start_time"]
    values = [changes.get(column, column) for column in columns]
    return f"INSERT INTO attempt ({', '.join(columns)}) SELECT {', '.join(values)} FROM attempt"


@pytest.mark.parametrize(
    ("state", "statement"),
    [
        ("failed", copy_of_attempt()),
        ("valid", copy_of_attempt(number="2")),
        ("running", copy_of_attempt(number="2")),
        ("running", copy_of_attempt(number="2", state="'prepared'")),
        ("failed", copy_of_attempt(number="0")),
        ("failed", copy_of_attempt(number="2", state="'done'")),
        ("failed", copy_of_attempt(number="2", phase="'other'")),
        ("failed", copy_of_attempt(number="2", point_id="4711")),
        ("failed", "INSERT INTO campaign SELECT * FROM campaign"),
        ("failed", "UPDATE campaign SET rehearsal = true"),
        ("failed", "UPDATE campaign SET time_scale = 0.5"),
        ("failed", "UPDATE campaign SET seed_set_id = 4711"),
        ("failed", "UPDATE point SET label = 'c0064'"),
        ("failed", "UPDATE point SET campaign_id = 4711"),
        ("failed", "UPDATE run_folder SET attempt_id = 4711"),
        ("failed", "DELETE FROM campaign"),
        ("failed", "DELETE FROM run_folder"),
        ("failed", "INSERT INTO run_file SELECT run_folder_id, 'x', -1, sha256 FROM run_file"),
        ("failed", "INSERT INTO run_file SELECT run_folder_id, 'x', 1, 'a' FROM run_file"),
        ("failed", "INSERT INTO run_file SELECT * FROM run_file"),
    ],
)
def test_rows_that_contradict_each_other_are_refused(
    records: Records, attempt_id: int, state: str, statement: str
) -> None:
    """Uniqueness, foreign keys and ranges hold against any writer."""
    bring_to(records, attempt_id, AttemptState(state))
    with pytest.raises(IntegrityError):
        run(records, statement)


def test_a_failed_attempt_may_be_followed_by_another_row(records: Records, attempt_id: int) -> None:
    """The statement that the refused ones vary is itself accepted."""
    bring_to(records, attempt_id, AttemptState.FAILED)
    run(records, copy_of_attempt(number="2", phase="'pilot'"))
    assert records.attempt(attempt_id + 1).number == 2
