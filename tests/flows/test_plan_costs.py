"""`pareto plan` tells what every preset campaign costs; the cases are those of docs/sizing.md."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from flows.cli.plan import plan
from tests.flows.support import ROOT

CAMPAIGNS = ROOT / "campaigns"
FILES = sorted(CAMPAIGNS.glob("*.yaml"))
#: Campaign → point, its lowest, expected and highest time in seconds, accelerators.
BY_HAND = {
    # 16 passes of 13,368 at 90/s; 13,368 scored; 30 s; no pilot
    "llama31-8b-h200": (
        "c0256",
        1200 + 13_368 / 180 + 30,
        (213_888 + 13_368) / 90 + 30,
        (213_888 + 13_368) / 45 + 30,
        1,
    ),
    # 8 passes of 6,396 at 20/s; 4,395 scored; 30 s; a pilot of 60, 102.4 or 204.8 s and 30 s
    "gpt-oss-120b-dedicated-offline": (
        "c1024",
        (51_168 + 4_395) / 40 + 30 + 90,
        (51_168 + 4_395) / 20 + 30 + 132.4,
        (51_168 + 4_395) / 10 + 30 + 234.8,
        8,
    ),
    # no rate: the minimum of 2,400 s × 1.25, and 30 s
    "qwen3_6-agentic": ("c0128", 3030.0, 3030.0, None, 4),
}


def planned(file: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert plan(file, as_json=True) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_preset_campaign_has_a_price(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Time, accelerator-hours, disk and the finishing time, of the whole and of each point."""
    assert plan(file) == 0
    text = capsys.readouterr().out
    for line in ("time  ", "accelerator-hours  ", "disk  ", "done  "):
        assert f"\n{line}" in text
    estimate = planned(file, capsys)["estimate"]
    for kind in ("wall_s", "disk_bytes"):
        for end in ("low", "expected"):
            total = sum(point[kind][end] for point in estimate["points"])
            assert estimate[kind][end] == pytest.approx(total)
            assert total > 0


@pytest.mark.parametrize("name", BY_HAND)
def test_the_price_is_what_it_is_by_hand(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Of one point, and the accelerator-hours of the whole."""
    label, low, expected, high, accelerators = BY_HAND[name]
    estimate = planned(CAMPAIGNS / f"{name}.yaml", capsys)["estimate"]
    (point,) = [point for point in estimate["points"] if point["label"] == label]
    assert point["wall_s"]["low"] == pytest.approx(low)
    assert point["wall_s"]["expected"] == pytest.approx(expected)
    assert point["wall_s"]["high"] == (high if high is None else pytest.approx(high))
    hours = estimate["wall_s"]["expected"] * accelerators / 3600
    assert estimate["accelerator_hours"]["expected"] == pytest.approx(hours)


def test_disk_by_hand(capsys: pytest.CaptureFixture[str]) -> None:
    """From one chunk, 892 B, to 128 of them, 21,466 B, for 213,888 + 13,368 samples."""
    estimate = planned(CAMPAIGNS / "llama31-8b-h200.yaml", capsys)["estimate"]
    (point,) = [point for point in estimate["points"] if point["label"] == "c0256"]
    assert point["disk_bytes"]["low"] == 227_256 * 892
    assert point["disk_bytes"]["high"] == 227_256 * 21_466
