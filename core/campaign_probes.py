"""The `fingerprint:` section: things of the user's own that must not change across the curve."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, StrictBool, StrictInt, StrictStr, field_validator, model_validator

from core.section import Name, Section


class Probe(Section):
    """Something of the user's own that must not change across the curve."""

    name: Name = Field(description="Name of the probe, e.g. driver.")
    command: tuple[StrictStr, ...] | None = Field(
        None,
        min_length=1,
        description="A command as a list, never through a shell; what it prints is kept.",
    )
    http: StrictStr | None = Field(
        None, pattern=r"^/", description="A path that every URL of the endpoint is asked for."
    )
    file: Path | None = Field(None, description="A file; its digest is kept.")
    timeout_s: Annotated[float, Field(strict=True, gt=0, le=60)] = Field(
        10.0, description="Longest time that it may take, seconds."
    )
    max_bytes: Annotated[StrictInt, Field(ge=1, le=1 << 20)] = Field(
        65_536, description="Most that it may print or send."
    )
    volatile: tuple[StrictStr, ...] = Field(
        (), description="Patterns (Python's re) of what differs each time; cut out line by line."
    )
    identity: StrictBool = Field(
        False,
        description="Changes when the server restarts, e.g. a boot time: tells instances apart"
        " instead of systems.",
    )

    @model_validator(mode="after")
    def _asks_one_thing(self) -> Self:
        if [self.command, self.http, self.file].count(None) != 2:  # noqa: PLR2004 - of three
            raise ValueError("needs exactly one of command, http and file")
        return self

    @field_validator("volatile")
    @classmethod
    def _patterns_are_patterns(cls, volatile: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in volatile:
            try:
                re.compile(pattern)
            except re.error as problem:
                raise ValueError(f"{pattern!r} is no regular expression: {problem}") from None
        return volatile


class FingerprintSection(Section):
    """What the curve's fingerprint has beside what is always in it."""

    probes: tuple[Probe, ...] = Field(
        (), description="Further things that must not change: driver, container image, …"
    )

    @field_validator("probes")
    @classmethod
    def _names_differ(cls, probes: tuple[Probe, ...]) -> tuple[Probe, ...]:
        names = [probe.name for probe in probes]
        if len(set(names)) != len(names):
            raise ValueError(f"the probes' names must differ, not {', '.join(names)}")
        return probes
