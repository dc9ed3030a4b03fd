"""Which statements of a campaign differ, and whether that could alter a measurement.

Under one name everything is measured one way. A key is taken to matter unless it is listed here
with the reason why it can't.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from core.campaign import Campaign
from core.redact import scrubbed
from core.section import Section

#: Why sizing may change: the count of a point to come, never a finished one.
_COUNT = "how many whole passes a point issues; a finished point stays, a short one is not valid"

#: Keys that no measured number depends on, and why.
HARMLESS: dict[str, str] = {
    "run.retries": "how often a failed point is tried; every attempt is measured alike",
    "run.order": "which point comes first; each has its own client and its own run folder",
    "run.backoff_s": "a pause before an attempt",
    "run.recovery_timeout_s": "how long an attempt waits for the endpoint before it starts",
    "run.startup_timeout_s": "ends a client that has not sent a request; such a run is not valid",
    "run.stall_timeout_s": "ends a client without progress; such a run is not valid",
    "run.finishing_timeout_s": "ends a client after its last request; such a run is not valid",
    "run.point_timeout_s": "ends a client far above its expected length; such a run is not valid",
    "run.when_orphaned": "whether a run goes on alone; one that was stopped is not valid",
    "run.duration_margin": _COUNT,
    "run.min_passes": _COUNT,
    "run.basis": _COUNT,
    "run.max_point_hours": _COUNT,
    "run.expected_qps": _COUNT,
    "run.pilot": "a run of its own ahead of a point",
    "run.fail_fast": "ends a run that can't become valid",
    "run.budget_hours": "how many points are measured, not how",
    "disclosure": "what a submission tells beside its measurements",
    "instance.accelerators": "a factor of the accelerator-hours, which are worked out from records",
    "endpoint.health_path": "what is asked between runs, never during one",
    "client.steady_state_command": "reads a finished run folder",
    "records.folder": "where files are kept",
    "records.database": "where records are kept",
    "records.runs": "where run folders are kept",
    "notify.addresses": "who is told what happens",
    "notify.when": "what is told",
}
#: Stands for the value of a key that is not stated.
_ABSENT = object()


def measurement_differences(old: Campaign, new: Campaign) -> list[str]:
    """The differences that could alter a measurement, one a line: `curve.c_max: 64 → 128`."""
    return [line for key, line in _differences(old, new) if not _is_harmless(key)]


def _is_harmless(key: str) -> bool:
    """Whether a key, or the section that it lies in, is listed."""
    return any(key == known or key.startswith(f"{known}.") for known in HARMLESS)


def statement(campaign: Campaign, folder: Path) -> dict[str, Any]:
    """What a campaign states, as plain values; without the database URL and its password.

    Paths below the campaign file's folder are relative to it: the folder may be moved as a whole.
    """
    plain = campaign.model_dump(mode="json", exclude={"records": {"database"}, "notify": True})
    moved: dict[str, Any] = _relative(plain, f"{folder}/")
    return moved


def _relative(value: Any, prefix: str) -> Any:
    """Plain values with texts that begin with a folder cut to what follows."""
    if isinstance(value, dict):
        return {key: _relative(inner, prefix) for key, inner in value.items()}
    if isinstance(value, list):
        return [_relative(inner, prefix) for inner in value]
    return value.removeprefix(prefix) if isinstance(value, str) else value


def changes_since(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What could alter a measurement between two statements of a campaign.

    A statement that this version can't read counts as a difference: nobody can tell that there is
    none.
    """
    try:
        old = Campaign.model_validate_json(json.dumps(before))
    except ValidationError as problem:
        return [f"the statement on record can't be compared: {problem.error_count()} problems"]
    return measurement_differences(old, Campaign.model_validate_json(json.dumps(now)))


def system_key(campaign: Campaign, folder: Path) -> str:
    """Key of what decides the rate at a level: campaigns with the same one share rates."""
    plain = statement(campaign, folder)
    parts = {key: plain[key] for key in ("model", "endpoint", "client")}
    del parts["client"]["steady_state_command"]
    parts |= {"instance": campaign.instance.name, "dataset": plain["datasets"]["performance"]}
    parts |= {"rehearsal": campaign.rehearsal is not None}
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _differences(old: Campaign, new: Campaign) -> Iterator[tuple[str, str]]:
    """Key and line of each difference, in the order of the model."""
    before, after = dict(_statements(old)), dict(_statements(new))
    for key in before | after:
        was, is_now = before.get(key, _ABSENT), after.get(key, _ABSENT)
        if repr(was) != repr(is_now):  # tells 1 from 1.0 and from true, as the client may
            yield key, f"{key}: {_text(was)} → {_text(is_now)}"


def _statements(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted key and value of everything stated."""
    if isinstance(value, Section):
        stated = ((name, getattr(value, name)) for name in type(value).model_fields)
        value = {name: inner for name, inner in stated if inner not in (None, (), {})}
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from _statements(inner, f"{key}.{name}".removeprefix("."))
    elif isinstance(value, (list, tuple)) and any(isinstance(x, (dict, Section)) for x in value):
        for index, inner in enumerate(value):
            yield from _statements(inner, f"{key}[{index}]")
    else:
        yield key, value


def _text(value: Any) -> str:
    """A value as the file would have it."""
    if value is _ABSENT:
        return "not set"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, bool) or value is None:
        return str(value).lower().replace("none", "null")
    return scrubbed(str(value))
