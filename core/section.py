"""What every section of the campaign file has in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A frozen part of the campaign file; unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)
