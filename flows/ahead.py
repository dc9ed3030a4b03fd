"""Asks the official checker early: at plan time, and right after a point (§9.1).

What is not there yet is a specimen that passes, so whatever it says is about what is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from core.campaign import CUSTOM, Campaign
from core.disclosure import Lack, curve_of, missing, missing_parallelism, point_yaml
from core.folder import FolderFacts
from core.gates import gate_files
from core.layout import RunPaths
from core.plan import Plan, Point
from core.reading import load_json, load_yaml
from core.rules_ahead import Remark
from core.specimen import TOLD
from core.submission import planned_files, specimen_files
from tasks.disclosures import read_told
from tasks.official import check_files

#: Of a point's disclosure, what its run shows.
_SHOWN = ("steady_state", "warmup")


@dataclass(frozen=True)
class Ahead:
    """What keeps a campaign from being submitted, as far as its file shows."""

    lacks: tuple[Lack, ...]
    remarks: tuple[Remark, ...]

    @property
    def has_errors(self) -> bool:
        """Whether something would be rejected."""
        severities = (*(x.severity for x in self.lacks), *(x.severity for x in self.remarks))
        return "error" in severities


def look_ahead(campaign: Campaign, plan: Plan) -> Ahead:
    """What of the disclosures is missing, or would be rejected, before anything was measured."""
    told, unread = read_told(campaign)
    lacks = (
        *unread,
        *missing(campaign, plan, told),
        *missing_parallelism(campaign, plan, told),
    )
    if campaign.benchmark == CUSTOM:
        return Ahead(lacks, ())
    files = planned_files(campaign, plan, told)
    said = (*gate_files(files), *check_files(files, campaign.seeds.registry))
    return Ahead(lacks, tuple(_news(said, lacks)))


def _news(said: Sequence[Remark], lacks: Sequence[Lack]) -> list[Remark]:
    """What is not just that something is missing, each thing once."""
    missing_keys = {lack.key for lack in lacks}
    has_power = "disclosure.power" not in missing_keys
    found: dict[tuple[str, str], Remark] = {}
    for remark in said:
        is_echo = remark.rule == "point-disclosure-complete" and bool(lacks)
        is_echo |= remark.key in missing_keys or remark.message.endswith("required, but missing")
        is_echo |= remark.rule == "power-descriptor" and not has_power
        is_echo |= remark.rule == "maximal-engagement" and not has_power
        if not is_echo:
            found.setdefault((remark.rule, remark.message), remark)
    return list(found.values())


def look_after(
    campaign: Campaign, plan: Plan, point: Point, run: RunPaths, facts: FolderFacts
) -> list[Remark]:
    """What the official checker would say of a point that was just measured.

    What only our own gates would say is a warning here: the run is good, its package would not be.
    A custom benchmark has no official rules, and a rehearsal's durations are not real: of them it
    is not asked.
    """
    if campaign.benchmark == CUSTOM or campaign.rehearsal is not None:
        return []
    summary = read_document(run.summary)
    if summary is None:  # its own findings say why there is none
        return []
    curve = curve_of(campaign, plan, [other.label for other in plan.points])
    shown = point_yaml(campaign, curve, point, TOLD, facts)
    of_run = {key: shown[key] for key in _SHOWN if key in shown}
    files = specimen_files(
        campaign.benchmark,
        campaign.curve.c_max,
        curve,
        measured={point.label: (of_run, read_document(run.accuracy), summary)},
        target_cohort=campaign.seeds.target_cohort,
    )
    gated = (replace(remark, severity="warning") for remark in gate_files(files))
    said = (*gated, *check_files(files, campaign.seeds.registry))
    return [remark for remark in said if remark.place == point.label]


def read_document(path: Path) -> dict[str, Any] | None:
    """A JSON object, its whole numbers exact; None: there is no file; empty: it can't be read."""
    if not path.is_file():
        return None
    value, problems = load_json(path.read_bytes(), path.name)
    return value if isinstance(value, dict) and not problems else {}


def read_config(path: Path) -> dict[str, Any] | None:
    """The client's own record of its configuration; None: there is none that can be read."""
    value, problems = load_yaml(path.read_bytes(), path.name) if path.is_file() else (None, ())
    return value if isinstance(value, dict) and not problems else None
