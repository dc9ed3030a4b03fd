"""The configuration templates that the stand-in client's `init` writes."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import yaml

from tasks.rehearsal.config import dialect
from tasks.rehearsal.failures import ClientInputError, ClientSetupError

_LOG = logging.getLogger("inference_endpoint.commands.init")

#: The load pattern of each template.
_PATTERNS: dict[str, dict[str, Any]] = {
    "concurrency": {"type": "concurrency", "target_concurrency": 32},
    "offline": {"type": "max_throughput"},
}


def template(kind: str) -> dict[str, Any]:
    """Return a full template; what is unset by default does not appear in it.

    Raises:
        ClientInputError: If there is no template of that kind.
    """
    if kind not in _PATTERNS:
        available = ", ".join(sorted(_PATTERNS))
        raise ClientInputError(f"Unknown template type: {kind}. Available: {available}")
    config = dialect().model_validate(
        {
            "name": f"{kind}_benchmark",
            "type": "offline" if kind == "offline" else "online",
            "model_params": {"name": "<MODEL_NAME>"},
            "datasets": [{"name": "<DATASET_PATH>", "path": "<DATASET_PATH>"}],
            "settings": {"load_pattern": _PATTERNS[kind]},
            "endpoint_config": {"endpoints": ["http://localhost:8000"]},
        }
    )
    return config.model_dump(mode="json", exclude_none=True)


def write_template(kind: str) -> None:
    """Write `<kind>_template.yaml` into the working directory."""
    document = template(kind)
    path = Path(f"{kind}_template.yaml")
    if path.exists():
        _LOG.warning("File exists: %s (will be overwritten)", path)
    try:
        path.write_text(
            yaml.dump(document, default_flow_style=False, sort_keys=False), encoding="utf-8"
        )
    except OSError as error:
        raise ClientSetupError(f"Failed to create template: {error}") from error
    _LOG.info("Created: %s", path)
