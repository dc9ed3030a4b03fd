"""What one client run is asked to do: the part of a planned point its folder must answer to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core.campaign import Campaign
from core.plan import AGENTIC, MAX_THROUGHPUT, Plan, Point


@dataclass(frozen=True)
class PlannedAccuracy:
    """One scored dataset of a run."""

    name: str
    rows: int
    repeats: int
    bounds: dict[str, tuple[float | None, float | None]]  # metric → (lowest, highest) accepted

    @property
    def samples(self) -> int:
        """Scored samples: every row, as often as it is repeated."""
        return self.rows * self.repeats


@dataclass(frozen=True)
class PlannedRun:
    """One client run as planned."""

    load_pattern: str  # concurrency, agentic_inference or max_throughput
    concurrency: int | None  # target level; None for max_throughput
    samples: int | None  # to issue in the timed phase; None: the client's own count
    dataset_rows: int
    scheduler_random_seed: int
    dataloader_random_seed: int
    min_duration_ms: int  # of issue time; 0: no minimum
    accuracy: tuple[PlannedAccuracy, ...]  # empty: no accuracy run
    streaming: bool = True  # fixed-concurrency points stream (§6.3)


def planned_run(
    campaign: Campaign,
    plan: Plan,
    point: Point,
    samples: int,
    accuracy_rows: Mapping[str, int],
) -> PlannedRun:
    """What the run of a point must answer to.

    Args:
        campaign: The campaign.
        plan: Its plan, with the rows of the performance dataset known.
        point: The point to run.
        samples: Samples to issue, whole passes; of an agentic point: trajectories, whose turns the
            client counts itself.
        accuracy_rows: Rows of each accuracy dataset by name.
    """
    assert plan.dataset_rows is not None, "a point is run only after its dataset was read"
    offline = point.load_pattern == MAX_THROUGHPUT
    return PlannedRun(
        load_pattern=point.load_pattern,
        concurrency=None if offline else point.concurrency,
        samples=None if point.load_pattern == AGENTIC else samples,
        dataset_rows=plan.dataset_rows,
        scheduler_random_seed=plan.seed_set.scheduler_rng_seed,
        dataloader_random_seed=plan.seed_set.sample_index_rng_seed,
        min_duration_ms=point.min_duration_ms,
        accuracy=tuple(
            PlannedAccuracy(
                name=dataset.name,
                rows=accuracy_rows[dataset.name],
                repeats=dataset.repeats,
                bounds=dataset.bounds,
            )
            for dataset in (campaign.datasets.accuracy if point.accuracy else ())
        ),
        streaming=not offline,
    )
