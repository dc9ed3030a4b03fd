"""Extractors and scorers find what the reference client's find in such answers."""

from __future__ import annotations

from typing import Any

import pytest

from tasks.rehearsal.failures import ClientError, ClientInputError, ClientSetupError
from tasks.rehearsal.schema import Dataset
from tasks.rehearsal.scoring import AccuracyPlan, abcd, boxed_math, check_scoring, identity, score


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The answer is \\boxed{x61}", "x61"),
        ("\\boxed{1} then \\boxed{2}", "2"),
        ("\\boxed{1} then \\boxed{}", "1"),
        ("\\framebox{a, b}", "b"),
        ("first 3 then 17.", "17"),
        ("nothing", None),
        ("", None),
    ],
)
def test_boxed_math_takes_the_last_box_or_the_last_number(text: str, found: str | None) -> None:
    assert boxed_math(text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The answer is B\n**Answer:** C", "choice3"),
        ("Answer: (D)", "choice4"),
        ("I choose option A.", "choice1"),
        ("so \\boxed{B}", "choice2"),
        ("it must be (C) then", "choice3"),
        ("it is **D**", "choice4"),
        ("B. because", "choice2"),
        ("none of them", ""),
    ],
)
def test_abcd_names_the_choice(text: str, found: str) -> None:
    assert abcd(text) == found


def test_identity_is_the_text() -> None:
    assert identity(" as it is ") == " as it is "


def plan(
    truths: list[str], scorer: str = "pass_at_1", extractor: str = "boxed_math_extractor"
) -> AccuracyPlan:
    rows = [{"prompt": "?", "truth": truth} for truth in truths]
    return AccuracyPlan("acc", rows, 1, extractor, scorer, "truth")


def entry(one: AccuracyPlan, outputs: list[str | None]) -> dict[str, Any]:
    """The entry for answers in row order; None was never completed."""
    issued = {f"s{row}": row for row in range(len(outputs))}
    texts = {f"s{row}": text for row, text in enumerate(outputs) if text is not None}
    return score(one, issued, texts, 1.23456)


def test_the_score_is_the_share_of_all_issued_samples() -> None:
    """Empty and missing answers count as wrong and are told apart."""
    found = entry(plan(["x1", "x2", "x3", "x4"]), ["\\boxed{x1}", "\\boxed{x9}", "", None])
    assert found["score"] == 0.25
    assert found["response_counts"] == {"issued": 4, "scored": 2, "empty": 1, "missing": 1}
    assert found["output_sequence_lengths"]["total"] == 2
    assert (found["extractor"], found["duration_s"]) == ("BoxedMathExtractor", 1.235)


def test_nothing_issued_has_no_score_and_no_lengths() -> None:
    found = entry(plan(["x1"]), [])
    assert found["score"] is None
    assert "output_sequence_lengths" not in found


def test_numeric_truths_become_numbers_and_never_match() -> None:
    """The reference client's trap: text truths that are numbers score 0."""
    assert entry(plan(["4", "7"]), ["\\boxed{4}", "\\boxed{7}"])["score"] == 0.0


def test_string_match_ignores_space_around_and_refuses_what_is_no_text() -> None:
    one = plan(["a b ", "c"], "string_match", "identity_extractor")
    assert entry(one, [" a b", "x"])["score"] == 0.5
    with pytest.raises(ClientError, match="compares texts"):
        entry(plan(["1", "2"], "string_match", "identity_extractor"), ["1", "2"])


def test_a_missing_truth_column_is_an_error() -> None:
    one = AccuracyPlan("acc", [{"prompt": "?"}], 1, "identity_extractor", "pass_at_1", None)
    with pytest.raises(ClientError, match="ground_truth"):
        entry(one, ["x"])


@pytest.mark.parametrize(
    ("config", "error", "named"),
    [
        (None, ClientInputError, "eval_method"),
        ({"eval_method": "pass_at_1"}, ClientInputError, "extractor"),
        ({"eval_method": "pass_at_1", "extractor": "x"}, ClientInputError, "not registered"),
        (
            {"eval_method": "pass_at_1", "extractor": "python_code_extractor"},
            ClientSetupError,
            "python_code_extractor",
        ),
        ({"eval_method": "rouge"}, ClientSetupError, "rouge"),
    ],
)
def test_scoring_that_cannot_be_done_is_refused(
    config: dict[str, Any] | None, error: type[ClientError], named: str
) -> None:
    """What does not exist is an input error; what only the real client has is a set-up error."""
    dataset = Dataset.model_validate({"name": "acc", "type": "accuracy", "accuracy_config": config})
    with pytest.raises(error, match=named):
        check_scoring(dataset)
