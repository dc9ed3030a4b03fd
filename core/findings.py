"""Findings: what is wrong with a run folder, and what to do about it.

Rule ids are part of the records and of the retry rules (`core/retry.py`): never rename one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Severity = Literal["error", "warning"]
#: The result that a finding is about: a performance run can be usable beside a missed accuracy.
Subject = Literal["performance", "accuracy"]


@dataclass(frozen=True)
class Finding:
    """One thing that a run folder shows and should not."""

    rule: str
    severity: Severity
    seen: str
    wanted: str
    advice: str
    about: Subject = "performance"


def told(findings: Iterable[Mapping[str, Any]]) -> list[str]:
    """One line per finding of severity error, with what to do."""
    return [
        f"{finding['rule']}: {finding['seen']}; wanted {finding['wanted']}. {finding['advice']}"
        for finding in findings
        if finding.get("severity") == "error"
    ]
