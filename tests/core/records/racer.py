"""A process that works on the records step by step, each when it is told to: `go` on its input.

Prints one line per step: `ok VALUE`, or the name of the error that the step raised.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

from sqlalchemy import select, text

from core.errors import ParetoError
from core.plan import make_plan
from core.records import Owner, Records, open_records, upgrade
from core.records.engine import WRITING, make_engine, parsed_url
from core.records.tables import PointRow
from core.status import AttemptState
from tests.campaigns import make_campaign

URL, NUMBER = sys.argv[2], int(sys.argv[3])
OWNER = Owner("box", "b00t", NUMBER, 1)


def step(work: Callable[[], object]) -> None:
    """Wait for `go`, work, say what came out."""
    sys.stdin.readline()
    try:
        print("ok", work(), flush=True)
    except ParetoError as problem:
        print(type(problem).__name__, flush=True)


def race() -> None:
    """Create the database, enter the campaign, make an attempt, start it, end it."""
    opened: list[Records] = []

    def create() -> None:
        upgrade(URL)
        opened.append(open_records(URL))

    def enter() -> int:
        plan = make_plan(make_campaign(), 1000)
        return (
            opened[0]
            .enter_campaign(
                plan,
                text="campaign: unit\n",
                source=Path("/u.yaml"),
                runs_folder=Path("/runs"),
                differences=lambda _old: ["never asked"],
            )
            .id
        )

    def attempt() -> int:
        return opened[0].new_attempt("unit", "c0064", owner=OWNER).id

    def change(wanted: AttemptState) -> AttemptState:
        (found,) = opened[0].open_attempts()
        return opened[0].change_state(found.id, wanted, owner=OWNER).state

    print("ready", flush=True)
    step(create)
    step(enter)
    step(attempt)
    step(lambda: change(AttemptState.RUNNING))
    ends = [AttemptState.VALID, AttemptState.INVALID, AttemptState.FAILED]
    (running,) = opened[0].open_attempts()
    step(lambda: opened[0].change_state(running.id, ends[NUMBER % len(ends)]).state)


def hang() -> None:
    """Write without committing, and stay in the transaction."""
    engine = make_engine(parsed_url(URL)).execution_options(**{WRITING: True})
    with engine.begin() as connection:
        point = connection.scalar(select(PointRow.id))
        connection.execute(text("UPDATE campaign SET text = 'half'"))
        connection.execute(text("UPDATE point SET position = 99 WHERE id = :id"), {"id": point})
        print("ready", flush=True)
        time.sleep(60)


{"race": race, "hang": hang}[sys.argv[1]]()
