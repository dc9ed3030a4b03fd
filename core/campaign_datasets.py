"""The `datasets:` section: what is sent to the endpoint, and how answers are scored."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

from pydantic import Field, field_validator, model_validator

from core.section import DatasetName, Number, PositiveInt, Section

#: Datasets of the client's own, which it fetches by name (client at ea33275,
#: `dataset_manager/predefined`). It ignores the path of an entry that is named like one.
CLIENT_DATASETS = (
    "agentic_inference_conversations",
    "aime25",
    "bfcl_v4",
    "cnn_dailymail",
    "gpqa",
    "legacy_mlperf_deepseek_r1",
    "livecodebench",
    "open_orca",
    "random",
    "shopify_product_catalogue",
    "shopify_product_catalogue_8k",
    "swe_bench",
)
#: What the client calls the timed phase where it needs a dataset's name.
_TIMED_PHASE = "performance"


class Dataset(Section):
    """What both kinds of dataset have in common."""

    path: Path | None = Field(
        None,
        description="Dataset file (.jsonl, .json, .csv or .parquet); without one the client"
        " resolves the name itself (e.g. cnn_dailymail::llama3_8b) and rows is needed.",
    )
    name: DatasetName = Field("performance", description="Name in the client's configuration.")
    rows: PositiveInt | None = Field(
        None,
        description="Number of rows; checked against the file before any load. An official"
        " benchmark has its own.",
    )
    settings: dict[str, Any] = Field(
        default_factory=dict,
        description="Further keys of the client's dataset entry, e.g. format or parser.",
    )

    @model_validator(mode="after")
    def _path_counts(self) -> Self:
        if self.path is not None and self.name.partition("::")[0] in CLIENT_DATASETS:
            raise ValueError(
                "name: is a dataset of the client's own, for which it ignores the path; take"
                " another name, or remove path"
            )
        return self

    @model_validator(mode="after")
    def _size_is_known(self) -> Self:
        if self.path is None and self.rows is None:
            raise ValueError("needs a path, or rows if the client resolves the name itself")
        return self


class PerformanceDataset(Dataset):
    """The dataset of the timed phase."""


class Bound(Section):
    """The accepted range of an accuracy metric."""

    min: Number | None = Field(None, description="Lowest accepted value.")
    max: Number | None = Field(None, description="Highest accepted value.")

    @model_validator(mode="after")
    def _bounds_something(self) -> Bound:
        if self.min is None and self.max is None:
            raise ValueError("needs min, max or both; without them every score would pass")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"no score is at least {self.min:g} and at most {self.max:g}")
        return self


class AccuracyDataset(Dataset):
    """A dataset of the scored phase, with ground truths as text."""

    name: DatasetName = Field("accuracy", description="Name in the client's configuration.")
    scorer: dict[str, Any] = Field(
        default_factory=dict,
        description="The client's accuracy_config: eval_method, ground_truth, extractor,"
        " num_repeats, … Needed, but for the datasets of an official benchmark, whose preset has"
        " it (docs/presets.md).",
    )
    targets: dict[str, Bound | Number] = Field(
        default_factory=dict,
        description="Accepted metric values for a custom benchmark: a lower bound or min and max;"
        " official benchmarks take theirs from the official checker.",
    )

    @model_validator(mode="after")
    def _is_scored(self) -> Self:
        if "scorer" not in self.model_fields_set:
            raise ValueError(
                "needs a scorer, the client's accuracy_config; a dataset of an official benchmark"
                " has one if its name or file name says which it is (docs/presets.md)"
            )
        return self

    @field_validator("scorer")
    @classmethod
    def _repeats_are_a_count(cls, scorer: dict[str, Any]) -> dict[str, Any]:
        repeats = scorer.get("num_repeats", 1)
        if type(repeats) is not int or repeats < 1:
            raise ValueError("num_repeats: must be a whole number of 1 or more")
        return scorer

    @property
    def repeats(self) -> int:
        """How often each row is scored."""
        return int(self.scorer.get("num_repeats", 1))

    @property
    def bounds(self) -> dict[str, tuple[float | None, float | None]]:
        """Targets as (lowest, highest) accepted value by metric."""
        return {
            metric: (bound.min, bound.max) if isinstance(bound, Bound) else (bound, None)
            for metric, bound in self.targets.items()
        }


class Datasets(Section):
    """What is sent to the endpoint."""

    performance: PerformanceDataset = Field(description="Dataset of the timed phase.")
    accuracy: tuple[AccuracyDataset, ...] = Field(
        (),
        description="Datasets of the accuracy run, scored at the mandatory points. Default: those"
        " of an official benchmark; [] for none.",
    )

    @model_validator(mode="after")
    def _names_differ(self) -> Datasets:
        # The client's own dataset may serve both phases under its one name.
        timed = self.performance.name if self.performance.path is not None else _TIMED_PHASE
        names = [timed, *(d.name for d in self.accuracy)]
        if len(set(names)) != len(names):
            raise ValueError(f"the dataset names must differ, not {', '.join(names)}")
        return self
