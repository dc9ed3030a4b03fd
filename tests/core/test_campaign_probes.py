"""The campaign's `fingerprint` section: what a probe may say."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from core.campaign_probes import FingerprintSection, Probe

ONE = "needs exactly one of command, http and file"


@pytest.mark.parametrize(
    ("probe", "cause"),
    [
        ({}, ONE),
        ({"command": ["a"], "file": "/b"}, ONE),
        ({"command": ["a"], "file": "/b", "http": "/c"}, ONE),
        ({"command": []}, "at least 1"),
        ({"http": "no-slash"}, "pattern"),
        ({"command": ["a"], "volatile": ["["]}, "'\\[' is no regular expression"),
        ({"command": ["a"], "timeout_s": 0.0}, "greater than 0"),
        ({"command": ["a"], "max_bytes": 2 << 20}, "less than or equal to 1048576"),
        ({"command": ["a"], "shell": True}, "Extra inputs"),
    ],
)
def test_a_probe_that_can_not_be_used_is_refused(probe: dict[str, Any], cause: str) -> None:
    with pytest.raises(ValidationError, match=cause):
        Probe.model_validate({"name": "driver", **probe})


def test_names_of_probes_differ() -> None:
    probes = [{"name": "driver", "command": ["a"]}, {"name": "driver", "http": "/b"}]
    with pytest.raises(ValidationError, match="names must differ, not driver, driver"):
        FingerprintSection.model_validate({"probes": probes})
    probes[1]["name"] = "other"
    assert len(FingerprintSection.model_validate({"probes": probes}).probes) == 2
