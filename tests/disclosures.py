"""Disclosures for tests: complete ones that the official checker accepts, for one node of eight."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from core.client_config import merged

#: A figure with its source.
SOURCED = {"value_w": 350, "source_type": "vendor_spec", "source": "https://example.com/spec"}


def system_dict(**keys: Any) -> dict[str, Any]:
    """What a person tells of the system."""
    base: dict[str, Any] = {
        "system_name": "H200 box",
        "shortened_system_name": "H200 box",
        "availability_url": "https://example.com/h200",
        "system_size": "8x H200",
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
                "host_processor_core_count": 112,
                "host_memory_configuration": "32 x 64 GB",
                "host_network_card_count": "8",
                "driver": "580.1",
                "filesystem": "ext4",
                "cooling": "air",
                "accelerator_info": [{"accelerators_per_node": 8}],
            }
        ],
    }
    return merged(base, keys)


def power_dict() -> dict[str, Any]:
    """What a person tells of its power."""
    components = {
        "cpu": {"count_per_node": 2, "tdp_per_unit": dict(SOURCED)},
        "accelerator": {"count_per_node": 8, "tdp_per_unit": {**SOURCED, "value_w": 700}},
        "scale_up_network": {"method": "none"},
    }
    node_set = {"node_set_id": 0, "system_node_ensemble_id": 0, "nodes_provisioned": 1}
    node_set |= {"power_method": "component_sum", "components": components}
    return {"cooling": "air", "node_sets": [node_set], "scale_out": {"present": False}}


def disclosure_dict(folder: Path, **keys: Any) -> dict[str, Any]:
    """A complete `disclosure:` section; writes the folders that it names."""
    implementation = folder / "src" / "vllm"
    implementation.mkdir(parents=True, exist_ok=True)
    (implementation / "README.md").write_text("How to build and reproduce.\n")
    (folder / "docs").mkdir(exist_ok=True)
    (folder / "docs" / "calibration.md").write_text("None.\n")
    base: dict[str, Any] = {
        "organization": "Acme",
        "scenario": "cop",
        "availability": "Available",
        "model_precision": "FP8",
        "link_to_model": "https://example.com/model",
        "dataset_link": "https://example.com/data",
        "src": str(folder / "src"),
        "docs": str(folder / "docs"),
        "system": system_dict(),
        "power": power_dict(),
    }
    return merged(base, keys)
