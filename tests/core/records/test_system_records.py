"""Fingerprints, baselines, leases and relocation on record, on both databases."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy.exc import IntegrityError

from core.errors import ParetoError
from core.fingerprint import fingerprint
from core.records import AttemptRecord, AttemptRefusedError, Owner, Phase, Records
from core.status import AttemptState, PointState
from tests.core.records.test_guards import run

ONE, OTHER = fingerprint({"probes": {"d": ["1"]}}), fingerprint({"probes": {"d": ["2"]}})


def measured(
    records: Records, owner: Owner, label: str, state: AttemptState = AttemptState.VALID
) -> AttemptRecord:
    """An attempt from its look before to its end."""
    attempt = records.new_attempt("unit", label, owner=owner)
    records.record_fingerprint(attempt.id, "before", ONE)
    records.change_state(attempt.id, AttemptState.RUNNING)
    records.record_fingerprint(attempt.id, "after", OTHER)
    return records.change_state(attempt.id, state)


def test_the_first_valid_attempt_sets_the_baseline(records: Records, enter, owner: Owner) -> None:
    enter()
    assert records.baseline("unit") is None
    measured(records, owner, "c0064", AttemptState.FAILED)
    assert records.baseline("unit") is None
    second = measured(records, owner, "c0064")
    measured(records, owner, "c0001")
    found = records.baseline("unit")
    assert found is not None
    assert (found.attempt_id, found.moment, found.fingerprint) == (second.id, "before", ONE)
    looks = [(look.label, look.number, look.moment) for look in records.fingerprints("unit")]
    assert looks[:3] == [("c0064", 1, "before"), ("c0064", 1, "after"), ("c0064", 2, "before")]
    assert len(looks) == 6


def test_the_first_look_of_a_moment_stays(records: Records, enter, owner: Owner) -> None:
    """An attempt that is taken over is looked at again."""
    enter()
    attempt = records.new_attempt("unit", "c0064", owner=owner)
    for found in (ONE, OTHER):
        records.record_fingerprint(attempt.id, "before", found)
    (look,) = records.fingerprints("unit")
    assert look.sha256 == ONE.sha256


@pytest.mark.parametrize(
    "statement", ["UPDATE fingerprint SET sha256 = :other", "DELETE FROM fingerprint"]
)
def test_a_fingerprint_is_never_changed(
    records: Records, enter, owner: Owner, statement: str
) -> None:
    enter()
    measured(records, owner, "c0064")
    values = {"other": "b" * 64} if ":other" in statement else {}
    with pytest.raises(IntegrityError, match="a recorded fingerprint is never changed"):
        run(records, statement, **values)


def test_a_rebase_keeps_attempts_and_begins_a_new_curve(
    records: Records, enter, owner: Owner
) -> None:
    enter()
    measured(records, owner, "c0064")
    with pytest.raises(AttemptRefusedError):
        records.new_attempt("unit", "c0064", owner=owner)
    assert records.rebase("unit", "new driver").baseline == 2
    (point,) = (p for p in records.points_with_attempts("unit") if p.label == "c0064")
    assert (point.state, len(point.attempts), point.measurements) == (PointState.PENDING, 1, ())
    assert records.baseline("unit") is None
    again = measured(records, owner, "c0064")
    assert (again.number, again.baseline) == (2, 2)
    baseline = records.baseline("unit")
    assert baseline is not None
    assert baseline.attempt_id == again.id
    (event,) = records.campaign_events("unit", "campaign.rebased")
    assert event.payload == {"baseline": 2, "reason": "new driver"}


def test_a_campaign_with_an_open_attempt_is_not_rebased(
    records: Records, enter, owner: Owner
) -> None:
    enter()
    records.new_attempt("unit", "c0064", owner=owner, phase=Phase.PILOT)
    with pytest.raises(AttemptRefusedError, match="c0064 attempt 1 of unit is prepared"):
        records.rebase("unit", "x")
    assert records.campaign("unit").baseline == 1


def test_events_by_attempt_and_by_kind(records: Records, enter, owner: Owner) -> None:
    enter()
    first, second = (records.new_attempt("unit", n, owner=owner) for n in ("c0064", "c0001"))
    for number, attempt in enumerate((first, second, first)):
        records.append_event("unit", "instance.seen", {"n": number}, attempt.id)
    seen = records.attempt_events(first.id, "instance.seen")
    assert [event.payload["n"] for event in seen] == [0, 2]
    everything = records.campaign_events("unit", "instance.seen")
    assert [event.payload["n"] for event in everything] == [0, 1, 2]


def test_moved_run_folders_are_found_in_their_new_place(records: Records, enter) -> None:
    enter()
    records.relocate("unit", Path("/archive"))
    assert records.campaign("unit").runs_folder == "/archive"
    (event,) = records.campaign_events("unit", "campaign.relocated")
    assert event.payload == {"before": "/data/runs", "now": "/archive"}


def test_a_lease_is_its_holders_until_it_is_seen_not_to_move(
    records: Records, owner: Owner
) -> None:
    other = replace(owner, host="far")
    mine = records.take_lease("box", "one", owner)
    assert (mine.campaign, mine.owner, mine.beat, mine.label) == ("one", owner, 0, None)
    assert records.take_lease("box", "two", other) == mine
    assert records.beat_lease("box", owner, "c0064", 99.0)
    moved = records.take_lease("box", "two", other, seen=mine)
    assert (moved.owner, moved.beat, moved.label, moved.client_until) == (owner, 1, "c0064", 99.0)
    taken = records.take_lease("box", "two", other, seen=moved)
    assert (taken.campaign, taken.owner, taken.client_until) == ("two", other, None)
    assert not records.beat_lease("box", owner, None, None)
    records.drop_lease("box", owner)
    assert records.lease("box") == taken
    records.drop_lease("box", other)
    assert records.lease("box") is None


def test_a_changed_fingerprint_is_found_when_it_is_read(
    records: Records, enter, owner: Owner
) -> None:
    enter()
    measured(records, owner, "c0064")
    look = records.fingerprints("unit")[0]
    content = {**look.content, "parts": {**look.content["parts"], "client": {"v": "2"}}}
    with pytest.raises(ParetoError, match="not what its digests say"):
        _ = replace(look, content=content).fingerprint
