"""The client's configuration: its own template, plus exactly what the point needs."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from core.client_config import (
    PER_POINT_KEYS,
    check_template,
    client_config,
    config_of_curve,
    merged,
)
from core.errors import SetupError
from core.plan import make_plan
from tests.campaigns import make_campaign

AUGUST: dict[str, Any] = {
    "name": "concurrency_benchmark",
    "version": "1.0",
    "type": "online",
    "model_params": {"name": "<MODEL_NAME>", "max_new_tokens": 1024, "streaming": "on"},
    "datasets": [{"name": "<DATASET_PATH>", "type": "performance", "path": "<DATASET_PATH>"}],
    "settings": {
        "runtime": {
            "min_duration_ms": 600000,
            "max_duration_ms": 0,
            "scheduler_random_seed": 42,
            "dataloader_random_seed": 42,
        },
        "load_pattern": {"type": "concurrency", "target_concurrency": 32},
        "client": {"num_workers": 10, "stream_all_chunks": False},
        "drain": {"performance_timeout_s": 240.0},
    },
    "endpoint_config": {"endpoints": ["http://localhost:8000"], "api_type": "openai"},
    "verbose": False,
}
SEPTEMBER = merged(AUGUST, {})
SEPTEMBER["settings"] = {
    **AUGUST["settings"],
    "runtime": {
        "min_issue_duration_ms": 600000,
        "max_issue_duration_ms": 0,
        "scheduler_random_seed": 42,
        "dataloader_random_seed": 42,
    },
    "timeouts": {"run_timeout_s": 7200.0, "endpoint_response_idle_timeout_s": 600.0},
}
del SEPTEMBER["settings"]["drain"]


def config(
    label: str = "c0064", template: dict[str, Any] = AUGUST, **sections: Any
) -> dict[str, Any]:
    campaign = make_campaign(**sections)
    plan = make_plan(campaign, 100)
    return client_config(
        template,
        campaign,
        plan.point(label),
        samples=300,
        seed_set=plan.seed_set,
        run_folder=Path("/runs/a/run"),
    )


def test_seeds_stay_exact_through_yaml() -> None:
    """Set A's scheduler seed exceeds 2**63."""
    runtime = yaml.safe_load(yaml.safe_dump(config()))["settings"]["runtime"]
    assert runtime["scheduler_random_seed"] == 10487924139932647040
    assert runtime["dataloader_random_seed"] == 586478644936801402


def test_the_sample_count_alone_ends_a_point() -> None:
    """No duration key of either dialect may cut a run."""
    august = config()["settings"]["runtime"]
    assert (august["n_samples_to_issue"], august["min_duration_ms"]) == (300, 0)
    assert august["max_duration_ms"] == 0
    september = config(template=SEPTEMBER)["settings"]["runtime"]
    assert september["n_samples_to_issue"] == 300
    assert september["min_issue_duration_ms"] is None
    assert september["max_issue_duration_ms"] is None
    assert "min_duration_ms" not in september


def test_streaming_and_chunks_are_on_at_fixed_concurrency() -> None:
    made = config()
    assert made["model_params"]["streaming"] == "on"
    assert made["settings"]["client"] == {"num_workers": 10, "stream_all_chunks": True}
    assert made["settings"]["load_pattern"] == {"type": "concurrency", "target_concurrency": 64}


def test_accuracy_datasets_go_only_to_points_that_carry_accuracy() -> None:
    """The client scores every accuracy dataset that it finds in its configuration."""
    with_accuracy = config()["datasets"]
    assert [d["type"] for d in with_accuracy] == ["performance", "accuracy"]
    assert with_accuracy[1]["accuracy_config"]["eval_method"] == "pass_at_1"
    assert [d["type"] for d in config("c0001")["datasets"]] == ["performance"]


def test_a_dataset_that_the_client_resolves_itself_has_no_path() -> None:
    accuracy = [
        {"name": "swe_bench", "rows": 200, "scorer": {"eval_method": "x"}, "targets": {"score": 1}}
    ]
    entry = config(datasets={"accuracy": accuracy})["datasets"][1]
    assert "path" not in entry


def test_an_agentic_point_counts_trajectories() -> None:
    """The client refuses `n_samples_to_issue` there: a trajectory has as many requests as turns."""
    settings = {"agentic_inference": {"enable_salt": True}}
    made = config(
        benchmark="kimi-k3", datasets={"performance": {"settings": settings}, "accuracy": []}
    )
    assert made["settings"]["runtime"]["n_samples_to_issue"] is None
    assert made["settings"]["load_pattern"]["type"] == "agentic_inference"
    wanted = {"enable_salt": True, "num_trajectories_to_issue": 300}
    assert made["datasets"][0]["agentic_inference"] == wanted


def test_a_key_is_written_as_its_variable() -> None:
    made = config(endpoint={"api_key_env": "ENDPOINT_API_KEY"})
    assert made["endpoint_config"]["api_key"] == "${ENDPOINT_API_KEY}"
    assert "api_key" not in config()["endpoint_config"]


def test_the_idle_timeout_is_set_where_the_dialect_has_one() -> None:
    made = config(template=SEPTEMBER, run={"stall_timeout_s": 120.0})
    assert made["settings"]["timeouts"]["endpoint_response_idle_timeout_s"] == 120.0
    assert made["settings"]["timeouts"]["run_timeout_s"] == 7200.0
    assert "timeouts" not in config()["settings"]


def test_a_drain_never_drops_requests_unless_the_user_says_so() -> None:
    assert config()["settings"]["drain"]["performance_timeout_s"] is None
    theirs = {"overrides": {"settings": {"drain": {"performance_timeout_s": 5.0}}}}
    assert config(client=theirs)["settings"]["drain"]["performance_timeout_s"] == 5.0


def test_overrides_are_merged_and_the_rest_of_the_template_stays() -> None:
    made = config(client={"overrides": {"model_params": {"max_new_tokens": 16}, "verbose": True}})
    assert made["model_params"]["max_new_tokens"] == 16
    assert (made["verbose"], made["version"]) == (True, "1.0")


def test_the_offline_run_has_no_concurrency_and_its_own_streaming() -> None:
    template = merged(AUGUST, {"type": "offline", "model_params": {"streaming": "off"}})
    made = config("offline", template=template, curve={"offline": "dedicated"})
    assert made["settings"]["load_pattern"] == {
        "type": "max_throughput",
        "target_concurrency": None,
    }
    assert made["model_params"]["streaming"] == "off"


def test_points_of_a_curve_differ_only_in_the_per_point_keys() -> None:
    """The consistency of a curve rests on this."""
    differing = set(_differences(config("c0064"), config("c0001")))
    assert differing <= set(PER_POINT_KEYS) | {"settings.load_pattern.target_concurrency"}


def test_what_a_curve_has_in_common_is_the_same_at_all_points() -> None:
    """No per-point key is left, nor a waiting time; everything else is; nothing is changed."""
    point = config("c0064")
    common = config_of_curve(point)
    assert common == config_of_curve(config("c0001"))
    assert "report_dir" not in common
    assert "load_pattern" not in common["settings"]
    assert point == config("c0064")
    waits = {"timeouts": {"endpoint_response_idle_timeout_s": 3, "other": 1}}
    settings = config_of_curve({"settings": waits})["settings"]
    assert settings == {"timeouts": {"other": 1}}


def _differences(left: dict[str, Any], right: dict[str, Any], prefix: str = "") -> list[str]:
    found = []
    for key in left | right:
        ours, theirs = left.get(key), right.get(key)
        if isinstance(ours, dict) and isinstance(theirs, dict):
            found += _differences(ours, theirs, f"{prefix}{key}.")
        elif ours != theirs:
            found.append(prefix + key)
    return found


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ({}, "settings.runtime, settings.load_pattern, settings.client, model_params"),
        (merged(AUGUST, {"settings": None}), "settings.runtime"),
        (merged(AUGUST, {"settings": {"client": []}}), "settings.client"),
        (AUGUST | {"settings": AUGUST["settings"] | {"client": {}}}, "stream_all_chunks"),
    ],
)
def test_a_template_without_what_a_point_needs_is_refused(
    template: dict[str, Any], said: str
) -> None:
    with pytest.raises(SetupError, match=said):
        check_template(template)


def test_merging_changes_neither_side() -> None:
    base: dict[str, Any] = {"a": {"b": [1]}}
    over: dict[str, Any] = {"a": {"c": {"d": 1}}}
    result = merged(base, over)
    result["a"]["b"].append(2)
    result["a"]["c"]["d"] = 2
    assert (base, over) == ({"a": {"b": [1]}}, {"a": {"c": {"d": 1}}})
