"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

#: Prints JSON instead of a table.
AsJson = Annotated[bool, Parameter(name="--json", negative="")]
