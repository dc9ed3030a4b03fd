"""What a submission tells of each point: `point.yaml`, `system_desc.json`, `system_power.json`
(§8.2, §8.3, Appendix E), and what of it is still missing.

Pure: descriptions that lie in files are handed in. Which keys are needed is the official models'.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from submission_checker.models.file import NodeType, SystemDescription

from core.campaign import CUSTOM, Campaign
from core.campaign_disclosure import PointDisclosure
from core.client_config import merged
from core.events import EventFacts
from core.findings import Severity
from core.folder import FolderFacts, RunConfig
from core.layout import DOCS_DIR, SRC_DIR
from core.plan import MAX_THROUGHPUT, OFFLINE_LABEL, Plan, Point
from core.presets import official_dataset, preset_of
from core.regions import (
    SUBMITTERS_CHOICE,
    Regions,
    classify_concurrency,
    compute_regions,
    min_duration_ms,
)
from core.seeds import SeedSet
from core.summary import Summary

#: The division whose throughput is normalised by power (§4.5).
STANDARDIZED = "Standardized"
#: How a replica is spread (§8.2), by point.
PARALLELISM = ("tensor_parallel", "pipeline_parallel", "expert_parallel", "data_parallel")
#: Keys of system_desc.json that follow from the campaign's own.
FILLED = (
    "division",
    "system_availability_status",
    "max_supported_concurrency",
    "c_min_override",
    "submitter_org_names",
)
#: Keys of system_desc.json that may differ between the points of one curve (checker.py of the
#: official package 1.5.3).
OF_A_POINT = frozenset(
    {
        *PARALLELISM,
        "tps_utilization",
        "disaggregated",
        "batch",
        "config_summary",
        "config_summary_notes",
    }
)
#: What the availability must be backed by (§8.2).
_AVAILABILITY = {
    "Available": ("availability_url", "the URL of a product or ordering page"),
    "Preview": ("target_availability_date", "the expected date, YYYY-MM-DD"),
}
#: What is asked of a person, and what it is.
_STATED = {
    "organization": "the submitting organization",
    "scenario": "cop (client on premises) or con (over the network)",
    "availability": "Available, Preview or RDI",
    "model_precision": "the lowest precision of the weights, e.g. FP8",
    "link_to_model": "a link to the model",
    "dataset_link": "a link to the dataset",
    "src": "a folder with one folder an implementation, each with a README.md",
    "docs": "a folder of documents",
}


#: How keys begin → the official rule that is broken without them.
_RULE_OF = {
    "benchmark": "model-name-valid",
    "disclosure.src": "src-readme",
    "disclosure.implementation": "shared-path-resolution",
    "disclosure.docs": "required-dir",
    "disclosure.system": "system-description-valid",
    "disclosure.sysinfo": "system-description-valid",
    "disclosure.availability": "system-description-valid",
    "disclosure.power": "power-descriptor",
    "disclosure.points": "nodes-used",
}


@dataclass(frozen=True)
class Lack:
    """One thing that only a person can tell, and has not."""

    key: str  # of the campaign file
    wanted: str
    severity: Severity = "error"

    @property
    def rule(self) -> str:
        """The official rule that it would break."""
        found = (rule for start, rule in _RULE_OF.items() if self.key.startswith(start))
        return next(found, "point-disclosure-complete")

    def __str__(self) -> str:
        return f"{self.key}: {self.wanted}"


@dataclass(frozen=True)
class Told:
    """What the files that a campaign names hold."""

    system: Mapping[str, Any] | None
    power: Mapping[str, Any] | None
    implementations: tuple[str, ...]  # folders of disclosure.src


@dataclass(frozen=True)
class Curve:
    """The points that are disclosed together, and what follows from all of them."""

    points: tuple[Point, ...]
    regions: Regions
    seed_set: SeedSet


def curve_of(campaign: Campaign, plan: Plan, labels: Iterable[str]) -> Curve:
    """The curve of some points: without the lowest one every boundary is another (§5.4).

    Raises:
        InputError: its regions can't be computed.
    """
    wanted = set(labels)
    points = sorted(
        (point for point in plan.points if point.label in wanted), key=lambda p: p.concurrency
    )
    override = campaign.curve.c_min_override
    c_min = override or min(32, *(point.concurrency for point in points))
    regions = compute_regions(campaign.curve.c_max, c_min, c_min_overridden=override is not None)
    placed = (replace(point, region=_region(point, regions)) for point in points)
    return Curve(tuple(placed), regions, plan.seed_set)


def _region(point: Point, regions: Regions) -> str:
    if point.load_pattern == MAX_THROUGHPUT:
        return SUBMITTERS_CHOICE
    return classify_concurrency(point.concurrency, regions) or point.region


# --- point.yaml ------------------------------------------------------------------------------


def point_yaml(
    campaign: Campaign,
    curve: Curve,
    point: Point,
    told: Told,
    facts: FolderFacts | None,
    window: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The disclosure of one point.

    Args:
        campaign: The campaign.
        curve: The curve that the point is of.
        point: The point, of that curve.
        told: What the campaign's files hold.
        facts: What its run folder shows; None: it was not run yet.
        window: The steady-state block that the client's detector made afterwards, if it did.
    """
    stated, alone = campaign.disclosure, _of_point(campaign, point)
    dataset = official_dataset(campaign.benchmark) or campaign.datasets.performance.name
    document: dict[str, Any] = {
        "concurrency": point.concurrency,
        "offline": point.offline,
        "region": point.region,
        "dataset": dataset,
        "runtime_settings": _runtime_settings(campaign, curve, point, facts),
        "warmup": _warmup(campaign, point, facts.events if facts else None),
        "division": stated.division,
        "max_supported_concurrency": campaign.curve.c_max,
        "model_name": campaign.benchmark,
        "model_precision": stated.model_precision,
        "link_to_model": stated.link_to_model,
        "link_to_model_transformation": stated.link_to_model_transformation,
        "model_notes": stated.model_notes,
        "dataset_name": stated.dataset_name or dataset,
        "dataset_type": stated.dataset_type,
        "dataset_link": stated.dataset_link,
        "seed_set": curve.seed_set.id,
        "target_cohort": campaign.seeds.target_cohort,
        "shared_src": _shared_src(campaign, told),
        "shared_docs": DOCS_DIR,
        "steady_state": _steady_state(facts, window),
        "speculative_decoding": stated.speculative_decoding,
        "nodes_used": [dict(used) for used in alone.nodes_used] or None,
        "dp_shortfall": alone.dp_shortfall,
    }
    return {key: value for key, value in document.items() if value is not None}


def _of_point(campaign: Campaign, point: Point) -> PointDisclosure:
    """What is told of one point alone."""
    key: int | Literal["offline"] = "offline" if point.label == OFFLINE_LABEL else point.concurrency
    return campaign.disclosure.points.get(key, PointDisclosure())


def _runtime_settings(
    campaign: Campaign, curve: Curve, point: Point, facts: FolderFacts | None
) -> dict[str, Any]:
    """Pattern, minimum duration and seeds (§4.6, §6.1, §6.2)."""
    region = classify_concurrency(point.concurrency, curve.regions) or point.region
    config = facts.config if facts and isinstance(facts.config, RunConfig) else None
    return {
        "load_pattern": point.load_pattern,
        "min_duration_ms": min_duration_ms(region, point.concurrency, agentic=campaign.agentic),
        "stream_all_chunks": config is None or config.stream_all_chunks is not False,
        "runtime": dict(curve.seed_set.seeds),
    }


def _warmup(campaign: Campaign, point: Point, events: EventFacts | None) -> dict[str, Any]:
    """The warm-up as the events show it (§6.3.3)."""
    stated = campaign.disclosure.warmup
    steps = list(stated.initialization_steps)
    if events is None or not events.warmup_issued:
        return {
            "duration_s": 0,
            "requests_issued": 0,
            "requests_completed": 0,
            "data_source": "none; warmup disabled",
            "concurrency": 0,
            "initialization_steps": steps,
        }
    source = f"{campaign.datasets.performance.name}, each prompt salted by the client"
    block = {
        "duration_s": round(events.warmup_s, 3),
        "requests_issued": events.warmup_issued,
        "requests_completed": events.warmup_completed,
        "data_source": stated.data_source or source,
        "concurrency": point.concurrency,
        "initialization_steps": steps,
        "logs_retained": stated.logs_retained,
    }
    return block | ({"link_logs": stated.link_logs} if stated.link_logs else {})


def _steady_state(
    facts: FolderFacts | None, window: Mapping[str, Any] | None
) -> dict[str, Any] | None:
    """The client's own block, as it stands (§4.4), or its detector's; None: neither made one."""
    summary = facts.summary if facts else None
    own = summary.steady_state if isinstance(summary, Summary) else None
    block = own or window
    return None if block is None else dict(block)


def _shared_src(campaign: Campaign, told: Told) -> str | None:
    """Where the implementation lies in the submission."""
    named = campaign.disclosure.implementation
    if named is None and len(told.implementations) == 1:
        named = told.implementations[0]
    return None if named is None else f"{SRC_DIR}/{named}"


# --- system_desc.json and system_power.json ------------------------------------------------------


def system_desc(campaign: Campaign, point: Point, told: Told) -> dict[str, Any]:
    """The system as it was at a point (§8.2); the builder adds `tps_utilization`."""
    stated = campaign.disclosure
    filled = {
        "division": stated.division,
        "system_availability_status": stated.availability,
        "max_supported_concurrency": campaign.curve.c_max,
        "submitter_org_names": stated.organization,
        "c_min_override": campaign.curve.c_min_override,
    }
    own = {key: value for key, value in filled.items() if value is not None}
    stated_keys: Mapping[str, Any] = _pruned(told.system or {})
    free = {key: value for key, value in stated_keys.items() if key not in FILLED}
    return merged(merged(free, _of_point(campaign, point).system), own)


def of_every_point(told: Told) -> dict[str, Any]:
    """What of the system's description all points of a curve share (§8.2)."""
    pruned: Mapping[str, Any] = _pruned(told.system or {})
    return {key: value for key, value in pruned.items() if key not in OF_A_POINT}


def _pruned(value: Any) -> Any:
    """A document without the keys that were left empty."""
    if isinstance(value, Mapping):
        return {key: _pruned(inner) for key, inner in value.items() if inner is not None}
    return [_pruned(inner) for inner in value] if isinstance(value, list) else value


def system_power(told: Told) -> dict[str, Any] | None:
    """The power descriptor; one for the whole system."""
    if told.power is None:
        return None
    name = (told.system or {}).get("system_name")
    pruned: Mapping[str, Any] = _pruned(told.power)
    return {**({"system_desc_id": name} if name else {}), **pruned}


# --- What is missing -----------------------------------------------------------------------------


def missing(campaign: Campaign, plan: Plan, told: Told) -> list[Lack]:
    """Everything that only a person can tell and that is not told, with its key."""
    if campaign.benchmark == CUSTOM or preset_of(campaign.benchmark) is None:
        return [Lack("benchmark", f"{campaign.benchmark} is no official benchmark: nothing of it"
                     " can be submitted")]  # fmt: skip
    return [
        *_missing_statements(campaign, told),
        *_missing_of_system(campaign, told),
        *_missing_power(campaign, told),
        *_missing_points(campaign, plan),
    ]


def _missing_statements(campaign: Campaign, told: Told) -> Iterator[Lack]:
    stated = campaign.disclosure
    for key, wanted in _STATED.items():
        if getattr(stated, key) is None:
            yield Lack(f"disclosure.{key}", wanted)
    if stated.src is not None and not told.implementations:
        yield Lack("disclosure.src", f"{stated.src} has no folder of an implementation")
    several = len(told.implementations) > 1
    listed = ", ".join(told.implementations)
    if several and stated.implementation is None:
        yield Lack("disclosure.implementation", f"which of {listed} was measured")
    if stated.implementation is not None and stated.implementation not in (
        *told.implementations,
        *(() if told.implementations else (stated.implementation,)),
    ):
        yield Lack("disclosure.implementation", f"one of {listed}, not {stated.implementation}")


def _missing_of_system(campaign: Campaign, told: Told) -> Iterator[Lack]:
    """Keys of system_desc.json that its model needs."""
    system = told.system
    if system is None:
        yield Lack("disclosure.system", "the description of the system (§8.2), or a file with it")
        return
    for key, field in SystemDescription.model_fields.items():
        if field.is_required() and key not in FILLED and _is_blank(system.get(key)):
            yield Lack(f"disclosure.system.{key}", "needed by §8.2")
    key, wanted = _AVAILABILITY.get(campaign.disclosure.availability or "", ("", ""))
    if key and _is_blank(system.get(key)):
        yield Lack(f"disclosure.system.{key}", wanted)
    nodes = system.get("node_types")
    for index, node in enumerate(nodes if isinstance(nodes, list) else ()):
        yield from _missing_of_node(f"disclosure.system.node_types[{index}]", node)
    c_max = system.get("max_supported_concurrency", campaign.curve.c_max)
    if c_max != campaign.curve.c_max:
        yield Lack(
            "disclosure.system.max_supported_concurrency",
            f"{c_max} is not curve.c_max, {campaign.curve.c_max}; leave it out",
        )


def _missing_of_node(where: str, node: object) -> Iterator[Lack]:
    if not isinstance(node, Mapping):
        return
    for key, field in NodeType.model_fields.items():
        if field.is_required() and _is_blank(node.get(key)):
            yield Lack(f"{where}.{key}", "needed by §8.2.1")
    counts = ("host_processor_core_count", "host_processor_vcpu_count")
    if all(node.get(count) is None for count in counts):
        yield Lack(f"{where}.host_processor_core_count", "or host_processor_vcpu_count")


def _is_blank(value: object) -> bool:
    return value is None or value in ("", [])


def _missing_power(campaign: Campaign, told: Told) -> Iterator[Lack]:
    if told.power is None and campaign.disclosure.division == STANDARDIZED:
        yield Lack("disclosure.power", "the provisioned power (Appendix E), or a file with it")


def _missing_points(campaign: Campaign, plan: Plan) -> Iterator[Lack]:
    """What is told of points that there are not, and how replicas are spread."""
    labels = {"offline" if p.label == OFFLINE_LABEL else p.concurrency for p in plan.points}
    for key in campaign.disclosure.points:
        if key not in labels:
            yield Lack(f"disclosure.points.{key}", "no such point in the plan; remove it")


def missing_parallelism(campaign: Campaign, plan: Plan, told: Told) -> list[Lack]:
    """Points that don't say how their replicas are spread: the checker warns (§4.5.3)."""
    if campaign.disclosure.division != STANDARDIZED or told.system is None:
        return []
    silent = [
        point.label
        for point in plan.points
        if not any(key in system_desc(campaign, point, told) for key in PARALLELISM)
    ]
    if not silent:
        return []
    which = "all points" if len(silent) == len(plan.points) else ", ".join(silent)
    return [Lack("disclosure.system.tensor_parallel", f"and {', '.join(PARALLELISM[1:])}; of"
                 f" {which}", "warning")]  # fmt: skip
