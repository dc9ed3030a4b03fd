"""Findings as lines for people."""

from __future__ import annotations

from dataclasses import asdict

from core.findings import Finding, told


def test_errors_are_told_with_what_to_do() -> None:
    """Rule, seen, wanted and advice in one line; warnings are not told."""
    error = Finding("too-short", "error", "3 s", "600 s", "run more passes")
    warning = Finding("warmup-unsalted", "warning", "no salt", "salt", "add salt", "accuracy")
    assert told([asdict(error), asdict(warning)]) == [
        "too-short: 3 s; wanted 600 s. run more passes"
    ]
    assert told([]) == []


def test_a_finding_is_about_performance_unless_it_says_otherwise() -> None:
    """A missed accuracy leaves a performance run usable."""
    assert Finding("r", "error", "s", "w", "a").about == "performance"
