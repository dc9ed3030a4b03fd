"""The faults that a rehearsal endpoint shows on request, and which request gets which.

| fault | effect |
|---|---|
| `error_rate_percent` | this share of the requests gets HTTP 500, spread evenly |
| `error_next` | exactly the next N requests get HTTP 500 |
| `cut_next` | N answers break off half-way, without a finish reason |
| `empty_rate_percent` | this share of the answers is empty, though finished in good order |
| `busy_rate_percent` | this share of the requests gets HTTP 429 |
| `drop_rate_percent` | this share of the answers breaks off before its first token |
| `wrong_answer_percent` | this share of the problems, by problem number, is answered wrongly |
| `stall_after` | requests after the Nth never get an answer; null is off |
| `stall_midway_after` | requests after the Nth get half of their answer; null is off |
| `slow_after` | requests after the Nth take ten times as long; null is off |
| `die_after` | the process ends when request N+1 arrives; null is off |

Requests are counted from the start, or from the moment the faults were last replaced. A request
for a single token (`max_tokens: 1`: an orchestrator's preflight) is neither counted nor hit.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import Any

from core.errors import InputError

#: How much longer a slow request takes.
SLOWNESS = 10
#: Faults that begin after a number of requests; None is off.
_AFTER = ("stall_after", "stall_midway_after", "slow_after", "die_after")
#: A whole, in percent.
PERCENT = 100


@dataclass(frozen=True)
class Faults:
    """What goes wrong; all off by default."""

    error_rate_percent: int = 0
    error_next: int = 0
    cut_next: int = 0
    empty_rate_percent: int = 0
    busy_rate_percent: int = 0
    drop_rate_percent: int = 0
    wrong_answer_percent: int = 0
    stall_after: int | None = None
    stall_midway_after: int | None = None
    slow_after: int | None = None
    die_after: int | None = None

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            _check(name, value)

    def as_json(self) -> dict[str, Any]:
        """Return the faults as `/rehearsal/faults` shows them."""
        return asdict(self)


def _check(name: str, value: Any) -> None:
    if value is None and name in _AFTER:
        return
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InputError(f"fault {name}: {value!r} is not a whole number of 0 or more")
    if name.endswith("_percent") and value > PERCENT:
        raise InputError(f"fault {name}: {value} is more than {PERCENT}")


def faults_from_json(document: Any) -> Faults:
    """Return the faults that a JSON object states; what it leaves out is off."""
    if not isinstance(document, dict):
        raise InputError("faults must be a JSON object")
    known = {field.name for field in fields(Faults)}
    if unknown := sorted(set(document) - known):
        raise InputError(f"unknown fault {unknown[0]!r}; known: {', '.join(sorted(known))}")
    return Faults(**document)


def hit(number: int, percent: int) -> bool:
    """Whether the event with this number (from 0) is among an evenly spread share of all."""
    return (number + 1) * percent // PERCENT > number * percent // PERCENT


class Fate(StrEnum):
    """What happens to one request."""

    #: It is answered.
    ANSWER = "answer"
    #: It gets HTTP 500 at once.
    ERROR = "error"
    #: Its answer breaks off half-way.
    CUT = "cut"
    #: Its answer is empty.
    EMPTY = "empty"
    #: It gets HTTP 429 at once.
    BUSY = "busy"
    #: Its answer breaks off before the first token.
    DROP = "drop"
    #: It gets half of its answer and then no more.
    STALL_MIDWAY = "stall midway"
    #: It never gets an answer.
    STALL = "stall"
    #: The process ends.
    DIE = "die"


@dataclass
class FaultLedger:
    """The faults in force and how far they are used up."""

    faults: Faults
    requests: int = 0
    errors_left: int = field(init=False)
    cuts_left: int = field(init=False)

    def __post_init__(self) -> None:
        self.errors_left = self.faults.error_next
        self.cuts_left = self.faults.cut_next

    def fate(self) -> Fate:
        """Return what happens to the request that has just arrived, and count it."""
        number = self.requests
        self.requests += 1
        faults = self.faults
        if faults.die_after is not None and number >= faults.die_after:
            return Fate.DIE
        if faults.stall_after is not None and number >= faults.stall_after:
            return Fate.STALL
        if faults.stall_midway_after is not None and number >= faults.stall_midway_after:
            return Fate.STALL_MIDWAY
        if self.errors_left:
            self.errors_left -= 1
            return Fate.ERROR
        if self.cuts_left:
            self.cuts_left -= 1
            return Fate.CUT
        if hit(number, faults.error_rate_percent):
            return Fate.ERROR
        if hit(number, faults.busy_rate_percent):
            return Fate.BUSY
        if hit(number, faults.drop_rate_percent):
            return Fate.DROP
        return Fate.EMPTY if hit(number, faults.empty_rate_percent) else Fate.ANSWER

    @property
    def is_slow(self) -> bool:
        """Whether the request that was counted last is a slow one."""
        after = self.faults.slow_after
        return after is not None and self.requests > after

    def wrong(self, problem: int) -> bool:
        """Whether the problem with this number is to be answered wrongly."""
        return hit(problem, self.faults.wrong_answer_percent)
