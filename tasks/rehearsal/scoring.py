"""Scores accuracy answers: the extractors and scorers of the reference client that rehearsals use.

A score is the share of the issued samples that match, so that a missing answer counts as wrong.
What the reference client knows beyond these is refused with exit code 3.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tasks.rehearsal.dataset import Row, truths
from tasks.rehearsal.failures import ClientError, ClientInputError, ClientSetupError
from tasks.rehearsal.schema import Dataset
from tasks.rehearsal.series import Series, metric

_BOXED = re.compile(r"(?:boxed|framebox)\{(.*?)\}", re.DOTALL)
#: Where a choice is looked for, most telling first.
_CHOICES = tuple(
    re.compile(pattern)
    for pattern in (
        r"(?i:answers?)[*_]*\s*[:\-–]?\s*[*_]*\s*\(?\s*([ABCD])\b",
        r"(?i:option|choice)\s*[:\-–]?\s*([ABCD])\b",
        r"\\boxed\{[^}]*?([ABCD])[^}]*\}",
        r"(?<!\w)[(\[]\s*([ABCD])\s*[)\]](?!\w)",
        r"(?<!\w)(?:\*\*|\*|__|_)([ABCD])(?:\*\*|\*|__|_)(?!\w)",
        r"(?m)^\s*([ABCD])\s*(?:[.):\-–]|$)",
    )
)


def boxed_math(text: str) -> str | None:
    r"""Return the content of the last `\boxed{}` that has any, else the last whole number."""
    filled = [content for content in _BOXED.findall(text) if content]
    if filled:
        return str(filled[-1].split(",")[-1].strip())
    numbers = re.findall(r"\d+", text)
    return numbers[-1] if numbers else None


def abcd(text: str) -> str:
    """Return the choice made as `choice1` to `choice4`, or nothing."""
    for pattern in _CHOICES:
        if found := pattern.search(text):
            return f"choice{'ABCD'.index(found[1]) + 1}"
    return ""


def identity(text: str) -> str:
    """Return the whole text."""
    return text


#: Name in the files and function of each extractor the stand-in has.
EXTRACTORS: dict[str, tuple[str, Callable[[str], str | None]]] = {
    "boxed_math_extractor": ("BoxedMathExtractor", boxed_math),
    "abcd_extractor": ("ABCDExtractor", abcd),
    "identity_extractor": ("IdentityExtractor", identity),
}
#: Extractors that only the reference client has.
_FOREIGN_EXTRACTORS = ("python_code_extractor", "function_call_extractor")


def _pass_at_1(value: Any, truth: Any) -> bool:
    return bool(value == truth)


def _string_match(value: Any, truth: Any) -> bool:
    if not isinstance(value, str) or not isinstance(truth, str):
        raise ClientError(f"string_match compares texts, not {value!r} with {truth!r}")
    return value.strip() == truth.strip()


#: The scorers the stand-in has.
SCORERS: dict[str, Callable[[Any, Any], bool]] = {
    "pass_at_1": _pass_at_1,
    "string_match": _string_match,
}


@dataclass(frozen=True)
class AccuracyPlan:
    """One accuracy dataset and how it is scored."""

    name: str
    rows: list[Row]
    repeats: int
    extractor: str
    scorer: str
    truth_column: str | None

    @property
    def samples(self) -> int:
        """Samples to issue: every row, as often as it is repeated."""
        return len(self.rows) * self.repeats


def check_scoring(dataset: Dataset) -> tuple[str, str]:
    """Return extractor and scorer of an accuracy dataset.

    Raises:
        ClientInputError: If they are not stated or do not exist.
        ClientSetupError: If only the reference client has them.
    """
    config = dataset.accuracy_config
    if config is None or config.eval_method is None:
        raise ClientInputError(
            f"Dataset '{dataset.name}' requires accuracy_config with eval_method"
        )
    if config.eval_method not in SCORERS:
        raise ClientSetupError(f"The rehearsal stand-in has no scorer '{config.eval_method}'")
    if config.extractor is None:
        raise ClientInputError(
            f"Dataset '{dataset.name}' uses scorer '{config.eval_method}' which requires an "
            f"extractor"
        )
    if config.extractor in _FOREIGN_EXTRACTORS:
        raise ClientSetupError(f"The rehearsal stand-in has no extractor '{config.extractor}'")
    if config.extractor not in EXTRACTORS:
        raise ClientInputError(
            f"Extractor '{config.extractor}' is not registered - available extractors: "
            f"{list(EXTRACTORS)}"
        )
    return config.extractor, config.eval_method


def score(
    plan: AccuracyPlan, issued: dict[str, int], outputs: dict[str, str], duration_s: float
) -> dict[str, Any]:
    """Return the entry of `accuracy_results.json` for one dataset.

    Args:
        plan: The dataset and its scoring.
        issued: Row of every sample issued, by id.
        outputs: Text of every sample completed, by id; empty if it failed.
        duration_s: Time that the phase took.
    """
    spent = time.perf_counter()
    lengths = _lengths(issued, outputs)
    entry: dict[str, Any] = {
        "dataset_name": plan.name,
        "extractor": EXTRACTORS[plan.extractor][0],
        "ground_truth_column": plan.truth_column,
        "score": _mean(plan, issued, outputs),
        "unit_samples": len(plan.rows),
        "num_repeats": plan.repeats,
        "total_samples": plan.samples,
        "duration_s": round(duration_s, 3),
        "complete": True,
        "dataset_type": "accuracy",
        "response_counts": _counts(issued, outputs),
    }
    if lengths:
        entry["output_sequence_lengths"] = lengths
        entry["osl_tokenize_s"] = round(time.perf_counter() - spent, 3)
    return entry


def _mean(plan: AccuracyPlan, issued: dict[str, int], outputs: dict[str, str]) -> float | None:
    if not issued:
        return None
    extract, matches = EXTRACTORS[plan.extractor][1], SCORERS[plan.scorer]
    wanted = truths(plan.rows, plan.truth_column or "ground_truth")
    right = sum(
        matches(extract(outputs[sample]), wanted[row])
        for sample, row in issued.items()
        if sample in outputs
    )
    return right / len(issued)


def _counts(issued: dict[str, int], outputs: dict[str, str]) -> dict[str, int]:
    return {
        "issued": len(issued),
        "scored": sum(bool(outputs.get(sample)) for sample in issued),
        "empty": sum(outputs.get(sample) == "" for sample in issued),
        "missing": sum(sample not in outputs for sample in issued),
    }


def _lengths(issued: dict[str, int], outputs: dict[str, str]) -> dict[str, Any]:
    words = [len(outputs[sample].split()) for sample in issued if outputs.get(sample)]
    return metric(Series("osl", values=list(words)).stat(final=False))
