"""The accuracy gate: as the official checker's where it gates, and closed where that is open."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from submission_checker.agentic_targets import AgenticTargets
from submission_checker.models import AccuracyResult, ModelContext, Severity

from core import accuracy
from core import folder as names
from core.accuracy import (
    AccuracyReport,
    Outcome,
    agentic_targets,
    fold,
    gate,
    official_bounds,
    outcome,
    parse_accuracy,
)
from core.run import PlannedAccuracy

LLAMA, GPT_OSS, DEEPSEEK = "llama3_1-8b", "gpt-oss-120b", "deepseek-r1"
#: Scores just within every threshold of llama3_1-8b, as the client's scorer writes them.
LLAMA_SCORES = {
    "rouge1": "38.4",
    "rouge2": "15.75",
    "rougeL": "24.26",
    "rougeLsum": "35.45",
    "gen_len": "8167644",
    "gen_num": 13368,
}


def entry(name: str = "acc", score: Any = 1.0, rows: int = 20, repeats: int = 1) -> dict[str, Any]:
    """A dataset's entry as the client writes it, scored in full."""
    samples = rows * repeats
    return {
        "dataset_name": name,
        "score": score,
        "unit_samples": rows,
        "num_repeats": repeats,
        "total_samples": samples,
        "complete": True,
        "dataset_type": "accuracy",
        "response_counts": {"issued": samples, "scored": samples, "empty": 0, "missing": 0},
    }


def report(*entries: dict[str, Any], **top: Any) -> AccuracyReport:
    """A report of these entries."""
    read = parse_accuracy(json.dumps({"accuracy_scores": entries, **top}).encode())
    assert isinstance(read, AccuracyReport)
    return read


def planned(
    name: str = "acc", rows: int = 20, repeats: int = 1, **lowest: float
) -> tuple[PlannedAccuracy, ...]:
    """One planned dataset with lower bounds."""
    bounds: dict[str, tuple[float | None, float | None]] = {m: (v, None) for m, v in lowest.items()}
    return (PlannedAccuracy(name, rows, repeats, bounds),)


def judged(
    read: AccuracyReport, plan: tuple[PlannedAccuracy, ...], benchmark: str = "custom"
) -> tuple[Outcome, list[str]]:
    """Outcome and rules of a gate."""
    findings = gate(read, plan, benchmark)
    assert all(finding.about == "accuracy" for finding in findings)
    return outcome(findings), [finding.rule for finding in findings]


def test_recorded_results_are_read_without_problems(recorded: Path) -> None:
    """Whatever the real client wrote is readable."""
    path = recorded / "out" / names.ACCURACY
    assert not path.exists() or isinstance(parse_accuracy(path.read_bytes()), AccuracyReport)


def test_official_thresholds_are_the_official_ones() -> None:
    """Single-turn benchmarks have bounds and a sample count; others have none here."""
    llama = official_bounds(LLAMA)
    assert llama is not None
    assert llama[1] == 13368
    assert set(llama[0]) == {"rouge1", "rouge2", "rougel", "rougelsum", "gen_len"}
    assert official_bounds("custom") is None
    assert official_bounds("kimi-k3") is None
    assert agentic_targets(LLAMA) is None
    assert agentic_targets("kimi-k3") is not None


@pytest.mark.parametrize(
    ("score", "expected"),
    [
        (1.0, (Outcome.PASSED, [])),
        (0.99, (Outcome.PASSED, [])),
        (0.9899, (Outcome.MISSED, ["accuracy-below-threshold"])),
        (None, (Outcome.INCOMPLETE, ["accuracy-ungated"])),
        ("good", (Outcome.INCOMPLETE, ["accuracy-ungated"])),
        ("nan", (Outcome.INCOMPLETE, ["accuracy-ungated"])),
        (True, (Outcome.INCOMPLETE, ["accuracy-ungated"])),
        ([], (Outcome.INCOMPLETE, ["accuracy-ungated"])),
        ({"score": 0.995}, (Outcome.PASSED, [])),
        ({"score": True}, (Outcome.INCOMPLETE, ["accuracy-ungated"])),
        ({"rouge1": 40}, (Outcome.INCOMPLETE, ["accuracy-ungated"])),
    ],
)
def test_a_campaigns_own_target_gates_its_score(
    score: Any, expected: tuple[Outcome, list[str]]
) -> None:
    """A custom benchmark passes from its bound on; what is no number passes no bound."""
    assert judged(report(entry(score=score)), planned(score=0.99)) == expected


@pytest.mark.parametrize(
    ("bounds", "value", "passes"),
    [
        ((None, 5.0), 5.0, True),
        ((None, 5.0), 5.1, False),
        ((1.0, 5.0), 0.9, False),
        ((1.0, 5.0), 3.0, True),
        ((None, None), 3.0, True),
    ],
)
def test_bounds_can_be_on_either_side(
    bounds: tuple[float | None, float | None], value: float, passes: bool
) -> None:
    """A bound can be lowest, highest, both or neither; metric names match in any case."""
    plan = (PlannedAccuracy("acc", 20, 1, {"Tokens": bounds}),)
    result, _ = judged(report(entry(score={"tokens": value})), plan)
    assert (result is Outcome.PASSED) == passes


def test_a_target_of_several_metrics_needs_them_all() -> None:
    """One metric without a score leaves the dataset ungated; the other is still compared."""
    plan = planned(a=1.0, b=1.0)
    assert judged(report(entry(score={"a": 0.5})), plan)[1] == [
        "accuracy-ungated",
        "accuracy-below-threshold",
    ]


def test_without_targets_a_score_passes_with_a_warning() -> None:
    """A custom benchmark may go without a gate, and is told so."""
    findings = gate(report(entry(score=0.1)), planned(), "custom")
    assert [(f.rule, f.severity) for f in findings] == [("accuracy-ungated", "warning")]
    assert outcome(findings) is Outcome.PASSED


def counts(**changed: Any) -> dict[str, Any]:
    """An entry with changed response counts."""
    changed_entry = entry()
    changed_entry["response_counts"] |= changed
    return changed_entry


INCOMPLETE: dict[str, tuple[dict[str, Any], list[str]]] = {
    "scored less": (counts(scored=19), ["accuracy-incomplete"]),
    "scored more": (counts(scored=21), ["accuracy-incomplete"]),
    "issued less": (counts(issued=19, scored=19), ["accuracy-incomplete"]),
    "missing": (counts(missing=1), ["accuracy-incomplete"]),
    "empty": (counts(scored=18, empty=2), ["accuracy-incomplete", "empty-answers"]),
    "empty beside all scored": (counts(empty=2), ["empty-answers"]),
    "counts as texts": (counts(issued="20"), ["accuracy-incomplete"]),
    "no counts": ({**entry(), "response_counts": None}, ["accuracy-incomplete"]),
    "not complete": ({**entry(), "complete": False}, ["accuracy-incomplete"]),
    "interrupted": ({**entry(), "state": "interrupted"}, ["accuracy-incomplete"]),
    "another dataset": (entry("other"), ["accuracy-incomplete"]),
    "fewer rows": (entry(rows=19), ["accuracy-incomplete", "accuracy-incomplete"]),
    "fewer rows, repeated": (entry(rows=10, repeats=2), ["accuracy-incomplete"]),
}


@pytest.mark.parametrize("name", INCOMPLETE)
def test_a_part_of_the_samples_is_no_result(name: str) -> None:
    """Whatever is not issued, answered and scored as planned is incomplete, not a pass."""
    changed, expected = INCOMPLETE[name]
    assert judged(report(changed), planned(score=0.99)) == (Outcome.INCOMPLETE, expected)


def test_an_unfinished_file_is_no_result() -> None:
    """`complete: false` at the top counts like one at a dataset."""
    assert judged(report(entry(), complete=False), planned(score=0.9))[0] is Outcome.INCOMPLETE


def test_incomplete_outweighs_a_miss() -> None:
    """A score over a part of the samples proves neither, so it is not a miss."""
    low = counts(scored=19) | {"score": 0.5}
    assert judged(report(low), planned(score=0.99)) == (
        Outcome.INCOMPLETE,
        ["accuracy-incomplete", "accuracy-below-threshold"],
    )


def llama(score: Any, rows: int = 13368, repeats: int = 1) -> tuple[Outcome, list[str]]:
    """A judgement on one llama3_1-8b dataset."""
    return judged(
        report(entry(score=score, rows=rows, repeats=repeats)),
        planned(rows=rows, repeats=repeats),
        LLAMA,
    )


def test_llama_passes_with_all_its_metrics() -> None:
    """Scores as the client's scorer writes them, as texts, pass the five thresholds."""
    assert llama(LLAMA_SCORES) == (Outcome.PASSED, [])


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        ("rouge1", "38.39"),
        ("rouge2", "15.74"),
        ("rougeL", "24.25"),
        ("rougeLsum", "35.43"),
        ("gen_len", "7350879"),
        ("gen_len", "8984409"),
    ],
)
def test_llama_misses_at_each_threshold(metric: str, value: str) -> None:
    """Each metric has to be within its bounds, the length on both sides."""
    missed = (Outcome.MISSED, ["accuracy-below-threshold"])
    assert llama(LLAMA_SCORES | {metric: value}) == missed


@pytest.mark.parametrize("score", [38.7, "38.7", None, "good", {}, {"rouge1": 38.7}])
def test_llama_without_its_metrics_is_not_gated(score: Any) -> None:
    """A scalar, null, a text or one metric of five passes the official checker; not this gate."""
    result, found = llama(score)
    assert result is Outcome.INCOMPLETE
    assert "accuracy-ungated" in found


def test_repeats_do_not_stand_in_for_samples() -> None:
    """A seventh of the dataset seven times is not the dataset."""
    assert llama(LLAMA_SCORES, rows=1910, repeats=7) == (
        Outcome.INCOMPLETE,
        ["accuracy-incomplete"],
    )


def test_gpt_oss_counts_its_repeats() -> None:
    """Its official count is that of its datasets with their repeats, folded into one score."""
    parts = {"aime": (30, 8, 0.9), "gpqa": (198, 5, 0.8), "lcb": (1055, 3, 0.85)}
    entries = [entry(n, score=s, rows=r, repeats=k) for n, (r, k, s) in parts.items()]
    plan = tuple(PlannedAccuracy(n, r, k, {}) for n, (r, k, _) in parts.items())
    assert judged(report(*entries), plan, GPT_OSS) == (Outcome.PASSED, [])
    expected = (30 * 0.9 + 198 * 0.8 + 1055 * 0.85) / (30 + 198 + 1055)
    assert fold(report(*entries)) == {"score": pytest.approx(expected)}
    short = [*entries[:2], entry("lcb", score=0.85, rows=1054, repeats=3)]
    assert "accuracy-incomplete" in judged(report(*short), plan, GPT_OSS)[1]
    unscored = [*entries[:2], entry("lcb", score=None, rows=1055, repeats=3)]
    assert "accuracy-ungated" in judged(report(*unscored), plan, GPT_OSS)[1]


@pytest.mark.parametrize(
    ("score", "passes"), [(0.81, True), (81.0, True), (1.0, True), (0.80, False), (0.0, False)]
)
def test_fractions_are_percentages(score: float, passes: bool) -> None:
    """A fraction and a percentage are the same score."""
    result, _ = judged(report(entry(score=score, rows=4388)), planned(rows=4388), DEEPSEEK)
    assert (result is Outcome.PASSED) == passes


def swe_bench(score: Any, **changed: Any) -> dict[str, Any]:
    """A SWE-bench entry: its requests are not the client's, so it counts none of them."""
    none = {"issued": 0, "scored": 0, "empty": 0, "missing": 0}
    return {**entry("swe_bench", score=score), "response_counts": none, **changed}


INLINE = {"dataset_name": "performance", "dataset_type": "performance", "score": 0.6}


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([INLINE, swe_bench(0.1)], (Outcome.PASSED, [])),
        ([INLINE | {"score": 1.0}, swe_bench(1)], (Outcome.PASSED, [])),
        ([INLINE, swe_bench(1.01)], (Outcome.INCOMPLETE, ["accuracy-ungated"])),
        ([INLINE], (Outcome.INCOMPLETE, ["accuracy-incomplete"])),
        ([INLINE, swe_bench(71.7)], (Outcome.INCOMPLETE, ["accuracy-ungated"])),
        ([INLINE, swe_bench(None)], (Outcome.INCOMPLETE, ["accuracy-ungated"])),
        ([INLINE, swe_bench(0.7, complete=False)], (Outcome.INCOMPLETE, ["accuracy-incomplete"])),
        ([swe_bench(0.7)], (Outcome.INCOMPLETE, ["accuracy-ungated"])),
    ],
)
def test_an_agentic_run_needs_its_scores_only(
    entries: list[dict[str, Any]], expected: tuple[Outcome, list[str]]
) -> None:
    """SWE-bench is a mean over the curve: one run's score need only be there, and a fraction."""
    assert judged(report(*entries), planned("swe_bench"), "qwen3_6-35b-a3b") == expected


def test_an_agentic_benchmark_without_published_targets_is_gated_on_presence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where the official target is still to be published, no score can be missed."""
    unpublished = AgenticTargets("New", inline_min=None, swebench_min=None, osl_range=None)
    monkeypatch.setattr(accuracy, "get_agentic_targets", lambda _: unpublished)
    assert judged(report(swe_bench(0.1)), planned("swe_bench"), "new") == (Outcome.PASSED, [])


def test_an_inline_score_is_no_accuracy_run() -> None:
    """The score of the timed requests is not a dataset."""
    assert report(INLINE, entry()).datasets == ("acc",)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"3",
        b'{"accuracy_scores": 3}',
        b'{"accuracy_scores": [3]}',
        b'{"accuracy_scores": [{"score": 1}]}',
        b'{"accuracy_scores": [{"dataset_name": "a"}]}',
        b'{"accuracy_scores": [{"dataset_name": "a", "score": NaN}]}',
        b'[{"dataset_name": "a", "score": 1}, {"dataset_name": "a", "score": 1}]',
    ],
)
def test_what_the_official_model_refuses_is_a_problem(text: bytes) -> None:
    """Unreadable, of another shape, unnamed, unscored or double: problems that name the file."""
    found = parse_accuracy(text)
    assert isinstance(found, tuple)
    assert all(problem.where.startswith("accuracy_results.json") for problem in found)


def test_the_older_shape_is_read_too() -> None:
    """Entries by name, with metrics beside the bookkeeping, are what the checker also takes."""
    read = parse_accuracy(b'{"acc": {"exact_match": 81.3, "num_samples": 4388}}')
    assert isinstance(read, AccuracyReport)
    assert read.scores == {"acc": {"exact_match": 81.3}}
    listed = parse_accuracy(json.dumps([entry()]).encode())
    assert isinstance(listed, AccuracyReport)
    assert listed.datasets == ("acc",)


def official(read: AccuracyReport, benchmark: str) -> set[tuple[str, str]]:
    """Errors of the official checker's own gate."""
    only_what_the_gate_reads: dict[str, Any] = {"model_dir": Path(benchmark), "accuracy_dir": None}
    context = ModelContext.model_construct(**only_what_the_gate_reads)
    context._gate_accuracy(read.result)
    return {(r.rule, r.key) for r in context._check_results if r.severity == Severity.ERROR}


NUMBERS = st.floats(0, 100).map(lambda value: round(value, 3))
SCORES = st.one_of(
    NUMBERS,
    st.dictionaries(
        st.sampled_from(["rouge1", "ROUGE2", "rougeL", "rougelsum", "gen_len", "exact_match"]),
        st.one_of(NUMBERS, NUMBERS.map(str), st.floats(7e6, 9e6)),
        min_size=1,
    ),
)


@settings(max_examples=300, deadline=None)
@given(
    benchmark=st.sampled_from([LLAMA, GPT_OSS, DEEPSEEK]),
    parts=st.lists(
        st.tuples(SCORES, st.sampled_from([None, 0, 100, 5000, 14000]), st.integers(1, 3)),
        min_size=1,
        max_size=3,
    ),
)
def test_scores_are_compared_as_the_official_checker_does(
    benchmark: str, parts: list[tuple[Any, int | None, int]]
) -> None:
    """The same metrics miss here and there, and what passes here has no error there."""
    entries = [entry(f"d{i}", s, rows or 0, k) for i, (s, rows, k) in enumerate(parts)]
    for made, (_, rows, _) in zip(entries, parts, strict=True):
        if rows is None:
            del made["unit_samples"]
    read = report(*entries)
    plan = tuple(PlannedAccuracy(f"d{i}", r or 0, k, {}) for i, (_, r, k) in enumerate(parts))
    findings = gate(read, plan, benchmark)
    theirs = official(read, benchmark)
    missed = any(finding.rule == "accuracy-below-threshold" for finding in findings)
    assert missed == any(rule == "accuracy-gate" for rule, _ in theirs)
    if not findings:
        assert not theirs


def test_the_official_model_is_the_one_we_read_with() -> None:
    """A report holds the official package's own model, so its rules on shape are ours."""
    assert isinstance(report(entry()).result, AccuracyResult)
