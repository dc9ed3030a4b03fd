"""What is wrong with the surroundings, all at once, and each of its kind."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from core.errors import ClientMissingError, SetupError
from flows.prepare import prepare
from flows.session import preflight
from tests.flows.support import LABELS, ROOT, Place

NOWHERE = "/nowhere/inference-endpoint"


def problem_of(place: Place) -> SetupError:
    """What the preflight of the place's campaign ends with."""
    with pytest.raises(SetupError) as refused:
        preflight(prepare(place.file, {"PARETO_STATE_DIR": str(place.folder)}))
    return refused.value


def test_a_missing_client_alone_is_told_apart(bare_place: Place) -> None:
    """A worker waits for it, and fails a run for anything else."""
    with bare_place.endpoint():
        bare_place.write(client={"command": [NOWHERE]})
        assert isinstance(problem_of(bare_place), ClientMissingError)


def test_several_problems_are_told_at_once(bare_place: Place) -> None:
    with bare_place.endpoint():
        bare_place.write(client={"command": [NOWHERE]})
        Path(bare_place.folder / "performance.jsonl").unlink()
        problem = problem_of(bare_place)
    assert not isinstance(problem, ClientMissingError)
    assert NOWHERE in str(problem)
    assert "performance.jsonl" in str(problem)


@pytest.mark.parametrize("wanted", [None, ["c0001"], ["c0002", "c0020"]])
def test_the_client_confirms_what_is_to_be_run(bare_place: Place, wanted: list[str] | None) -> None:
    """And no other configuration: the official one takes seconds for each."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with bare_place.endpoint():
        bare_place.write(client={"command": bare_place.noting_client()})
        preflight(prepare(bare_place.file, environment), wanted)
    assert sorted(bare_place.confirmed()) == sorted(wanted or LABELS)
