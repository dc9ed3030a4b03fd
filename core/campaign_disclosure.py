"""The `disclosure:` section: what only a person can tell of system, model and dataset (§8.2, §8.3).

Nothing measured depends on it, so it may be filled in and corrected after the runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, StrictBool, StrictInt, StrictStr

from core.section import Section

#: A point by its level, or the dedicated Offline run.
PointKey = Annotated[StrictInt, Field(ge=1, le=10_000_000)] | Literal["offline"]


class PointDisclosure(Section):
    """What is told of one point alone."""

    system: dict[str, Any] = Field(
        default_factory=dict,
        description="Keys of its system_desc.json that differ: tensor_parallel, batch, …",
    )
    nodes_used: tuple[dict[str, Any], ...] = Field(
        (), description="Nodes that it engages: system_node_ensemble_id and nodes (§4.5.3)."
    )
    dp_shortfall: dict[str, Any] | None = Field(
        None, description="Fewer replicas than fit: dp_actual, dp_formula and reason (§4.5.3)."
    )


class WarmupDisclosure(Section):
    """What is told of warming up, beside the counts that the events show (§6.3)."""

    data_source: StrictStr | None = Field(
        None, min_length=1, description="Origin of the warm-up's data. Default: as the client does."
    )
    initialization_steps: tuple[StrictStr, ...] = Field(
        (), description="What was done to the server before the first request."
    )
    logs_retained: StrictBool = Field(
        True, description="Whether the warm-up's events are kept; pareto keeps every run folder."
    )
    link_logs: StrictStr | None = Field(None, description="Where a reviewer finds them.")


class Disclosure(Section):
    """What a submission tells beside its measurements."""

    organization: StrictStr | None = Field(
        None, min_length=1, description="Submitting organization; names the submission's folder."
    )
    scenario: Literal["cop", "con"] | None = Field(
        None, description="Client on premises (cop) or over the network (con)."
    )
    division: Literal["Standardized", "Serviced", "RDI"] = Field(
        "Standardized", description="Division (§2)."
    )
    availability: Literal["Available", "Preview", "RDI"] | None = Field(
        None, description="Availability of the system (§8.2)."
    )
    model_precision: StrictStr | None = Field(
        None, min_length=1, description="Lowest precision of the weights, e.g. FP8."
    )
    link_to_model: StrictStr | None = Field(
        None, min_length=1, description="Link to the submitted model."
    )
    link_to_model_transformation: StrictStr | None = Field(
        None, description="Link to how it was quantized or calibrated."
    )
    model_notes: StrictStr | None = Field(None, description="Notes about the model.")
    dataset_name: StrictStr | None = Field(
        None, min_length=1, description="Dataset as readers know it. Default: the official name."
    )
    dataset_type: Literal["Performance", "Accuracy", "Accuracy + Performance"] = Field(
        "Performance", description="What the dataset is used for (§8.3)."
    )
    dataset_link: StrictStr | None = Field(
        None, min_length=1, description="Link to the data that was used."
    )
    src: Path | None = Field(
        None,
        description="Folder with one folder an implementation, each with a README.md (§2.2.1).",
    )
    implementation: StrictStr | None = Field(
        None,
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$",
        description="Which folder of src was measured; needed if there are several.",
    )
    docs: Path | None = Field(None, description="Folder of the submission's documents.")
    system: dict[str, Any] | Path | None = Field(
        None, description="system_desc.json (§8.2): its keys, or a JSON or YAML file with them."
    )
    sysinfo: Path | None = Field(
        None,
        description="Configuration of mlperf-sysinfo, which then captures the system's keys; those"
        " in system win.",
    )
    power: dict[str, Any] | Path | None = Field(
        None, description="system_power.json (Appendix E): its keys, or a file with them."
    )
    points: dict[PointKey, PointDisclosure] = Field(
        default_factory=dict,
        description="By level, or offline: system, nodes_used and dp_shortfall of a point alone.",
    )
    warmup: WarmupDisclosure = Field(
        default_factory=WarmupDisclosure, description="What is told of warming up (§6.3)."
    )
    speculative_decoding: dict[str, Any] | None = Field(
        None, description="The drafter, by the keys of the approved list (§2.9.4); none if unused."
    )
