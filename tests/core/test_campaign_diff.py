"""Which changes to a campaign could alter a measurement."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.campaign import Campaign, Run
from core.campaign_diff import (
    HARMLESS,
    changes_since,
    measurement_differences,
    statement,
    system_key,
)
from tests.campaigns import make_campaign

HOME = Path("/home/u")


def test_the_same_campaign_has_no_differences() -> None:
    assert measurement_differences(make_campaign(), make_campaign()) == []


@pytest.mark.parametrize(
    ("sections", "line"),
    [
        ({"curve": {"c_max": 128}}, "curve.c_max: 64 → 128"),
        ({"curve": {"c_min": 2}}, "curve.c_min: not set → 2"),
        ({"curve": {"levels": [1, 64]}}, "curve.levels: auto → [1, 64]"),
        ({"curve": {"agentic": True}}, "curve.agentic: not set → true"),
        ({"model": {"name": "other"}}, "model.name: sim-model → other"),
        (
            {"endpoint": {"urls": ["http://b"]}},
            "endpoint.urls: [http://127.0.0.1:8000] → [http://b]",
        ),
        (
            {"datasets": {"performance": {"path": "/p"}}},
            "datasets.performance.path: /data/perf.jsonl → /p",
        ),
        ({"rehearsal": {"time_scale": 0.5}}, "rehearsal.time_scale: not set → 0.5"),
        ({"client": {"overrides": {"a": {"b": None}}}}, "client.overrides.a.b: not set → null"),
        ({"seeds": {"set": "B"}}, "seeds.set: A → B"),
    ],
)
def test_what_is_measured_matters(sections: dict[str, Any], line: str) -> None:
    assert measurement_differences(make_campaign(), make_campaign(**sections)) == [line]
    key, _, values = line.partition(": ")
    old, new = values.split(" → ")
    backwards = measurement_differences(make_campaign(**sections), make_campaign())
    assert backwards == [f"{key}: {new} → {old}"]


@pytest.mark.parametrize(
    "sections",
    [
        {"run": {"retries": 5}},
        {"run": {"order": "ascending"}},
        {"run": {"point_timeout_s": 9}},
        {"run": {"expected_qps": {8: 1.5}}},
        {"run": {"min_passes": 2}},
        {"records": {"runs": "/r"}},
        {"client": {"steady_state_command": ["detect", "--json"]}},
        {"instance": {"accelerators": 8}},
        {"endpoint": {"health_path": "/health"}},
    ],
)
def test_what_is_not_measured_does_not_matter(sections: dict[str, Any]) -> None:
    assert make_campaign() != make_campaign(**sections)
    assert measurement_differences(make_campaign(), make_campaign(**sections)) == []


def test_an_accuracy_dataset_more_is_told_key_by_key() -> None:
    more = {"path": "/b", "name": "b", "scorer": {"eval_method": "rouge"}, "targets": {"score": 1}}
    before = make_campaign()
    entries = [entry.model_dump() for entry in before.datasets.accuracy]
    after = make_campaign(datasets={"accuracy": [*entries, more]})
    assert measurement_differences(before, after) == [
        "datasets.accuracy[1].path: not set → /b",
        "datasets.accuracy[1].name: not set → b",
        "datasets.accuracy[1].scorer.eval_method: not set → rouge",
        "datasets.accuracy[1].targets.score: not set → 1.0",
    ]


@pytest.mark.parametrize(("old", "new"), [(1, 1.0), (1, True), ("1", 1), ([1], ["1"]), ({}, [])])
def test_what_the_client_could_tell_apart_differs(old: object, new: object) -> None:
    """Free keys go to the client as they are, so their types count."""
    campaigns = [make_campaign(client={"overrides": {"x": value}}) for value in (old, new)]
    assert len(measurement_differences(*campaigns)) == 1


def test_secrets_that_differ_are_a_difference_and_not_shown() -> None:
    old, new = (
        make_campaign(client={"command": ["client", f"http://me:{password}@host"]})
        for password in ("hunter2", "hunter3")
    )
    (line,) = measurement_differences(old, new)
    assert line.startswith("client.command: [client, http://")
    assert "hunter" not in line


def test_every_harmless_key_exists_and_has_a_reason() -> None:
    """A renamed key must not stay listed."""
    for key, reason in HARMLESS.items():
        section, _, name = key.partition(".")
        inner = Campaign.model_fields[section].annotation
        assert not name or name in getattr(inner, "model_fields"), key  # noqa: B009 - typed as Any
        assert reason


def test_no_time_out_alters_a_measurement() -> None:
    """A run that a time-out ended is never valid."""
    time_outs = {f"run.{name}" for name in Run.model_fields if name.endswith("timeout_s")}
    assert time_outs <= set(HARMLESS)


def test_changes_are_told_against_a_statement_on_record() -> None:
    """As the records keep it: JSON, without the database's URL."""
    campaign = make_campaign(
        run={"expected_qps": {8: 1.5}}, records={"database": "postgresql://u:secret@h/d"}
    )

    def stated(campaign: Campaign) -> dict[str, Any]:
        return statement(campaign, HOME)

    kept = json.loads(json.dumps(stated(campaign)))
    assert "secret" not in json.dumps(kept)
    assert changes_since(kept, stated(campaign)) == []
    assert changes_since(kept, stated(make_campaign(run={"retries": 9}))) == []
    larger = stated(make_campaign(curve={"c_max": 128}))
    assert changes_since(kept, larger) == ["curve.c_max: 64 → 128"]


def test_a_campaigns_folder_may_be_moved_as_a_whole() -> None:
    """What lies beside the file moves with it; what lies elsewhere is another thing elsewhere."""

    def stated(folder: str, path: str) -> dict[str, Any]:
        campaign = make_campaign(datasets={"performance": {"path": path}})
        return statement(campaign, Path(folder))

    before = stated("/old", "/old/data/perf.jsonl")
    assert changes_since(before, stated("/new", "/new/data/perf.jsonl")) == []
    assert changes_since(before, stated("/new", "/old/data/perf.jsonl")) == [
        "datasets.performance.path: data/perf.jsonl → /old/data/perf.jsonl"
    ]


def test_a_statement_that_is_not_readable_any_more_counts_as_a_change() -> None:
    now = statement(make_campaign(), HOME)
    assert changes_since(now | {"gone": 1}, now) == [
        "the statement on record can't be compared: 1 problems"
    ]


def test_campaigns_of_one_system_share_a_key() -> None:
    """The curve may differ; what decides the rate at a level may not."""
    key = system_key(make_campaign(), HOME)
    assert system_key(make_campaign(campaign="other", curve={"c_max": 128}), HOME) == key
    for changed in (
        {"model": {"name": "other"}},
        {"instance": {"name": "other"}},
        {"client": {"overrides": {"model_params": {"max_new_tokens": 9}}}},
        {"datasets": {"performance": {"path": "/p"}}},
        {"rehearsal": {"time_scale": 0.5}},
    ):
        assert system_key(make_campaign(**changed), HOME) != key
