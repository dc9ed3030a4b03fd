"""The model's own rules, on values as the loader hands them over."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from core.campaign import Campaign
from core.campaign_client import PLANNED_KEYS
from core.section import Section
from tests.campaigns import make_campaign


def complaints(**sections: Any) -> list[str]:
    with pytest.raises(ValidationError) as caught:
        make_campaign(**sections)
    return [str(error["msg"]).removeprefix("Value error, ") for error in caught.value.errors()]


def _sections(kind: type[Section] = Section) -> list[type[Section]]:
    return [section for below in kind.__subclasses__() for section in (below, *_sections(below))]


@pytest.mark.parametrize("section", _sections(), ids=lambda section: section.__name__)
def test_every_field_is_described_and_every_section_frozen_and_closed(
    section: type[Section],
) -> None:
    """What an editor shows comes from here."""
    assert all(field.description for field in section.model_fields.values())
    assert section.model_config["frozen"]
    assert section.model_config["extra"] == "forbid"


def test_a_campaign_can_not_be_changed() -> None:
    campaign = make_campaign()
    with pytest.raises(ValidationError, match="frozen"):
        campaign.campaign = "other"


def test_a_campaign_survives_json() -> None:
    """What is recorded as JSON is the same campaign when it is read back."""
    campaign = make_campaign(
        run={"expected_qps": {64: 2.5}, "point_timeout_s": 60},
        curve={"levels": [1, 2, 4, 8, 16, 32, 64]},
        datasets={"performance": {"settings": {"parser": {"prompt": "input"}}}},
        rehearsal={"time_scale": 0.5},
    )
    assert Campaign.model_validate_json(campaign.model_dump_json()) == campaign


@pytest.mark.parametrize(
    "url",
    [
        "127.0.0.1:8000",
        "ftp://host",
        "http://",
        "http://[::1",
        "http://host:port",
        "http://host:0",
        "http://host:99999",
        "https://user:pass/word@host",
    ],
)
def test_an_endpoint_needs_a_url_and_the_message_does_not_repeat_it(url: str) -> None:
    (complaint,) = complaints(endpoint={"urls": [url]})
    assert complaint == "each must be an http:// or https:// URL with a host"


@pytest.mark.parametrize("url", ["http://me@host", "http://me:pass@host", "http://host?key=1"])
def test_a_url_carries_no_credentials(url: str) -> None:
    (complaint,) = complaints(endpoint={"urls": [url]})
    assert "endpoint.api_key_env" in complaint
    assert "pass" not in complaint


def test_urls_differ_and_lose_their_last_slash() -> None:
    assert make_campaign(endpoint={"urls": ["http://a/", "http://b"]}).endpoint.urls == (
        "http://a",
        "http://b",
    )
    assert complaints(endpoint={"urls": ["http://a", "http://a"]}) == [
        "lists a URL twice; remove one"
    ]


@pytest.mark.parametrize("name", ["ENDPOINT_API_KEY", "_x1", None])
def test_the_api_keys_variable_is_named(name: str | None) -> None:
    assert make_campaign(endpoint={"api_key_env": name}).endpoint.api_key_env == name


@pytest.mark.parametrize("name", ["sk-secret", "1A", "A B", "", "ÄÖ"])
def test_what_is_no_variables_name_is_refused_unseen(name: str) -> None:
    (complaint,) = complaints(endpoint={"api_key_env": name})
    assert "not the name of an environment variable" in complaint
    assert not name or name not in complaint


@pytest.mark.parametrize("planned", PLANNED_KEYS)
def test_what_the_plan_decides_can_not_be_overridden(planned: str) -> None:
    tree: Any = 1
    for key in reversed(planned.split(".")):
        tree = {key: tree}
    told = "\n".join(complaints(client={"overrides": tree})).split("\n")
    assert f"{planned}: follows from the plan and can't be overridden; remove it" in told


def test_below_a_planned_key_nothing_can_be_overridden_either() -> None:
    assert complaints(client={"overrides": {"settings": {"runtime": {"n": 1}}}}) == [
        "settings.runtime: follows from the plan and can't be overridden; remove it"
    ]


def test_overrides_hold_no_secrets_and_all_that_is_wrong_is_told() -> None:
    overrides = {"type": 1, "headers": {"Authorization": "x", "service_token": "y"}}
    (told,) = complaints(client={"overrides": overrides})
    assert told.split("\n") == [
        "type: follows from the plan and can't be overridden; remove it",
        "headers.Authorization: looks like a secret; name its variable in endpoint.api_key_env",
        "headers.service_token: looks like a secret; name its variable in endpoint.api_key_env",
    ]


def test_other_overrides_are_free() -> None:
    overrides = {"model_params": {"max_new_tokens": 64}, "settings": {"client": {"num_workers": 1}}}
    assert make_campaign(client={"overrides": overrides}).client.overrides == overrides


def accuracy(**keys: Any) -> dict[str, Any]:
    entry = {"path": "/data/acc.jsonl", "scorer": {}, "targets": {"score": 0.9}}
    return {"datasets": {"accuracy": [entry | keys]}}


def test_dataset_names_differ() -> None:
    assert complaints(**accuracy(name="performance")) == [
        "the dataset names must differ, not performance, performance"
    ]


def test_an_accuracy_dataset_has_a_path_or_a_size() -> None:
    """A set that the client resolves by its name is counted as the user says."""
    assert make_campaign(**accuracy(path=None, rows=200)).datasets.accuracy[0].rows == 200
    assert complaints(**accuracy(path=None)) == [
        "needs a path, or rows if the client resolves the name itself"
    ]


def test_a_custom_benchmark_needs_targets_and_an_official_one_has_its_own() -> None:
    assert complaints(**accuracy(targets={})) == [
        "datasets.accuracy[0]: a custom benchmark needs targets, e.g. targets: {score: 0.9}"
    ]
    assert complaints(benchmark="gpt-oss-120b") == [
        "datasets.accuracy[0].targets: gpt-oss-120b takes its targets from the official checker;"
        " remove targets"
    ]


def test_a_target_is_a_lower_bound_or_a_range() -> None:
    targets = {"a": 0.9, "b": {"min": 1, "max": 2.5}, "c": {"max": 3}}
    (dataset,) = make_campaign(**accuracy(targets=targets)).datasets.accuracy
    assert dataset.bounds == {"a": (0.9, None), "b": (1, 2.5), "c": (None, 3)}


@pytest.mark.parametrize(("scorer", "repeats"), [({}, 1), ({"num_repeats": 8}, 8)])
def test_repeats_are_the_scorers(scorer: dict[str, int], repeats: int) -> None:
    (dataset,) = make_campaign(**accuracy(scorer=scorer)).datasets.accuracy
    assert dataset.repeats == repeats


@pytest.mark.parametrize(
    ("curve", "agentic", "offline"),
    [
        ({}, False, "elected"),
        ({"agentic": True}, True, "none"),
        ({"offline": "dedicated"}, False, "dedicated"),
    ],
)
def test_what_follows_from_the_benchmark_can_be_stated(
    curve: dict[str, Any], agentic: bool, offline: str
) -> None:
    campaign = make_campaign(curve=curve)
    assert (campaign.agentic, campaign.offline) == (agentic, offline)


def test_agentic_benchmarks_are_known_by_name() -> None:
    campaign = make_campaign(benchmark="kimi-k3", **accuracy(targets={}))
    assert campaign.agentic
    assert campaign.offline == "none"


@pytest.mark.parametrize("value", ["64", 64.0, True, None])
def test_a_level_is_a_whole_number_and_nothing_else(value: object) -> None:
    """Nothing is converted: what looks like a mistake is one."""
    assert complaints(curve={"c_max": value}) == ["Input should be a valid integer"]
