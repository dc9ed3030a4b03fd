"""One call of `benchmark from-config`: set-up, session, run folder.

The run folder gets `config.yaml` and `metrics/.ready` at the start and everything else at the end,
in the reference client's order.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from tasks.rehearsal import config as configs
from tasks.rehearsal.claims import (
    Claims,
    claimed_entry,
    claims_of,
    inline_entry,
    is_claimed,
    rows_of,
    slowed,
)
from tasks.rehearsal.dataset import load_rows
from tasks.rehearsal.events import EventLog
from tasks.rehearsal.failures import (
    ClientError,
    ClientExecutionError,
    ClientInputError,
    ClientSetupError,
)
from tasks.rehearsal.load import Session, Stop
from tasks.rehearsal.metrics import Aggregator
from tasks.rehearsal.phases import (
    ACCURACY,
    MS_PER_S,
    PERFORMANCE,
    Phase,
    accuracy_phase,
    performance_phases,
)
from tasks.rehearsal.progress import Progress
from tasks.rehearsal.schema import Config, Dataset
from tasks.rehearsal.scoring import AccuracyPlan, check_scoring, score
from tasks.rehearsal.summary import (
    VERSION,
    average_score,
    report_lines,
    summarize,
    summary_lines,
)
from tasks.rehearsal.transport import Asker, unreachable

_PACKAGE = "inference_endpoint"
_LOG = logging.getLogger(f"{_PACKAGE}.commands.benchmark.execute")
_ACCURACY_LOG = logging.getLogger(f"{_PACKAGE}.commands.benchmark.accuracy")
_PIPELINE_LOG = logging.getLogger(f"{_PACKAGE}.commands.benchmark.pipeline")
_AGGREGATOR_LOG = logging.getLogger(
    f"{_PACKAGE}.async_utils.services.metrics_aggregator.aggregator"
)

#: The modes of a run, by the name that the reference client logs.
MODES = {"perf": "TestMode.PERF", "acc": "TestMode.ACC", "both": "TestMode.BOTH"}
#: Where the metrics of a run lie.
SNAPSHOT = Path("metrics") / "final_snapshot.json"
#: Load patterns that the stand-in has.
_PATTERNS = ("concurrency", "max_throughput")
#: The pattern of conversations, which only test data has: one turn each.
_CONVERSATIONS = "agentic_inference"


@dataclass(frozen=True)
class Run:
    """A run that is set up."""

    config: Config
    mode: str
    folder: Path
    phases: list[Phase]
    plans: list[AccuracyPlan]
    data: Claims | None = None  # what it claims

    @property
    def streaming(self) -> bool:
        """Whether answers are streamed."""
        return self.config.model_params.streaming == "on"

    @property
    def total(self) -> int:
        """Samples that the progress bar counts: all but the warm-up's."""
        return sum(phase.count for phase in self.phases if phase.name != "warmup")


def benchmark(config: Config, mode: str) -> None:
    """Run once and write the run folder.

    Raises:
        ClientError: If the run could not be set up, was stopped (later dialect) or not scored.
        KeyboardInterrupt: If it was interrupted before it could write a report, or (later
            dialect) at all.
    """
    run = _set_up(_single_stream(config) if mode == "acc" else config, mode)
    streaming = run.streaming
    estimates = config.settings.early_stopping.enabled
    aggregator = Aggregator(streaming=streaming, estimates=estimates)
    log = EventLog(aggregator.observe)
    title = f"{config.model_params.name} (Streaming: {streaming})"
    progress = Progress(title, run.total, sys.stderr)
    try:
        session = asyncio.run(_session(run, log, progress))
        progress.close()
        _grace(run, session)
        _finish(run, session, aggregator, log)
    except ClientSetupError:
        progress.close()
        _write_json(run.folder / SNAPSHOT, aggregator.snapshot("interrupted"))
        raise
    except KeyboardInterrupt:
        _LOG.warning("Benchmark interrupted by user")
        raise
    finally:
        log.copy_to(run.folder / "events.jsonl")
        log.close()
    _raise_stop(session, later=config.settings.limits().later)


def _single_stream(config: Config) -> Config:
    """Return the configuration of an accuracy-only run: one worker, one connection."""
    settings = config.settings.model_dump(mode="python", exclude_none=True)
    settings["client"] |= {"num_workers": 1, "max_connections": 1}
    if "target_concurrency" in settings["load_pattern"]:
        settings["load_pattern"]["target_concurrency"] = 1
    return configs.updated(config, settings=settings)


def _set_up(config: Config, mode: str) -> Run:
    folder = config.report_dir or _default_folder()
    folder.mkdir(parents=True, exist_ok=True)
    configs.save(config, folder / "config.yaml")
    _LOG.info("Rehearsal stand-in %s: nothing here is a measurement", VERSION)
    tokenizer = config.model_params.tokenizer_name or config.model_params.name
    _LOG.info("Tokenizer not loaded, words are counted: %s", tokenizer)
    streaming = config.model_params.streaming
    _LOG.info("Streaming: %s (%s)", "enabled" if streaming == "on" else "disabled", streaming)
    data = claims_of(os.environ)
    if data is not None:
        _LOG.warning("Test data: durations × %g and claimed scores", data.clock)
    _refuse_foreign(config, data)
    phases, plans = _phases(config, mode, data)
    run = Run(config, mode, folder, phases, plans, data)
    _log_plan(run)
    (folder / "metrics").mkdir(exist_ok=True)
    (folder / "metrics" / ".ready").touch()
    return run


def _default_folder() -> Path:
    stamp = datetime.now().astimezone().strftime("%Y%m%d_%H%M%S")
    return Path(tempfile.gettempdir()) / f"reports_{stamp}"


def _refuse_foreign(config: Config, data: Claims | None) -> None:
    """Refuse what only the reference client can do; test data may claim to have done it."""
    pattern, api = config.settings.load_pattern.type, config.endpoint_config.api_type
    converses = data is not None and data.inline is not None
    if pattern not in _PATTERNS and not (converses and pattern == _CONVERSATIONS):
        raise ClientSetupError(f"The rehearsal stand-in has no load pattern '{pattern}'")
    if api != "openai":
        raise ClientSetupError(f"The rehearsal stand-in has no api_type '{api}'")
    for dataset in config.datasets:
        scored = dataset.type == "performance" and dataset.accuracy_config is not None
        if not converses and (scored or dataset.agentic_inference is not None):
            raise ClientSetupError(
                f"Dataset '{dataset.name}': the rehearsal stand-in neither scores performance "
                f"datasets nor runs conversations"
            )


def _phases(
    config: Config, mode: str, data: Claims | None
) -> tuple[list[Phase], list[AccuracyPlan]]:
    timed = [dataset for dataset in config.datasets if dataset.type == "performance"]
    scored = [dataset for dataset in config.datasets if dataset.type == "accuracy"]
    if mode == "acc" and not scored:
        raise ClientInputError("--accuracy-only requires at least one accuracy dataset")
    if mode != "acc" and len(timed) != 1:
        raise ClientInputError("Exactly one performance dataset required")
    plans = [_accuracy_plan(dataset, data) for dataset in scored]
    concurrency = None if mode == "acc" else config.settings.load_pattern.target_concurrency
    phases = [] if mode == "acc" else _timed_phases(config, timed[0], separate=bool(scored))
    phases += [
        accuracy_phase(config, dataset, plan, concurrency, _asked(plan, dataset, data))
        for dataset, plan in zip(scored, plans, strict=True)
    ]
    return phases, plans


def _asked(plan: AccuracyPlan, dataset: Dataset, data: Claims | None) -> int:
    """How many samples of a scored dataset are issued."""
    claimed = data is not None and is_claimed(dataset, data)
    return min(data.asked, plan.samples) if data is not None and claimed else plan.samples


def _accuracy_plan(dataset: Dataset, data: Claims | None) -> AccuracyPlan:
    if data is not None and is_claimed(dataset, data) and dataset.path is None:
        rows = rows_of(dataset, data.asked)
        return AccuracyPlan(dataset.name, rows, 1, "identity_extractor", "string_match", None)
    extractor, scorer = check_scoring(dataset)
    assert dataset.accuracy_config is not None
    rows = load_rows(dataset)
    _LOG.info("Loaded <%s> - %d samples", dataset.name, len(rows))
    return AccuracyPlan(
        dataset.name,
        rows,
        dataset.accuracy_config.num_repeats,
        extractor,
        scorer,
        dataset.accuracy_config.ground_truth,
    )


def _timed_phases(config: Config, dataset: Dataset, *, separate: bool) -> list[Phase]:
    if not separate:
        _LOG.info("No separate accuracy datasets provided")
    rows = load_rows(dataset)
    _LOG.info("Loaded %d samples", len(rows))
    warmup = config.settings.warmup
    if warmup.enabled and not warmup.salt:
        _LOG.warning("Warmup is enabled without salt (--warmup-salt)")
    return performance_phases(config, dataset, rows)


def _log_plan(run: Run) -> None:
    target_qps = run.config.settings.load_pattern.target_qps
    _LOG.info(
        "Mode: %s, Target QPS: %s, Responses: %s", MODES[run.mode], target_qps, run.mode != "perf"
    )
    limits = run.config.settings.limits()
    if run.mode == "acc":
        _LOG.info("Accuracy-only mode, Expected samples: %d", run.total)
    elif limits.later:
        _LOG.info("Expected samples: %d", run.total)
    else:
        minimum_s = (limits.min_duration_ms or 0) / MS_PER_S
        _LOG.info("Min Duration: %.1fs, Expected samples: %d", minimum_s, run.total)


async def _session(run: Run, log: EventLog, progress: Progress) -> Session:
    endpoint, client = run.config.endpoint_config, run.config.settings.client
    _LOG.info("Connecting: %s", endpoint.endpoints)
    if run.mode == "acc":
        _LOG.info(
            "Accuracy-only: single-stream (1 worker, 1 connection) for deterministic ordering"
        )
    if client.warmup_connections and (where := await unreachable(endpoint)):
        raise ClientSetupError(f"Failed to connect to endpoint: {where} is unreachable")
    for phase in run.phases:
        if phase.kind == ACCURACY:
            pattern = run.config.settings.load_pattern if phase.concurrency else "max_throughput"
            _LOG.info("Accuracy issuer '%s' load mode: %s", phase.name, pattern)
    asker = Asker(endpoint, client)
    limits, chunks = run.config.settings.limits(), client.stream_all_chunks
    session = Session(asker, log, progress, limits, all_chunks=chunks)
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, session.stop, Stop.INTERRUPT)
    try:
        await session.run(run.phases)
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        await asker.close()
    return session


def _grace(run: Run, session: Session) -> None:
    """Wait as the reference client does after an interrupt; a second one loses the report."""
    if session.stopped is Stop.INTERRUPT:
        time.sleep(run.config.settings.client.worker_graceful_shutdown_wait)


def _finish(run: Run, session: Session, aggregator: Aggregator, log: EventLog) -> None:
    late = session.stopped is not None and run.config.settings.limits().later
    snapshot = aggregator.snapshot("interrupted" if late else "complete")
    _AGGREGATOR_LOG.info("Aggregator finalized: %d total records processed", aggregator.records)
    _write_json(run.folder / SNAPSHOT, snapshot)
    _PIPELINE_LOG.info("Built report from final_snapshot.json")
    _write_json(
        run.folder / "sample_idx_map.json",
        {result.phase.name: result.index for result in session.results},
    )
    log.copy_to(run.folder / "events.jsonl")
    summary = summarize(snapshot, _run_config(run.config))
    if run.data is not None:
        timed = next(phase for phase in run.phases if phase.kind == PERFORMANCE)
        summary = slowed(summary, run.data, len(timed.rows))
    accuracy: list[dict[str, Any]] = []
    try:
        accuracy += _score(run, session)
    finally:
        _write_report(run.folder, summary, accuracy)
    _log_outcome(run, session, summary)
    _write_accuracy(run.folder, accuracy)
    _LOG.info("Partial results saved to %s", run.folder)


def _run_config(config: Config) -> dict[str, Any]:
    runtime = config.settings.runtime
    return {
        "load_pattern": config.settings.load_pattern.model_dump(mode="json"),
        "warmup": config.settings.warmup.model_dump(mode="json"),
        "scheduler_random_seed": runtime.scheduler_random_seed,
        "dataloader_random_seed": runtime.dataloader_random_seed,
    }


def _score(run: Run, session: Session) -> list[dict[str, Any]]:
    found = {result.phase.name: result for result in session.results}
    entries = inline_entry(run.config, run.data)
    for plan in run.plans:
        if plan.name not in found:
            if run.config.settings.limits().later:
                continue
            raise ClientError(f"Accuracy dataset '{plan.name}' was not asked: the run was stopped")
        result = found[plan.name]
        entry = score(plan, result.index, session.outputs, result.duration_s)
        if run.data is not None:
            entry = claimed_entry(entry, run.data, plan.samples)
        _ACCURACY_LOG.info(
            "Score for %s: %s (%d repeats, complete=True)",
            plan.name,
            entry["score"],
            len(result.index) // len(plan.rows),
        )
        entries.append(entry)
    return entries


def _write_report(folder: Path, summary: dict[str, Any], accuracy: list[dict[str, Any]]) -> None:
    for line in summary_lines(summary, accuracy):
        _LOG.info("%s", line)
    _LOG.info("----------------- End of Summary -----------------")
    (folder / "performance").mkdir(exist_ok=True)
    _write_json(folder / "performance" / "result_summary.json", summary)
    report = folder / "report.txt"
    report.write_text("\n".join([*report_lines(summary, accuracy), ""]), encoding="utf-8")
    _LOG.info("Report written to %s", report)


def _log_outcome(run: Run, session: Session, summary: dict[str, Any]) -> None:
    issued, failed = summary["n_samples_issued"], summary["n_samples_failed"]
    elapsed_s = (summary["duration_ns"] or 0) / 1e9
    if run.mode == "acc":
        elapsed_s = sum(result.duration_s for result in session.results)
    _LOG.info("Completed in %.1fs", elapsed_s)
    if run.mode == "acc":
        samples = sum(plan.samples for plan in run.plans)
        _LOG.info("Accuracy-only: %d samples evaluated", samples)
    else:
        _LOG.info("Results: %d/%d successful", max(0, issued - failed), issued)
        if summary["qps"]:
            _LOG.info("Estimated QPS: %.1f", summary["qps"])
    if errors := session.errors:
        _LOG.warning("Errors: %d", errors)


def _write_accuracy(folder: Path, accuracy: list[dict[str, Any]]) -> None:
    if not accuracy:
        return
    document: dict[str, Any] = {}
    if (average := average_score(accuracy)) is not None:
        document["average_accuracy"] = average
    spent = [entry["osl_tokenize_s"] for entry in accuracy if "osl_tokenize_s" in entry]
    if spent:
        document["osl_tokenization_s"] = round(sum(spent), 3)
    (folder / "accuracy").mkdir(exist_ok=True)
    path = folder / "accuracy" / "accuracy_results.json"
    _write_json(path, document | {"accuracy_scores": accuracy})
    _ACCURACY_LOG.info("Saved: %s", path)


def _write_json(path: Path, document: Any) -> None:
    # The standard encoder: seeds reach 2**64, which others refuse.
    path.write_text(json.dumps(document, indent=2), encoding="utf-8")


def _raise_stop(session: Session, *, later: bool) -> None:
    """Tell in the later dialect that a run with a report did not end in good order."""
    if not later or session.stopped is None:
        return
    if session.stopped is Stop.INTERRUPT:
        raise KeyboardInterrupt
    raise ClientExecutionError(f"{session.stopped}; run aborted and report marked INTERRUPTED")
