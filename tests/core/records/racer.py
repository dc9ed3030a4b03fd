"""Processes that work on the records for `test_races.py`: `racer.py race|hang URL COUNT`."""

from __future__ import annotations

import json
import multiprocessing
import sys
import time
from collections.abc import Callable
from pathlib import Path

from sqlalchemy import text

from core.errors import ParetoError
from core.plan import make_plan
from core.records import Owner, Records, open_records, upgrade
from core.records.engine import WRITING, make_engine, parsed_url
from core.status import AttemptState
from tests.campaigns import make_campaign

#: How racers try to end the attempt, in turn.
ENDS = [AttemptState.VALID, AttemptState.INVALID, AttemptState.FAILED]


class Racer:
    """One process's part in the race: its methods are the steps, in order."""

    def __init__(self, url: str, number: int) -> None:
        self.url = url
        self.number = number
        self.records: Records
        self.attempt_id: int

    def create(self) -> str:
        """Make the database and open it."""
        upgrade(self.url)
        self.records = open_records(self.url)
        return "opened"

    def enter(self) -> int:
        """Enter the campaign."""
        campaign = self.records.enter_campaign(
            make_plan(make_campaign(), 1000),
            text="campaign: unit\n",
            statement={"campaign": "unit"},
            system="box",
            source=Path("/u.yaml"),
            runs_folder=Path("/runs"),
            differences=lambda _old: ["never asked"],
        )
        return campaign.id

    def attempt(self) -> int:
        """Make an attempt."""
        owner = Owner("box", "b00t", self.number, 1)
        return self.records.new_attempt("unit", "c0064", owner=owner).id

    def find(self) -> int:
        """See the one attempt that there is."""
        (found,) = self.records.open_attempts()
        self.attempt_id = found.id
        return found.id

    def start(self) -> str:
        """Say that the client runs."""
        return self.records.change_state(self.attempt_id, AttemptState.RUNNING).state

    def end(self) -> str:
        """Say how the client ended."""
        wanted = ENDS[self.number % len(ENDS)]
        return self.records.change_state(self.attempt_id, wanted).state

    def steps(self) -> list[Callable[[], object]]:
        """All steps in order."""
        return [self.create, self.enter, self.attempt, self.find, self.start, self.end]


def race(url: str, count: int) -> None:
    """Let processes take each step at the same moment; print what each said, step by step."""
    fork = multiprocessing.get_context("fork")
    barrier, said = fork.Barrier(count), fork.SimpleQueue()

    def run(number: int) -> None:
        results = []
        for step in Racer(url, number).steps():
            barrier.wait()
            try:
                results.append(str(step()))
            except ParetoError as refusal:
                results.append(type(refusal).__name__)
            except BaseException:
                barrier.abort()  # a bug: the others end too
                raise
        said.put(results)

    racers = [fork.Process(target=run, args=(number,)) for number in range(count)]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()
    if any(racer.exitcode for racer in racers):
        sys.exit("a racer failed")
    print(json.dumps([said.get() for _ in racers]))


def hang(url: str, _count: int) -> None:
    """Write without committing, and stay in the transaction."""
    engine = make_engine(parsed_url(url)).execution_options(**{WRITING: True})
    with engine.begin() as connection:
        connection.execute(text("UPDATE campaign SET text = 'half'"))
        connection.execute(text("UPDATE point SET position = 99"))
        print("written", flush=True)
        time.sleep(60)


if __name__ == "__main__":
    {"race": race, "hang": hang}[sys.argv[1]](sys.argv[2], int(sys.argv[3]))
