"""The client's record of its configuration and its sample map, in every dialect and state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from core import folder as names
from core.folder import RunConfig, parse_config, parse_sample_map


@pytest.fixture
def document(fixtures_dir: Path) -> dict[str, Any]:
    """A recorded configuration."""
    path = fixtures_dir / "c02_both_pass" / "out" / names.CONFIG
    document: dict[str, Any] = yaml.safe_load(path.read_bytes())
    return document


def parsed(document: Any) -> RunConfig:
    """A configuration without problems."""
    config = parse_config(yaml.safe_dump(document).encode())
    assert isinstance(config, RunConfig)
    return config


def test_recorded_configurations_are_read_without_problems(recorded: Path) -> None:
    """Whatever configuration the real client wrote is readable."""
    path = recorded / "out" / names.CONFIG
    assert not path.exists() or isinstance(parse_config(path.read_bytes()), RunConfig)


def test_a_configuration_is_read_as_written(document: dict[str, Any]) -> None:
    """Pattern, level, seeds, streaming, warm-up and accuracy datasets come from the file."""
    assert parsed(document) == RunConfig(
        load_pattern="concurrency",
        concurrency=4,
        scheduler_random_seed=10487924139932647040,
        dataloader_random_seed=586478644936801402,
        duration_cap_ms=None,
        streaming=True,
        stream_all_chunks=True,
        warmup_enabled=False,
        warmup_salt=False,
        accuracy_datasets=("acc",),
    )


@pytest.mark.parametrize("key", ["max_duration_ms", "max_issue_duration_ms"])
def test_a_duration_cap_is_found_under_either_name(document: dict[str, Any], key: str) -> None:
    """Both client versions' caps are known; 0 is none."""
    del document["settings"]["runtime"]["max_duration_ms"]
    document["settings"]["runtime"][key] = 2000
    assert parsed(document).duration_cap_ms == 2000


@pytest.mark.parametrize(
    ("value", "streaming"),
    [("on", True), ("off", False), (True, True), (False, False), ("auto", None), ([], None)],
)
def test_streaming_is_read_quoted_or_not(
    document: dict[str, Any], value: Any, streaming: bool | None
) -> None:
    """An unquoted on or off is a truth value in YAML and means the same."""
    document["model_params"]["streaming"] = value
    assert parsed(document).streaming is streaming


@pytest.mark.parametrize(
    "broken",
    [
        {},
        [],
        {"settings": {}, "datasets": []},
        {"settings": {"runtime": {}, "load_pattern": {}}, "datasets": {}},
        {"settings": {"runtime": {}, "load_pattern": {}}, "datasets": [3]},
        {"settings": {"runtime": {}, "load_pattern": {}}, "datasets": [{"type": "accuracy"}]},
    ],
)
def test_a_broken_configuration_is_problems(broken: Any) -> None:
    """Missing sections and wrong types are problems that name the file."""
    found = parse_config(yaml.safe_dump(broken).encode())
    assert isinstance(found, tuple)
    assert all(problem.where.startswith("config.yaml") for problem in found)


def test_a_sample_map_counts_each_phase(fixtures_dir: Path) -> None:
    """The samples of the timed phase and of each scored dataset are counted."""
    path = fixtures_dir / "c02_both_pass" / "out" / names.SAMPLE_MAP
    assert parse_sample_map(path.read_bytes()) == {"performance": 40, "acc": 20}


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"3", b'{"a": NaN}', b"\xff"])
def test_a_broken_sample_map_is_a_problem(text: bytes) -> None:
    """What is no map of maps is one problem."""
    found = parse_sample_map(text)
    assert isinstance(found, tuple)
    assert len(found) == 1
