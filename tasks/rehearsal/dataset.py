"""Reads the stand-in client's datasets: JSON lines with a text prompt in every row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tasks.rehearsal.failures import ClientError, ClientInputError, ClientSetupError
from tasks.rehearsal.schema import Dataset

Row = dict[str, Any]


def load_rows(config: Dataset) -> list[Row]:
    """Return the rows of a dataset, columns renamed as its `parser` says.

    Raises:
        ClientInputError: If the file is missing.
        ClientSetupError: If it is not JSON lines with prompts.
    """
    if config.path is None:
        raise ClientInputError(f"Dataset {config.name} has no path")
    try:
        lines = Path(config.path).read_text(encoding="utf-8").splitlines()
        rows = [_renamed(json.loads(line), config.parser or {}) for line in lines if line.strip()]
    except FileNotFoundError as error:
        raise ClientInputError(f"Dataset file not found: {config.path}") from error
    except (OSError, ValueError, AttributeError) as error:
        raise ClientSetupError(f"Failed to load dataset {config.path}: {error}") from error
    if not rows or not all(isinstance(row.get("prompt"), str) for row in rows):
        raise ClientSetupError(
            f"Failed to load dataset {config.path}: the stand-in wants JSON lines, each with a "
            f"text 'prompt'"
        )
    return rows


def _renamed(row: Row, parser: dict[str, str]) -> Row:
    return {**row, **{target: row[source] for target, source in parser.items() if source in row}}


def truths(rows: list[Row], column: str) -> list[Any]:
    """Return the ground truths; a column of numeric texts turns into numbers, as in the client.

    Raises:
        ClientError: If a row has no such column.
    """
    if not all(column in row for row in rows):
        raise ClientError(f"Ground truth column {column} not found in dataset")
    found = [row[column] for row in rows]
    try:
        return [float(truth) for truth in found]
    except (TypeError, ValueError):
        return found
