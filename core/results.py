"""The rules for the timed phase (§6): planned run, summary, events and configuration → findings.

Each rule is a function that yields what it finds. Rules that follow from another finding stay
silent, so that a folder shows its causes and not their echoes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from core.accuracy import agentic_targets
from core.events import EventFacts
from core.findings import Finding
from core.folder import RunConfig
from core.run import PlannedRun
from core.summary import Summary

#: Patterns that a point may have (§6.1; checker 1.5.3, `point_config.py`).
_PATTERNS = ("concurrency", "agentic_inference", "max_throughput")
#: The pattern of multi-turn conversations (§6.1).
_AGENTIC = "agentic_inference"
#: The pattern that issues everything at once: its duration counts, not its issue time (§5.7).
_MAX_THROUGHPUT = "max_throughput"
#: The percentile of TPOT that results are made of (§4.1).
_TPOT_PERCENTILE = "90"
_MS_PER_S = 1000


def _error(rule: str, seen: str, wanted: str, advice: str) -> Finding:
    return Finding(rule, "error", seen, wanted, advice)


def _warning(rule: str, seen: str, wanted: str, advice: str) -> Finding:
    return Finding(rule, "warning", seen, wanted, advice)


def judge_results(
    run: PlannedRun,
    summary: Summary,
    events: EventFacts | None,
    config: RunConfig | None,
    benchmark: str,
) -> Iterator[Finding]:
    """What is wrong with what was measured.

    Args:
        run: What the run was to do.
        summary: What the client says.
        events: What its events show; None: they can't be judged.
        config: The configuration that it ran; None: it can't be read.
        benchmark: Canonical model name.
    """
    if summary.issued == 0 and events and events.records and events.tracking_started_ns is None:
        yield _error(
            "no-performance",
            "no timed phase",
            "a timed phase",
            "run the client with --mode both, not --mode acc",
        )
        return
    yield from _completeness(summary)
    yield from _settings(run, summary, config)
    yield from _warmup(summary, events, config)
    if summary.issued == 0:
        yield _error(
            "no-samples",
            "the summary counts no samples",
            "samples",
            "the client's metrics process was ended: look for an out-of-memory kill on its machine",
        )
        return
    yield from _counts(run, summary, config)
    yield from _requests(summary, events)
    yield from _answers(run, summary, events)
    yield from _accounting(summary, events)
    yield from _durations(run, summary, events, config)
    yield from _agentic_length(summary, benchmark)


def _completeness(summary: Summary) -> Iterator[Finding]:
    if not summary.complete or summary.state != "complete":
        yield _error(
            "incomplete",
            f"complete: {str(summary.complete).lower()}, state: {summary.state}",
            "complete: true, state: complete",
            "the run was interrupted, or its metrics were not finished: read the client's log",
        )


def _settings(run: PlannedRun, summary: Summary, config: RunConfig | None) -> Iterator[Finding]:
    """Pattern, level, seeds and streaming as planned, in the summary and in the configuration."""
    yield from _pattern(run, {summary.load_pattern, config.load_pattern if config else None})
    levels = {summary.concurrency, config.concurrency if config else None} - {None}
    if run.concurrency is not None and levels != {run.concurrency}:
        yield _error(
            "concurrency",
            f"concurrency {_listed(levels)}",
            f"concurrency {run.concurrency}",
            "nothing but the plan may set the level: look at client.overrides",
        )
    yield from _seeds(run, summary, config)
    if run.streaming and config and config.streaming is False:
        yield _error(
            "streaming-off",
            "streaming: off",
            "streaming: on (§6.3)",
            "leave model_params.streaming to the plan",
        )
    if run.streaming and config and config.stream_all_chunks is False:
        yield _warning(
            "chunks-off",
            "stream_all_chunks: false",
            "stream_all_chunks: true",
            "leave settings.client.stream_all_chunks to the plan: the official checker asks for it",
        )


def _pattern(run: PlannedRun, seen: set[str | None]) -> Iterator[Finding]:
    patterns = seen - {None}
    if patterns != {run.load_pattern} or not patterns.issubset(_PATTERNS):
        wanted = run.load_pattern if run.load_pattern in _PATTERNS else f"one of {_PATTERNS}"
        yield _error(
            "load-pattern",
            f"load pattern {_listed(patterns)}",
            f"load pattern {wanted} (§6.1)",
            "leave settings.load_pattern to the plan",
        )


def _seeds(run: PlannedRun, summary: Summary, config: RunConfig | None) -> Iterator[Finding]:
    for name in ("scheduler_random_seed", "dataloader_random_seed"):
        wanted = getattr(run, name)
        seen = {getattr(summary, name), getattr(config, name, None)} - {None}
        if seen != {wanted}:
            yield _error(
                "seeds",
                f"{name} {_listed(seen)}",
                f"{name} {wanted}",
                "nothing but the plan may set seeds: the whole curve has one set (§4.6)",
            )


def _listed(values: Collection[object]) -> str:
    return " and ".join(sorted(map(str, values))) or "not stated"


def _warmup(
    summary: Summary, events: EventFacts | None, config: RunConfig | None
) -> Iterator[Finding]:
    """Warm-up on performance samples is salted, and over before the timed phase (§6.4)."""
    settings = summary.warmup
    enabled = config.warmup_enabled if config else settings.enabled
    salt = config.warmup_salt if config else settings.salt
    if enabled and not salt:
        yield _error(
            "warmup-unsalted",
            "warm-up on performance samples without salt",
            "warm-up with salt",
            "set settings.warmup.salt: true in client.overrides",
        )
    if events and events.warmup_overlaps:
        yield _warning(
            "warmup-overlaps",
            f"{events.warmup_overlaps} warm-up requests answered in the timed phase",
            "a warm-up that is over before",
            "set settings.warmup.drain: true in client.overrides",
        )


def _counts(run: PlannedRun, summary: Summary, config: RunConfig | None) -> Iterator[Finding]:
    """Issued as planned, all completed, whole passes."""
    if run.samples is not None and summary.issued != run.samples:
        cap_ms = config.duration_cap_ms if config else None
        cap = f" or reached its duration cap of {cap_ms} ms" if cap_ms else ""
        yield _error(
            "issued-not-planned",
            f"{summary.issued} samples issued",
            f"{run.samples} samples",
            f"the run was interrupted{cap}: read the client's log",
        )
    if summary.completed != summary.issued:
        yield _error(
            "unfinished",
            f"{summary.completed} of {summary.issued} samples completed",
            "every issued sample completed",
            "requests were dropped: the run was interrupted, or the endpoint stopped answering",
        )
    is_counted_in_rows = run.load_pattern != _AGENTIC  # a conversation issues once a turn
    if is_counted_in_rows and summary.issued % run.dataset_rows:
        yield _error(
            "not-whole-passes",
            f"{summary.issued} samples issued",
            f"a multiple of the dataset's {run.dataset_rows} rows",
            "every sample is to be issued equally often: let the plan set n_samples_to_issue",
        )


def _requests(summary: Summary, events: EventFacts | None) -> Iterator[Finding]:
    """No failed request and no cut stream, by the summary or by the events."""
    failed = max(summary.failed, events.failed if events else 0)
    if failed:
        yield _error(
            "failed-requests",
            f"{failed} failed requests (they count as completed)",
            "none",
            "look at the endpoint's log; error.generic records in events.jsonl hold its answers",
        )
    cut = events.cut_streams if events else 0
    if summary.finished_normally is not None:
        cut = max(cut, summary.completed - failed - summary.finished_normally)
    if cut > 0:
        yield _error(
            "cut-streams",
            f"{cut} answers without a finish reason",
            "a finish reason for every completed request",
            "streams broke off and were counted as success: look at the endpoint and what lies"
            " between",
        )


def _answers(run: PlannedRun, summary: Summary, events: EventFacts | None) -> Iterator[Finding]:
    """Answers that have tokens, and that were counted."""
    if run.streaming and events and events.empty_answers:
        yield _error(
            "empty-answers",
            f"{events.empty_answers} requests completed without a first chunk",
            "an answer to every request",
            "look at the endpoint's log for requests that ended at once",
        )
    tpot_ms = summary.tpot_ms.get(_TPOT_PERCENTILE)
    if not summary.output_tokens or (run.streaming and not tpot_ms):
        yield _error(
            "no-token-metrics",
            f"output tokens: {summary.output_tokens or 'none'}, TPOT P90: {tpot_ms or 'none'}",
            "output tokens and, where answers stream, a positive TPOT P90",
            "name a tokenizer that the client can load (model.tokenizer)",
        )


def _accounting(summary: Summary, events: EventFacts | None) -> Iterator[Finding]:
    """Summary and events count the same requests."""
    if events is None or not (events.records and events.session_ended):
        return
    counted = (events.issued, events.completed)
    if counted != (summary.issued, summary.completed):
        yield _error(
            "accounting",
            f"the events hold {counted[0]} issued and {counted[1]} completed requests",
            f"{summary.issued} and {summary.completed}, as in the summary",
            "one of the client's services lost records: run the point again on a machine with more"
            " room",
        )


def _durations(
    run: PlannedRun, summary: Summary, events: EventFacts | None, config: RunConfig | None
) -> Iterator[Finding]:
    """Long enough, not ended by a cap, and drained before accuracy began."""
    seen_s = summary.duration_s if run.load_pattern == _MAX_THROUGHPUT else None
    if events and run.load_pattern != _MAX_THROUGHPUT:
        seen_s = events.issue_span_s
    if seen_s is not None and seen_s * _MS_PER_S < run.min_duration_ms:
        yield _error(
            "too-short",
            f"{seen_s:.3f} s",
            f"at least {run.min_duration_ms / _MS_PER_S:g} s of issue time (§6.2)",
            "issue more passes: the next attempt is sized from the rate measured here",
        )
    cap_ms = config.duration_cap_ms if config else None
    tracked_s = events.tracked_s if events else None
    as_planned = run.samples in (None, summary.issued)
    if cap_ms and tracked_s and as_planned and tracked_s * _MS_PER_S >= cap_ms:
        yield _error(
            "duration-capped",
            f"a timed phase of {tracked_s:.3f} s, cut at {cap_ms} ms",
            "a run that ends by its sample count",
            "leave the duration cap off, or set it far above the expected end",
        )
    if events and events.accuracy_overlaps:
        yield _error(
            "accuracy-overlaps",
            f"{events.accuracy_overlaps} timed requests completed after accuracy requests began",
            "a drained timed phase before the accuracy run",
            "leave the drain of the timed phase without a time-out, or find what stalled it",
        )


def _agentic_length(summary: Summary, benchmark: str) -> Iterator[Finding]:
    """Mean output length a turn within the official range, agentic benchmarks (checker 1.5.3)."""
    targets = agentic_targets(benchmark)
    if targets is None or targets.osl_range is None:
        return
    lowest, highest = targets.osl_range
    mean = summary.full_run_mean_output_tokens
    wanted = f"{lowest:g} to {highest:g} output tokens a turn"
    if mean is None:
        yield _warning(
            "osl-range",
            "no full-run output length",
            wanted,
            "use a client version that reports output_sequence_lengths_full_run",
        )
    elif not lowest <= mean <= highest:
        yield _error(
            "osl-range",
            f"{mean:g} output tokens a turn",
            wanted,
            "correct the model's serving parameters: answers are too short or too long",
        )
