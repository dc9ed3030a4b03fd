"""Specimen results and disclosures: what a faultless run would leave, and what passes (§9.1).

With them the official checker can be asked about everything else before it is there. They are never
recorded and never packaged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from submission_checker.agentic_targets import OSL_FULL_RUN_FIELD, SWEBENCH_DATASET

from core.accuracy import agentic_targets, official_bounds
from core.disclosure import Told
from core.layout import DOCS_DIR, SRC_DIR
from core.plan import Point
from core.presets import fewest_queries

#: Samples of a specimen, where no number is asked for.
_SAMPLES = 10_000
#: s: longer than every minimum duration (§6.2).
_DURATION_S = 4000.0
#: Super-passes of its steady-state window, above the four that are needed (§4.4).
_PASSES = 5
_NS_PER_S = 1_000_000_000
_PERCENT = 100.0
#: Output tokens a sample where no range is given.
_TOKENS = 128.0

#: A system that passes: one node of eight accelerators.
SYSTEM: Mapping[str, Any] = {
    "system_name": "specimen",
    "shortened_system_name": "specimen",
    "availability_url": "https://example.com",
    "target_availability_date": "2027-01-01",
    "system_size": "1",
    "system_node_ensemble_count": 1,
    "system_node_ensemble_total": 1,
    "tensor_parallel": 1,
    "pipeline_parallel": 1,
    "expert_parallel": 1,
    "data_parallel": 8,
    "node_types": [
        {
            "system_node_ensemble_id": 0,
            "number_of_nodes": 1,
            "host_processor_core_count": 64,
            "host_memory_configuration": "8 x 64 GB",
            "host_network_card_count": "1",
            "driver": "1",
            "filesystem": "ext4",
            "cooling": "air",
            "accelerator_info": [{"accelerators_per_node": 8}],
        }
    ],
}
_SOURCED = {"value_w": 100, "source_type": "vendor_spec", "source": "https://example.com"}
#: Its power.
POWER: Mapping[str, Any] = {
    "system_desc_id": "specimen",
    "cooling": "air",
    "node_sets": [
        {
            "node_set_id": 0,
            "system_node_ensemble_id": 0,
            "nodes_provisioned": 1,
            "power_method": "component_sum",
            "components": {
                "cpu": {"count_per_node": 2, "tdp_per_unit": _SOURCED},
                "accelerator": {"count_per_node": 8, "tdp_per_unit": _SOURCED},
                "scale_up_network": {"method": "none"},
            },
        }
    ],
    "scale_out": {"present": False},
}
#: What its files hold.
TOLD = Told(SYSTEM, POWER, ("specimen",))
#: What its points are told to be.
POINT: Mapping[str, Any] = {
    "division": "Standardized",
    "model_precision": "FP8",
    "link_to_model": "https://example.com",
    "dataset_type": "Performance",
    "dataset_link": "https://example.com",
    "shared_src": f"{SRC_DIR}/specimen",
    "shared_docs": DOCS_DIR,
}
#: The configuration that it ran.
CONFIG: Mapping[str, Any] = {"datasets": [{"name": "performance", "type": "performance"}]}


def steady_state() -> dict[str, Any]:
    """A window that makes the windowed numbers official."""
    window = {
        "super_pass_start": 0,
        "super_pass_end": _PASSES - 1,
        "super_pass_size": _SAMPLES // _PASSES,
        "n_samples": _SAMPLES,
        "duration_s": _DURATION_S,
    }
    states = {f"{name}_{rank}": "Plateau" for name in ("ttft", "tpot") for rank in ("p50", "p90")}
    return {
        "status": "windowable",
        "verdict": "STEADY STATE",
        "state": states,
        "window": window,
    }


def summary(benchmark: str, point: Point) -> dict[str, Any]:
    """A summary; higher levels have more throughput."""
    samples = max(_SAMPLES, fewest_queries(benchmark) or 0)
    targets = agentic_targets(benchmark)
    mean = sum(targets.osl_range) / 2 if targets and targets.osl_range else _TOKENS
    percentiles = {"90.0": 20_000_000.0, "50.0": 10_000_000.0}
    result: dict[str, Any] = {
        "n_samples_issued": samples,
        "n_samples_completed": samples,
        "n_samples_failed": 0,
        "duration_ns": int(_DURATION_S * _NS_PER_S),
        "state": "complete",
        "complete": True,
        "ttft": {"percentiles": percentiles},
        "tpot": {"percentiles": percentiles},
        "latency": {"total": samples * _NS_PER_S / point.concurrency},
        "output_sequence_lengths": {"total": samples * mean * (1 + point.concurrency)},
        "steady_state": steady_state(),
    }
    if targets is not None:
        result[OSL_FULL_RUN_FIELD] = {"output_sequence_lengths": {"avg": mean}}
    return result


def accuracy(benchmark: str, point: Point) -> dict[str, Any] | None:
    """Accuracy results that pass; None: the point needs none."""
    targets, bounds = agentic_targets(benchmark), official_bounds(benchmark)
    if targets is not None:
        inline = {"dataset_name": "performance", "dataset_type": "performance", "score": 0.999}
        scored = {"dataset_name": SWEBENCH_DATASET, "dataset_type": "accuracy", "score": 0.999}
        return {"accuracy_scores": [inline, *([scored] if point.accuracy else [])]}
    if bounds is None or not point.accuracy:
        return None
    scores = {
        metric: lowest if highest is None else (lowest + highest) / 2
        for metric, (lowest, highest) in bounds[0].items()
    }
    entry = {
        "dataset_name": "accuracy",
        "dataset_type": "accuracy",
        "score": scores,
        "unit_samples": bounds[1],
        "num_repeats": 1,
    }
    return {"accuracy_scores": [entry]}
