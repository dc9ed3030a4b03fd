"""Drift: two fingerprints → what differs, by name (§4.6: one curve is of one system)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.fingerprint import PARTS, Fingerprint
from core.status import AttemptState

#: Rule id of the finding that a point's fingerprint is not that of its curve.
DRIFT = "drift"
#: Stands for the value of a key that is not there.
ABSENT = "not there"
#: Characters of a value, and differences, that a message shows.
_SHOWN_CHARS, _SHOWN_DIFFERENCES = 120, 20


@dataclass(frozen=True)
class Difference:
    """One value that is not as it was."""

    part: str
    key: str  # dotted, positions of lists in brackets
    old: Any  # `ABSENT` if the key is new
    new: Any  # `ABSENT` if the key is gone

    def __str__(self) -> str:
        where = f"{self.part}: {self.key}" if self.key else self.part
        return f"{where}: {_shown(self.old)} → {_shown(self.new)}"


@dataclass(frozen=True)
class DriftRow:
    """One look at the system."""

    label: str
    number: int
    moment: str
    baseline: int
    state: AttemptState
    sha256: str
    differs: tuple[str, ...]  # parts that are not those of its baseline

    @property
    def is_valid(self) -> bool:
        """Whether it is of a valid attempt."""
        return self.state is AttemptState.VALID


def differences(old: Fingerprint, new: Fingerprint) -> tuple[Difference, ...]:
    """What differs between two fingerprints, in the order of the parts; empty: nothing."""
    return tuple(
        difference
        for part in PARTS
        if old.digests[part] != new.digests[part]
        for difference in _in_part(part, old.parts[part], new.parts[part])
        or [Difference(part, "", old.parts[part], new.parts[part])]
    )


def drift_lines(found: Sequence[Difference]) -> list[str]:
    """One line a difference, no more than a message has room for."""
    lines = [str(difference) for difference in found[:_SHOWN_DIFFERENCES]]
    left = len(found) - len(lines)
    return [*lines, f"and {left} more"] if left else lines


def drift_message(
    campaign: str, where: str, found: Sequence[Difference], measured: Sequence[str]
) -> str:
    """Why a campaign stops, and what its user can do.

    Args:
        campaign: Name of the campaign.
        where: What was about to begin, or ended.
        found: What differs from the curve's baseline.
        measured: Labels of the valid points of the baseline.
    """
    return "\n  ".join(
        [
            f"{where}: the system is no longer the one that the curve was begun on:",
            *drift_lines(found),
            f"restore it and run the same file again; or `pareto rebase {campaign} --reason …`,"
            f" after which {', '.join(measured)} would have to be measured again",
        ]
    )


def _in_part(part: str, old: Any, new: Any) -> list[Difference]:
    before, after = dict(_leaves(old)), dict(_leaves(new))
    pairs = [(key, before.get(key, ABSENT), after.get(key, ABSENT)) for key in before | after]
    return [
        Difference(part, key, was, is_now)
        for key, was, is_now in sorted(pairs, key=lambda pair: pair[0])
        if was != is_now or type(was) is not type(is_now)
    ]


def _leaves(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted key and value of everything that holds no further values."""
    if isinstance(value, Mapping) and value:
        for name, inner in value.items():
            yield from _leaves(inner, f"{key}.{name}".removeprefix("."))
    elif isinstance(value, list) and value:
        for index, inner in enumerate(value):
            yield from _leaves(inner, f"{key}[{index}]")
    elif key:
        yield key, value


def _shown(value: Any) -> str:
    text = value if value is ABSENT else repr(value)
    return text if len(text) <= _SHOWN_CHARS else text[: _SHOWN_CHARS - 1] + "…"
