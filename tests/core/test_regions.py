"""Region boundaries are the official function's."""

import json
from pathlib import Path
from typing import Any

import pytest

from core.errors import InputError
from core.regions import compute_regions, uncovered_bands

VECTORS = json.loads((Path(__file__).parent.parent / "data" / "regions.json").read_text())


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: f"{v['c_max']}-{v['c_min']}")
def test_boundaries_equal_the_published_vectors(vector: dict[str, Any]) -> None:
    regions = compute_regions(vector["c_max"], vector["c_min"])
    found = {
        "c_max": vector["c_max"],
        "c_min": vector["c_min"],
        "low_latency": [regions.low_latency.start, regions.low_latency.end],
        "low": [regions.low_concurrency.start, regions.low_concurrency.end],
        "med": [regions.med_concurrency.start, regions.med_concurrency.end],
        "high": [regions.high_concurrency.start, regions.high_concurrency.end],
        "margin": [regions.margin.start, regions.margin.end],
    }
    assert vector == found


@pytest.mark.parametrize(
    ("c_max", "c_min", "said"),
    [(32, 1, "32"), (64, 0, "1"), (64, 33, "32"), (10**400, 1, "too large")],
)
def test_refusals_of_the_official_function_are_input_errors(
    c_max: int, c_min: int, said: str
) -> None:
    with pytest.raises(InputError, match=said):
        compute_regions(c_max, c_min)


def test_a_band_without_a_level_is_uncovered() -> None:
    regions = compute_regions(256, 1)
    assert uncovered_bands([1, 4, 256], regions) == ["med_concurrency"]
    assert uncovered_bands([1, 4, 16, 256], regions) == []
    assert uncovered_bands([260], regions) == [
        "ultra_low_concurrency",
        "low_concurrency",
        "med_concurrency",
        "high_concurrency",
    ]
