"""The fingerprint: one digest for one system, whatever machine, Python or spelling."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from core.errors import ParetoError, SetupError
from core.fingerprint import (
    MAX_VALUE_BYTES,
    PARTS,
    VERSION,
    Fingerprint,
    NotCanonicalError,
    canonical,
    fingerprint,
    fingerprint_from_json,
    plain,
)

ROOT = Path(__file__).parents[2]
#: Something of every kind in every part.
EXAMPLE: dict[str, Any] = {
    "client": {"version": "0.1.0", "git_commit": "ea33275", "git_dirty": False},
    "config": {"settings": {"n": 1.0, "ratio": 0.1, "tiny": 1e-300, "none": None}},
    "model": {"name": "caf\u00e9", "tokenizer_files": {}},
    "datasets": [{"name": "performance", "rows": 1000, "sha256": "0" * 64}],
    "endpoint": {"http://b": {"models": []}, "http://a": {"models": [{"id": "m"}]}},
    "seed_set": {"scheduler_rng_seed": 2**64 - 1},
    "system": {"cpu": "\U0001f9ee \ud800", "cpus": 2},
    "probes": {"driver": ["550.54", ""], "infinite": float("inf")},
}
#: Golden values of version 1: never edit them, raise the version.
GOLDEN = "95e4823e3088ef9d5dd77dd126b833e929feb14dc0e440077832cb3adf6d46f5"
GOLDEN_EMPTY = "ca8da00aacab65a07d508392c863fea8823b97406e002364930358688558113e"


def test_the_golden_digests_of_this_version() -> None:
    assert VERSION == 1
    assert fingerprint(EXAMPLE).sha256 == GOLDEN
    assert fingerprint({}).sha256 == GOLDEN_EMPTY


def interpreters() -> list[str]:
    """Every Python that is found here."""
    found = [sys.executable, *(shutil.which(f"python3.{minor}") or "" for minor in range(11, 16))]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found += sorted(map(str, pyenv.glob("3.1[1-9]*/bin/python")))
    return [path for path in dict.fromkeys(found) if path and starts(path)]


def starts(python: str) -> bool:
    """Whether it runs at all: what version managers put on PATH may name no interpreter."""
    return subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0


def test_the_digest_is_the_same_under_every_python() -> None:
    """The module needs nothing but the standard library, and gives the golden value."""
    script = (
        "import json, sys; from core.fingerprint import fingerprint;"
        "print(fingerprint(json.load(sys.stdin)).sha256)"
    )
    document = json.dumps(EXAMPLE)
    for python in interpreters():
        done = subprocess.run(
            [python, "-S", "-c", script],
            input=document,
            env={"PYTHONPATH": str(ROOT), "LC_ALL": "C", "PYTHONHASHSEED": "7"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.stdout.strip(), done.stderr) == (GOLDEN, ""), python


SAME = [
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    ({"a": 1.0}, {"a": 1}),
    ({"a": 1e3}, {"a": 1000}),
    ({"a": -0.0}, {"a": 0}),
    ({"a": 0.1}, {"a": 0.1000000000000000055}),
    ({"e\u0301": "e\u0301"}, {"\u00e9": "\u00e9"}),
    ({"a": (1, 2)}, {"a": [1, 2]}),
    ({1: "x"}, {"1": "x"}),
    ({"api_key": "one"}, {"api_key": "two"}),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_spelling_does_not_matter(one: Any, other: Any) -> None:
    assert fingerprint({"config": one}).sha256 == fingerprint({"config": other}).sha256


OTHER = [
    ({"a": 1}, {"a": True}),
    ({"a": 1}, {"a": "1"}),
    ({"a": None}, {}),
    ({"a": [1, 2]}, {"a": [2, 1]}),
    ({"a": 0.1}, {"a": 0.10000000000000002}),
    ({"a": "x"}, {"a": "x "}),
    ({"a": {}}, {"a": []}),
    ({"api_key": "one"}, {"api_key": None}),
]


@pytest.mark.parametrize(("one", "other"), OTHER)
def test_a_difference_is_one(one: Any, other: Any) -> None:
    assert fingerprint({"config": one}).sha256 != fingerprint({"config": other}).sha256


def test_the_same_content_in_two_parts_has_two_digests() -> None:
    digests = fingerprint({name: {"a": 1} for name in PARTS}).digests
    assert list(digests) == list(PARTS)
    assert len(set(digests.values())) == len(PARTS)


def test_what_is_canonical_stays_as_it_is() -> None:
    once = plain(EXAMPLE)
    assert plain(once) == once
    assert canonical(once) == canonical(EXAMPLE)
    assert canonical({"b": "é", "a": [1.0, None]}) == '{"a":[1,null],"b":"\\u00e9"}'


@pytest.mark.parametrize("value", [object(), b"x", {"a": {1, 2}}])
def test_values_without_a_canonical_form_are_refused(value: Any) -> None:
    with pytest.raises(NotCanonicalError, match="has no canonical form"):
        canonical(value)


def test_two_spellings_of_one_key_are_refused() -> None:
    with pytest.raises(NotCanonicalError, match="there twice"):
        plain({"e\u0301": 1, "\u00e9": 2})


def test_a_long_value_is_kept_as_its_digest_and_still_counts() -> None:
    """What surrounds it is kept."""
    long = "x" * (MAX_VALUE_BYTES + 1)
    kept = fingerprint({"probes": {"long": [long], "short": ["y"]}})
    assert kept.parts["probes"]["short"] == ["y"]
    assert set(kept.parts["probes"]["long"]) == {"sha256", "size_bytes"}
    assert len(canonical(kept.as_json())) < 4000
    changed = fingerprint({"probes": {"long": [long + "x"], "short": ["y"]}})
    assert changed.sha256 != kept.sha256


def test_what_was_kept_comes_back() -> None:
    made = fingerprint(EXAMPLE)
    document = json.loads(json.dumps(made.as_json()))
    assert fingerprint_from_json(document) == made
    assert fingerprint_from_json(document).sha256 == made.sha256


@pytest.mark.parametrize("version", [VERSION + 1, 0, None, "1"])
def test_another_version_is_refused_and_not_guessed(version: Any) -> None:
    document = fingerprint(EXAMPLE).as_json() | {"version": version}
    with pytest.raises(SetupError, match="use the pareto that wrote it"):
        fingerprint_from_json(document)


def test_a_changed_record_is_found() -> None:
    document = fingerprint(EXAMPLE).as_json()
    document["parts"] = document["parts"] | {"client": {"version": "0.2.0"}}
    with pytest.raises(ParetoError, match="not what its digests say"):
        fingerprint_from_json(document)
    fewer = {name: part for name, part in document["parts"].items() if name != "client"}
    with pytest.raises(ParetoError, match="not what its digests say"):
        fingerprint_from_json(document | {"parts": fewer})


def test_an_unknown_part_is_a_bug() -> None:
    with pytest.raises(AssertionError, match="no such parts"):
        fingerprint({"moon": {}})
    assert Fingerprint(fingerprint({}).parts).version == VERSION
