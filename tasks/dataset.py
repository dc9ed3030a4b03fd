"""Looks at dataset files before any load: are they there, readable, and as long as declared?"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson

from core.campaign import Campaign
from core.campaign_datasets import AccuracyDataset
from core.errors import SetupError

#: Characters of a CSV field: long contexts exceed the 131,072 that Python's reader starts with.
_LONGEST_FIELD = 2**31 - 1

#: Counts the rows of a dataset file; the second argument names its key for messages.
Counter = Callable[[Path, str], int]


def count_rows(path: Path, key: str = "datasets") -> int:
    """Rows of a dataset file, each read and checked for the form that its suffix promises.

    Raises:
        SetupError: missing, empty, unreadable, not of that form, or of an unknown suffix.
    """
    if not path.exists():
        raise SetupError(f"{key}: {path} does not exist")
    if not path.is_file():
        raise SetupError(f"{key}: {path} is not a regular file")
    reader = _READERS.get(path.suffix)
    if reader is None:
        raise SetupError(
            f"{key}: {path} has suffix {path.suffix or 'none'!r};"
            " the client reads .jsonl, .json, .csv and .parquet"
        )
    try:
        rows = sum(1 for _ in reader(path))
    except (OSError, UnicodeDecodeError, csv.Error, ValueError) as problem:
        raise SetupError(f"{key}: {path} can't be read as {path.suffix[1:]}: {problem}") from None
    if rows == 0:
        raise SetupError(f"{key}: {path} has no rows")
    return rows


def count_trajectories(path: Path, key: str) -> int:
    """Conversations of an agentic dataset: one row is one message, `conversation_id` joins them.

    Raises:
        SetupError: as `count_rows`, and rows without a `conversation_id`.
    """
    count_rows(path, key)
    if path.suffix != ".jsonl":
        raise SetupError(f"{key}: {path}: an agentic dataset is a .jsonl file of messages")
    ids = {row.get("conversation_id") for row in _jsonl_rows(path)}
    if None in ids:
        raise SetupError(f"{key}: {path} has messages without a conversation_id")
    return len(ids)


def known_rows(
    path: Path | None, declared: int | None, key: str, count: Counter = count_rows
) -> int:
    """Row count of a dataset, checked against the declared one.

    Raises:
        SetupError: the file has another number of rows than declared, or can't be read.
    """
    if path is None:
        assert declared is not None, "the campaign model refuses a dataset without path and rows"
        return declared
    rows = count(path, f"{key}.path")
    if declared is not None and rows != declared:
        raise SetupError(f"{key}.rows: {declared} expected, but {path} has {rows}")
    return rows


def rows_for_plan(campaign: Campaign) -> int | None:
    """Rows of the performance dataset if the file or the campaign tells; None otherwise."""
    performance = campaign.datasets.performance
    try:
        is_file = performance.path is not None and performance.path.is_file()
    except OSError as problem:  # a name that no file can have
        raise SetupError(f"datasets.performance.path: {problem.strerror}; correct it") from None
    return _performance_rows(campaign) if is_file else performance.rows


def _performance_rows(campaign: Campaign) -> int:
    performance = campaign.datasets.performance
    count = count_trajectories if campaign.agentic else count_rows
    return known_rows(performance.path, performance.rows, "datasets.performance", count)


def check_datasets(campaign: Campaign) -> tuple[int, dict[str, int]]:
    """Rows of the performance dataset, and of each accuracy dataset by name.

    Raises:
        SetupError: see `known_rows` and `_check_ground_truth`.
    """
    rows = _performance_rows(campaign)
    accuracy = {
        dataset.name: known_rows(dataset.path, dataset.rows, f"datasets.accuracy {dataset.name!r}")
        for dataset in campaign.datasets.accuracy
    }
    for dataset in campaign.datasets.accuracy:
        _check_ground_truth(dataset)
    return rows, accuracy


def _check_ground_truth(dataset: AccuracyDataset) -> None:
    """Refuse a scorer whose column of truths the file lacks; the client would find out at its end.

    A `parser` may make the column from others, and only the client knows how.

    Raises:
        SetupError: with the columns that there are.
    """
    column = dataset.scorer.get("ground_truth")
    if column is None or dataset.path is None or "parser" in dataset.settings:
        return
    columns = _columns(dataset.path)
    if column not in columns:
        raise SetupError(
            f"datasets.accuracy {dataset.name!r} scorer.ground_truth: {dataset.path} has no"
            f" {column!r}; it has {', '.join(columns)}"
        )


def _columns(path: Path) -> list[str]:
    """Names of the columns of a dataset file that was read before."""
    if path.suffix == ".parquet":
        from pyarrow import parquet  # noqa: PLC0415 - slow to import, rarely needed

        return list(parquet.read_schema(path).names)
    return list(next(_READERS[path.suffix](path)))


def _jsonl_rows(path: Path) -> Iterator[Any]:
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                row = orjson.loads(line)
            except orjson.JSONDecodeError as problem:
                raise ValueError(f"line {number}: {problem}") from None
            if not isinstance(row, dict):
                raise ValueError(f"line {number} is not an object")
            yield row


def _json_rows(path: Path) -> Iterator[Any]:
    rows = orjson.loads(path.read_bytes())
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError("not a list of objects")
    return iter(rows)


def _csv_rows(path: Path) -> Iterator[Any]:
    csv.field_size_limit(_LONGEST_FIELD)
    with path.open(encoding="utf-8", newline="") as text:
        reader = csv.DictReader(text, strict=True)
        for row in reader:
            if None in row or None in row.values():
                raise ValueError(f"line {reader.line_num}: not as many fields as the header")
            yield row


def _parquet_rows(path: Path) -> Iterator[Any]:
    from pyarrow import ArrowException, parquet  # noqa: PLC0415 - slow to import, rarely needed

    try:
        return iter(range(parquet.ParquetFile(path).metadata.num_rows))
    except ArrowException as problem:
        raise ValueError(str(problem)) from None


_READERS = {
    ".jsonl": _jsonl_rows,
    ".json": _json_rows,
    ".csv": _csv_rows,
    ".parquet": _parquet_rows,
}
