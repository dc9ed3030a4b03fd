"""Records under several processes at once, and under a process that dies."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import inspect

import core
from core.records import AttemptRefusedError, Owner, Records, open_records, upgrade
from core.records.engine import make_engine, parsed_url
from core.status import AttemptState, IllegalTransitionError

RACERS = 8
ROOT = Path(core.__file__).resolve().parents[1]


def racer(task: str, url: str) -> subprocess.Popen[str]:
    script = Path(__file__).with_name("racer.py")
    return subprocess.Popen(
        [sys.executable, str(script), task, url, str(RACERS)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def test_of_eight_processes_one_creates_and_the_others_join_or_are_refused(
    database_url: str,
) -> None:
    """Database, campaign, attempt and each state change happen once, whoever comes first."""
    with racer("race", database_url) as process:
        printed, _ = process.communicate()
    assert process.returncode == 0
    opened, entered, made, found, started, ended = map(
        Counter, zip(*json.loads(printed), strict=True)
    )
    losers = RACERS - 1
    assert opened == {"opened": RACERS}
    assert entered == {"1": RACERS}
    assert made == {"1": 1, "AttemptRefusedError": losers}
    assert found == {"1": RACERS}
    assert started == {"running": 1, "IllegalTransitionError": losers}
    assert ended.pop("IllegalTransitionError") == losers
    records = open_records(database_url)
    state = records.attempt(1).state
    assert ended == {state: 1}
    kinds = [event.kind for event in records.events("unit")]
    changes = ["prepared", "running", state]
    assert kinds == ["campaign.entered", *(f"attempt.{change}" for change in changes)]


def test_threads_that_share_records_get_attempts_of_their_own(
    records: Records, enter, plan, owner: Owner
) -> None:
    """Attempts at different points at once: each has its row, and every event is logged."""
    enter()
    labels = [point.label for point in plan.points]

    def measure(label: str) -> None:
        attempt = records.new_attempt("unit", label, owner=owner)
        records.change_state(attempt.id, AttemptState.RUNNING)
        records.change_state(attempt.id, AttemptState.VALID)

    with ThreadPoolExecutor(RACERS) as pool:
        list(pool.map(measure, labels))
    points = records.points_with_attempts("unit")
    assert [[a.state for a in point.attempts] for point in points] == [["valid"]] * len(labels)
    events = records.events("unit")
    assert len(events) == 1 + 3 * len(labels)
    assert [event.id for event in events] == sorted(event.id for event in events)


def test_threads_that_race_for_one_point_number_its_attempts_without_gaps(
    records: Records, enter, owner: Owner
) -> None:
    """Attempts that fail at once make room for the next; numbers are 1, 2, 3 … in order."""
    enter()

    def fail_one(_: int) -> int:
        try:
            attempt = records.new_attempt("unit", "c0064", owner=owner)
        except AttemptRefusedError:
            return 0
        records.change_state(attempt.id, AttemptState.FAILED)
        return 1

    with ThreadPoolExecutor(RACERS) as pool:
        made = sum(pool.map(fail_one, range(4 * RACERS)))
    (point,) = (p for p in records.points_with_attempts("unit") if p.label == "c0064")
    assert [attempt.number for attempt in point.attempts] == list(range(1, made + 1))
    assert made >= 1


def test_a_writer_killed_in_its_transaction_leaves_nothing_behind(
    database_url: str, records: Records, enter, owner: Owner
) -> None:
    """After `kill -9` the database reads as before the transaction, and takes the next one."""
    enter()
    before = records.points_with_attempts("unit")
    with racer("hang", database_url) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "written\n"
        assert records.points_with_attempts("unit") == before
        writer.kill()
    assert records.campaign("unit").text == "campaign: unit\n"
    assert records.points_with_attempts("unit") == before
    assert records.new_attempt("unit", "c0064", owner=owner).number == 1
    if database_url.startswith("sqlite"):
        with make_engine(parsed_url(database_url)).begin() as connection:
            assert connection.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"


@pytest.mark.parametrize("engine_name", ["postgresql"])
def test_a_state_changed_behind_the_store_is_not_overwritten(
    database_url: str, records: Records, enter, owner: Owner
) -> None:
    """The change is a compare-and-set: a foreign writer that takes no lock wins, and is noticed."""
    enter()
    attempt = records.new_attempt("unit", "c0064", owner=owner)
    address = database_url.replace("+psycopg", "")
    with ThreadPoolExecutor(1) as pool, psycopg.connect(address) as foreign:
        foreign.execute("UPDATE attempt SET state = 'running'")
        change = pool.submit(records.change_state, attempt.id, AttemptState.FAILED)
        waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'"
        while not foreign.execute(waiting).fetchone()[0]:
            assert not change.done()
        foreign.commit()
        with pytest.raises(IllegalTransitionError, match="was changed by another program"):
            change.result()
    assert records.attempt(attempt.id).state is AttemptState.RUNNING


def test_an_upgrade_that_waits_for_another_finds_its_work_done(database_url: str) -> None:
    """Upgrades started together make one schema."""
    with ThreadPoolExecutor(RACERS) as pool:
        list(pool.map(upgrade, [database_url] * RACERS))
    with make_engine(parsed_url(database_url)).begin() as connection:
        versions = connection.exec_driver_sql("SELECT version_num FROM pareto_version").all()
        assert "attempt" in inspect(connection).get_table_names()
    assert len(versions) == 1
