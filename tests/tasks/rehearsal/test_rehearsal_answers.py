"""Answers have the asked length in words, and the right result where there is one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tasks.rehearsal.answers import answer
from tasks.rehearsal.scoring import boxed_math
from tests.tasks.rehearsal.support import accuracy_rows

DATA = Path(__file__).parents[3] / "campaigns" / "data"


def rows(name: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in (DATA / name).read_text().splitlines()]


def never(_: int) -> bool:
    return False


@pytest.mark.parametrize("tokens", [1, 2, 3, 4, 5, 16, 200])
@pytest.mark.parametrize(
    "prompt", ["Say something.", rows("rehearsal-accuracy.jsonl")[7]["prompt"]]
)
def test_an_answer_has_exactly_as_many_words_as_chunks(prompt: str, tokens: int) -> None:
    chunks = answer(prompt, tokens, never)
    assert len(chunks) == len("".join(chunks).split()) == tokens


def test_every_problem_of_the_datasets_is_answered_rightly() -> None:
    """The right result stands in the last chunk, for our own and the recorded problems."""
    for problem in rows("rehearsal-accuracy.jsonl") + accuracy_rows():
        chunks = answer(problem["prompt"], 12, never)
        assert boxed_math("".join(chunks)) == problem["ground_truth"]
        assert problem["ground_truth"] in chunks[-1]


def test_a_wrong_answer_is_wrong_for_the_problems_named() -> None:
    wanted = [row["ground_truth"] for row in rows("rehearsal-accuracy.jsonl")]
    given = [
        boxed_math("".join(answer(row["prompt"], 12, lambda problem: problem == 7)))
        for row in rows("rehearsal-accuracy.jsonl")
    ]
    assert [number for number in range(64) if given[number] != wanted[number]] == [7]


@pytest.mark.parametrize("name", ["rehearsal-performance.jsonl", "rehearsal-accuracy.jsonl"])
def test_the_datasets_have_64_distinct_prompts(name: str) -> None:
    prompts = [row["prompt"] for row in rows(name)]
    assert len(prompts) == len(set(prompts)) == 64


def test_ground_truths_are_texts_that_no_reader_takes_for_numbers() -> None:
    assert all(row["ground_truth"].startswith("x") for row in rows("rehearsal-accuracy.jsonl"))
