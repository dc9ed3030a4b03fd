"""Machines share one PostgreSQL, and one of them is gone: what it left is given up for a reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from core.records import Owner, open_records, upgrade
from core.status import AttemptState
from flows.campaign import settle_open_attempts
from flows.prepare import prepare
from flows.session import Surroundings, enter
from flows.stop import StopRequest
from tasks import instance
from tasks.owner import this_process
from tests.flows.support import Done, Place, write_datasets
from tests.postgres import schema

#: An orchestrator on a machine that is gone.
GONE = Owner(host="h200-3", boot_id="b00t", pid=4242, start_time=77)


@pytest.fixture
def database(postgres_url: str) -> Iterator[str]:
    """Records that machines share."""
    with schema(postgres_url) as url:
        upgrade(url)
        yield url


@pytest.fixture
def here(tmp_path: Path, database: str, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A place on this machine; a machine that is gone left an attempt of its campaign."""
    monkeypatch.setattr(instance, "LEASE_S", 0.2)
    write_datasets(tmp_path)
    place = Place(tmp_path, "http://127.0.0.1:9/api", database=database)
    place.write()
    enter(prepare(place.file, place.env()), Surroundings(None, {}, None), StopRequest().asked)
    attempt = place.records.new_attempt("curve", "c0001", owner=GONE)
    place.records.change_state(attempt.id, AttemptState.RUNNING)
    place.records.take_lease("box", "curve", GONE)
    place.records.beat_lease("box", GONE, "c0001", 4e9)
    return place


def test_a_dead_machine_is_given_up_for_a_reason(here: Place, call: Callable[..., Done]) -> None:
    """Its lease ends before its term and its attempt is interrupted; the reason is on record."""
    done = call(here, "unlock", here.file, "--reason", "no power")
    assert done.code == 0, done
    assert "instance box is free; h200-3 held it" in done.out
    assert "c0001 attempt 1 of h200-3 is given up" in done.out
    assert here.records.lease("box") is None
    (attempt,) = here.attempts("c0001")
    assert (attempt.state, attempt.reason) == (
        AttemptState.INTERRUPTED,
        "given up with h200-3: no power",
    )
    (event,) = here.records.campaign_events("curve", "instance.freed")
    assert (event.payload["reason"], event.payload["owner"]["host"]) == ("no power", "h200-3")
    assert "holds no instance" in call(here, "unlock", here.file, "--reason", "again").out


def test_a_machine_that_shows_life_is_not_given_up(
    here: Place, call: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither one elsewhere whose lease moves, nor a process of this one."""
    seen = here.records.lease("box")
    monkeypatch.setattr(instance, "LOOK_S", 0.05)
    monkeypatch.setattr("core.records.Records.lease", lambda *_: replace(seen, beat=seen.beat + 1))
    done = call(here, "unlock", here.file, "--reason", "no power")
    monkeypatch.undo()
    assert done.code == 2, done
    assert "process 4242 on h200-3 is alive and measures it; `pareto cancel curve`" in done.err
    here.records.drop_lease("box", GONE)
    here.records.take_lease("box", "curve", this_process())
    done = call(here, "unlock", here.file, "--reason", "no power")
    assert done.code == 2, done
    assert here.attempts("c0001")[0].state is AttemptState.RUNNING


@pytest.mark.parametrize("is_held", [True, False])
def test_what_another_machine_left_is_not_concluded_here(here: Place, is_held: bool) -> None:
    """Nor while its lease lives, nor later: its folder, perhaps with a valid run, is over there."""
    if not is_held:
        here.records.drop_lease("box", GONE)
    session = enter(
        prepare(here.file, here.env()), Surroundings(None, {}, None), StopRequest().asked
    )
    told = (
        "is being run by process 4242 on h200-3"
        if is_held
        else "was left by process 4242 on h200-3, .* or give it up with `pareto unlock curve"
    )
    with pytest.raises(instance.SetupError, match=f"c0001 attempt 1 {told}"):
        settle_open_attempts(session, StopRequest())
    assert here.attempts("c0001")[0].state is AttemptState.RUNNING


def test_a_reason_is_asked_for(here: Place, call: Callable[..., Done]) -> None:
    done = call(here, "unlock", here.file, "--reason", " ")
    assert (done.code, open_records(str(here.database)).lease("box").owner) == (2, GONE)
    assert "--reason: say how you know" in done.err
