"""The curve as a table for programs: the same in every form."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path

import pandas as pd
import pytest

from core.curve_table import COLUMNS, export, table
from core.errors import InputError
from tests.core.test_curve_rows import at, curve_of
from tests.core.test_overview import VALID, point


def test_every_form_holds_the_same_table() -> None:
    curve = curve_of(point(VALID), at(8, 200, 40))
    read = {
        ".csv": lambda data: pd.read_csv(io.BytesIO(data)),
        ".parquet": lambda data: pd.read_parquet(io.BytesIO(data)),
        ".json": lambda data: pd.DataFrame(json.loads(data)["points"]),
    }
    for suffix, reader in read.items():
        read_back = reader(export(curve, suffix))
        assert list(read_back.columns) == list(COLUMNS), suffix
        for column in ("label", "concurrency", "system_tps", "tps_per_user", "standing", "samples"):
            assert read_back[column].tolist() == table(curve)[column].tolist(), (suffix, column)


def test_every_column_is_one_of_the_rows() -> None:
    """In the same order: neither knows a column that the other does not."""
    (row,) = curve_of(point(VALID)).rows
    assert list(row) == list(COLUMNS)


def test_json_has_steps_and_version_and_no_nan() -> None:
    text = export(curve_of(at(4, 100, 50, e2e_avg_interactivity=math.inf)), ".json")
    assert b"NaN" not in text
    assert b"Infinity" not in text
    document = json.loads(text)
    assert document["version"] == 1
    assert document["steps"] == [{"interactivity": 50.0, "system_tps": 100.0}]
    assert document["points"][0]["scores"] == {}
    assert document["points"][0]["system_tps_per_kw"] is None


def test_another_form_is_refused() -> None:
    with pytest.raises(InputError, match=r"\.xlsx: a curve is written as \.csv, \.parquet, \.json"):
        export(curve_of(), Path("curve.xlsx").suffix)
