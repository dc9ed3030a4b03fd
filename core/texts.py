"""Amounts as people read them: durations, sizes, spans and moments."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from core.estimate import Span

SECONDS_PER_MINUTE = 60


def span_text(span: Span, text: Callable[[float], str]) -> str:
    """An amount: exact, a range, or at least so much."""
    if span.high is None:
        return f"at least {text(span.low)}"
    low, high = text(span.low), text(span.high)
    return low if low == high else f"{low} to {high}"


def hours_text(hours: float) -> str:
    """Hours with one decimal; of less than one, two digits that count."""
    return f"{hours:.1f}" if hours >= 1 else f"{hours:.2g}"


def duration_text(seconds: float) -> str:
    """A duration as people say it: 45 s, 12 min, 3 h 20 min."""
    if round(seconds) < SECONDS_PER_MINUTE:
        return f"{round(seconds)} s"
    hours, minutes = divmod(round(seconds / SECONDS_PER_MINUTE), 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min"


def bytes_text(count: float) -> str:
    """A size in decimal units."""
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count / 1e3:.0f} kB"


def time_text(at: float | None) -> str:
    """A moment in UTC."""
    if at is None:
        return "–"
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
