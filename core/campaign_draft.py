"""The campaign file that `pareto init` writes: what only the user knows, with its explanations.

What the benchmark's preset has is not written out; the file shows it as comments.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from core.campaign import CUSTOM
from core.preset_fill import apply_preset
from core.presets import preset_of

#: The last cohort that may adopt seed set A (checker 1.5.3, `seed_sets.yaml`; a test asks it).
TARGET_COHORT = "2026-12-C0"
#: Where a model server listens unless told otherwise.
DEFAULT_URL = "http://localhost:8000"
#: Datasets of a custom benchmark, which has no usual files.
_CUSTOM_PERFORMANCE, _CUSTOM_ACCURACY = "data/performance.jsonl", "data/accuracy.jsonl"
#: How an accuracy dataset of a custom benchmark is scored, as an example.
_CUSTOM_SCORING = {
    "scorer": {
        "eval_method": "pass_at_1",
        "ground_truth": "ground_truth",
        "extractor": "boxed_math_extractor",
    },
    "targets": {"score": 0.9},
}


@dataclass(frozen=True)
class Draft:
    """What a new campaign is about."""

    campaign: str
    benchmark: str
    url: str
    model: str
    c_max: int
    performance: str  # path, relative to the file
    accuracy: tuple[str, ...] = ()  # paths; empty: as the preset has it


def default_model(benchmark: str) -> str | None:
    """The model of an official benchmark on the hub."""
    preset = preset_of(benchmark)
    return preset.model if preset else None


def default_performance(benchmark: str) -> str:
    """Where the performance dataset may lie, by the name that the client's examples give it."""
    preset = preset_of(benchmark)
    return f"data/{preset.performance.file}" if preset else _CUSTOM_PERFORMANCE


def draft_text(draft: Draft) -> str:
    """The file."""
    return _FILE.format(
        campaign=draft.campaign,
        benchmark=draft.benchmark,
        model=_quoted(draft.model),
        url=_quoted(draft.url),
        datasets=_block(_datasets(draft)),
        preset=_preset_comment(draft),
        c_max=draft.c_max,
        cohort=TARGET_COHORT,
        overrides=_overrides(draft.benchmark),
        disclosure="" if draft.benchmark == CUSTOM else _DISCLOSURE,
    )


_FILE = """\
# A campaign for {benchmark}, written by `pareto init`. docs/campaign.md explains every key.
# Relative paths start at this file. ${{NAME}} takes a value from the environment.
campaign: {campaign}
benchmark: {benchmark}

model:
  # As the endpoint serves it: one of the ids that GET /v1/models lists.
  name: {model}
  # Output tokens are counted with it: a hub name or a folder. Default: the model's name.
  # tokenizer: ./tokenizer

endpoint:
  # Without /v1. Several are loaded in turn.
  urls: [{url}]
  # The NAME of the variable that holds the API key, never the key.
  # api_key_env: ENDPOINT_API_KEY

instance:
  # The one running copy of the system that is measured; one campaign at a time may load it.
  name: my-instance
  # For accelerator-hours.
  accelerators: 1

{datasets}
{preset}
curve:
  # The highest concurrency that you declare as supported. With the lowest level it sets every
  # region; pareto picks the levels.
  c_max: {c_max}

# Queries per second that you expect by level: they size the first runs until rates were measured.
# run:
#   expected_qps: {{1: 1.0, {c_max}: 100.0}}

seeds:
  # The published seed set, and the publication cohort that you aim for.
  set: A
  target_cohort: {cohort}

client:
  # How the official client is started; it is your own checkout, unmodified.
  command: [uv, run, --project, ~/endpoints, inference-endpoint]
{overrides}{disclosure}"""

#: What only a person can tell; a measurement needs none of it, a submission all.
_DISCLOSURE = """
disclosure:
  # For the submission, not for the measurements (docs/package.md): `pareto check --disclosures`
  # lists what is missing, before any accelerator time is spent. Nothing here is measured, so it may
  # also be filled in later.
  organization:
  # cop: client on premises; con: client over the network.
  scenario:
  # Standardized, Serviced or RDI; and Available, Preview or RDI.
  division: Standardized
  availability:
  # Of the weights, e.g. FP8.
  model_precision:
  link_to_model:
  dataset_link:
  # A folder with a folder for each implementation, README.md in it; and one of documents.
  src:
  docs:
  # system_desc.json: these keys, or a JSON or YAML file with them. Parallelism is per point where
  # it differs: points: {64: {system: {tensor_parallel: 8}}}.
  system:
    system_name:
    shortened_system_name:
    availability_url:
    system_size:
    system_node_ensemble_count: 1
    system_node_ensemble_total: 1
    tensor_parallel: 1
    pipeline_parallel: 1
    expert_parallel: 1
    data_parallel: 1
    node_types:
      - system_node_ensemble_id: 0
        number_of_nodes: 1
        host_processor_core_count:
        host_memory_configuration:
        host_network_card_count:
        driver:
        filesystem:
        cooling:
        accelerator_info:
          - accelerator_model_name:
            accelerators_per_node: 1
  # system_power.json (Appendix E): its keys, or a file with them.
  power:
"""


def _datasets(draft: Draft) -> dict[str, Any]:
    datasets: dict[str, Any] = {"performance": {"path": draft.performance}}
    if draft.benchmark == CUSTOM:
        datasets["accuracy"] = _custom_accuracy(draft.accuracy or (_CUSTOM_ACCURACY,))
    elif draft.accuracy:
        datasets["accuracy"] = [{"path": path} for path in draft.accuracy]
    return {"datasets": datasets}


def _custom_accuracy(paths: Sequence[str]) -> list[dict[str, Any]]:
    """Accuracy datasets with all that no preset has, their names told apart by a number."""
    return [
        {"path": path, "name": f"accuracy-{number}", **_CUSTOM_SCORING}
        for number, path in enumerate(paths, 1)
    ]


def _preset_comment(draft: Draft) -> str:
    """What the preset fills in, as comments."""
    if preset_of(draft.benchmark) is None:
        return ""
    sections = ("endpoint", "run", "client")
    stated = {"benchmark": draft.benchmark, **_datasets(draft), **{key: {} for key in sections}}
    added = _added(stated, apply_preset(stated))
    lines = "".join(f"#   {line}\n" for line in _block(added).splitlines())
    return (
        f"# The preset of {draft.benchmark} adds this; state a key above or below to have it"
        f" otherwise\n# (docs/presets.md).\n{lines}"
    )


def _added(stated: Any, filled: Any) -> Any:
    """What `filled` has beyond `stated`; lists keep their positions."""
    if isinstance(stated, Mapping) and isinstance(filled, Mapping):
        pairs = ((key, _added(stated.get(key), value)) for key, value in filled.items())
        return {key: value for key, value in pairs if value not in ({}, [], None)}
    if isinstance(stated, list) and isinstance(filled, list):
        return [_added(*pair) for pair in zip(stated, filled, strict=True)]
    return None if stated == filled else filled


def _overrides(benchmark: str) -> str:
    """Parameters that no preset has for certain, for the user to confirm."""
    preset = preset_of(benchmark)
    if preset is None or preset.params_confirmed:
        return ""
    block = _block({"overrides": {"model_params": dict(preset.model_params)}})
    return (
        "  # The rules fix these. CONFIRM them with your client's example of this model in\n"
        "  # examples/10_Agentic_Inference: here they are those of the model that it replaced.\n"
        + "".join(f"  {line}\n" for line in block.splitlines())
    )


def _block(value: Mapping[str, Any]) -> str:
    """YAML, with the variables that are for the client kept from being expanded here."""
    text: str = yaml.safe_dump(
        _escaped(value), sort_keys=False, allow_unicode=True, width=90, default_flow_style=False
    )
    return text


def _escaped(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _escaped(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_escaped(inner) for inner in value]
    return value.replace("${", "$${") if isinstance(value, str) else value


def _quoted(text: str) -> str:
    return json.dumps(_escaped(text), ensure_ascii=False)
