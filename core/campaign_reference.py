"""The campaign file key by key, as a page for people: generated from the model.

`python -m core.campaign_reference` prints `docs/campaign.md`.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from core.campaign import Campaign

_HEAD = """# The campaign file

One YAML file states everything for one curve. Unknown keys are refused, with a suggestion; all
mistakes are told at once, each with its line. `campaigns/` has examples, and
`campaigns/campaign.schema.json` gives editors completion (put
`# yaml-language-server: $schema=campaign.schema.json` on the first line).

* Paths are relative to the file; `~` is your home folder.
* `${NAME}` and `${NAME:-default}` take a value from the environment; `$${` is a literal `${`.
* An API key never stands in the file: name its variable in `endpoint.api_key_env`. The key then
  lives only in the environment of the client's process.
* The same campaign name with a changed file is refused if the change could alter a measurement,
  and the difference is shown; time-outs, retries, order and places may change.

This page is generated from the model (`make schema`); a test keeps it current.
"""


def reference_text() -> str:
    """The whole page."""
    lines = [_HEAD, "| key | value | default | what it is |", "|---|---|---|---|"]
    lines += _rows(Campaign, "")
    return "\n".join(lines) + "\n"


def _rows(section: type[BaseModel], prefix: str) -> Iterator[str]:
    for name, field in section.model_fields.items():
        below, is_list = _section_of(field.annotation)
        key = f"{prefix}{name}"
        shown = "a list of sections" if is_list else "a section" if below else _type(field)
        yield f"| `{key}` | {shown} | {_default(field)} | {_cell(field.description or '')} |"
        if below is not None:
            yield from _rows(below, f"{key}[]." if is_list else f"{key}.")


def _section_of(annotation: Any) -> tuple[type[BaseModel] | None, bool]:
    """The section that a field holds, and whether as a list."""
    arguments = typing.get_args(annotation)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation, False
    if typing.get_origin(annotation) is tuple and arguments:
        return _section_of(arguments[0])[0], _section_of(arguments[0])[0] is not None
    if isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is typing.Union:
        found = [_section_of(argument) for argument in arguments]
        return next((section for section in found if section[0]), (None, False))
    return None, False


def _type(field: FieldInfo) -> str:
    """What may stand there, in words."""
    return _words(field.annotation)


def _words(annotation: Any) -> str:
    names = {int: "whole number", float: "number", str: "text", bool: "true or false", Path: "path"}
    if annotation in names:
        return names[annotation]
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _words(arguments[0])
    if origin is typing.Literal:
        return ", ".join(f"`{value}`" for value in arguments)
    if origin is tuple:
        return f"list of {_words(arguments[0])}"
    if origin is dict:
        is_free = arguments[1] is Any
        return "mapping" if is_free else f"{_words(arguments[0])} → {_words(arguments[1])}"
    parts = [_words(argument) for argument in arguments if argument is not types.NoneType]
    return " or ".join(dict.fromkeys(parts)) or "a section"


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "**needed**"
    value = field.default
    if value is PydanticUndefined or value is None or value == ():
        return "–"
    return f"`{value}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    print(reference_text(), end="")
