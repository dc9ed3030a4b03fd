"""Agreement with the official checker: what it has against a tree we find before packaging."""

from __future__ import annotations

from pathlib import Path

import pytest
from submission_checker.messages import catalog

from core.gates import GATES
from core.rules_ahead import RULES
from tests.agreement import BREAKING, MUTATIONS, ROWS, SILENT, Mutation, base_of, ours, theirs


@pytest.mark.parametrize("kind", ROWS)
def test_the_unbroken_passes_both(kind: str, tmp_path: Path) -> None:
    """Nothing is found where nothing is broken, or the tests below would show nothing."""
    stage = base_of(kind).stage
    assert theirs(stage, tmp_path) == set()
    assert ours(stage) == set()


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda m: f"{m.kind} {m.name}")
def test_errors_of_the_checker_are_found_before(mutation: Mutation, tmp_path: Path) -> None:
    """Every rule id that it names is among ours, and it names at least one."""
    stage = mutation.applied()
    official = theirs(stage, tmp_path)
    assert official
    assert official <= ours(stage)


@pytest.mark.parametrize("mutation", SILENT, ids=lambda m: m.name)
def test_what_the_checker_passes_is_found(mutation: Mutation, tmp_path: Path) -> None:
    """It says nothing, or crashes; we have an error."""
    stage = mutation.applied()
    assert theirs(stage, tmp_path) <= {"checker-crashed"}
    assert ours(stage)


@pytest.mark.parametrize(("mutation", "rule"), BREAKING, ids=lambda m: getattr(m, "name", ""))
def test_what_breaks_the_builder_is_found(mutation: Mutation, rule: str) -> None:
    """By a rule of ours, before the builder is asked."""
    assert rule in ours(mutation.applied())


def test_there_are_enough() -> None:
    """A hundred broken trees at least, each another, of every kind."""
    assert len({(m.kind, m.name) for m in MUTATIONS}) == len(MUTATIONS) >= 100
    assert {m.kind for m in MUTATIONS} == set(ROWS)


def test_every_official_rule_has_its_moment() -> None:
    """A rule of a newer checker is noticed here; our own ids are none of its."""
    official = {rule for rule in catalog() if not rule.startswith("_")}
    assert official == set(RULES)
    assert not official & set(GATES)
