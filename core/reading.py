"""Reads JSON and YAML that others wrote: what is wrong becomes a problem with its place.

A run folder may hold anything: truncated files, NaN, other encodings, numbers as strings. None of
it may end a campaign, so nothing here raises for what a file holds.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

#: Largest whole number in a client's file: seeds go up to this (mlcommons/endpoints, seeds).
LARGEST_INTEGER = 2**64
#: Characters of an offending value that a problem repeats.
_SHOWN_CHARACTERS = 60
#: What PyYAML raises for text that is no YAML, or no value of the type that a tag claims.
_YAML_ERRORS = (
    yaml.YAMLError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    ArithmeticError,
    RecursionError,
)


@dataclass(frozen=True)
class FolderProblem:
    """One thing in a run folder that can't be read as it should be."""

    where: str  # file, and the key in it
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


Problems = tuple[FolderProblem, ...]


def shown(value: object) -> str:
    """A value as a problem repeats it: short."""
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 1] + "…"


def _integer(digits: str) -> int:
    if len(digits) > len(str(LARGEST_INTEGER)) + 1 or abs(int(digits)) > LARGEST_INTEGER:
        raise ValueError("a whole number beyond 2**64")
    return int(digits)


def _number(digits: str) -> float:
    if not math.isfinite(value := float(digits)):
        raise ValueError("a number beyond the range of a double")
    return value


def _constant(name: str) -> float:
    raise ValueError(f"{name} is not a number")


def load_json(content: bytes, where: str) -> tuple[Any, Problems]:
    """The value of a JSON document, or why it can't be read.

    Whole numbers stay exact up to 2**64; greater numbers, NaN and Infinity are refused.
    """
    if not content:
        return None, (FolderProblem(where, "the file is empty"),)
    try:
        value = json.loads(
            content.decode(), parse_int=_integer, parse_float=_number, parse_constant=_constant
        )
    except (ValueError, RecursionError) as error:
        return None, (FolderProblem(where, f"not readable as JSON: {error}"),)
    return value, ()


def load_yaml(content: bytes, where: str) -> tuple[Any, Problems]:
    """The value of a YAML document, or why it can't be read."""
    if not content:
        return None, (FolderProblem(where, "the file is empty"),)
    try:
        return yaml.safe_load(content), ()
    except _YAML_ERRORS as error:
        return None, (FolderProblem(where, f"not readable as YAML: {shown(str(error))}"),)


def is_integer(value: object) -> bool:
    """Whether a value is a whole number; true and false are none."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: object) -> bool:
    """Whether a value is a finite number; true, false and texts are none."""
    return is_integer(value) or (isinstance(value, float) and math.isfinite(value))


@dataclass(frozen=True)
class _Kind:
    """A type of value that a key can want."""

    name: str
    holds: Callable[[Any], bool]


_COUNT = _Kind("a whole number from 0", lambda value: is_integer(value) and value >= 0)
_NUMBER = _Kind("a number from 0", lambda value: is_number(value) and value >= 0)
_TEXT = _Kind("a text", lambda value: isinstance(value, str))
_FLAG = _Kind("true or false", lambda value: isinstance(value, bool))
_OBJECT = _Kind("an object", lambda value: isinstance(value, dict))


class Fields:
    """Typed reading of one object.

    A missing or wrong value is noted as a problem and reads as nothing; null is a value only where
    a value is optional.
    """

    def __init__(self, value: object, where: str, problems: list[FolderProblem]) -> None:
        """Take a value that should be an object.

        Args:
            value: What stands in the place of the object; anything else reads as empty.
            where: Its place, for the problems.
            problems: Where problems are noted.
        """
        self.where = where
        self.problems = problems
        self.values: Mapping[str, Any] = value if isinstance(value, dict) else {}
        if not isinstance(value, dict):
            problems.append(FolderProblem(where, f"wanted an object, found {shown(value)}"))

    def note(self, key: str, what: str) -> None:
        """Note a problem with the value of a key."""
        self.problems.append(FolderProblem(f"{self.where}: {key}", what))

    def _read(self, key: str, kind: _Kind, *, required: bool) -> Any:
        if key not in self.values:
            if required:
                self.note(key, "the key is missing")
            return None
        value = self.values[key]
        if kind.holds(value):
            return value
        if required or value is not None:
            self.note(key, f"wanted {kind.name}, found {shown(value)}")
        return None

    def count(self, key: str) -> int:
        """A whole number from 0."""
        return self._read(key, _COUNT, required=True) or 0

    def optional_count(self, key: str) -> int | None:
        """A whole number from 0, if there is one."""
        value: int | None = self._read(key, _COUNT, required=False)
        return value

    def optional_number(self, key: str) -> float | None:
        """A number from 0, if there is one."""
        value: float | None = self._read(key, _NUMBER, required=False)
        return value

    def text(self, key: str) -> str:
        """A text."""
        return self._read(key, _TEXT, required=True) or ""

    def optional_text(self, key: str) -> str | None:
        """A text, if there is one."""
        value: str | None = self._read(key, _TEXT, required=False)
        return value

    def flag(self, key: str) -> bool:
        """True or false."""
        return self._read(key, _FLAG, required=True) or False

    def optional_flag(self, key: str) -> bool | None:
        """True or false, if there is one."""
        value: bool | None = self._read(key, _FLAG, required=False)
        return value

    def section(self, key: str) -> Fields:
        """An object inside this one."""
        value = self._read(key, _OBJECT, required=True)
        return Fields(value or {}, f"{self.where}: {key}", self.problems)

    def optional_section(self, key: str) -> Fields:
        """An object inside this one; empty if there is none."""
        value = self._read(key, _OBJECT, required=False)
        return Fields(value or {}, f"{self.where}: {key}", self.problems)
