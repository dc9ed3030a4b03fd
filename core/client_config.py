"""Campaign + point + the client's own template → the client's YAML for one run.

The client's schema changes between versions and refuses unknown keys, so the configuration starts
from what the installed client's `init` prints and overlays only what the point needs.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from core.campaign import Campaign
from core.campaign_datasets import Dataset
from core.errors import SetupError
from core.plan import AGENTIC, MAX_THROUGHPUT, Point
from core.seeds import SeedSet

#: Client template (`init NAME`) that a load pattern starts from.
TEMPLATES = {"concurrency": "concurrency", AGENTIC: "concurrency", MAX_THROUGHPUT: "offline"}
#: Keys that differ between the points of one curve; everything else must not.
PER_POINT_KEYS = (
    "name",
    "type",
    "report_dir",
    "datasets",
    "model_params.streaming",
    "settings.load_pattern",
    "settings.runtime.n_samples_to_issue",
)
#: Further keys that follow from how long we wait, which may change between points.
_WAITING_KEYS = ("settings.timeouts.endpoint_response_idle_timeout_s",)
#: Duration keys of both known dialects. None may end a point: the sample count does (§6.2).
_DURATION_KEYS = ("min_issue_duration_ms", "max_issue_duration_ms")


def client_config(
    template: Mapping[str, Any],
    campaign: Campaign,
    point: Point,
    *,
    samples: int,
    seed_set: SeedSet,
    run_folder: Path,
) -> dict[str, Any]:
    """The client's configuration for one run of a point.

    Args:
        template: What the installed client's `init` printed for the point's load pattern.
        campaign: The campaign; its `client.overrides` are merged over the template.
        point: The planned point.
        samples: Samples to issue, a whole number of passes.
        seed_set: The curve's seed set; its values exceed 2**63 and stay exact integers.
        run_folder: Absolute path for `report_dir`.

    Raises:
        SetupError: the template lacks what a point needs (the client is too old or another tool).
    """
    check_template(template)
    config = merged(template, campaign.client.overrides)
    return merged(
        config,
        {
            "name": f"{campaign.campaign}-{point.label}",
            "model_params": _model_params(campaign, point),
            "datasets": _datasets(campaign, point, samples),
            "settings": _settings(config["settings"], campaign, point, samples, seed_set),
            "endpoint_config": _endpoint_config(campaign),
            "report_dir": str(run_folder),
        },
    )


def config_of_curve(config: Mapping[str, Any]) -> dict[str, Any]:
    """What all points of a curve have in common of a configuration."""
    common = copy.deepcopy(dict(config))
    for path in (*PER_POINT_KEYS, *_WAITING_KEYS):
        *parents, last = path.split(".")
        holder: Any = common
        for parent in parents:
            holder = holder.get(parent, {})
        holder.pop(last, None)
    return common


def check_template(template: Mapping[str, Any]) -> None:
    """Refuse a template without the keys that every point sets.

    Raises:
        SetupError: naming the missing keys.
    """
    settings = template.get("settings")
    settings = settings if isinstance(settings, Mapping) else {}
    missing = [
        f"settings.{key}"
        for key in ("runtime", "load_pattern", "client")
        if not isinstance(settings.get(key), Mapping)
    ]
    missing += [key for key in ("model_params", "endpoint_config") if key not in template]
    client = settings.get("client")
    if isinstance(client, Mapping) and "stream_all_chunks" not in client:
        missing.append("settings.client.stream_all_chunks")
    if missing:
        raise SetupError(
            f"client.command: the client's template has no {', '.join(missing)}; it is too old or"
            " not the reference client (mlcommons/endpoints, August 2026 or later)"
        )


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with `over` merged in: mappings key by key, anything else replaced; both unchanged."""
    result = copy.deepcopy(dict(base))
    for key, value in over.items():
        below = result.get(key)
        if isinstance(value, Mapping) and isinstance(below, Mapping):
            result[key] = merged(below, value)
        else:
            result[key] = copy.deepcopy(value)
    return result


def _model_params(campaign: Campaign, point: Point) -> dict[str, Any]:
    params: dict[str, Any] = {"name": campaign.model.name}
    if campaign.model.tokenizer is not None:
        params["tokenizer_name"] = campaign.model.tokenizer
    if point.load_pattern != MAX_THROUGHPUT:
        params["streaming"] = "on"
    return params


def _datasets(campaign: Campaign, point: Point, samples: int) -> list[dict[str, Any]]:
    performance = _entry(campaign.datasets.performance, "performance")
    if point.load_pattern == AGENTIC:
        # A conversation issues as many requests as it has turns: trajectories are counted here.
        counted = {"agentic_inference": {"num_trajectories_to_issue": samples}}
        performance = merged(performance, counted)
    return [
        performance,
        *(
            _entry(dataset, "accuracy") | {"accuracy_config": dict(dataset.scorer)}
            for dataset in (campaign.datasets.accuracy if point.accuracy else ())
        ),
    ]


def _entry(dataset: Dataset, kind: str) -> dict[str, Any]:
    """A dataset in the client's YAML; without a path the client resolves its name."""
    entry = {**dataset.settings, "name": dataset.name, "type": kind}
    return entry if dataset.path is None else entry | {"path": str(dataset.path)}


def _settings(
    now: Mapping[str, Any], campaign: Campaign, point: Point, samples: int, seed_set: SeedSet
) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "runtime": _runtime(
            now["runtime"], None if point.load_pattern == AGENTIC else samples, seed_set
        ),
        "load_pattern": _load_pattern(point),
        "client": {"stream_all_chunks": True},
    }
    idle = "endpoint_response_idle_timeout_s"
    if "timeouts" in now and _is_unset(campaign, "timeouts", idle):
        settings["timeouts"] = {idle: campaign.run.stall_timeout_s}
    drain = "performance_timeout_s"
    if drain in now.get("drain", {}) and _is_unset(campaign, "drain", drain):
        # A drain that times out drops in-flight requests; the guard's watchdog ends a real stall.
        settings["drain"] = {drain: None}
    return settings


def _is_unset(campaign: Campaign, section: str, key: str) -> bool:
    """Whether the user's overrides leave a setting to us."""
    return key not in campaign.client.overrides.get("settings", {}).get(section, {})


def _runtime(now: Mapping[str, Any], samples: int | None, seed_set: SeedSet) -> dict[str, Any]:
    runtime: dict[str, Any] = {
        "n_samples_to_issue": samples,
        "scheduler_random_seed": seed_set.scheduler_rng_seed,
        "dataloader_random_seed": seed_set.sample_index_rng_seed,
    }
    if "min_duration_ms" in now:
        runtime |= {"min_duration_ms": 0, "max_duration_ms": 0}
    runtime |= {key: None for key in _DURATION_KEYS if key in now}
    return runtime


def _load_pattern(point: Point) -> dict[str, Any]:
    pattern: dict[str, Any] = {"type": point.load_pattern}
    # Keys of the template's own pattern must not linger, e.g. a concurrency on max_throughput.
    pattern["target_concurrency"] = (
        None if point.load_pattern == MAX_THROUGHPUT else point.concurrency
    )
    return pattern


def _endpoint_config(campaign: Campaign) -> dict[str, Any]:
    endpoint: dict[str, Any] = {
        "endpoints": list(campaign.endpoint.urls),
        "api_type": campaign.endpoint.api_type,
    }
    if campaign.endpoint.api_key_env is not None:
        endpoint["api_key"] = "${" + campaign.endpoint.api_key_env + "}"
    return endpoint
