"""A campaign's plain data + its benchmark's preset → what the model reads, and what still lacks.

A preset fills what the file leaves unset: whatever is stated stays, a null included, and so does
what is wrong, for the model to complain about. Entries of `datasets.accuracy` are recognised by
name or file name; one that states another scorer is the user's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from core.accuracy import official_bounds
from core.campaign import Campaign
from core.client_config import merged
from core.presets import Preset, PresetDataset, preset_of
from core.yaml_tree import KeyPath


def apply_preset(data: Mapping[str, Any]) -> dict[str, Any]:
    """A campaign as plain data with what its benchmark's preset has and it leaves unset.

    A section that a campaign must have is not made up.

    Args:
        data: The campaign file's data, its paths resolved; stays as it is.
    """
    preset = preset_of(data.get("benchmark"))
    filled = dict(data)
    if preset is None:
        return filled
    for section, keys in _sections(preset).items():
        stated = data.get(section, {} if section == "run" else None)
        if isinstance(stated, dict):
            filled[section] = merged(keys, stated)
    if isinstance(data.get("datasets"), dict):
        filled["datasets"] = _datasets(preset, data["datasets"], rehearsal="rehearsal" in data)
    return filled


def _sections(preset: Preset) -> dict[str, dict[str, Any]]:
    """What a preset has for the sections beside the datasets."""
    overrides: dict[str, Any] = {}
    if preset.params_confirmed:
        overrides["model_params"] = preset.model_params
    if preset.client_settings:
        overrides["settings"] = {"client": preset.client_settings}
    return {
        "endpoint": dict(preset.endpoint),
        "run": dict(preset.run),
        "client": {"overrides": overrides} if overrides else {},
    }


def _datasets(preset: Preset, stated: dict[str, Any], *, rehearsal: bool) -> dict[str, Any]:
    filled = dict(stated)
    performance = stated.get("performance")
    if isinstance(performance, dict) and _fits(preset.performance, performance):
        filled["performance"] = _entry(preset.performance, performance, rehearsal=rehearsal)
    accuracy = stated.get("accuracy", _left_out(preset, performance))
    if isinstance(accuracy, list):
        filled["accuracy"] = [_scored(preset, entry, rehearsal=rehearsal) for entry in accuracy]
    return filled


def _left_out(preset: Preset, performance: object) -> list[dict[str, Any]]:
    """The accuracy datasets where none are stated: the same file, or the client's own."""
    path = performance.get("path") if isinstance(performance, dict) else None
    return [
        {"path": path}
        if dataset.shares_file and isinstance(path, str)
        else {"name": dataset.client_name}
        for dataset in preset.accuracy
    ]


def _scored(preset: Preset, entry: Any, *, rehearsal: bool) -> Any:
    dataset = _recognised(preset, entry) if isinstance(entry, dict) else None
    return entry if dataset is None else _entry(dataset, entry, rehearsal=rehearsal)


def _recognised(preset: Preset, entry: Mapping[str, Any]) -> PresetDataset | None:
    """Which accuracy dataset an entry means; None: none for certain, or one of the user's own."""
    fitting = [dataset for dataset in preset.accuracy if _fits(dataset, entry)]
    if len(preset.accuracy) > 1:
        fitting = _named(fitting, entry.get("name")) or _named(fitting, _stem(entry.get("path")))
    if len(fitting) != 1 or _method(entry) not in (None, fitting[0].scorer["eval_method"]):
        return None
    return fitting[0]


def _fits(dataset: PresetDataset, entry: Mapping[str, Any]) -> bool:
    """Whether an entry can mean a dataset: with a path its file, else the client's own."""
    if entry.get("path") is not None:
        return dataset.file is not None
    name = entry.get("name", dataset.client_name)
    return dataset.client_name is not None and _base(name) == _base(dataset.client_name)


def _base(name: object) -> str:
    """A dataset's name without the `::` and what follows."""
    return str(name).partition("::")[0]


def _stem(path: object) -> str:
    return PurePath(path).stem if isinstance(path, str) else ""


def _named(datasets: list[PresetDataset], text: object) -> list[PresetDataset]:
    return [dataset for dataset in datasets if dataset.word in str(text).lower()]


def _method(entry: Mapping[str, Any]) -> Any:
    """The scorer that an entry states."""
    scorer = entry.get("scorer")
    return scorer.get("eval_method") if isinstance(scorer, dict) else None


def _entry(dataset: PresetDataset, stated: dict[str, Any], *, rehearsal: bool) -> dict[str, Any]:
    """An entry with what it leaves unset; a stated parser is left alone as a whole."""
    has_path = stated.get("path") is not None
    keys: dict[str, Any] = {"name": dataset.file_name if has_path else dataset.client_name}
    if not (rehearsal and has_path):  # rehearsals have files of their own size
        keys["rows"] = dataset.rows
    settings = dict(dataset.settings)
    if has_path and dataset.columns and "parser" not in _mapping(stated.get("settings")):
        settings["parser"] = dataset.columns
    if settings:
        keys["settings"] = settings
    if dataset.scorer:
        keys["scorer"] = dataset.scorer
    return merged(keys, stated)


def _mapping(value: object) -> Mapping[Any, Any]:
    return value if isinstance(value, dict) else {}


# --- What a measurement can't do without ---------------------------------------------------------


def preset_problems(campaign: Campaign) -> list[tuple[KeyPath, str]]:
    """What a campaign for an official benchmark lacks, each with its place; none in a rehearsal."""
    preset = preset_of(campaign.benchmark)
    if preset is None or campaign.rehearsal is not None:
        return []
    problems: list[tuple[KeyPath, str]] = []
    if not preset.params_confirmed and not campaign.client.overrides.get("model_params"):
        text = (
            f"missing → the rules fix the sampling parameters of {campaign.benchmark}, and none are"
            " certain here; state those of your client's examples/10_Agentic_Inference"
        )
        problems.append((("client", "overrides", "model_params"), text))
    rows = {dataset.name: dataset.rows for dataset in campaign.datasets.accuracy}
    if too_few := too_few_samples(campaign, rows):
        problems.append((("datasets", "accuracy"), too_few))
    return problems


def too_few_samples(campaign: Campaign, rows: Mapping[str, int | None]) -> str | None:
    """Why the accuracy datasets can't reach the official sample count (§6.6); None: they can.

    Repeats count only where the benchmark's own scorers repeat (as in `core/accuracy.py`).

    Args:
        campaign: The campaign; a rehearsal needs no number of samples.
        rows: Rows of each accuracy dataset by name; None: not known yet, and nothing is said.
    """
    preset, official = preset_of(campaign.benchmark), official_bounds(campaign.benchmark)
    datasets = campaign.datasets.accuracy
    if preset is None or official is None or campaign.rehearsal is not None or not datasets:
        return None
    samples = 0
    for dataset in datasets:
        count = rows[dataset.name]
        if count is None:
            return None
        samples += count * (dataset.repeats if preset.counts_repeats else 1)
    if samples >= official[1]:
        return None
    unit = "samples with their repeats" if preset.counts_repeats else "different samples"
    return (
        f"{samples:,} {unit} → the official checker wants at least {official[1]:,} for"
        f" {campaign.benchmark}; score the whole of its accuracy data"
    )
