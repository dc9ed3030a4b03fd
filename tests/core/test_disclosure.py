"""Disclosures from plan, statements and run folder; what is missing, with its key."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.campaign import Campaign
from core.disclosure import (
    Told,
    curve_of,
    missing,
    missing_parallelism,
    point_yaml,
    system_desc,
    system_power,
)
from core.folder import SUMMARY, FolderFacts
from core.plan import Plan, make_plan
from core.regions import classify_concurrency
from core.summary import Summary, parse_summary
from tests.agreement import TOLD, base_of, campaign_of
from tests.campaigns import make_campaign
from tests.disclosures import disclosure_dict, power_dict, system_dict


def disclosed(folder: Path, **keys: Any) -> tuple[Campaign, Plan]:
    """An official campaign with complete disclosures, some replaced."""
    campaign = campaign_of("elected", disclosure=disclosure_dict(folder, **keys))
    return campaign, make_plan(campaign, 13368)


def keys(found: list[Any]) -> set[str]:
    return {lack.key for lack in found}


def test_nothing_is_missing_where_all_is_told(tmp_path: Path) -> None:
    assert missing(*disclosed(tmp_path), TOLD) == []
    assert missing_parallelism(*disclosed(tmp_path), TOLD) == []


@pytest.mark.parametrize(
    "key",
    [
        "organization",
        "scenario",
        "availability",
        "model_precision",
        "link_to_model",
        "dataset_link",
        "src",
        "docs",
    ],
)
def test_each_statement_is_asked_for(key: str, tmp_path: Path) -> None:
    found = missing(*disclosed(tmp_path, **{key: None}), TOLD)
    assert f"disclosure.{key}" in keys(found)


@pytest.mark.parametrize("key", ["system_name", "system_size", "node_types", "availability_url"])
def test_each_key_of_the_system_is_asked_for(key: str, tmp_path: Path) -> None:
    told = replace(TOLD, system={k: v for k, v in system_dict().items() if k != key})
    assert keys(missing(*disclosed(tmp_path), told)) == {f"disclosure.system.{key}"}


def test_what_backs_the_availability_follows_from_it(tmp_path: Path) -> None:
    found = missing(*disclosed(tmp_path, availability="Preview"), TOLD)
    assert keys(found) == {"disclosure.system.target_availability_date"}
    assert missing(*disclosed(tmp_path, availability="RDI"), TOLD) == []


def test_power_is_asked_for_where_it_normalises(tmp_path: Path) -> None:
    told = replace(TOLD, power=None)
    assert keys(missing(*disclosed(tmp_path), told)) == {"disclosure.power"}
    assert missing(*disclosed(tmp_path, division="RDI"), told) == []


def test_several_implementations_need_a_name(tmp_path: Path) -> None:
    two = replace(TOLD, implementations=("sglang", "vllm"))
    assert keys(missing(*disclosed(tmp_path), two)) == {"disclosure.implementation"}
    named = disclosed(tmp_path, implementation="sglang")
    assert missing(*named, two) == []
    assert keys(missing(*named, TOLD)) == {"disclosure.implementation"}
    campaign, plan = named
    curve = curve_of(campaign, plan, [p.label for p in plan.points])
    document = point_yaml(campaign, curve, curve.points[0], two, None)
    assert document["shared_src"] == "src/sglang"


def test_a_contradiction_and_a_point_that_is_not_there(tmp_path: Path) -> None:
    told = replace(TOLD, system=system_dict(max_supported_concurrency=128))
    found = missing(*disclosed(tmp_path, points={65: {"system": {"batch": 1}}}), told)
    assert keys(found) == {
        "disclosure.system.max_supported_concurrency",
        "disclosure.points.65",
    }


def test_silent_parallelism_is_advised_against(tmp_path: Path) -> None:
    """By point, as a warning: only the checker's warnings follow from it."""
    campaign, plan = disclosed(tmp_path, points={64: {"system": {"tensor_parallel": 8}}})
    bare = {k: v for k, v in system_dict().items() if not k.endswith("_parallel")}
    (lack,) = missing_parallelism(campaign, plan, replace(TOLD, system=bare))
    assert lack.severity == "warning"
    assert "c0064" not in lack.wanted
    assert "c0032" in lack.wanted


def test_a_custom_benchmark_has_no_submission() -> None:
    campaign = make_campaign(curve={"c_max": 64})
    assert keys(missing(campaign, make_plan(campaign, 10), TOLD)) == {"benchmark"}


def test_a_point_of_its_own(tmp_path: Path) -> None:
    """What is told of one point alone is told there and nowhere else."""
    alone = {
        "system": {"tensor_parallel": 8, "data_parallel": 1},
        "nodes_used": [{"system_node_ensemble_id": 0, "nodes": 1}],
    }
    campaign, plan = disclosed(tmp_path, points={64: alone})
    curve = curve_of(campaign, plan, [p.label for p in plan.points])
    point, other = plan.point("c0064"), plan.point("c0032")
    assert system_desc(campaign, point, TOLD)["tensor_parallel"] == 8
    assert system_desc(campaign, other, TOLD)["tensor_parallel"] == 1
    assert point_yaml(campaign, curve, point, TOLD, None)["nodes_used"] == alone["nodes_used"]
    assert "nodes_used" not in point_yaml(campaign, curve, other, TOLD, None)


def test_the_campaign_decides_what_follows_from_it(tmp_path: Path) -> None:
    """Division, availability, C_max and organization; empty keys are left out."""
    campaign, plan = disclosed(tmp_path)
    told = replace(TOLD, system=system_dict(division="RDI", cooling=None))
    system = system_desc(campaign, plan.points[0], told)
    assert (system["division"], system["max_supported_concurrency"]) == ("Standardized", 256)
    assert (system["submitter_org_names"], "cooling" in system) == ("Acme", False)
    assert "c_min_override" not in system
    power = system_power(told)
    assert power is not None
    assert power["system_desc_id"] == "H200 box"
    assert power.items() >= power_dict().items()


def test_regions_are_those_of_the_points_that_are_there() -> None:
    """Without the lowest point every boundary is another, and so are the regions told."""
    campaign = campaign_of("elected")
    plan = make_plan(campaign, 13368)
    rest = curve_of(campaign, plan, ["c0016", "c0032", "c0064", "c0256"])
    whole = curve_of(campaign, plan, [p.label for p in plan.points])
    assert rest.regions.low_concurrency != whole.regions.low_concurrency
    for curve in (rest, whole):
        for point in curve.points:
            document = point_yaml(campaign, curve, point, TOLD, None)
            assert document["region"] == classify_concurrency(point.concurrency, curve.regions)


def test_seeds_keep_every_digit() -> None:
    """Set A exceeds 2**63."""
    campaign = campaign_of("elected")
    plan = make_plan(campaign, 13368)
    curve = curve_of(campaign, plan, ["c0064"])
    runtime = point_yaml(campaign, curve, curve.points[0], TOLD, None)["runtime_settings"]
    assert runtime["runtime"]["scheduler_rng_seed"] == plan.seed_set.scheduler_rng_seed
    assert max(runtime["runtime"].values()) > 2**63


def test_a_dedicated_run_is_placed_by_its_maker() -> None:
    campaign = campaign_of("dedicated")
    plan = make_plan(campaign, 13368)
    curve = curve_of(campaign, plan, [p.label for p in plan.points])
    offline = next(p for p in curve.points if p.label == "offline")
    document = point_yaml(campaign, curve, offline, Told(None, None, ()), None)
    assert (document["offline"], document["region"]) == ("dedicated", "submitters_choice")
    assert document["runtime_settings"]["load_pattern"] == "max_throughput"
    assert document["dataset"] == "cnn_dailymail"
    assert "shared_src" not in document


def test_the_client_s_own_window_comes_before_one_found_afterwards(fixtures_dir: Path) -> None:
    """A block of the summary, else the detector's, else none."""
    base = base_of("elected")
    content = (fixtures_dir / "c02_both_pass" / "out" / SUMMARY).read_bytes()
    summary = parse_summary(content)
    assert isinstance(summary, Summary)
    own, later = {"status": "windowable"}, {"status": "insufficient_passes"}

    def told(block: dict[str, Any] | None, window: dict[str, Any] | None) -> Any:
        facts = FolderFacts(True, 0.0, 0, "itself", summary=replace(summary, steady_state=block))
        point = base.curve.points[0]
        disclosed = point_yaml(base.campaign, base.curve, point, TOLD, facts, window)
        return disclosed.get("steady_state")

    assert told(own, later) == own
    assert told(None, later) == later
    assert told(None, None) is None
