"""Verdicts: every recorded folder as its case says, and each rule where no recording shows it."""

from __future__ import annotations

import json
import random
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from core import folder as names
from core.accuracy import AccuracyReport, parse_accuracy
from core.folder import FileFact, FolderFacts, RunConfig
from core.reading import FolderProblem
from core.run import PlannedRun
from core.summary import Summary, WarmupSettings
from core.validate import Outcome, Verdict, validate
from tasks.collect import collect
from tests.recorded import case_of, facts_of, planned_run

CUSTOM = "custom"


def rules(verdict: Verdict) -> set[str]:
    """Rule ids of all findings."""
    return {finding.rule for finding in verdict.findings}


def test_recorded_folders_get_the_verdict_of_their_case(recorded: Path) -> None:
    """Usability, accuracy and the complete set of reasons are as recorded from the real client."""
    case = case_of(recorded)
    if case["expected"] is None:  # a call that makes no run folder
        assert not (recorded / "out").exists()
        return
    verdict = validate(planned_run(case), facts_of(recorded, case), benchmark=CUSTOM)
    seen = {
        "performance": "usable" if verdict.usable else "unusable",
        "accuracy": verdict.accuracy,
        "reasons": rules(verdict),
    }
    assert seen == {**case["expected"], "reasons": set(case["expected"]["reasons"])}


def test_every_finding_says_what_to_do(recorded: Path) -> None:
    """A finding names what was seen, what was wanted and a step, each in words."""
    case = case_of(recorded)
    verdict = validate(planned_run(case), facts_of(recorded, case), benchmark=CUSTOM)
    for finding in verdict.findings:
        assert finding.seen
        assert finding.wanted
        assert len(finding.advice.split()) > 3


@pytest.fixture
def good(fixtures_dir: Path) -> tuple[PlannedRun, FolderFacts]:
    """A run of 40 samples at concurrency 4 with 20 scored ones, all in order."""
    recorded = fixtures_dir / "c02_both_pass"
    case = case_of(recorded)
    return planned_run(case), facts_of(recorded, case)


def test_a_good_folder_is_valid_and_measured(good: tuple[PlannedRun, FolderFacts]) -> None:
    """Without findings the verdict is valid and carries the numbers, in ms and s."""
    verdict = validate(*good, benchmark=CUSTOM)
    assert verdict.valid
    assert not verdict.rules
    metrics = verdict.metrics
    assert metrics is not None
    assert (metrics.issued, metrics.completed, metrics.failed) == (40, 40, 0)
    assert metrics.duration_s == pytest.approx(0.381782208)
    assert metrics.issue_span_s == pytest.approx(0.342786229)
    assert metrics.ttft_ms["90"] == pytest.approx(14.930042)
    assert metrics.tpot_ms["90"] == pytest.approx(2.4371256)
    assert metrics.output_tokens == 480
    assert verdict.accuracy_scores == {"acc": {"score": 1.0}}


# Each rule: a change to a good run, and the rules that it breaks.
def _run(**changes: Any) -> Callable[[PlannedRun, FolderFacts], tuple[PlannedRun, FolderFacts]]:
    return lambda run, facts: (replace(run, **changes), facts)


def _facts(**changes: Any) -> Callable[[PlannedRun, FolderFacts], tuple[PlannedRun, FolderFacts]]:
    return lambda run, facts: (run, replace(facts, **changes))


def _part(
    part: str, **changes: Any
) -> Callable[[PlannedRun, FolderFacts], tuple[PlannedRun, FolderFacts]]:
    return lambda run, facts: (
        run,
        replace(facts, **{part: replace(getattr(facts, part), **changes)}),
    )


def _without(
    name: str, part: str
) -> Callable[[PlannedRun, FolderFacts], tuple[PlannedRun, FolderFacts]]:
    def remove(run: PlannedRun, facts: FolderFacts) -> tuple[PlannedRun, FolderFacts]:
        files = {n: f for n, f in facts.files.items() if n != name}
        missing: dict[str, Any] = {part: None}
        return run, replace(facts, files=files, **missing)

    return remove


PROBLEM = (FolderProblem("config.yaml", "not readable"),)
NO_WARMUP = WarmupSettings(enabled=None, salt=None, drain=None, requests=None)
CASES: dict[str, tuple[Callable[..., tuple[PlannedRun, FolderFacts]], set[str]]] = {
    "exit code": (_facts(exit_code=1), {"exit-code"}),
    "exit code never known": (_facts(exit_code=None), {"exit-code"}),
    "stopped on request": (_facts(ended_by="stop-request", exit_code=0), {"interrupted"}),
    "guard lost": (_facts(ended_by="lost-guard", exit_code=None), {"interrupted"}),
    "deadline": (_facts(ended_by="deadline", exit_code=-9), {"ended-by-watchdog"}),
    "config missing": (_without(names.CONFIG, "config"), {"unreadable"}),
    "config broken": (_facts(config=PROBLEM), {"unreadable"}),
    "summary missing": (_without(names.SUMMARY, "summary"), {"no-summary"}),
    "summary broken": (_facts(summary=PROBLEM), {"unreadable"}),
    "sample map broken": (_facts(sample_map=PROBLEM), {"unreadable"}),
    "file not given by the disk": (_facts(problems=PROBLEM), {"unreadable"}),
    "accuracy broken": (_facts(accuracy=PROBLEM), {"unreadable"}),
    "events missing": (_without(names.EVENTS, "events"), {"unreadable"}),
    "events empty": (_part("events", records=0, session_ended=False), {"events-empty"}),
    "events without their end": (_part("events", session_ended=False), {"unreadable"}),
    "events cut": (_part("events", ends_cleanly=False), {"unreadable"}),
    "events with rubbish": (_part("events", unreadable_records=1), {"unreadable"}),
    "state interrupted": (_part("summary", state="interrupted"), {"incomplete"}),
    "complete false": (_part("summary", complete=False), {"incomplete"}),
    "level in the summary": (_part("summary", concurrency=8), {"concurrency"}),
    "level in the configuration": (
        _part("config", concurrency=8),
        {"concurrency", "accuracy-concurrency"},
    ),
    "level nowhere": (
        lambda r, f: (
            r,
            replace(
                f,
                summary=replace(f.summary, concurrency=None),
                config=replace(f.config, concurrency=None),
            ),
        ),
        {"concurrency"},
    ),
    "pattern in the configuration": (_part("config", load_pattern="poisson"), {"load-pattern"}),
    "pattern planned otherwise": (_run(load_pattern="agentic_inference"), {"load-pattern"}),
    "scheduler seed in the summary": (_part("summary", scheduler_random_seed=1), {"seeds"}),
    "dataloader seed in the summary": (_part("summary", dataloader_random_seed=1), {"seeds"}),
    "scheduler seed in the configuration": (_part("config", scheduler_random_seed=1), {"seeds"}),
    "dataloader seed in the configuration": (_part("config", dataloader_random_seed=1), {"seeds"}),
    "seeds planned otherwise": (_run(scheduler_random_seed=1), {"seeds"}),
    "streaming off": (_part("config", streaming=False), {"streaming-off"}),
    "chunks off": (_part("config", stream_all_chunks=False), {"chunks-off"}),
    "warm-up unsalted": (_part("config", warmup_enabled=True), {"warmup-unsalted"}),
    "warm-up unsalted, by the summary": (
        lambda r, f: (
            r,
            replace(
                f,
                config=PROBLEM,
                summary=replace(f.summary, warmup=replace(NO_WARMUP, enabled=True)),
            ),
        ),
        {"warmup-unsalted", "unreadable"},
    ),
    "warm-up overlaps": (_part("events", warmup_overlaps=2), {"warmup-overlaps"}),
    "accuracy overlaps": (_part("events", accuracy_overlaps=1), {"accuracy-overlaps"}),
    "other count": (_run(samples=60), {"issued-not-planned"}),
    "no whole passes": (_run(dataset_rows=16), {"not-whole-passes"}),
    "not all completed": (
        _part("summary", completed=38, finish_reasons={"stop": 38}),
        {"unfinished", "accounting"},
    ),
    "nothing counted": (_part("summary", issued=0, completed=0), {"no-samples"}),
    "cut streams by the summary": (
        _part("summary", finish_reasons={"stop": 36, "length": 3}),
        {"cut-streams"},
    ),
    "neither summary nor events": (
        lambda r, f: _without(names.SUMMARY, "summary")(*_without(names.EVENTS, "events")(r, f)),
        {"no-summary"},
    ),
    "failures in the summary": (
        _part("summary", failed=2, finish_reasons={"stop": 38}),
        {"failed-requests"},
    ),
    "failures in the events alone": (
        lambda r, f: (
            r,
            replace(
                f,
                events=replace(f.events, failed=2),
                summary=replace(f.summary, finish_reasons={"stop": 38}),
            ),
        ),
        {"failed-requests"},
    ),
    "cut streams in the events alone": (_part("events", cut_streams=1), {"cut-streams"}),
    "cut streams, not counted by the client": (
        lambda r, f: (
            r,
            replace(
                f,
                events=replace(f.events, cut_streams=1),
                summary=replace(f.summary, finish_reasons=None),
            ),
        ),
        {"cut-streams"},
    ),
    "empty answers": (_part("events", empty_answers=1), {"empty-answers"}),
    "no tokens": (_part("summary", output_tokens=0), {"no-token-metrics"}),
    "no TPOT": (_part("summary", tpot_ms={}), {"no-token-metrics"}),
    "zero TPOT": (_part("summary", tpot_ms={"90": 0.0}), {"no-token-metrics"}),
    "events lost": (_part("events", issued=39, completed=39), {"accounting"}),
    "too short": (_run(min_duration_ms=400), {"too-short"}),
    "long enough": (_run(min_duration_ms=342), set()),
    "ended by a cap": (_part("config", duration_cap_ms=381), {"duration-capped"}),
    "a cap far above": (_part("config", duration_cap_ms=600_000), set()),
    "no accuracy written": (_without(names.ACCURACY, "accuracy"), {"accuracy-missing"}),
    "accuracy not planned": (_run(accuracy=()), {"accuracy-unplanned"}),
    "no targets": (
        lambda r, f: (replace(r, accuracy=(replace(r.accuracy[0], bounds={}),)), f),
        {"accuracy-ungated"},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_each_rule_finds_its_case_and_nothing_else(
    good: tuple[PlannedRun, FolderFacts], name: str
) -> None:
    """One change to a good run is found by the rule for it, and by no other rule."""
    change, expected = CASES[name]
    run, facts = change(*good)
    assert rules(validate(run, facts, benchmark=CUSTOM)) == expected


WARNINGS = {"chunks-off", "warmup-overlaps"}


@pytest.mark.parametrize("name", CASES)
def test_errors_make_a_run_unusable_unless_they_are_about_accuracy(
    good: tuple[PlannedRun, FolderFacts], name: str
) -> None:
    """Usable and valid follow from the findings: warnings leave both, accuracy leaves usable."""
    change, expected = CASES[name]
    run, facts = change(*good)
    verdict = validate(run, facts, benchmark=CUSTOM)
    about_accuracy = {r for r in expected if r.startswith("accuracy-")} - {"accuracy-overlaps"}
    if name == "accuracy broken":
        about_accuracy |= {"unreadable"}
    assert verdict.usable == (not expected - WARNINGS - about_accuracy)
    assert verdict.valid == (not expected - WARNINGS or name == "no targets")
    assert verdict.too_short == ("too-short" in expected)


def test_a_run_without_streaming_needs_no_first_chunks(fixtures_dir: Path) -> None:
    """An Offline run has no first chunks and no TPOT; its duration counts, not its issue time."""
    recorded = fixtures_dir / "c05_offline"
    case = case_of(recorded)
    run, facts = planned_run(case), facts_of(recorded, case)
    assert rules(validate(replace(run, min_duration_ms=55), facts, benchmark=CUSTOM)) == set()
    verdict = validate(replace(run, min_duration_ms=56), facts, benchmark=CUSTOM)
    assert rules(verdict) == {"too-short"}


def test_a_cap_that_cut_the_run_is_named_in_the_advice(
    good: tuple[PlannedRun, FolderFacts],
) -> None:
    """Where a cap and a missing count come together, the missing count names the cap."""
    run, facts = good
    assert isinstance(facts.config, RunConfig)
    facts = replace(facts, config=replace(facts.config, duration_cap_ms=381))
    verdict = validate(replace(run, samples=60), facts, benchmark=CUSTOM)
    (finding,) = verdict.findings
    assert finding.rule == "issued-not-planned"
    assert "381 ms" in finding.advice


def test_without_a_summary_a_missing_score_needs_no_finding(
    good: tuple[PlannedRun, FolderFacts],
) -> None:
    """A client that reported nothing has one cause on record, not two."""
    run, facts = _without(names.SUMMARY, "summary")(*_without(names.ACCURACY, "accuracy")(*good))
    verdict = validate(run, facts, benchmark=CUSTOM)
    assert (verdict.accuracy, rules(verdict)) == (Outcome.MISSING, {"no-summary"})
    assert verdict.metrics is None


def _touched(facts: FolderFacts, name: str, age_s: float) -> FolderFacts:
    files = {n: replace(f, modified_at=1000.0) for n, f in facts.files.items()}
    files[name] = FileFact(files[name].size_bytes, 1000.0 - age_s)
    return replace(facts, started_at=1000.0, files=files)


@pytest.mark.parametrize(
    ("name", "accuracy", "expected"),
    [
        (names.SUMMARY, Outcome.PASSED, {"stale-files"}),
        (names.EVENTS, Outcome.PASSED, {"stale-files"}),
        (names.ACCURACY, Outcome.STALE, {"stale-files"}),
        (names.REPORT, Outcome.PASSED, {"stale-files"}),
    ],
)
def test_files_older_than_the_attempt_are_stale(
    good: tuple[PlannedRun, FolderFacts], name: str, accuracy: Outcome, expected: set[str]
) -> None:
    """A file from before the attempt's start makes the run unusable, and is not judged."""
    run, facts = good
    verdict = validate(run, _touched(facts, name, 60.0), benchmark=CUSTOM)
    assert (verdict.accuracy, rules(verdict), verdict.usable) == (accuracy, expected, False)
    assert (verdict.metrics is None) == (name == names.SUMMARY)
    assert (not verdict.accuracy_scores) == (name == names.ACCURACY)


def test_a_coarse_file_clock_makes_nothing_stale(good: tuple[PlannedRun, FolderFacts]) -> None:
    """A file stamped just before the start is the attempt's own: file systems stamp coarsely."""
    run, facts = good
    assert validate(run, _touched(facts, names.CONFIG, 1.0), benchmark=CUSTOM).valid


def test_results_of_other_datasets_are_stale(good: tuple[PlannedRun, FolderFacts]) -> None:
    """Samples of a dataset that the configuration doesn't name are of an earlier run."""
    run, facts = good
    assert isinstance(facts.config, RunConfig)
    facts = replace(facts, config=replace(facts.config, accuracy_datasets=()))
    verdict = validate(replace(run, accuracy=()), facts, benchmark=CUSTOM)
    assert (verdict.accuracy, rules(verdict)) == (Outcome.STALE, {"stale-files"})
    assert verdict.metrics is None


def test_events_of_an_accuracy_run_that_was_none_are_stale(
    good: tuple[PlannedRun, FolderFacts],
) -> None:
    """Accuracy requests in the events of a run without accuracy datasets are of an earlier run."""
    run, facts = good
    assert isinstance(facts.config, RunConfig)
    config = replace(facts.config, accuracy_datasets=())
    facts = replace(facts, config=config, sample_map={"performance": 40})
    facts = _without(names.ACCURACY, "accuracy")(run, facts)[1]
    verdict = validate(replace(run, accuracy=()), facts, benchmark=CUSTOM)
    assert rules(verdict) == {"stale-files"}


def _agentic(good: tuple[PlannedRun, FolderFacts], inline: Any, mean_osl: float | None) -> Verdict:
    """A verdict on an agentic run whose timed requests were scored."""
    run, facts = good
    entry = {"dataset_name": "performance", "dataset_type": "performance", "score": inline}
    report = parse_accuracy(json.dumps({"accuracy_scores": [entry]}).encode())
    assert isinstance(report, AccuracyReport)
    assert isinstance(facts.summary, Summary)
    assert isinstance(facts.config, RunConfig)
    summary = replace(
        facts.summary, load_pattern="agentic_inference", full_run_mean_output_tokens=mean_osl
    )
    config = replace(facts.config, load_pattern="agentic_inference")
    facts = replace(facts, accuracy=report, summary=summary, config=config)
    run = replace(run, load_pattern="agentic_inference", accuracy=())
    return validate(run, facts, benchmark="qwen3_6-35b-a3b")


@pytest.mark.parametrize(
    ("inline", "mean_osl", "outcome", "expected"),
    [
        (0.5586, 344.0, Outcome.PASSED, set()),
        (0.5586, 422.0, Outcome.PASSED, set()),
        (0.5585, 383.0, Outcome.MISSED, {"accuracy-below-threshold"}),
        (55.86, 383.0, Outcome.INCOMPLETE, {"accuracy-ungated"}),
        (None, 383.0, Outcome.INCOMPLETE, {"accuracy-ungated"}),
        (0.6, 343.9, Outcome.PASSED, {"osl-range"}),
        (0.6, 422.1, Outcome.PASSED, {"osl-range"}),
        (0.6, None, Outcome.PASSED, {"osl-range"}),
    ],
)
def test_agentic_points_are_gated_on_their_own_requests(
    good: tuple[PlannedRun, FolderFacts],
    inline: Any,
    mean_osl: float | None,
    outcome: Outcome,
    expected: set[str],
) -> None:
    """Every agentic point needs its inline score and its output length within the targets."""
    verdict = _agentic(good, inline, mean_osl)
    assert (verdict.accuracy, rules(verdict)) == (outcome, expected)
    assert verdict.valid == (not expected or mean_osl is None)


def test_agentic_points_without_a_score_miss_it(good: tuple[PlannedRun, FolderFacts]) -> None:
    """An agentic point that no accuracy run was planned at still needs its inline score."""
    run, facts = _without(names.ACCURACY, "accuracy")(*good)
    verdict = validate(replace(run, accuracy=()), facts, benchmark="kimi-k3")
    assert verdict.accuracy is Outcome.MISSING
    assert "accuracy-missing" in rules(verdict)


CORRUPTED = (names.SUMMARY, names.ACCURACY, names.CONFIG, names.EVENTS, names.SAMPLE_MAP)


def _judge_corrupted(source: Path, name: str, corrupt: Callable[[bytes], bytes]) -> Verdict:
    """The verdict on a copy of a folder with one file changed."""
    case = case_of(source)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "out"
        shutil.copytree(source / "out", copy, copy_function=shutil.copyfile)
        path = copy / name
        path.write_bytes(corrupt(path.read_bytes()))
        facts, _ = collect(copy, attempt_started_at=0.0, exit_code=0, ended_by="itself")
        return validate(planned_run(case), facts, benchmark=CUSTOM)


@settings(max_examples=60, deadline=None)
@given(name=st.sampled_from(CORRUPTED), at=st.floats(0, 1, exclude_max=True))
@example(name=names.EVENTS, at=0.0)
@example(name=names.SUMMARY, at=0.0)
def test_a_truncated_file_never_passes_and_never_raises(
    fixtures_dir: Path, name: str, at: float
) -> None:
    """A file cut anywhere is a finding, unless nothing but its last line end or bracket is gone."""
    verdict = _judge_corrupted(
        fixtures_dir / "c02_both_pass", name, lambda content: content[: int(len(content) * at)]
    )
    if name != names.CONFIG:  # YAML that ends early can still be a whole document
        assert not verdict.valid


@settings(max_examples=120, deadline=None)
@given(
    name=st.sampled_from(CORRUPTED),
    at=st.floats(0, 1, exclude_max=True),
    new=st.integers(0, 255),
)
def test_a_changed_byte_never_raises(fixtures_dir: Path, name: str, at: float, new: int) -> None:
    """Whatever a byte becomes, there is a verdict."""

    def change(content: bytes) -> bytes:
        changed = bytearray(content)
        changed[int(len(content) * at)] = new
        return bytes(changed)

    verdict = _judge_corrupted(fixtures_dir / "c02_both_pass", name, change)
    assert isinstance(verdict, Verdict)


@pytest.mark.parametrize("name", CORRUPTED)
def test_random_bytes_never_pass_and_never_raise(fixtures_dir: Path, name: str) -> None:
    """A file of noise is a finding."""
    noise = random.Random(name).randbytes(4096)
    verdict = _judge_corrupted(fixtures_dir / "c02_both_pass", name, lambda _: noise)
    assert not verdict.valid


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        (names.SUMMARY, b'"n_samples_issued": 40', b'"n_samples_issued": "40"'),
        (names.SUMMARY, b'"n_samples_issued": 40', b'"n_samples_issued": -40'),
        (names.SUMMARY, b'"n_samples_issued": 40', b'"n_samples_issued": NaN'),
        (names.SUMMARY, b'"n_samples_failed": 0,', b""),
        (names.SUMMARY, b'"total": 480', b'"total": Infinity'),
        (names.SUMMARY, b'"total": 480', b'"total": 1e999'),
        (names.SUMMARY, b'"complete": true', b'"complete": "yes"'),
        (names.SUMMARY, b'"state": "complete"', b'"state": "compl\xe8te"'),
        (names.ACCURACY, b'"score": 1.0', b'"score": NaN'),
        (names.ACCURACY, b'"score": 1.0', b'"score": null'),
        (names.ACCURACY, b'"score": 1.0', b'"score": "good"'),
        (names.ACCURACY, b'"score": 1.0', b'"score": true'),
        (names.CONFIG, b"stream_all_chunks: true", b"stream_all_chunks: [yes, no]"),
        (names.CONFIG, b"stream_all_chunks: true", b"stream_all_chunks: \xff"),
        (names.EVENTS, b'"sample.complete"', b'"sample.complete'),
    ],
)
def test_damage_that_the_official_checker_trips_over_is_a_finding(
    fixtures_dir: Path, name: str, old: bytes, new: bytes
) -> None:
    """Missing keys, NaN, other encodings and texts for numbers end in findings."""

    def damage(content: bytes) -> bytes:
        assert old in content
        return content.replace(old, new, 1)

    assert not _judge_corrupted(fixtures_dir / "c02_both_pass", name, damage).valid


def test_conversations_issue_turns_not_rows(good: tuple[PlannedRun, FolderFacts]) -> None:
    """Whole passes are counted in trajectories there, which the client does itself."""
    run, facts = good
    assert isinstance(facts.summary, Summary)
    agentic = replace(run, load_pattern="agentic_inference", dataset_rows=7, samples=None)
    changed = replace(
        facts,
        summary=replace(facts.summary, load_pattern="agentic_inference"),
        config=replace(facts.config, load_pattern="agentic_inference"),  # type: ignore[type-var]  # it is one
    )
    assert "not-whole-passes" not in rules(validate(agentic, changed, benchmark=CUSTOM))
