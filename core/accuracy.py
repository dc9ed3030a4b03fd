"""The accuracy gate (§4.3, §6.6): `accuracy_results.json` against the official thresholds.

The official checker's own model reads the file and its tables hold the thresholds. Scores are
folded as `ModelContext._gate_accuracy` folds them (checker 1.5.3; a test compares the two). On top
comes what the checker lets through: unscored, empty and missing samples, an interrupted scorer,
scores without a gate, and repeats that stand in for samples.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pydantic import ValidationError
from submission_checker.accuracy_targets import get_thresholds
from submission_checker.agentic_targets import (
    SWEBENCH_DATASET,
    AgenticTargets,
    get_agentic_targets,
)
from submission_checker.models import AccuracyResult

from core.findings import Finding
from core.reading import FolderProblem, Problems, is_integer, load_json, shown
from core.run import PlannedAccuracy

#: The file, as findings name it.
WHERE = "accuracy_results.json"
#: Metric → (lowest, highest) accepted value; None: no bound on that side.
Bounds = Mapping[str, tuple[float | None, float | None]]
#: Benchmarks whose official sample count includes repeats (checker 1.5.3, `context.py`: "gpt-oss
#: aime×8/gpqa×5/lcb×3"); for the others repeats must not stand in for samples.
_COUNTED_WITH_REPEATS = frozenset({"gpt-oss-120b"})
#: The metric name of a score without one (checker 1.5.3, `AccuracyResult.metric_scores`).
_UNNAMED = "score"
#: Scorers report fractions where official thresholds are percentages (checker 1.5.3, `context.py`).
_PERCENT = 100.0


class Outcome(StrEnum):
    """What became of a run's accuracy."""

    PASSED = "pass"
    MISSED = "miss"  # scored in full, below a threshold
    INCOMPLETE = "incomplete"  # a result that can't be judged
    MISSING = "missing"  # planned, but there is none
    STALE = "stale"  # the file is of an earlier run
    NONE = "none"  # none was planned
    WRONG_CONCURRENCY = "pass-at-wrong-concurrency"


@dataclass(frozen=True)
class AccuracyReport:
    """`accuracy_results.json` as read by the official model."""

    result: AccuracyResult
    finished: bool  # neither the file nor a dataset in it says otherwise

    @property
    def datasets(self) -> tuple[str, ...]:
        """Names of the scored datasets; the score of the timed requests themselves is no such."""
        return tuple(self.result.accuracy_datasets())

    @property
    def scores(self) -> dict[str, dict[str, float]]:
        """Dataset → metric → value; only what is a finite number."""
        return {
            name: {
                metric: value
                for metric, value in metrics.items()
                if math.isfinite(value)
                and not isinstance(_raw(self.result.root[name])[metric], bool)
            }
            for name, metrics in self.result.metric_scores().items()
            if self.result.root[name].get(_UNNAMED, "") is not None
        }


def _raw(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """The metrics of an entry as the file has them, numbers or not."""
    score = entry.get(_UNNAMED, entry)
    return score if isinstance(score, dict) else {_UNNAMED: score}


def official_bounds(
    benchmark: str,
) -> tuple[dict[str, tuple[float, float | None]], int] | None:
    """Official thresholds and sample count of a single-turn benchmark; None: there are none.

    Agentic benchmarks are gated by their own targets (`agentic_targets`).
    """
    return get_thresholds(benchmark)


def agentic_targets(benchmark: str) -> AgenticTargets | None:
    """Official targets of an agentic benchmark; None: it is none."""
    return get_agentic_targets(benchmark)


def parse_accuracy(text: bytes) -> AccuracyReport | Problems:
    """Read the accuracy results, or say what in them can't be read."""
    value, unreadable = load_json(text, WHERE)
    if unreadable:
        return unreadable
    try:
        result = AccuracyResult.model_validate(value)
    except ValidationError as error:
        return tuple(
            FolderProblem(_place(problem["loc"]), shown(problem["msg"]))
            for problem in error.errors(include_url=False, include_input=False)
        )
    top = value if isinstance(value, dict) else {}
    return AccuracyReport(result, all(map(_finished, (top, *result.root.values()))))


def _place(location: tuple[int | str, ...]) -> str:
    return ": ".join([WHERE, *map(str, location)])


def _finished(block: Mapping[str, Any]) -> bool:
    """Whether a block claims no partial result."""
    return block.get("complete", True) is True and block.get("state", "complete") == "complete"


def gate(
    report: AccuracyReport, planned: tuple[PlannedAccuracy, ...], benchmark: str
) -> tuple[Finding, ...]:
    """What keeps accuracy results from passing; empty: they pass.

    Args:
        report: The results.
        planned: The datasets that were to be scored.
        benchmark: Canonical model name; one without official thresholds is gated by the bounds of
            its planned datasets.
    """
    return (
        *_completeness(report, planned, benchmark),
        *_thresholds(report, planned, benchmark),
    )


def outcome(findings: tuple[Finding, ...]) -> Outcome:
    """What the findings of `gate` amount to."""
    rules = {finding.rule for finding in findings if finding.severity == "error"}
    if not rules:
        return Outcome.PASSED
    return Outcome.MISSED if rules == {"accuracy-below-threshold"} else Outcome.INCOMPLETE


def _completeness(
    report: AccuracyReport, planned: tuple[PlannedAccuracy, ...], benchmark: str
) -> Iterator[Finding]:
    """What of the planned samples has no score."""
    if not report.finished:
        yield _incomplete("complete: false, or a state other than complete", "a finished scorer")
    for dataset in planned:
        entry = report.result.root.get(dataset.name)
        if entry is None:
            yield _incomplete(f"no result for {dataset.name}", f"a score for {dataset.name}")
        elif not _scored_outside(dataset, benchmark):
            yield from _counted(dataset, entry)
    yield from _official_count(report, benchmark)


def _scored_outside(dataset: PlannedAccuracy, benchmark: str) -> bool:
    """Whether a dataset's requests are not the client's own, so that it counts none of them."""
    return dataset.name == SWEBENCH_DATASET and agentic_targets(benchmark) is not None


def _counted(dataset: PlannedAccuracy, entry: Mapping[str, Any]) -> Iterator[Finding]:
    """Whether one dataset was issued and scored in full."""
    rows, repeats = entry.get("num_samples"), entry.get("n_repeats", 1)
    if (rows, repeats) != (dataset.rows, dataset.repeats):
        yield _incomplete(
            f"{dataset.name}: {shown(rows)} samples × {shown(repeats)}",
            f"{dataset.rows} samples × {dataset.repeats}",
        )
    counts = entry.get("response_counts")
    counts = counts if isinstance(counts, dict) else {}
    issued, scored, empty, missing = (
        counts.get(key) for key in ("issued", "scored", "empty", "missing")
    )
    if (issued, scored, missing) != (dataset.samples, dataset.samples, 0):
        yield _incomplete(
            f"{dataset.name}: issued {shown(issued)}, scored {shown(scored)},"
            f" empty {shown(empty)}, missing {shown(missing)}",
            f"all {dataset.samples} samples issued and scored",
        )
    if empty != 0 and is_integer(empty):
        yield Finding(
            "empty-answers",
            "error",
            f"{empty} empty answers in {dataset.name}",
            "an answer to every request",
            "look at the endpoint's log: the requests failed, or the output limit is too low",
            "accuracy",
        )


def _official_count(report: AccuracyReport, benchmark: str) -> Iterator[Finding]:
    """Whether as many samples were scored as the rules ask for."""
    official = official_bounds(benchmark)
    if official is None:
        return
    with_repeats = benchmark in _COUNTED_WITH_REPEATS
    samples = sum(
        _whole(entry.get("num_samples"), 0)
        * (max(_whole(entry.get("n_repeats"), 1), 1) if with_repeats else 1)
        for entry in report.result.root.values()
    )
    if samples < official[1]:
        unit = "samples with their repeats" if with_repeats else "different samples"
        yield _incomplete(f"{samples} {unit}", f"at least {official[1]} for {benchmark}")


def _whole(value: object, otherwise: int) -> int:
    return value if isinstance(value, int) and is_integer(value) else otherwise


def _thresholds(
    report: AccuracyReport, planned: tuple[PlannedAccuracy, ...], benchmark: str
) -> Iterator[Finding]:
    """Scores below their thresholds, and thresholds without a score."""
    official, agentic = official_bounds(benchmark), agentic_targets(benchmark)
    if official is not None:
        yield from _official(report, planned, official[0])
    elif agentic is not None:
        yield from _agentic(report, planned, agentic)
    else:
        for dataset in planned:
            yield from _custom(report, dataset)


def _official(
    report: AccuracyReport,
    planned: tuple[PlannedAccuracy, ...],
    bounds: Mapping[str, tuple[float, float | None]],
) -> Iterator[Finding]:
    """All datasets folded into one score a metric, each metric within its bounds."""
    scores = fold(report)
    if list(scores) == [_UNNAMED] and len(bounds) == 1:
        scores = {next(iter(bounds)): scores[_UNNAMED]}
    yield from _within(_as_percentages(scores, bounds), bounds, "the folded datasets")
    for dataset in planned:
        if dataset.name in report.result.root and not report.scores.get(dataset.name):
            yield _ungated(f"no number as the score of {dataset.name}", f"{', '.join(bounds)}")


def fold(report: AccuracyReport) -> dict[str, float]:
    """One score a metric: the mean over the datasets, weighted by their samples.

    A plain mean where a dataset states no samples.
    """
    values: dict[str, list[tuple[float, float | None]]] = {}
    for name, metrics in report.scores.items():
        weight = _weight(report.result.root[name].get("num_samples"))
        for metric, value in metrics.items():
            values.setdefault(metric, []).append((value, weight))
    return {metric: _weighted_mean(pairs) for metric, pairs in values.items()}


def _weight(samples: Any) -> float | None:
    try:
        return float(samples)
    except (TypeError, ValueError):
        return None


def _weighted_mean(pairs: list[tuple[float, float | None]]) -> float:
    weights = [weight for _, weight in pairs if weight is not None]
    total = sum(weights)
    if len(weights) < len(pairs) or total <= 0:
        return sum(value for value, _ in pairs) / len(pairs)
    return sum(value * weight for value, weight in pairs if weight is not None) / total


def _as_percentages(
    scores: Mapping[str, float], bounds: Mapping[str, tuple[float, float | None]]
) -> dict[str, float]:
    """Scores on the scale of their thresholds: a fraction becomes a percentage."""
    scaled = dict(scores)
    for metric, value in scores.items():
        lowest, _ = bounds.get(metric.lower(), (0.0, None))
        if lowest > 1.0 and 0.0 <= value <= 1.0:
            scaled[metric] = value * _PERCENT
    return scaled


def _custom(report: AccuracyReport, dataset: PlannedAccuracy) -> Iterator[Finding]:
    """One dataset within the campaign's own bounds."""
    if not dataset.bounds:
        yield Finding(
            "accuracy-ungated",
            "warning",
            f"{dataset.name} has no targets",
            "a lowest accepted score",
            f"set targets for the accuracy dataset {dataset.name} in the campaign file",
            "accuracy",
        )
    elif dataset.name in report.result.root:
        yield from _within(report.scores.get(dataset.name, {}), dataset.bounds, dataset.name)


def _within(scores: Mapping[str, float], bounds: Bounds, subject: str) -> Iterator[Finding]:
    """Whether each bound metric has a score within its bounds; names in any case."""
    by_name = {metric.lower(): value for metric, value in reversed(list(scores.items()))}
    without = [metric for metric in bounds if metric.lower() not in by_name]
    if without:
        found = ", ".join(scores) or "no number"
        yield _ungated(f"{found} for {subject}", ", ".join(bounds))
    for metric, (lowest, highest) in bounds.items():
        value = by_name.get(metric.lower())
        if value is not None and not _inside(value, lowest, highest):
            yield _missed(f"{metric} {value:.6g} for {subject}", _range(lowest, highest))


def _inside(value: float, lowest: float | None, highest: float | None) -> bool:
    return (lowest is None or value >= lowest) and (highest is None or value <= highest)


def _range(lowest: float | None, highest: float | None) -> str:
    if highest is None:
        return f"at least {lowest:.6g}"
    return f"at most {highest:.6g}" if lowest is None else f"{lowest:.6g} to {highest:.6g}"


def _agentic(
    report: AccuracyReport, planned: tuple[PlannedAccuracy, ...], targets: AgenticTargets
) -> Iterator[Finding]:
    """The score of the timed requests at every point, and a score for each planned dataset.

    Scored datasets are compared as a mean over the curve (§4.3), so here they need only exist.
    """
    if targets.inline_min is not None:
        inline = report.result.performance_dataset()
        yield from _fraction(report, inline or "the timed requests", targets.inline_min)
    for dataset in planned:
        if dataset.name in report.result.root:
            yield from _fraction(report, dataset.name, None)


def _fraction(report: AccuracyReport, name: str, lowest: float | None) -> Iterator[Finding]:
    """Whether a dataset has a score from 0 to 1 and, as a percentage, a high enough one."""
    scores = report.scores.get(name, {})
    value = scores.get(_UNNAMED, next(iter(scores.values()), None))
    if value is None:
        yield _ungated(f"no score for {name}", "a fraction from 0 to 1")
    elif not 0.0 <= value <= 1.0:
        yield _ungated(f"{value:.6g} as the score of {name}", "a fraction from 0 to 1")
    elif lowest is not None and value * _PERCENT < lowest:
        yield _missed(f"{value * _PERCENT:.6g} for {name}", _range(lowest, None))


def _incomplete(seen: str, wanted: str) -> Finding:
    return Finding(
        "accuracy-incomplete",
        "error",
        seen,
        wanted,
        "look for failed requests and for the scorer's messages in the client's log, then run the"
        " point again",
        "accuracy",
    )


def _ungated(seen: str, wanted: str) -> Finding:
    return Finding(
        "accuracy-ungated",
        "error",
        seen,
        wanted,
        "a score that no threshold applies to proves nothing: use the scorer of the benchmark"
        " (accuracy_config in the campaign file)",
        "accuracy",
    )


def _missed(seen: str, wanted: str) -> Finding:
    return Finding(
        "accuracy-below-threshold",
        "error",
        seen,
        wanted,
        "correct the model, its precision or its serving; the same system is not tried again for a"
        " better score (§4.3)",
        "accuracy",
    )
