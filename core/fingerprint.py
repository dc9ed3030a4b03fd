"""The fingerprint: a digest over all that must not change across a curve (§4.6, §5.3).

It has named parts, each kept with its content and a digest of its own, so that a difference can be
named. The canonical form doesn't depend on key order, on how a number is spelled or on the Unicode
form, nor on the machine or the Python version. Standard library only.
"""

from __future__ import annotations

import hashlib
import json
import math
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from core.errors import ParetoError, SetupError
from core.redact import HIDDEN, is_secret_key

#: Version of the canonical form and of what is kept. A digest is never edited: a new form needs a
#: new number, and a new golden value in the tests.
VERSION = 1
#: Names of the parts, in the order in which they are hashed and shown.
PARTS = ("client", "config", "model", "datasets", "endpoint", "seed_set", "system", "probes")
#: Bytes of a value in canonical form above which only its digest is kept.
MAX_VALUE_BYTES = 16 * 1024

#: NFC of Unicode 3.2: that version is in every Python and never changes, as a newer one would for
#: characters that an older Python doesn't know.
_nfc = unicodedata.ucd_3_2_0.normalize


class NotCanonicalError(ParetoError):
    """A value has no canonical form: give it another type, or the two keys other names."""


@dataclass(frozen=True)
class Fingerprint:
    """The parts of one look at a system, in plain canonical values; make it by `fingerprint`."""

    parts: Mapping[str, Any]  # name → content
    version: int = VERSION

    @cached_property
    def digests(self) -> dict[str, str]:
        """Digest of each part."""
        return {name: _sha256(name, canonical(self.parts[name])) for name in PARTS}

    @cached_property
    def sha256(self) -> str:
        """The fingerprint itself: a digest over the digests of all parts."""
        lines = [f"{name} {digest}\n" for name, digest in self.digests.items()]
        return _sha256("fingerprint", "".join(lines))

    def as_json(self) -> dict[str, Any]:
        """The form that is kept."""
        return {"version": self.version, "parts": dict(self.parts), "digests": self.digests}


def fingerprint(parts: Mapping[str, Any]) -> Fingerprint:
    """The fingerprint of these parts; one that is not given is empty.

    Values under a key that announces a secret never enter; of long ones only a digest does.

    Raises:
        NotCanonicalError: a value is neither JSON nor a path.
    """
    unknown = sorted(set(parts) - set(PARTS))
    assert not unknown, f"no such parts: {unknown}"
    return Fingerprint({name: _bounded(plain(parts.get(name, {}))) for name in PARTS})


def fingerprint_from_json(document: Mapping[str, Any]) -> Fingerprint:
    """The fingerprint that was kept.

    Raises:
        SetupError: of another version: what it means is not guessed.
        ParetoError: it was changed: its digests are not those of its content.
    """
    version = document.get("version")
    if version != VERSION:
        raise SetupError(
            f"the fingerprint on record is of version {version!r}, this pareto reads {VERSION};"
            " use the pareto that wrote it"
        )
    kept = Fingerprint(document["parts"])
    if set(kept.parts) != set(PARTS) or kept.digests != document["digests"]:
        raise ParetoError(
            "a fingerprint on record is not what its digests say; restore the records from a copy"
        )
    return kept


def canonical(value: Any) -> str:
    """The one text of a value: ASCII JSON without spaces, keys sorted, numbers spelled one way.

    Raises:
        NotCanonicalError: the value has no such text.
    """
    return json.dumps(
        plain(value), sort_keys=True, ensure_ascii=True, allow_nan=False, separators=(",", ":")
    )


def plain(value: Any) -> Any:
    """A value in its one form: NFC text, whole numbers as integers, lists for tuples.

    Raises:
        NotCanonicalError: it is of another type, or two of its keys are one in that form.
    """
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return _plain_float(value)
    if isinstance(value, str):
        return _nfc("NFC", value)
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, Mapping):
        return _plain_mapping(value)
    raise NotCanonicalError(f"{value!r} of type {type(value).__name__} has no canonical form")


def _plain_float(value: float) -> Any:
    if not math.isfinite(value):
        return str(value)
    return int(value) if value.is_integer() else value


def _plain_mapping(value: Mapping[Any, Any]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, item in value.items():
        name = _nfc("NFC", key) if isinstance(key, str) else canonical(key)
        if name in result:
            raise NotCanonicalError(f"key {name!r} is there twice, spelled in two ways")
        result[name] = HIDDEN if is_secret_key(name) and item is not None else plain(item)
    return result


def _bounded(value: Any) -> Any:
    """The value, what is too long to be kept replaced by its digest, as deep down as possible."""
    text = canonical(value)
    if len(text) <= MAX_VALUE_BYTES:
        return value
    if isinstance(value, dict):
        return {key: _bounded(item) for key, item in value.items()}
    return {"sha256": hashlib.sha256(text.encode()).hexdigest(), "size_bytes": len(text)}


def _sha256(name: str, text: str) -> str:
    """Digest of a text under a name, so that no two parts have one by chance."""
    head = f"pareto fingerprint {VERSION} {name}\n"
    return hashlib.sha256((head + text).encode()).hexdigest()
