"""The curve as a table for programs: columns with types, as CSV, Parquet and JSON."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable
from typing import Any

import pandas as pd

from core.curve import Curve, steps
from core.errors import InputError

#: Columns of a curve and their types; the order is that of the exported files.
COLUMNS: dict[str, str] = {
    "campaign": "str",
    "rehearsal": "bool",
    "label": "str",
    "concurrency": "int64",
    "region": "str",
    "role": "str",
    "load_pattern": "str",
    "system_tps": "float64",
    "tps_per_user": "float64",  # 1000 / TPOT P90 in ms
    "e2e_avg_interactivity": "float64",  # tokens/s, all answers
    "interactivity": "float64",  # the curve's abscissa: the former, of agentic points the latter
    "ttft_p90_ms": "float64",
    "tpot_p90_ms": "float64",
    "tps_utilization": "float64",  # system_tps over the curve's highest
    "system_tps_per_kw": "float64",
    "standing": "str",
    "basis": "str",
    "basis_why": "str",
    "coverage": "str",
    "steady_state_status": "str",
    "steady_state_verdict": "str",
    "samples": "Int64",
    "duration_s": "float64",
    "issue_time_s": "float64",
    "accuracy": "bool",
    "scores": "str",  # JSON: dataset → metric → value; empty: none
    "attempt": "int64",
    "client_version": "str",
    "folder": "str",
}


def table(curve: Curve) -> pd.DataFrame:
    """One row per valid point, by level; a missing value is NaN or NA."""
    return pd.DataFrame(list(curve.rows), columns=list(COLUMNS)).astype(COLUMNS)


def export(curve: Curve, suffix: str) -> bytes:
    """The table as a file's content.

    Args:
        curve: The curve.
        suffix: .csv, .parquet or .json.

    Raises:
        InputError: there is no such form.
    """
    form = _FORMS.get(suffix)
    if form is None:
        raise InputError(f"{suffix or 'no suffix'}: a curve is written as {', '.join(_FORMS)}")
    return form(curve)


def _csv(curve: Curve) -> bytes:
    return table(curve).to_csv(index=False).encode()


def _parquet(curve: Curve) -> bytes:
    file = io.BytesIO()
    table(curve).to_parquet(file, index=False)
    return file.getvalue()


def _json(curve: Curve) -> bytes:
    rows = [
        {name: _plain(row[name]) for name in COLUMNS}
        | {"scores": json.loads(row["scores"] or "{}")}
        for row in curve.rows
    ]
    document = {
        "version": 1,
        "campaign": curve.name,
        "rehearsal": curve.rehearsal,
        "offline_tps": curve.offline_tps,
        "points": rows,
        "steps": [{"interactivity": x, "system_tps": tps} for x, tps in steps(curve.rows)],
        "notes": list(curve.notes),
    }
    return json.dumps(document, indent=2).encode() + b"\n"


def _plain(value: Any) -> Any:
    """A value as JSON has it: without NaN and infinity."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


_FORMS: dict[str, Callable[[Curve], bytes]] = {".csv": _csv, ".parquet": _parquet, ".json": _json}
