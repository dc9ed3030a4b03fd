"""The model's complaints about a campaign → problems at their line, in the user's words.

Pydantic speaks of inputs and unions and shows every value. Here each complaint gets the key as
the file has it, what is wanted there, and a guess at what was meant.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, get_args

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from core.campaign import Campaign
from core.redact import HIDDEN
from core.section import Section
from core.yaml_tree import EMPTY, MAPPING, Document, KeyPath, Place, Problem

#: What pydantic's error types want; the braces take the error's own numbers.
_WANTED = {
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "string_type": "must be text",
    "path_type": "must be a path",
    "tuple_type": "must be a list",
    "dict_type": "must be a mapping",
    "model_type": "must be a mapping",
    "literal_error": "must be {expected}",
    "greater_than": "must be above {gt}",
    "greater_than_equal": "must be {ge} or more",
    "less_than": "must be below {lt}",
    "less_than_equal": "must be {le} or less",
    "too_short": "must not be an empty list",
    "string_too_short": "must not be empty",
}
#: What the model's patterns want.
_PATTERNS = {
    "^/": "must start with /",
    "^[A-Za-z0-9]": "must be letters, digits, - and _, at most 64, a letter or digit first",
}
#: How like a known name something must be to be taken for it, 0 to 1.
_LIKENESS = 0.6
#: Most places named in a suggestion.
_MOST_SUGGESTIONS = 3


def model_problems(error: ValidationError, document: Document) -> list[Problem]:
    """The complaints that are news: not about places that are unclear anyway."""
    found: dict[KeyPath, list[ErrorDetails]] = {}
    for details in error.errors(include_url=False, include_input=False):
        path = _path(details, document)
        if not (document.is_unclear(path) or document.holds_unclear(path)):
            found.setdefault(path, []).append(details)
    mistyped = {_intended(path, document.data) for path in found if _is_unknown(found[path])}
    problems: list[Problem] = []
    for path, complaints in found.items():
        inner = any(other[: len(path)] == path and other != path for other in found)
        if (path in mistyped and _is_missing(complaints)) or (inner and not _is_model(complaints)):
            continue
        problems += _problems(path, complaints, document)
    return problems


def _path(details: ErrorDetails, document: Document) -> KeyPath:
    """The place in the file; pydantic's names of union members are no part of it."""
    path: KeyPath = ()
    for part in details["loc"]:
        if (*path, part) in document.places:
            path = (*path, part)
    return (*path, details["loc"][-1]) if details["type"] == "missing" else path


def _is_unknown(complaints: list[ErrorDetails]) -> bool:
    return any(details["type"] in ("extra_forbidden", "invalid_key") for details in complaints)


def _is_missing(complaints: list[ErrorDetails]) -> bool:
    return complaints[0]["type"] == "missing"


def _is_model(complaints: list[ErrorDetails]) -> bool:
    """Whether the complaint is one about how values fit together."""
    return complaints[0]["type"] == "value_error"


def _problems(
    path: KeyPath, complaints: list[ErrorDetails], document: Document
) -> Iterator[Problem]:
    place = _nearest(path, document)
    if _is_unknown(complaints):
        yield Problem(place.line, path, f"unknown key → {_suggestion(path)}")
    elif _is_missing(complaints):
        yield Problem(place.line, path, f"missing → add it: {_description(path)}")
    elif _is_model(complaints):
        yield from _model_rules(path, complaints[0], document)
    elif complaints[0]["loc"][-1] == "[key]":
        key = path[-1] if isinstance(path[-1], int) else f'"{path[-1]}"'
        yield Problem(place.line, path, f"key {key} → {_wanted(complaints[0])}")
    else:
        wanted = dict.fromkeys(_wanted(details) for details in complaints)
        text = " or ".join(wanted).replace(" or must be", " or")
        yield Problem(place.line, path, f"{place.shown} → {text}{_hint(path, place, complaints)}")


def _nearest(path: KeyPath, document: Document) -> Place:
    """The place, or that of the section which lacks it."""
    while path not in document.places:
        path = path[:-1]
    return document.places[path]


def _model_rules(path: KeyPath, details: ErrorDetails, document: Document) -> Iterator[Problem]:
    """A rule's complaints, one a line; each may start with the place it means."""
    for line in str(details.get("ctx", {}).get("error", details["msg"])).split("\n"):
        head, colon, rest = line.partition(": ")
        inner = (*path, *_parsed(head)) if colon else path
        exact = inner in document.places
        place = document.places[inner] if exact else _nearest(path, document)
        text = rest if exact and colon else line
        shown = "" if place.shown == MAPPING else f"{place.shown} → "
        yield Problem(place.line, inner if exact else path, shown + text)


def _parsed(text: str) -> KeyPath:
    """`dotted`, backwards."""
    found = re.findall(r"\[(\d+)\]|([^.\[\]]+)", text)
    return tuple(int(index) if index else key for index, key in found)


# --- What is wanted ------------------------------------------------------------------------------


def _wanted(details: ErrorDetails) -> str:
    context: Mapping[str, Any] = details.get("ctx", {})
    if details["type"] == "string_pattern_mismatch":
        pattern = str(context["pattern"])
        return next(text for start, text in _PATTERNS.items() if pattern.startswith(start))
    wanted = _WANTED.get(details["type"])
    return wanted.format_map(context) if wanted else details["msg"]


def _hint(path: KeyPath, place: Place, complaints: list[ErrorDetails]) -> str:
    """A guess at what was meant by a value of the wrong kind."""
    kinds = {details["type"] for details in complaints}
    if place.shown == EMPTY:
        return "; give it a value or remove the line"
    if kinds == {"model_type"}:
        return f" with the keys {', '.join(_section_at(path).model_fields)}"
    if not place.is_scalar or place.shown == HIDDEN:
        return ""
    value = place.shown.strip('"')
    if kinds & {"int_type", "float_type"} and _is_number(value):
        return "; remove the quotes" if place.quoted else "; write it in plain digits"
    if close := _meant(value, complaints):
        return f"; did you mean {close[0]}?"
    if "tuple_type" in kinds:
        return f"; write [{', '.join(value.replace(',', ' ').split())}]"
    return f'; quote it: "{value}"' if kinds == {"string_type"} else ""


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _meant(value: str, complaints: list[ErrorDetails]) -> list[str]:
    """The allowed words that a value is like."""
    expected = " ".join(details.get("ctx", {}).get("expected", "") for details in complaints)
    return _like(value, re.findall(r"'([^']*)'", expected))


def _like(word: str, known: list[str]) -> list[str]:
    plain = word.lower().replace("-", "_")
    return difflib.get_close_matches(plain, known, _MOST_SUGGESTIONS, _LIKENESS)


# --- Keys -----------------------------------------------------------------------------------------


def _suggestion(path: KeyPath) -> str:
    """Where an unknown key may belong."""
    key = str(path[-1])
    here = list(_section_at(path[:-1]).model_fields)
    homes = _homes()
    meant = [*_like(key, here)[:1], *homes.get(key, [])]
    meant = meant or [home for close in _like(key, list(homes)) for home in homes[close]]
    if meant:
        return f"did you mean {' or '.join(meant[:_MOST_SUGGESTIONS])}?"
    return f"the keys here are {', '.join(here)}"


def _intended(path: KeyPath, data: Any) -> KeyPath:
    """The absent key of the same section that a mistyped one seems to stand for."""
    *parents, key = path
    for part in parents:
        data = data[part]
    close = _like(str(key), list(_section_at(tuple(parents)).model_fields))
    return (*parents, close[0]) if close and close[0] not in data else ()


def _description(path: KeyPath) -> str:
    return str(_section_at(path[:-1]).model_fields[str(path[-1])].description)


def _section_at(path: KeyPath) -> type[Section]:
    """The section that holds the keys at a place."""
    section: type[Section] = Campaign
    for part in path:
        if part in section.model_fields:
            section = _section_in(section.model_fields[str(part)].annotation) or section
    return section


def _section_in(annotation: Any) -> type[Section] | None:
    """The section that a field holds: itself, in a list, by name, or none."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return annotation
    return next(filter(None, map(_section_in, get_args(annotation))), None)


@cache
def _homes() -> dict[str, list[str]]:
    """Every known key with the places where it belongs."""
    homes: dict[str, list[str]] = {}

    def visit(section: type[Section], prefix: str) -> None:
        for key, field in section.model_fields.items():
            homes.setdefault(key, []).append(prefix + key)
            if inner := _section_in(field.annotation):
                visit(inner, f"{prefix}{key}.")

    visit(Campaign, "")
    return homes
