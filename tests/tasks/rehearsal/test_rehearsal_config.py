"""The stand-in's configuration: the recorded keys, strictness, variables, secrets, dialects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tasks.rehearsal.config import load, redacted, resolved, save, with_timeout
from tasks.rehearsal.failures import ClientInputError
from tasks.rehearsal.template import template
from tests.tasks.rehearsal.support import recorded_config

#: Recorded configurations that the stand-in can run.
CASES = ["c01_perf_c4", "c02_both_pass", "c05_offline", "c15_warmup_salt_drain", "c17_no_count"]


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARETO_REHEARSAL_DIALECT", "2026-09")


def write(folder: Path, document: Any) -> Path:
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    return path


def keys(value: Any, prefix: str = "") -> set[str]:
    """The dotted paths of a document's values."""
    if not isinstance(value, dict) or not value:
        return {prefix}
    return {path for key, item in value.items() for path in keys(item, f"{prefix}.{key}")}


def test_the_saved_config_is_the_recorded_one(
    fixtures_dir: Path, tmp_path: Path, case: str
) -> None:
    """Defaults, order and spelling of the resolved configuration are the real client's."""
    recorded = (fixtures_dir / case / "out" / "config.yaml").read_text()
    url = yaml.safe_load(recorded)["endpoint_config"]["endpoints"][0]
    save(load(write(tmp_path, recorded_config(case, url))), tmp_path / "saved.yaml")
    assert (tmp_path / "saved.yaml").read_text() == recorded


def test_the_templates_have_the_keys_of_a_recorded_config(
    fixtures_dir: Path,
) -> None:
    """What `init` offers is what a resolved run has, apart from what the recorded run set."""
    recorded = yaml.safe_load((fixtures_dir / "c05_offline" / "out" / "config.yaml").read_text())
    set_by_the_run = {
        ".report_dir",
        ".model_params.tokenizer_name",
        ".settings.runtime.n_samples_to_issue",
    }
    assert keys(template("offline")) == keys(recorded) - set_by_the_run
    pattern = ".settings.load_pattern.target_concurrency"
    assert keys(template("concurrency")) == keys(template("offline")) | {pattern}


def test_a_template_is_a_configuration(tmp_path: Path) -> None:
    for kind in ("concurrency", "offline"):
        assert load(write(tmp_path, template(kind))).name == f"{kind}_benchmark"


def test_an_unknown_template_is_refused() -> None:
    with pytest.raises(ClientInputError, match="Available: concurrency, offline"):
        template("online")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("settings.runtime.n_samples", 5),
        ("settings.timeouts", {"run_timeout_s": 5}),
        ("settings.runtime.min_issue_duration_ms", 5),
        ("settings.load_pattern.target_concurrency", 0),
        ("settings.runtime.max_duration_ms", 5),
        ("model_params.nmae", "x"),
        ("type", "submission"),
    ],
)
def test_what_the_dialect_does_not_know_is_refused_by_name(
    tmp_path: Path, path: str, value: Any
) -> None:
    document = template("concurrency")
    *parents, last = path.split(".")
    target = document
    for parent in parents:
        target = target[parent]
    target[last] = value
    with pytest.raises(ClientInputError, match=last):
        load(write(tmp_path, document))


@pytest.mark.parametrize("text", ["a: [", "- 1", "", "name: x\n  type: [online"])
def test_what_is_no_configuration_is_an_input_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with pytest.raises(ClientInputError):
        load(path)


def test_variables_are_filled_in_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REHEARSAL_A", "one")
    monkeypatch.delenv("REHEARSAL_B", raising=False)
    given = {"a": ["${REHEARSAL_A}", "$REHEARSAL_A"], "b": "${REHEARSAL_B:-two} $$HOME", "c": 3}
    assert resolved(given) == {"a": ["one", "one"], "b": "two $HOME", "c": 3}
    with pytest.raises(ClientInputError, match="REHEARSAL_B"):
        resolved({"a": "${REHEARSAL_B}"})


def test_seeds_up_to_64_bits_stay_exact_integers(tmp_path: Path) -> None:
    document = template("concurrency")
    document["settings"]["runtime"] |= {
        "scheduler_random_seed": 2**64,
        "dataloader_random_seed": 2**64 - 1,
    }
    save(load(write(tmp_path, document)), tmp_path / "saved.yaml")
    runtime = yaml.safe_load((tmp_path / "saved.yaml").read_text())["settings"]["runtime"]
    assert runtime["scheduler_random_seed"] == 2**64
    assert runtime["dataloader_random_seed"] == 2**64 - 1


def test_secrets_are_replaced_by_key_and_in_urls() -> None:
    given = {
        "api_key": "k",
        "nested": [{"My_Token": "t", "secretive": 1, "keyboard": "stays", "apikey": "stays"}],
        "url": "https://me:pw@host/x?api_key=1&y=2",
        "plain": "http://host:1/x?y=2",
    }
    assert redacted(given) == {
        "api_key": "<redacted>",
        "nested": [
            {
                "My_Token": "<redacted>",
                "secretive": "<redacted>",
                "keyboard": "stays",
                "apikey": "stays",
            }
        ],
        "url": "https://<redacted>@host/x?api_key=%3Credacted%3E&y=2",
        "plain": "http://host:1/x?y=2",
    }


def test_the_command_line_timeout_goes_where_the_dialect_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    early = with_timeout(load(write(tmp_path, template("concurrency"))), 7.5)
    assert early.model_dump()["timeout"] == 7.5
    assert early.settings.limits().run_timeout_s is None
    monkeypatch.setenv("PARETO_REHEARSAL_DIALECT", "2026-09")
    late = with_timeout(load(write(tmp_path, template("concurrency"))), 7.5)
    assert late.settings.limits().run_timeout_s == 7.5
    assert "timeout" not in late.model_dump()


@pytest.mark.usefixtures("later")
def test_the_later_template_has_timeouts_and_no_drain() -> None:
    document = template("concurrency")
    assert "timeout" not in document
    assert "drain" not in document["settings"]
    assert "service_ready_timeout_s" not in document["settings"]
    assert "service_ready_timeout_s" in document["settings"]["timeouts"]
    assert not any(key.endswith("duration_ms") for key in document["settings"]["runtime"])


@pytest.mark.usefixtures("later")
def test_the_later_dialect_takes_its_own_keys(tmp_path: Path) -> None:
    document = template("concurrency")
    document["settings"]["timeouts"] |= {
        "run_timeout_s": 9,
        "performance_drain_timeout_s": 1,
        "warmup_drain_timeout_s": 2,
        "accuracy_drain_timeout_s": 3,
        "endpoint_response_idle_timeout_s": 4,
        "service_ready_timeout_s": 5,
        "steady_state_timeout_s": 6,
    }
    document["settings"]["runtime"] |= {
        "min_issue_duration_ms": None,
        "max_issue_duration_ms": 7000,
    }
    limits = load(write(tmp_path, document)).settings.limits()
    assert (limits.warmup_drain_s, limits.performance_drain_s, limits.accuracy_drain_s) == (2, 1, 3)
    assert (limits.run_timeout_s, limits.response_idle_timeout_s) == (9, 4)
    assert (limits.min_duration_ms, limits.max_duration_ms) == (None, 7000)


@pytest.mark.usefixtures("later")
@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        ("settings", "drain", {"performance_timeout_s": 5}),
        ("runtime", "min_duration_ms", 0),
        ("runtime", "min_issue_duration_ms", 600000),
        ("top", "timeout", 5),
    ],
)
def test_the_later_dialect_refuses_the_earlier_keys(
    tmp_path: Path, section: str, key: str, value: Any
) -> None:
    """A minimum issue duration is refused for concurrency, though the key is known."""
    document = template("concurrency")
    places = {
        "top": document,
        "settings": document["settings"],
        "runtime": document["settings"]["runtime"],
    }
    places[section][key] = value
    with pytest.raises(ClientInputError, match=key):
        load(write(tmp_path, document))


def test_an_unknown_dialect_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARETO_REHEARSAL_DIALECT", "2027-01")
    with pytest.raises(ClientInputError, match="2026-08, 2026-09"):
        template("concurrency")
