"""One measured figure: its value and spread, its target, and by which factor it misses that."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Figure:
    """One line of the table."""

    name: str
    value: float
    unit: str
    target: float | None = None  # None: told for its own sake
    at_least: bool = False  # the target is a lower bound
    low: float | None = None
    high: float | None = None
    samples: int = 1
    note: str = ""

    @property
    def miss(self) -> float:
        """Factor by which the target is missed; at most 1: it is met."""
        if self.target is None:
            return 0.0
        good, bad = (self.value, self.target) if self.at_least else (self.target, self.value)
        return bad / good if good > 0 else float("inf")

    @property
    def verdict(self) -> str:
        """PASS, or the factor."""
        if self.target is None:
            return ""
        return "PASS" if self.miss <= 1 else f"misses ×{self.miss:.3f}"

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "verdict": self.verdict}


def median_of(
    name: str,
    values: Sequence[float],
    unit: str,
    target: float | None = None,
    *,
    at_least: bool = False,
    note: str = "",
) -> Figure:
    """The median of repeated measurements with their spread."""
    return Figure(
        name,
        statistics.median(values),
        unit,
        target,
        at_least,
        min(values),
        max(values),
        len(values),
        note,
    )


def worst_of(
    name: str, values: Sequence[float], unit: str, target: float | None = None, *, note: str = ""
) -> Figure:
    """The largest of repeated measurements."""
    return Figure(name, max(values), unit, target, samples=len(values), note=note)


def table(figures: Sequence[Figure]) -> str:
    """The figures as aligned lines."""
    head = ("figure", "value", "spread", "n", "target", "verdict", "note")
    rows = [head, *(_row(figure) for figure in figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(r, widths, strict=True)).rstrip()
        for r in rows
    ]
    return "\n".join([lines[0], "-" * max(map(len, lines)), *lines[1:]])


def _row(figure: Figure) -> tuple[str, ...]:
    spread = ""
    if figure.low is not None and figure.high is not None:
        spread = f"{figure.low:.4g} … {figure.high:.4g}"
    sign = "≥" if figure.at_least else "≤"
    target = "" if figure.target is None else f"{sign} {figure.target:.4g}"
    value = f"{figure.value:.4g} {figure.unit}".strip()
    return (
        figure.name,
        value,
        spread,
        str(figure.samples),
        target,
        figure.verdict,
        figure.note,
    )
