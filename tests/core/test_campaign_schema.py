"""The JSON schema for editors: current, valid, and of one mind with the loader."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from core.campaign_schema import schema, schema_text
from tests.campaigns import campaign_dict

ROOT = Path(__file__).parents[2]
CAMPAIGNS = ROOT / "campaigns"


def wrong(campaign: Any) -> list[str]:
    """Places that the schema objects to."""
    errors = Draft202012Validator(schema()).iter_errors(json.loads(json.dumps(campaign)))
    return [".".join(map(str, error.absolute_path)) for error in errors]


def test_the_committed_schema_is_current() -> None:
    """After a change to the model: `make schema`."""
    written = (CAMPAIGNS / "campaign.schema.json").read_text(encoding="utf-8")
    assert written == schema_text()


def test_the_module_prints_the_schema() -> None:
    command = [sys.executable, "-m", "core.campaign_schema"]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, encoding="utf-8")
    assert printed.stdout == schema_text()


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(schema())


@pytest.mark.parametrize("path", sorted(CAMPAIGNS.glob("*.yaml")), ids=lambda path: path.stem)
def test_editors_find_nothing_wrong_with_the_examples(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert wrong(yaml.safe_load(text)) == []
    assert text.startswith("# yaml-language-server: $schema=campaign.schema.json\n")


@pytest.mark.parametrize(
    ("sections", "place"),
    [
        ({"curve": {"c_mx": 64}}, "curve"),
        ({"curve": {"c_max": "64"}}, "curve.c_max"),
        ({"curve": {"levels": ["1"]}}, "curve.levels"),
        ({"curve": {"offline": "elect"}}, "curve.offline"),
        ({"benchmark": "llama"}, "benchmark"),
        ({"campaign": "my campaign"}, "campaign"),
        ({"endpoint": {"urls": []}}, "endpoint.urls"),
        ({"endpoint": {"api_key": "x"}}, "endpoint"),
        ({"run": {"retries": -1}}, "run.retries"),
        ({"client": {"command": "uv run"}}, "client.command"),
    ],
)
def test_editors_mark_mistakes(sections: dict[str, Any], place: str) -> None:
    assert wrong(campaign_dict(**sections)) == [place]


@pytest.mark.parametrize(
    "sections",
    [
        {"curve": {"c_max": "${C_MAX:-64}"}},
        {"curve": {"levels": ["${LOWEST}", 64]}},
        {"curve": {"agentic": "${AGENTIC}", "offline": "${OFFLINE}"}},
        {"campaign": "${USER}-curve", "benchmark": "${BENCHMARK}"},
        {"run": {"expected_qps": {"64": "${QPS}"}}},
        {"datasets": {"performance": {"rows": "${ROWS}"}}},
        {"rehearsal": {"time_scale": "${SCALE}"}},
    ],
)
def test_editors_accept_a_variable_for_any_value(sections: dict[str, Any]) -> None:
    """The loader expands it before the model sees it."""
    assert wrong(campaign_dict(**sections)) == []


def test_fields_keep_description_and_default() -> None:
    """That is what an editor shows at a key."""
    spares = schema()["$defs"]["Curve"]["properties"]["spares"]
    assert spares["default"] == 1
    assert spares["description"].startswith("Points beyond the minimum")
