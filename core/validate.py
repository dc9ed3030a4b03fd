"""A planned run and the facts of its folder → findings and a verdict (§6, §9.1).

Exit code 0 with `state: complete` does not make a run good: the client says so of an interrupted
run, of failed requests and of cut streams. Everything is looked at here, the official checker's
blind spots included. Nothing is read from the disk.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from core import folder as names
from core.accuracy import AccuracyReport, Outcome, agentic_targets, gate, outcome
from core.findings import Finding, Severity
from core.folder import FileFact, FolderFacts, RunConfig
from core.reading import FolderProblem
from core.results import judge_results
from core.run import PlannedRun
from core.summary import Summary

__all__ = [
    "FileFact",
    "Finding",
    "FolderFacts",
    "Metrics",
    "Outcome",
    "Severity",
    "Verdict",
    "validate",
]

#: The pattern of single-turn points: their accuracy runs at their own level (§4.3).
_CONCURRENCY = "concurrency"
#: s: file systems stamp by a coarser clock than the one that an attempt's start is read from.
_CLOCK_MARGIN_S = 2.0
#: Who ended a client that would not have ended itself.
_WATCHDOGS = ("watchdog", "deadline")
#: The client ended by itself.
_ITSELF = "itself"


@dataclass(frozen=True)
class Metrics:
    """What a run measured."""

    issued: int
    completed: int  # failed requests included
    failed: int
    duration_s: float  # up to the last completion
    issue_span_s: float | None  # first to last issue; None: the events don't say
    qps: float | None
    tps: float | None
    output_tokens: int | None
    ttft_ms: Mapping[str, float]  # percentile → value
    tpot_ms: Mapping[str, float]
    latency_ms: Mapping[str, float]
    e2e_avg_interactivity: float | None = None  # tokens/s over all answers; None: not derivable
    steady_state: Mapping[str, Any] | None = None  # the client's own block; None: it made none


@dataclass(frozen=True)
class Verdict:
    """What a run folder is good for."""

    usable: bool  # the performance run
    accuracy: Outcome
    findings: tuple[Finding, ...]
    metrics: Metrics | None  # of whatever was measured, usable or not; None: nothing was
    too_short: bool  # issued for less than the minimum duration
    accuracy_scores: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @property
    def valid(self) -> bool:
        """Whether the folder answers its plan in full: no finding of severity error."""
        return not any(finding.severity == "error" for finding in self.findings)

    @property
    def rules(self) -> frozenset[str]:
        """Rule ids of the findings of severity error."""
        return frozenset(f.rule for f in self.findings if f.severity == "error")


def validate(run: PlannedRun, folder: FolderFacts, *, benchmark: str) -> Verdict:
    """Judge a run folder.

    Args:
        run: What the run was to do.
        folder: What its folder holds.
        benchmark: Canonical model name, for the official accuracy thresholds.
    """
    stale = stale_files(folder)
    accuracy, accuracy_findings = _accuracy(run, folder, benchmark, stale)
    findings = (
        *_ending(folder),
        *_presence(folder, stale),
        *_results(run, folder, benchmark, stale),
        *accuracy_findings,
    )
    report = folder.accuracy
    return Verdict(
        usable=not any(f.severity == "error" and f.about == "performance" for f in findings),
        accuracy=accuracy,
        findings=findings,
        metrics=_metrics(folder, stale),
        too_short=any(finding.rule == "too-short" for finding in findings),
        accuracy_scores=(
            report.scores
            if isinstance(report, AccuracyReport) and names.ACCURACY not in stale
            else {}
        ),
    )


def stale_files(folder: FolderFacts) -> tuple[str, ...]:
    """Files of an earlier run: older than the attempt, or of datasets that this run doesn't have.

    The client reuses a folder that exists and leaves in it what it doesn't write anew.
    """
    oldest = folder.started_at - _CLOCK_MARGIN_S
    stale = {name for name, file in folder.files.items() if file.modified_at < oldest}
    config, report, events = folder.config, folder.accuracy, folder.events
    if isinstance(config, RunConfig):
        known = {names.TIMED_PHASE, *config.accuracy_datasets}
        if isinstance(report, AccuracyReport) and not known.issuperset(report.datasets):
            stale.add(names.ACCURACY)
        foreign = isinstance(folder.sample_map, Mapping) and not known.issuperset(folder.sample_map)
        scored = events is not None and events.accuracy_issued > 0
        if foreign or (scored and not config.accuracy_datasets):
            stale.update(name for name in names.RESULTS if name in folder.files)
    return tuple(sorted(stale))


def _error(rule: str, seen: str, wanted: str, advice: str) -> Finding:
    return Finding(rule, "error", seen, wanted, advice)


def _ending(folder: FolderFacts) -> Iterator[Finding]:
    """How the client ended."""
    if folder.ended_by in _WATCHDOGS:
        yield _error(
            "ended-by-watchdog",
            f"ended by the {folder.ended_by}",
            "a client that ends by itself",
            "it made no progress: look at the endpoint, then at the client's log for the phase it"
            " hung in",
        )
    elif folder.ended_by != _ITSELF:
        yield _error(
            "interrupted",
            f"ended by: {folder.ended_by}",
            "a client that ends by itself",
            "run the same file again to continue the campaign",
        )
    elif folder.exit_code != 0:
        yield _error(
            "exit-code",
            "an unknown exit code" if folder.exit_code is None else f"exit code {folder.exit_code}",
            "exit code 0",
            "read the end of the client's log for its own message",
        )


def _presence(folder: FolderFacts, stale: tuple[str, ...]) -> Iterator[Finding]:
    """Whether the folder and its files are there, readable and of this run."""
    if not folder.exists:
        yield _error(
            "no-folder",
            "no run folder",
            "the client's report_dir",
            "the client ended before it began: read its log",
        )
        return
    if stale:
        yield _error(
            "stale-files",
            f"files of an earlier run: {', '.join(stale)}",
            "a folder of its own for each attempt",
            "nothing may write into a run folder but its own attempt; run the point again",
        )
    yield from map(_unreadable, folder.problems)
    yield from map(_unreadable, _content_problems(folder, stale))
    if names.SUMMARY not in folder.files:
        yield _error(
            "no-summary",
            f"no {names.SUMMARY}",
            "the client's summary",
            "the client ended before it wrote its report: read its log",
        )
    yield from _events_presence(folder, stale)


def _unreadable(problem: FolderProblem) -> Finding:
    return _error(
        "unreadable",
        str(problem),
        "a file as the client writes it",
        "check the disk and the client's version; the folder stays on record, run the point again",
    )


def _content_problems(folder: FolderFacts, stale: tuple[str, ...]) -> Iterator[FolderProblem]:
    """Problems in the files that the performance run is judged by."""
    if names.CONFIG not in folder.files:
        yield FolderProblem(names.CONFIG, "the file is missing")
    for name, content in (
        (names.CONFIG, folder.config),
        (names.SUMMARY, folder.summary),
        (names.SAMPLE_MAP, folder.sample_map),
    ):
        if isinstance(content, tuple) and name not in stale:
            yield from content


def _events_presence(folder: FolderFacts, stale: tuple[str, ...]) -> Iterator[Finding]:
    """Whether the events are there and whole."""
    events = folder.events
    if names.EVENTS in stale:
        return
    if events is None:
        if names.SUMMARY in folder.files and names.SUMMARY not in stale:
            yield _unreadable(FolderProblem(names.EVENTS, "the file is missing"))
    elif events.records == 0:
        yield _error(
            "events-empty",
            f"{names.EVENTS} is empty",
            "a record of every request",
            "the client's event writer was ended: stop a client by its main process only",
        )
    elif events.unreadable_records or not events.ends_cleanly:
        yield _unreadable(
            FolderProblem(names.EVENTS, f"{events.unreadable_records} records, or its end, are cut")
        )
    elif not events.session_ended:
        yield _unreadable(FolderProblem(names.EVENTS, "it doesn't end with session.ended"))


def _results(
    run: PlannedRun, folder: FolderFacts, benchmark: str, stale: tuple[str, ...]
) -> Iterable[Finding]:
    """What is wrong with what was measured, if that is readable and of this run."""
    if not isinstance(folder.summary, Summary) or names.SUMMARY in stale:
        return ()
    return judge_results(
        run,
        folder.summary,
        None if names.EVENTS in stale else folder.events,
        folder.config if isinstance(folder.config, RunConfig) else None,
        benchmark,
    )


def _accuracy(
    run: PlannedRun, folder: FolderFacts, benchmark: str, stale: tuple[str, ...]
) -> tuple[Outcome, tuple[Finding, ...]]:
    """What became of the accuracy run."""
    if names.ACCURACY in stale:
        return Outcome.STALE, ()
    report = folder.accuracy
    wanted = bool(run.accuracy) or agentic_targets(benchmark) is not None
    if isinstance(report, tuple):
        findings = tuple(replace(_unreadable(problem), about="accuracy") for problem in report)
        return (Outcome.MISSING if wanted else Outcome.NONE), findings
    if not wanted:
        unplanned = report.datasets if report else ()
        return Outcome.NONE, tuple(map(_unplanned, unplanned))
    if report is None or not report.result.root:
        reported = names.SUMMARY in folder.files and names.SUMMARY not in stale
        return Outcome.MISSING, (_MISSING,) if reported else ()
    return _gated(run, folder, benchmark, report)


def _gated(
    run: PlannedRun, folder: FolderFacts, benchmark: str, report: AccuracyReport
) -> tuple[Outcome, tuple[Finding, ...]]:
    """The gate, and whether the scored requests ran at the point's own level."""
    findings = gate(report, run.accuracy, benchmark)
    result = outcome(findings)
    level = folder.config.concurrency if isinstance(folder.config, RunConfig) else None
    if run.load_pattern != _CONCURRENCY or level in (None, run.concurrency):
        return result, findings
    wrong = _error(
        "accuracy-concurrency",
        f"accuracy at concurrency {level}",
        f"concurrency {run.concurrency}, as the point (§4.3)",
        "run the client with --mode both: --mode acc sets concurrency 1",
    )
    result = Outcome.WRONG_CONCURRENCY if result is Outcome.PASSED else result
    return result, (*findings, replace(wrong, about="accuracy"))


#: Accuracy was planned, the client reported, and there is no accuracy in its report.
_MISSING = Finding(
    "accuracy-missing",
    "error",
    f"no result in {names.ACCURACY}",
    "a score of each accuracy dataset",
    "the accuracy run didn't happen or its scorer failed: read the client's log, run the point"
    " again",
    "accuracy",
)


def _unplanned(dataset: str) -> Finding:
    return Finding(
        "accuracy-unplanned",
        "error",
        f"a score of {dataset}",
        "no accuracy run at this point: a result that fills no band is an error (§5.3)",
        "leave accuracy datasets out of the client's configuration at this point",
        "accuracy",
    )


def _metrics(folder: FolderFacts, stale: tuple[str, ...]) -> Metrics | None:
    """What was measured, if anything was and it is of this run."""
    summary = folder.summary
    if not isinstance(summary, Summary) or names.SUMMARY in stale or summary.duration_s is None:
        return None
    events = None if names.EVENTS in stale else folder.events
    return Metrics(
        issued=summary.issued,
        completed=summary.completed,
        failed=summary.failed,
        duration_s=summary.duration_s,
        issue_span_s=events.issue_span_s if events else None,
        qps=summary.qps,
        tps=summary.tps,
        output_tokens=summary.output_tokens,
        ttft_ms=summary.ttft_ms,
        tpot_ms=summary.tpot_ms,
        latency_ms=summary.latency_ms,
        e2e_avg_interactivity=summary.e2e_avg_interactivity,
        steady_state=summary.steady_state,
    )
