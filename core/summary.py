"""`result_summary.json` → what a run measured; nanoseconds become milliseconds here and only here.

Reads what the client wrote about the whole timed phase (§4.1, §8.3). Keys of later client versions
are left alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from submission_checker.agentic_targets import OSL_FULL_RUN_FIELD

from core.reading import Fields, FolderProblem, Problems, load_json

#: The file, as problems name it.
WHERE = "result_summary.json"
#: Nanoseconds in a millisecond and in a second.
NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000
#: The highest percentile, in percent.
_HIGHEST_PERCENTILE = 100


@dataclass(frozen=True)
class WarmupSettings:
    """Warm-up as the client ran it; None: the summary doesn't say."""

    enabled: bool | None
    salt: bool | None
    drain: bool | None
    requests: int | None


@dataclass(frozen=True)
class Summary:
    """What the client says of a run."""

    version: str | None
    git_sha: str | None
    state: str
    complete: bool
    issued: int
    completed: int  # failed requests included
    failed: int
    duration_s: float | None  # up to the last completion; None: nothing was measured
    qps: float | None
    tps: float | None
    ttft_ms: Mapping[str, float]  # percentile ("50", "99.9") → value
    tpot_ms: Mapping[str, float]
    latency_ms: Mapping[str, float]
    output_tokens: int | None  # all samples; None: not counted
    full_run_mean_output_tokens: float | None  # per turn, agentic benchmarks
    finish_reasons: Mapping[str, int] | None  # None: the client doesn't count them
    load_pattern: str
    concurrency: int | None  # None: the pattern has no level
    scheduler_random_seed: int | None
    dataloader_random_seed: int | None
    warmup: WarmupSettings
    e2e_avg_interactivity: float | None  # tokens/s over all answers (§4.1); None: not derivable
    steady_state: Mapping[str, Any] | None  # the window's block as it stands, of later clients

    @property
    def finished_normally(self) -> int | None:
        """Samples with a finish reason; None: the client doesn't count them."""
        return None if self.finish_reasons is None else sum(self.finish_reasons.values())


def parse_summary(text: bytes) -> Summary | Problems:
    """Read a summary, or say what in it can't be read."""
    value, unreadable = load_json(text, WHERE)
    if unreadable:
        return unreadable
    problems: list[FolderProblem] = []
    summary = _summary(Fields(value, WHERE, problems))
    return tuple(problems) or summary


def _summary(top: Fields) -> Summary:
    config = top.section("run_config")
    pattern = config.section("load_pattern")
    steady_state = top.optional_section("steady_state").values
    latency = top.section("latency")
    output_tokens = _tokens(top.section("output_sequence_lengths"))
    return Summary(
        version=top.optional_text("version"),
        git_sha=top.optional_text("git_sha"),
        state=top.text("state"),
        complete=top.flag("complete"),
        issued=top.count("n_samples_issued"),
        completed=top.count("n_samples_completed"),
        failed=top.count("n_samples_failed"),
        duration_s=_duration_s(top),
        qps=top.optional_number("qps"),
        tps=top.optional_number("tps"),
        ttft_ms=_percentiles_ms(top.section("ttft")),
        tpot_ms=_percentiles_ms(top.section("tpot")),
        latency_ms=_percentiles_ms(latency),
        output_tokens=output_tokens,
        full_run_mean_output_tokens=_full_run_mean(top),
        finish_reasons=_finish_reasons(top),
        load_pattern=pattern.text("type"),
        concurrency=pattern.optional_count("target_concurrency"),
        scheduler_random_seed=config.optional_count("scheduler_random_seed"),
        dataloader_random_seed=config.optional_count("dataloader_random_seed"),
        warmup=_warmup(config.optional_section("warmup")),
        e2e_avg_interactivity=_e2e_avg_interactivity(top, output_tokens, latency),
        steady_state=steady_state or None,
    )


def _duration_s(top: Fields) -> float | None:
    duration_ns = top.optional_number("duration_ns")
    if duration_ns is None and top.values.get("n_samples_completed"):
        top.note("duration_ns", "there is none, though samples completed")
    return None if duration_ns is None else duration_ns / NS_PER_S


def _percentiles_ms(series: Fields) -> dict[str, float]:
    """Percentiles of a series of nanoseconds; the client writes the keys as decimals ("90.0")."""
    percentiles = series.optional_section("percentiles")
    found: dict[str, float] = {}
    for key in percentiles.values:
        value_ns = percentiles.optional_number(key)
        name = _percentile(key)
        if name is None:
            percentiles.note(key, "this is no percentile")
        elif value_ns is not None:
            found[name] = value_ns / NS_PER_MS
    return found


def _percentile(key: str) -> str | None:
    """The short name of a percentile key ("90.0" → "90"); None: it is none."""
    try:
        percentile = float(key)
    except ValueError:
        return None
    return f"{percentile:g}" if 0 <= percentile <= _HIGHEST_PERCENTILE else None


def _tokens(output: Fields) -> int | None:
    total = output.optional_number("total")
    return None if total is None else int(total)


def _full_run_mean(top: Fields) -> float | None:
    """Mean output tokens a turn over the full run; the windowed block has another value."""
    full_run = top.optional_section(OSL_FULL_RUN_FIELD)
    return full_run.optional_section("output_sequence_lengths").optional_number("avg")


def _e2e_avg_interactivity(top: Fields, output_tokens: int | None, latency: Fields) -> float | None:
    """Output tokens over end-to-end time, all turns (§4.1; checker 1.5.3, `PointSummary`).

    The client's own sums stand for the named ones, unless a request failed: its time is counted,
    its tokens are not.
    """
    tokens = top.optional_number("output_tokens_per_turn_total")
    seconds = top.optional_number("e2e_turn_time_seconds_total")
    if tokens is None and seconds is None and not top.values.get("n_samples_failed"):
        total_ns = latency.optional_number("total")
        tokens, seconds = output_tokens, None if total_ns is None else total_ns / NS_PER_S
    return tokens / seconds if tokens is not None and seconds else None


def _finish_reasons(top: Fields) -> dict[str, int] | None:
    if top.values.get("finish_reason_counts") is None:
        return None
    counts = top.section("finish_reason_counts")
    return {reason: counts.count(reason) for reason in counts.values}


def _warmup(settings: Fields) -> WarmupSettings:
    return WarmupSettings(
        enabled=settings.optional_flag("enabled"),
        salt=settings.optional_flag("salt"),
        drain=settings.optional_flag("drain"),
        requests=settings.optional_count("n_requests"),
    )
