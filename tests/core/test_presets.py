"""Presets: what they fill in, what they leave alone, and that the official package agrees."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from submission_checker.models import MIN_QUERY_COUNT

from core import accuracy
from core.campaign import AGENTIC_BENCHMARKS, BENCHMARKS, Campaign
from core.campaign_datasets import CLIENT_DATASETS
from core.campaign_yaml import load_campaign
from core.client_config import client_config, merged
from core.errors import InputError
from core.plan import make_plan
from core.preset_fill import apply_preset, too_few_samples
from core.presets import PRESETS, Preset, PresetDataset

FOLDER = Path("/files")
#: What the client's template must have (a test of `client_config` has the rest).
TEMPLATE = {
    "model_params": {},
    "endpoint_config": {},
    "settings": {"runtime": {}, "load_pattern": {}, "client": {"stream_all_chunks": False}},
}
SINGLE_TURN = tuple(name for name in BENCHMARKS if name not in AGENTIC_BENCHMARKS)
GPT_OSS_FILES = ["aime25.parquet", "GPQA_diamond.parquet", "livecodebench_v6.parquet"]


def stated(benchmark: str, **sections: Any) -> dict[str, Any]:
    """A campaign that states paths and what no preset can know; sections are merged in."""
    base: dict[str, Any] = {
        "campaign": "unit",
        "benchmark": benchmark,
        "model": {"name": "served"},
        "endpoint": {"urls": ["http://127.0.0.1:8000"]},
        "instance": {"name": "box"},
        "datasets": {"performance": {"path": "data/performance.parquet"}},
        "curve": {"c_max": 256},
        "seeds": {"target_cohort": "2026-12-C0"},
        "client": {"command": ["inference-endpoint"]},
    }
    if benchmark == "deepseek-v4_1-flash":
        base["client"]["overrides"] = {"model_params": {"temperature": 1.0}}
    return merged(base, sections)


def read(data: dict[str, Any]) -> Campaign:
    """The campaign of a file with this data."""
    text = yaml.safe_dump(data, sort_keys=False)
    return load_campaign(text, source="unit.yaml", folder=FOLDER, env={})


def load(benchmark: str, **sections: Any) -> Campaign:
    """The campaign that states this."""
    return read(stated(benchmark, **sections))


def refused(benchmark: str, **sections: Any) -> list[str]:
    """The lines of its refusal."""
    with pytest.raises(InputError) as caught:
        load(benchmark, **sections)
    return str(caught.value).split("\n")


def entries(*accuracy_entries: dict[str, Any]) -> dict[str, Any]:
    return {"accuracy": list(accuracy_entries)}


def all_datasets(preset: Preset) -> tuple[PresetDataset, ...]:
    return (preset.performance, *preset.accuracy)


# --- The data ------------------------------------------------------------------------------------


def test_every_official_benchmark_has_a_preset() -> None:
    assert tuple(PRESETS) == BENCHMARKS


@pytest.mark.parametrize("benchmark", SINGLE_TURN)
def test_the_accuracy_sets_make_exactly_the_official_sample_count(benchmark: str) -> None:
    """A preset alone passes the count, and scores nothing in vain."""
    official = accuracy.official_bounds(benchmark)
    assert official is not None
    scored = sum(
        dataset.rows * dataset.scorer.get("num_repeats", 1)
        for dataset in PRESETS[benchmark].accuracy
    )
    assert scored == official[1]


def test_sizes_are_those_of_the_issue() -> None:
    """The numbers that submitters know, whatever they are read from."""
    sizes = {name: preset.performance.rows for name, preset in PRESETS.items()}
    assert sizes == {
        "llama3_1-8b": 13368,
        "gpt-oss-120b": 6396,
        "deepseek-r1": 4388,
        "kimi-k3": 613,
        "qwen3_6-35b-a3b": 613,
        "deepseek-v4_1-flash": 613,
    }


def test_repeats_count_where_the_accuracy_gate_counts_them() -> None:
    counting = {name for name, preset in PRESETS.items() if preset.counts_repeats}
    assert counting == accuracy._COUNTED_WITH_REPEATS


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_files_are_not_named_like_the_clients_own_datasets(benchmark: str) -> None:
    """The client would ignore their paths; names without a path are its own."""
    for dataset in all_datasets(PRESETS[benchmark]):
        assert dataset.file_name not in CLIENT_DATASETS
        own = (dataset.client_name or "aime25").partition("::")[0]
        assert own in CLIENT_DATASETS
    assert "mlperf_gpt_oss_performance" in MIN_QUERY_COUNT


# --- Filling -------------------------------------------------------------------------------------


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_paths_are_enough(benchmark: str) -> None:
    """The campaign loads, plans, and every scored point is configured in full."""
    campaign = load(benchmark)
    plan = make_plan(campaign, campaign.datasets.performance.rows)
    assert sum(point.accuracy for point in plan.points) == 4
    assert (campaign.offline == "none") == (benchmark in AGENTIC_BENCHMARKS)
    scored = next(point for point in plan.points if point.accuracy)
    made = client_config(
        TEMPLATE, campaign, scored, samples=613, seed_set=plan.seed_set, run_folder=FOLDER
    )
    timed, *rest = made["datasets"]
    assert timed["path"] == "/files/data/performance.parquet"
    assert rest
    assert all(entry["accuracy_config"]["eval_method"] for entry in rest)
    assert made["model_params"]["temperature"] in (0.0, 1.0)


def test_one_path_serves_both_phases_where_the_benchmark_has_one_file() -> None:
    """llama3_1-8b as the issue wants it: sizes, columns, scorer and parameters are filled in."""
    campaign = load("llama3_1-8b")
    performance, (scored,) = campaign.datasets.performance, campaign.datasets.accuracy
    assert scored.path == performance.path
    assert (performance.rows, scored.rows) == (13368, 13368)
    assert performance.settings == scored.settings == {"parser": {"prompt": "input"}}
    assert scored.scorer == {
        "eval_method": "rouge",
        "ground_truth": "highlights",
        "extractor": "identity_extractor",
        "num_repeats": 1,
    }
    params = {"temperature": 0.0, "top_p": 1.0, "max_new_tokens": 128}
    assert campaign.client.overrides == {"model_params": params}
    assert load("llama3_1-8b", datasets=entries({"path": "data/performance.parquet"})) == campaign


def test_sets_are_recognised_by_their_file_names_in_any_order() -> None:
    files = [{"path": f"data/{name}"} for name in reversed(GPT_OSS_FILES)]
    scored = load("gpt-oss-120b", datasets=entries(*files)).datasets.accuracy
    assert [(d.name, d.rows, d.repeats) for d in scored] == [
        ("livecodebench_accuracy", 1055, 3),
        ("gpqa_accuracy", 198, 5),
        ("aime25_accuracy", 30, 8),
    ]
    assert all(d.settings == scored[0].settings != {} for d in scored)


def test_a_name_says_more_than_a_file_name() -> None:
    named = {"name": "my-gpqa", "path": "data/aime25.parquet"}
    files = [{"path": "a/livecodebench.parquet"}, {"path": "a/aime25.parquet"}]
    scored = load("gpt-oss-120b", datasets=entries(named, *files)).datasets.accuracy
    assert (scored[0].name, scored[0].scorer["extractor"]) == ("my-gpqa", "abcd_extractor")


def test_accuracy_left_out_is_what_the_client_fetches_itself() -> None:
    scored = load("gpt-oss-120b").datasets.accuracy
    assert [d.name for d in scored] == ["aime25::gptoss", "gpqa::gptoss", "livecodebench::gptoss"]
    assert all(d.path is None for d in scored)
    assert load("gpt-oss-120b", datasets={"accuracy": []}).datasets.accuracy == ()


def test_the_clients_own_dataset_can_serve_both_phases() -> None:
    """As in the reference client's own example."""
    name = {"name": "cnn_dailymail::llama3_8b", "path": None}
    campaign = load("llama3_1-8b", datasets={"performance": name})
    assert campaign.datasets.performance.settings == {}, "its columns need no other names"
    assert campaign.datasets.accuracy[0].name == "cnn_dailymail::llama3_8b"
    assert campaign.datasets.performance.rows == 13368


def test_agentic_points_are_scored_inline_and_swe_bench_by_its_service() -> None:
    campaign = load("qwen3_6-35b-a3b")
    timed = campaign.datasets.performance.settings
    assert timed["accuracy_config"] == {"eval_method": "agentic_inference_inline"}
    assert timed["agentic_inference"]["enable_salt"] is True
    (swe,) = campaign.datasets.accuracy
    assert (swe.name, swe.path, swe.rows) == ("swe_bench", None, 200)
    assert swe.scorer["extras"]["swebench_service_auth_token"] == "${SWEBENCH_SERVICE_AUTH_TOKEN}"
    assert swe.scorer["extras"]["swebench_template"] == "qwen_tools"
    (kimi,) = load("kimi-k3").datasets.accuracy
    assert "swebench_template" not in kimi.scorer["extras"], "the rules forbid it there"


# --- The user's own wins -------------------------------------------------------------------------


def test_what_is_stated_stays() -> None:
    own = {
        "endpoint": {"api_type": "sglang"},
        "run": {"finishing_timeout_s": 60.0},
        "client": {"overrides": {"model_params": {"top_k": -1, "temperature": None}}},
    }
    campaign = load("gpt-oss-120b", **own)
    assert campaign.endpoint.api_type == "sglang"
    assert campaign.run.finishing_timeout_s == 60.0
    params = campaign.client.overrides["model_params"]
    assert (params["top_k"], params["temperature"], params["top_p"]) == (-1, None, 1.0)


def test_a_scorer_is_completed_and_another_one_left_alone() -> None:
    path = {"path": "data/cnn.jsonl"}
    extras = {"scorer": {"extractor": "mine"}}
    (completed,) = load("llama3_1-8b", datasets=entries(path | extras)).datasets.accuracy
    assert (completed.scorer["eval_method"], completed.scorer["extractor"]) == ("rouge", "mine")
    other = {"scorer": {"eval_method": "pass_at_1"}}
    (alone,) = load("llama3_1-8b", datasets=entries(path | other)).datasets.accuracy
    assert alone.scorer == {"eval_method": "pass_at_1"}
    assert (alone.name, alone.rows, alone.settings) == ("accuracy", None, {})


def test_a_parser_counts_as_a_whole() -> None:
    """Columns that the preset names besides would be missing in the user's file."""
    own = {"settings": {"parser": {"input_tokens": "ids"}}}
    campaign = load("llama3_1-8b", datasets={"performance": own})
    assert campaign.datasets.performance.settings == own["settings"]


def test_the_clients_name_of_another_dataset_gets_nothing() -> None:
    performance = {"path": None, "name": "random", "rows": 10}
    campaign = load("llama3_1-8b", datasets={"performance": performance})
    assert (campaign.datasets.performance.rows, campaign.datasets.performance.settings) == (10, {})


def test_rehearsals_have_files_of_their_own_size() -> None:
    campaign = load("llama3_1-8b", rehearsal={"time_scale": 0.01})
    assert campaign.datasets.performance.rows is None
    assert campaign.datasets.accuracy[0].rows is None
    assert campaign.datasets.accuracy[0].scorer["eval_method"] == "rouge"


def test_data_handed_in_stays_as_it_is() -> None:
    data = stated("gpt-oss-120b")
    before = yaml.safe_dump(data)
    assert apply_preset(data) != data
    assert yaml.safe_dump(data) == before


def test_a_custom_benchmark_has_no_preset() -> None:
    data = stated("custom")
    assert apply_preset(data) == data


# --- Refusals ------------------------------------------------------------------------------------


def test_too_few_accuracy_rows_are_refused_at_their_line() -> None:
    few = entries({"path": "a.jsonl", "rows": 1000})
    assert refused("llama3_1-8b", datasets=few) == [
        "unit.yaml:13: datasets.accuracy: 1,000 different samples → the official checker wants at"
        " least 13,368 for llama3_1-8b; score the whole of its accuracy data"
    ]


def test_too_few_rows_are_refused_where_the_file_says_nothing_of_them() -> None:
    """The place is the preset's own; the line is that of the nearest section in the file."""
    names = entries({"name": "aime25::gptoss"}, {"name": "gpqa::gptoss"})
    (line,) = refused("gpt-oss-120b", datasets=names)
    assert line.startswith("unit.yaml:13: datasets.accuracy: 1,230 samples with their repeats →")


@pytest.mark.parametrize("repeats", [1, 2])
def test_repeats_do_not_stand_in_for_samples(repeats: int) -> None:
    """The last article counts, whatever is repeated; rows not known yet are no complaint."""
    scorer = {"scorer": {"num_repeats": repeats}}
    campaign = load("llama3_1-8b", datasets=entries({"path": "a.jsonl"} | scorer))
    (dataset,) = campaign.datasets.accuracy
    assert (dataset.repeats, dataset.rows) == (repeats, 13368)
    assert too_few_samples(campaign, {dataset.name: 13367}) is not None
    assert too_few_samples(campaign, {dataset.name: 13368}) is None
    assert too_few_samples(campaign, {dataset.name: None}) is None


def test_a_rehearsal_and_a_campaign_without_accuracy_need_no_samples() -> None:
    few = entries({"path": "a.jsonl", "rows": 8})
    assert load("llama3_1-8b", datasets=few, rehearsal={"time_scale": 0.01})
    assert load("llama3_1-8b", datasets={"accuracy": []})


def test_a_path_that_the_client_would_ignore_is_refused() -> None:
    own = {"performance": {"name": "cnn_dailymail"}}
    assert refused("llama3_1-8b", datasets=own) == [
        "unit.yaml:13: datasets.performance.name: cnn_dailymail → is a dataset of the client's own,"
        " for which it ignores the path; take another name, or remove path"
    ]


def test_a_file_that_could_be_any_of_several_sets_needs_a_scorer() -> None:
    (line,) = refused("gpt-oss-120b", datasets=entries({"path": "data/answers.parquet"}))
    assert line.startswith("unit.yaml:14: datasets.accuracy[0]: needs a scorer")


def test_uncertain_parameters_must_be_stated() -> None:
    """No preset is certain of them, and the client's defaults would measure something else."""
    data = stated("deepseek-v4_1-flash")
    del data["client"]["overrides"]
    with pytest.raises(InputError, match=r"client.overrides.model_params: missing → .*_1-flash"):
        read(data)
    assert read(data | {"rehearsal": {"time_scale": 0.01}})


# --- Whatever stands in the file -----------------------------------------------------------------

VALUES = st.sampled_from(
    [
        *("5", "x", "null", "[]", "[5]", "{}", "{a: 1}", "[{}]", "[{path: p}]", "'1'", "[[]]"),
        "[{path: 5, name: 7, scorer: x}]",
        "{path: 5, settings: [], rows: -1}",
        "{overrides: x}",
        "{scorer: {eval_method: [1]}}",
        "{settings: {parser: 5}, path: p, name: aime25}",
    ]
)
KEYS = ["endpoint", "run", "client", "datasets", "  performance", "  accuracy", "benchmark"]


@given(st.sampled_from(BENCHMARKS), st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=3))
@settings(deadline=None, max_examples=150)
def test_any_value_anywhere_is_accepted_or_refused(benchmark: str, values: dict[str, str]) -> None:
    """Neither filling nor telling trips over what the model is about to refuse."""
    data = stated(benchmark)
    for key, value in values.items():
        holder = data["datasets"] if key.startswith(" ") else data
        if isinstance(holder, dict):
            holder[key.strip()] = yaml.safe_load(value)
    told = "unit.yaml:"
    try:
        read(data)
    except InputError as error:
        told = str(error)
    assert told.startswith("unit.yaml:")
