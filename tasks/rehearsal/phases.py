"""The phases of a run, worked out before it: warm-up, performance, accuracy; order and counts."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tasks.rehearsal.dataset import Row
from tasks.rehearsal.schema import Config, Dataset
from tasks.rehearsal.scoring import AccuracyPlan
from tasks.rehearsal.transport import request_body

WARMUP = "warmup"
PERFORMANCE = "performance"
ACCURACY = "accuracy"

#: Rate that sizes a run without a sample count, requests a second (the reference client's own).
ASSUMED_QPS = 10.0
#: Samples more than rate and duration give (the reference client's own).
PADDING = 1.1
#: Milliseconds in a second.
MS_PER_S = 1000
#: Bytes of a warm-up salt: 16 hex digits.
SALT_BYTES = 8


@dataclass(frozen=True)
class Phase:
    """One phase: which rows are asked, in what order, how many at a time."""

    name: str
    kind: str
    rows: list[Row]
    order: Iterator[int]
    count: int
    body: dict[str, Any]
    #: Requests in flight at most; None issues all at once.
    concurrency: int | None
    drain: bool = True
    drain_timeout_s: float | None = None
    salt: random.Random | None = None

    def prompt(self, index: int) -> str:
        """Return what is asked for a row; each call of a salted phase differs."""
        text = str(self.rows[index]["prompt"])
        return text if self.salt is None else f"[{self.salt.randbytes(SALT_BYTES).hex()}] {text}"

    def request(self, index: int, prompt: str) -> dict[str, Any]:
        """Return the request body for a row."""
        system = self.rows[index].get("system")
        messages = [{"role": "system", "content": system}] if system else []
        messages.append({"role": "user", "content": prompt})
        return {"model": self.body["model"], "messages": messages} | self.body


def shuffled_passes(rows: int, seed: int) -> Iterator[int]:
    """Yield row numbers for ever: every pass has each row once, in an order of its own."""
    generator = random.Random(seed)  # noqa: S311 - reproducible by design
    order = list(range(rows))
    while True:
        generator.shuffle(order)
        yield from order


def sample_count(config: Config, rows: int) -> int:
    """Return how many samples the performance phase issues."""
    if config.settings.runtime.n_samples_to_issue is not None:
        return config.settings.runtime.n_samples_to_issue
    for dataset in config.datasets:  # conversations are counted at their dataset
        if count := (dataset.agentic_inference or {}).get("num_trajectories_to_issue"):
            return int(count)
    minimum_ms = config.settings.limits().min_duration_ms
    if not minimum_ms:
        return rows
    rate = config.settings.load_pattern.target_qps or ASSUMED_QPS
    return math.ceil(math.ceil(rate * (minimum_ms / MS_PER_S) * PADDING) / rows) * rows


def performance_phases(config: Config, dataset: Dataset, rows: list[Row]) -> list[Phase]:
    """Return the performance phase, after a warm-up if the configuration has one."""
    limits = config.settings.limits()
    concurrency = config.settings.load_pattern.target_concurrency
    body = request_body(config.model_params, dataset.generation_config_override)
    order = shuffled_passes(len(rows), config.settings.runtime.dataloader_random_seed)
    count = sample_count(config, len(rows))
    timed = Phase(
        PERFORMANCE,
        PERFORMANCE,
        rows,
        order,
        count,
        body,
        concurrency,
        drain_timeout_s=limits.performance_drain_s,
    )
    warmup = config.settings.warmup
    if not warmup.enabled:
        return [timed]
    seed = warmup.warmup_random_seed
    return [
        Phase(
            WARMUP,
            WARMUP,
            rows,
            shuffled_passes(len(rows), seed + 1),
            warmup.n_requests or len(rows),
            body,
            concurrency,
            drain=warmup.drain,
            drain_timeout_s=limits.warmup_drain_s,
            salt=random.Random(seed + 2) if warmup.salt else None,  # noqa: S311 - as above
        ),
        timed,
    ]


def accuracy_phase(
    config: Config, dataset: Dataset, plan: AccuracyPlan, concurrency: int | None, count: int
) -> Phase:
    """Return the phase that asks an accuracy dataset, or its first samples, in its own order."""
    return Phase(
        plan.name,
        ACCURACY,
        plan.rows,
        itertools.cycle(range(len(plan.rows))),
        count,
        request_body(config.model_params, dataset.generation_config_override),
        concurrency,
        drain_timeout_s=config.settings.limits().accuracy_drain_s,
    )
