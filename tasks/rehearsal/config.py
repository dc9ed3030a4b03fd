"""Reads, resolves and saves the stand-in client's configuration (keys: `schema.py`)."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import yaml
from pydantic import ValidationError

from tasks.rehearsal.failures import ClientInputError
from tasks.rehearsal.schema import DIALECT_VARIABLE, AugustConfig, Config, SeptemberConfig

#: What stands in a saved config where a secret was.
REDACTED = "<redacted>"
#: The dialects that `PARETO_REHEARSAL_DIALECT` can name.
DIALECTS: dict[str, type[Config]] = {"2026-08": AugustConfig, "2026-09": SeptemberConfig}

_VARIABLE = re.compile(r"\$\$|\$\{([A-Za-z_]\w*)(?::-(.*?))?\}|\$([A-Za-z_]\w*)")
_SECRET_KEY = re.compile(
    r"api_key|authorization|password|token|.*_(key|token|password)|.*secret.*", re.IGNORECASE
)


def dialect() -> type[Config]:
    """Return the model of the dialect in force."""
    name = os.environ.get(DIALECT_VARIABLE, "2026-08")
    if name not in DIALECTS:
        raise ClientInputError(f"{DIALECT_VARIABLE}={name}: known are {', '.join(DIALECTS)}")
    return DIALECTS[name]


def load(path: Path) -> Config:
    """Return the configuration in a YAML file, variables resolved.

    Raises:
        ClientInputError: If the file is missing, not YAML, or not a configuration.
    """
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        if not isinstance(document, dict):
            raise ClientInputError(f"Expected YAML mapping, got {type(document).__name__}")
        return dialect().model_validate(resolved(document))
    except FileNotFoundError as error:
        raise ClientInputError(f"Config file not found: {path}") from error
    except (OSError, yaml.YAMLError, ValidationError, ValueError) as error:
        raise ClientInputError(str(error)) from error


def updated(config: Config, **changes: Any) -> Config:
    """Return a configuration with top-level values replaced, validated again."""
    document = config.model_dump(mode="python", exclude_none=True) | changes
    try:
        return type(config).model_validate(document)
    except ValidationError as error:
        raise ClientInputError(str(error)) from error


def with_timeout(config: Config, timeout_s: float) -> Config:
    """Return a configuration with the time-out of the command line, where the dialect keeps it."""
    if isinstance(config, AugustConfig):
        return updated(config, timeout=timeout_s)
    settings = config.settings.model_dump(mode="python", exclude_none=True)
    settings["timeouts"]["run_timeout_s"] = timeout_s
    return updated(config, settings=settings)


def resolved(value: Any) -> Any:
    """Return a YAML value with `${VAR}`, `${VAR:-default}` and `$VAR` filled in, `$$` as `$`."""
    if isinstance(value, dict):
        return {key: resolved(item) for key, item in value.items()}
    if isinstance(value, list):
        return [resolved(item) for item in value]
    return _VARIABLE.sub(_variable, value) if isinstance(value, str) else value


def _variable(match: re.Match[str]) -> str:
    if match[0] == "$$":
        return "$"
    name, default = match[1] or match[3], match[2]
    if (value := os.environ.get(name, default)) is None:
        raise ClientInputError(f"Environment variable ${{{name}}} is not set and has no default")
    return value


def save(config: Config, path: Path) -> None:
    """Write the resolved configuration as the run folder keeps it, secrets replaced."""
    document = redacted(config.model_dump(mode="json", exclude_none=True))
    path.write_text(
        yaml.dump(document, default_flow_style=False, sort_keys=False), encoding="utf-8"
    )


def redacted(value: Any) -> Any:
    """Return a value with the secrets in it replaced: by key, and in URLs."""
    if isinstance(value, dict):
        return {
            key: REDACTED if _SECRET_KEY.fullmatch(str(key)) else redacted(item)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [redacted(item) for item in value]
    return _redacted_url(value) if isinstance(value, str) else value


def _redacted_url(text: str) -> str:
    parts = urlsplit(text) if "://" in text else None
    if parts is None or not parts.netloc:
        return text
    netloc = f"{REDACTED}@{parts.netloc.rpartition('@')[2]}" if "@" in parts.netloc else None
    query = parse_qsl(parts.query, keep_blank_values=True)
    secret = any(_SECRET_KEY.fullmatch(key) for key, _ in query)
    if netloc is None and not secret:
        return text
    kept = [(key, REDACTED if _SECRET_KEY.fullmatch(key) else item) for key, item in query]
    return urlunsplit(parts._replace(netloc=netloc or parts.netloc, query=urlencode(kept)))
