"""The files of a submission as values: one curve with all that is told of its points (§8.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core import specimen
from core.campaign import Campaign
from core.disclosure import (
    STANDARDIZED,
    Curve,
    Told,
    curve_of,
    point_yaml,
    system_desc,
    system_power,
)
from core.plan import Plan, Point
from core.presets import official_dataset
from core.seeds import SeedSet

Json = Mapping[str, Any]


@dataclass(frozen=True)
class PointFiles:
    """What lies in the folder of one point."""

    label: str
    concurrency: int
    point: Json  # point.yaml
    system: Json  # system_desc.json
    summary: Json | None  # result_summary.json; None: there is none; empty: not readable
    accuracy: Json | None  # accuracy_results.json, likewise
    config: Json | None  # config.yaml; None: there is none that can be read


@dataclass(frozen=True)
class CurveFiles:
    """What lies in a submission of one curve."""

    benchmark: str
    points: tuple[PointFiles, ...]
    power: Json | None
    implementations: tuple[str, ...]

    @property
    def system_name(self) -> str:
        """The system, whose name is a folder's too; as the official builder writes it."""
        name = self.points[0].system.get("system_name") if self.points else None
        return str(name or specimen.SYSTEM["system_name"]).strip().replace(" ", "_")


def planned_files(campaign: Campaign, plan: Plan, told: Told) -> CurveFiles:
    """The submission as the campaign file has it, with specimen results."""
    curve = curve_of(campaign, plan, [point.label for point in plan.points])
    points = tuple(
        PointFiles(
            label=point.label,
            concurrency=point.concurrency,
            point={
                **point_yaml(campaign, curve, point, told, None),
                "steady_state": specimen.steady_state(),
            },
            system=system_desc(campaign, point, told),
            summary=specimen.summary(campaign.benchmark, point),
            accuracy=specimen.accuracy(campaign.benchmark, point),
            config=specimen.CONFIG,
        )
        for point in curve.points
    )
    return CurveFiles(
        campaign.benchmark, points, system_power(told), told.implementations or ("specimen",)
    )


def specimen_files(
    benchmark: str,
    c_max: int,
    curve: Curve,
    *,
    measured: Mapping[str, tuple[Json, Json | None, Json | None]],
    target_cohort: str,
) -> CurveFiles:
    """A submission whose disclosures pass, with the results of the points that were measured.

    Args:
        benchmark: Canonical model name.
        c_max: Declared maximum concurrency.
        curve: Its points.
        measured: Label → what its point.yaml has of the run, its accuracy, its summary.
        target_cohort: The cohort aimed for.
    """
    points = []
    for point in curve.points:
        shown, accuracy, summary = measured.get(
            point.label,
            (
                {"steady_state": specimen.steady_state()},
                specimen.accuracy(benchmark, point),
                specimen.summary(benchmark, point),
            ),
        )
        points.append(
            PointFiles(
                label=point.label,
                concurrency=point.concurrency,
                point=_specimen_point(benchmark, c_max, curve.seed_set, point, target_cohort)
                | shown,
                system={
                    **specimen.SYSTEM,
                    "division": STANDARDIZED,
                    "system_availability_status": "Available",
                    "max_supported_concurrency": c_max,
                },
                summary=summary,
                accuracy=accuracy,
                config=specimen.CONFIG,
            )
        )
    return CurveFiles(benchmark, tuple(points), specimen.POWER, specimen.TOLD.implementations)


def _specimen_point(
    benchmark: str, c_max: int, seed_set: SeedSet, point: Point, target_cohort: str
) -> dict[str, Any]:
    runtime = {"load_pattern": point.load_pattern, "runtime": dict(seed_set.seeds)}
    warmup = {"duration_s": 0, "requests_issued": 0, "requests_completed": 0, "concurrency": 0}
    return {
        **specimen.POINT,
        "concurrency": point.concurrency,
        **({"offline": point.offline} if point.offline else {}),
        "runtime_settings": runtime,
        "warmup": {**warmup, "data_source": "none"},
        "max_supported_concurrency": c_max,
        "model_name": benchmark,
        "dataset": official_dataset(benchmark) or "specimen",
        "dataset_name": "specimen",
        "seed_set": seed_set.id,
        "target_cohort": target_cohort,
    }


def labels(points: Sequence[PointFiles]) -> dict[int, str]:
    """Level → label: folders of a submission are named by level."""
    return {point.concurrency: point.label for point in points}
