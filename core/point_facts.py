"""What is said of a point of a curve: every number with its name, as people read them."""

from __future__ import annotations

import json
from typing import Any

from core.curve import Row
from core.plan import AGENTIC
from core.regions import band_name


def facts_of(row: Row) -> list[tuple[str, str]]:
    """Every number of a point with its name, as people read them."""
    per_user = "e2e interactivity" if row["load_pattern"] == AGENTIC else "per user"
    facts = [
        ("level", f"{row['concurrency']:,}"),
        ("region", band_name(row["region"])),
        ("role", row["role"]),
        ("throughput", _amount(row["system_tps"], "tokens/s")),
        (per_user, _amount(row["interactivity"], "tokens/s")),
        ("TTFT P90", _amount(row["ttft_p90_ms"], "ms")),
        ("TPOT P90", _amount(row["tpot_p90_ms"], "ms", decimals=2)),
        ("utilization", _amount(row["tps_utilization"], "of the highest", decimals=3)),
        ("per kW", _amount(row["system_tps_per_kw"], "tokens/s")),
        ("samples", "–" if row["samples"] is None else f"{row['samples']:,}"),
        ("issue time", _amount(row["issue_time_s"], "s")),
        ("accuracy", scores_text(row)),
        ("standing", row["standing"]),
        ("measured over", f"{row['basis']}: {row['basis_why']}"),
        ("attempt", str(row["attempt"])),
    ]
    return [(name, text) for name, text in facts if text != "–"]


def scores_text(row: Row) -> str:
    """The scores of a point's accuracy run; a dash without one."""
    scores = json.loads(row["scores"] or "{}")
    found = [
        f"{dataset} {metric} {value:.4g}"
        for dataset, metrics in sorted(scores.items())
        for metric, value in sorted(metrics.items())
    ]
    return ", ".join(found) or "–"


def spoken(row: Row) -> str:
    """A point in one sentence, for who does not see it."""
    return f"{row['label']}: " + ", ".join(f"{name} {text}" for name, text in facts_of(row))


def _amount(value: Any, unit: str, decimals: int = 1) -> str:
    return "–" if value is None else f"{value:,.{decimals}f} {unit}"
