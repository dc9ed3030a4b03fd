"""The `client:` section: the official client's command, and what of its YAML the user may set."""

from __future__ import annotations

from typing import Any

from pydantic import Field, StrictStr, field_validator

from core.redact import is_secret_key
from core.section import Section

#: Keys of the client's YAML that follow from the plan; `client.overrides` may not set them.
PLANNED_KEYS = (
    "name",
    "type",
    "report_dir",
    "datasets",
    "timeout",
    "audit",
    "submission_ref",
    "benchmark_mode",
    "model_params.name",
    "model_params.tokenizer_name",
    "model_params.streaming",
    "endpoint_config.endpoints",
    "endpoint_config.api_key",
    "endpoint_config.api_type",
    "settings.load_pattern",
    "settings.runtime",
    "settings.client.stream_all_chunks",
    "settings.timeouts.run_timeout_s",
)

#: Sections of the client's YAML that the plan writes into.
_CLIENT_SECTIONS = ("model_params", "settings", "settings.client", "endpoint_config")


class Client(Section):
    """The official client."""

    command: tuple[StrictStr, ...] = Field(
        min_length=1,
        description="The client's command as a list, e.g. [uv, run, --project, ~/endpoints,"
        " inference-endpoint].",
    )
    overrides: dict[str, Any] = Field(
        default_factory=dict,
        description="Merged into the client's YAML at every point, e.g. model_params: {…}.",
    )
    steady_state_command: tuple[StrictStr, ...] | None = Field(
        None,
        min_length=1,
        description="The client's detector of steady state as a list, e.g. [uv, run, --project,"
        " ~/endpoints, python, -m, inference_endpoint.metrics.steady_state_diagnostics]. It is"
        " given a copy of the run folder, and prints JSON or writes steady_state.json into it.",
    )

    @field_validator("overrides")
    @classmethod
    def _overrides_are_free(cls, overrides: dict[str, Any]) -> dict[str, Any]:
        problems = []
        for path in _paths(overrides):
            if is_secret_key(path.rsplit(".", 1)[-1]) and "tokenizer" not in path:
                problems.append(
                    f"{path}: looks like a secret; name its variable in endpoint.api_key_env"
                )
            if path in PLANNED_KEYS:
                problems.append(f"{path}: follows from the plan and can't be overridden; remove it")
            if path in _CLIENT_SECTIONS and not isinstance(_at(overrides, path), dict):
                problems.append(f"{path}: is a section of the client's YAML; write {path}: {{…}}")
        if problems:
            raise ValueError("\n".join(problems))
        return overrides


def _paths(tree: dict[str, Any], prefix: str = "") -> list[str]:
    """Dotted path of every key in a nested mapping."""
    found = []
    for key, value in tree.items():
        path = f"{prefix}{key}"
        found.append(path)
        if isinstance(value, dict):
            found += _paths(value, path + ".")
    return found


def _at(tree: dict[str, Any], path: str) -> Any:
    """The value at a dotted path that exists."""
    value: Any = tree
    for key in path.split("."):
        value = value[key]
    return value
