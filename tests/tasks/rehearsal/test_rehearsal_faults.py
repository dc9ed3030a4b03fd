"""Which request gets which fault is exact and reproducible."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from core.errors import InputError
from tasks.rehearsal.faults import Fate, FaultLedger, Faults, faults_from_json, hit


def fates(faults: Faults, requests: int) -> list[Fate]:
    ledger = FaultLedger(faults)
    return [ledger.fate() for _ in range(requests)]


@pytest.mark.parametrize("percent", [0, 1, 5, 10, 33, 50, 99, 100])
def test_a_share_hits_exactly_that_many_of_a_hundred_evenly_spread(percent: int) -> None:
    hits = [number for number in range(100) if hit(number, percent)]
    assert len(hits) == percent
    gaps = {after - before for before, after in pairwise(hits)}
    assert not gaps or max(gaps) - min(gaps) <= 1


def test_no_faults_answer_everything() -> None:
    assert set(fates(Faults(), 50)) == {Fate.ANSWER}


def test_next_errors_and_cuts_are_used_up_in_turn() -> None:
    assert fates(Faults(error_next=2, cut_next=1), 5) == [
        Fate.ERROR,
        Fate.ERROR,
        Fate.CUT,
        Fate.ANSWER,
        Fate.ANSWER,
    ]


def test_rates_hit_their_share() -> None:
    counts = Counter(fates(Faults(error_rate_percent=5), 40))
    assert counts == {Fate.ANSWER: 38, Fate.ERROR: 2}
    assert Counter(fates(Faults(empty_rate_percent=10), 40))[Fate.EMPTY] == 4


def test_busy_and_dropped_requests_hit_their_share() -> None:
    assert Counter(fates(Faults(busy_rate_percent=10), 20))[Fate.BUSY] == 2
    assert Counter(fates(Faults(drop_rate_percent=10), 20))[Fate.DROP] == 2


def test_a_stall_midway_and_slowness_come_after_the_nth_request() -> None:
    assert fates(Faults(stall_midway_after=1), 2) == [Fate.ANSWER, Fate.STALL_MIDWAY]
    ledger = FaultLedger(Faults(slow_after=1))
    assert [(ledger.fate(), ledger.is_slow) for _ in range(2)] == [
        (Fate.ANSWER, False),
        (Fate.ANSWER, True),
    ]


def test_stall_and_death_come_after_the_nth_request() -> None:
    assert fates(Faults(stall_after=2), 4) == [Fate.ANSWER] * 2 + [Fate.STALL] * 2
    assert fates(Faults(die_after=0), 1) == [Fate.DIE]


def test_wrong_answers_depend_on_the_problem_alone() -> None:
    """The same problems are wrong in every run and in any order."""
    ledger = FaultLedger(Faults(wrong_answer_percent=25))
    wrong = [number for number in range(64) if ledger.wrong(number)]
    assert len(wrong) == 16
    assert [number for number in reversed(range(64)) if ledger.wrong(number)] == wrong[::-1]


@pytest.mark.parametrize(
    ("document", "named"),
    [
        ({"error_rate": 5}, "error_rate"),
        ({"error_next": -1}, "error_next"),
        ({"error_next": True}, "error_next"),
        ({"error_next": None}, "error_next"),
        ({"empty_rate_percent": 101}, "empty_rate_percent"),
        ({"stall_after": "2"}, "stall_after"),
        ([], "object"),
    ],
)
def test_faults_that_make_no_sense_are_refused_by_name(document: object, named: str) -> None:
    with pytest.raises(InputError, match=named):
        faults_from_json(document)


def test_faults_round_trip_through_json() -> None:
    faults = Faults(error_next=3, die_after=7)
    assert faults_from_json(faults.as_json()) == faults
