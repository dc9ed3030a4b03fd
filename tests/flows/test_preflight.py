"""What is wrong with the surroundings, all at once, and each of its kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.errors import ClientMissingError, SetupError
from flows.prepare import prepare
from flows.session import preflight
from tests.flows.support import Place

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
