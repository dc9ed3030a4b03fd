"""Campaigns for tests: a small valid one, varied by keyword."""

from __future__ import annotations

from typing import Any

from core.campaign import Campaign
from core.client_config import merged


def campaign_dict(**sections: Any) -> dict[str, Any]:
    """A valid campaign as plain data; sections given are merged in."""
    base: dict[str, Any] = {
        "campaign": "unit",
        "benchmark": "custom",
        "model": {"name": "sim-model", "tokenizer": "/tok"},
        "endpoint": {"urls": ["http://127.0.0.1:8000"]},
        "instance": {"name": "box"},
        "datasets": {
            "performance": {"path": "/data/perf.jsonl"},
            "accuracy": [
                {
                    "path": "/data/acc.jsonl",
                    "scorer": {"eval_method": "pass_at_1", "ground_truth": "ground_truth"},
                    "targets": {"score": 0.9},
                }
            ],
        },
        "curve": {"c_max": 64},
        "seeds": {"target_cohort": "2026-12-C0"},
        "client": {"command": ["inference-endpoint"]},
    }
    return merged(base, sections)


def make_campaign(**sections: Any) -> Campaign:
    """A valid campaign; sections given are merged in."""
    return Campaign.model_validate(campaign_dict(**sections))


def official(**sections: Any) -> Campaign:
    """A campaign of an official single-turn benchmark."""
    accuracy = [{"path": "/data/acc.jsonl", "scorer": {"eval_method": "rouge"}}]
    return make_campaign(
        benchmark="llama3_1-8b", **merged({"datasets": {"accuracy": accuracy}}, sections)
    )
