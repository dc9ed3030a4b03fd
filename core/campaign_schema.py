"""The JSON schema of the campaign file, for completion and checks in editors.

Generated from the model. `python -m core.campaign_schema` prints it; the printed text is kept as
`campaigns/campaign.schema.json`.
"""

from __future__ import annotations

import json
from typing import Any

from core.campaign import Campaign

#: The dialect that pydantic writes.
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
#: What may stand for any single value: text with a variable in it.
_VARIABLE = {"type": "string", "pattern": r"\$\{"}
#: Keywords of a value that a variable's name would not satisfy as it stands.
_NARROW = ("pattern", "enum", "const", "minLength")
#: Types of a value that a variable's name, a text, is not.
_NOT_TEXT = ("integer", "number", "boolean")


def schema() -> dict[str, Any]:
    """The schema; wherever the file may have a variable, the schema has it too."""
    model = Campaign.model_json_schema()
    definitions = {name: _section(section) for name, section in model.pop("$defs").items()}
    return {"$schema": _DIALECT, **_section(model), "$defs": definitions}


def schema_text() -> str:
    """The schema as its file has it."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def _section(section: dict[str, Any]) -> dict[str, Any]:
    properties = {key: _described(value) for key, value in section["properties"].items()}
    return section | {"properties": properties}


def _described(field: dict[str, Any]) -> dict[str, Any]:
    """A field with variables allowed; its description and default stay outermost."""
    outer = {key: field[key] for key in ("description", "default") if key in field}
    inner = {key: value for key, value in field.items() if key not in (*outer, "title")}
    return outer | _with_variable(inner)


def _with_variable(value: dict[str, Any]) -> dict[str, Any]:
    """A value's schema, or its parts, with a variable as an alternative where one is needed."""
    if "anyOf" in value:
        return value | {"anyOf": _with_one_variable(value["anyOf"])}
    if "items" in value:
        return value | {"items": _with_variable(value["items"])}
    if isinstance(value.get("additionalProperties"), dict):
        return value | {"additionalProperties": _with_variable(value["additionalProperties"])}
    if value.get("type") in _NOT_TEXT or any(key in value for key in _NARROW):
        return {"anyOf": [value, _VARIABLE]}
    return value


def _with_one_variable(options: list[dict[str, Any]]) -> list[dict[str, Any]]:
    flat = [
        part for option in map(_with_variable, options) for part in option.get("anyOf", [option])
    ]
    kept = [part for part in flat if part != _VARIABLE]
    return kept if len(kept) == len(flat) else [*kept, _VARIABLE]


if __name__ == "__main__":
    print(schema_text(), end="")
