"""Reads docker-compose.yml as compose does: anchors merged, variables filled in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
COMPOSE = ROOT / "docker-compose.yml"
_VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")


def read_compose() -> dict[str, Any]:
    """The file, without what is only there to be merged."""
    found = yaml.safe_load(COMPOSE.read_text())
    return {name: value for name, value in found.items() if not name.startswith("x-")}


def resolved(value: Any, env: Mapping[str, str]) -> Any:
    """The value with every `${NAME:-default}` filled in, and `$$` as `$`."""
    if isinstance(value, dict):
        return {name: resolved(inner, env) for name, inner in value.items()}
    if isinstance(value, list):
        return [resolved(inner, env) for inner in value]
    if not isinstance(value, str):
        return value
    filled = _VARIABLE.sub(lambda found: env.get(found[1]) or found[2] or "", value)
    return filled.replace("$$", "$")
