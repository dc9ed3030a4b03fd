"""Campaign YAML text → Campaign, or every mistake in it at once: file, line, key, value and fix.

Three readings follow each other: `core/yaml_tree.py` says what can't be meant, this module what
may not stand in the file and where its paths lead, the model in `core/campaign.py` what does not
fit, with what the benchmark's preset has filled in. A place that one reading complained about is
left alone by the next. Nothing outside is touched: environment and folder are handed in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from pydantic import ValidationError

from core.campaign import Campaign
from core.campaign_errors import model_problems
from core.campaign_paths import resolve_paths
from core.errors import InputError
from core.preset_fill import apply_preset, preset_problems
from core.redact import is_secret_key, looks_secret
from core.yaml_tree import Document, KeyPath, Problem, listed, read_document, refusal

#: The one value that may take in a secret from the environment: a database URL's password.
_DATABASE: KeyPath = ("records", "database")
#: Has addresses with secrets: their variables are filled in when a message is sent, never before.
_NOTIFY: KeyPath = ("notify",)
#: The key that names the API key's variable; all others that look like it hold secrets.
_KEY_VARIABLE: KeyPath = ("endpoint", "api_key_env")
#: The model itself checks these.
_OVERRIDES: KeyPath = ("client", "overrides")
#: Keys whose content goes to the client as it is, variables in it included.
_CLIENTS_OWN = ("scorer", "settings")
#: How to hand over the key instead.
_EXPORT = "export ENDPOINT_API_KEY=… in the shell and write endpoint.api_key_env: ENDPOINT_API_KEY"


def _no_folder(_: Path) -> bool:
    return False


def load_campaign(
    text: str | bytes,
    *,
    source: str,
    folder: Path,
    env: Mapping[str, str],
    is_folder: Callable[[Path], bool] = _no_folder,
) -> Campaign:
    """The campaign that a file states.

    Args:
        text: Content of the file.
        source: Name of the file, for messages.
        folder: The file's folder; relative paths in it start there.
        env: The environment, for `${VAR}` and `~`.
        is_folder: Whether a folder exists; tells a tokenizer's folder from a hub name.

    Raises:
        InputError: with one line for each mistake.
    """
    document = read_document(
        text, source=source, env=env, secret_paths=(_DATABASE,), verbatim=(_NOTIFY,)
    )
    if not isinstance(document.data, dict):
        line = document.places[()].line
        raise refusal(source, line, "not a mapping → a campaign starts with campaign: NAME")
    _refuse_secrets(document)
    _refuse_empty_rehearsal(document)
    resolve_paths(document, folder, env.get("HOME"), is_folder)
    document.data = apply_preset(document.data)
    campaign = _validated(document)
    if campaign is not None:
        _refuse_lacking(document, campaign)
    if campaign is None or document.problems:
        raise InputError(listed(document.problems, source))
    return campaign


def _validated(document: Document) -> Campaign | None:
    """The model's reading; its complaints are added to the document's problems."""
    try:
        return Campaign.model_validate(document.data)
    except ValidationError as error:
        document.problems += model_problems(error, document)
        return None


def _refuse_lacking(document: Document, campaign: Campaign) -> None:
    """Refuse what can't become a measurement of its benchmark; a place may be a preset's."""
    for path, text in preset_problems(campaign):
        near = path
        while near not in document.places:
            near = near[:-1]
        document.problems.append(Problem(document.places[near].line, path, text))


def _refuse_secrets(document: Document) -> None:
    """Refuse keys and passwords as literals, without showing them."""
    for path in document.places:
        text = None if document.is_unclear(path) else _secret_text(path, document)
        if text:
            document.complain(path, text)


def _refuse_empty_rehearsal(document: Document) -> None:
    """Refuse a rehearsal without keys: it would silently be a measurement."""
    if document.data.get("rehearsal", ...) is None:
        document.complain(("rehearsal",), "must be a mapping; give it time_scale or remove it")


def _secret_text(path: KeyPath, document: Document) -> str | None:
    """What is wrong with a secret at this place, or None if there is none."""
    value = document.value_at(path)
    if path == _KEY_VARIABLE:
        is_key = isinstance(value, str) and looks_secret(value)
        return f"this looks like the key itself; {_EXPORT}" if is_key else None
    if not any(map(is_secret_key, path)) or path[:2] == _OVERRIDES:
        return None
    if not any(part in path for part in _CLIENTS_OWN):
        return f"keys do not go into the file; {_EXPORT}"
    if value is None or isinstance(value, (bool, dict, list)) or _is_reference(value):
        return None
    return (
        "secrets do not go into the file; write $${NAME}, which the client replaces by the"
        " variable's value when it runs"
    )


def _is_reference(value: object) -> bool:
    return re.fullmatch(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}", str(value)) is not None
