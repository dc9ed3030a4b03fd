"""What every section of the campaign file has in common, and the types of their fields."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr

#: A name that is safe as a folder name and in a Prefect tag.
_NAME = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"

#: A dataset's name, `::` and all: the client has presets such as cnn_dailymail::llama3_8b.
_DATASET_NAME = r"^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$"

Name = Annotated[StrictStr, Field(pattern=_NAME)]
DatasetName = Annotated[StrictStr, Field(pattern=_DATASET_NAME)]
Number = Annotated[float, Field(strict=True)]
PositiveInt = Annotated[StrictInt, Field(ge=1)]
Level = Annotated[StrictInt, Field(ge=1, le=10_000_000)]


class Section(BaseModel):
    """A frozen part of the campaign file; unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)
