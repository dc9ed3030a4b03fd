"""Where the paths of a campaign file lead: from the file's own folder, `~` from the home folder.

The working directory has no say: the same file means the same thing wherever it is started from.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from core.campaign import Records
from core.yaml_tree import Document, KeyPath

#: Stands for every position of a list.
_EACH = -1
#: Places whose text is a path.
PATHS: tuple[KeyPath, ...] = (
    ("datasets", "performance", "path"),
    ("datasets", "accuracy", _EACH, "path"),
    ("run", "pilot", "dataset"),
    ("seeds", "registry"),
    ("records", "folder"),
    ("records", "runs"),
    ("fingerprint", "probes", _EACH, "file"),
    *(("disclosure", key) for key in ("src", "docs", "system", "sysinfo", "power")),
)
_TOKENIZER: KeyPath = ("model", "tokenizer")
#: Places whose items are a command: a program and its arguments.
_COMMANDS: tuple[KeyPath, ...] = (
    ("client", "command", _EACH),
    ("client", "steady_state_command", _EACH),
    ("fingerprint", "probes", _EACH, "command", _EACH),
)
_DATABASE: KeyPath = ("records", "database")
#: A SQLite URL with a relative file; two more slashes make it absolute, none or `:` no file.
_SQLITE_FILE = re.compile(r"(sqlite(?:\+\w+)?:///)(?!/|:|file:|\?|$)(.*)", re.DOTALL)


@dataclass(frozen=True)
class _Base:
    """Where relative paths start."""

    folder: Path
    home: str | None
    is_folder: Callable[[Path], bool]

    def path(self, text: str) -> str:
        """A path in its own right."""
        if not text:
            raise ValueError("must not be empty; name a path")
        return str(self.folder / self.without_tilde(text))

    def without_tilde(self, text: str) -> str:
        """The text with a leading `~` replaced."""
        if text != "~" and not text.startswith("~/"):
            return text
        if not self.home:
            raise ValueError("HOME is not set, so ~ leads nowhere; write the folder out")
        return self.home + text[1:]

    def tokenizer(self, text: str) -> str:
        """A folder, or the name of a tokenizer on a hub."""
        is_path = text in (".", "..", "~") or text.startswith(("./", "../", "~/", "/"))
        return self.path(text) if is_path or self._exists(text) else text

    def _exists(self, text: str) -> bool:
        return bool(text) and self.is_folder(self.folder / text)

    def program(self, text: str) -> str:
        """The first item of a command: a path if it has a separator, else a name on PATH."""
        return self.path(text) if "/" in text else text

    def database(self, text: str) -> str:
        """A database URL; that of a SQLite file holds a path."""
        found = _SQLITE_FILE.fullmatch(text)
        return found[1] + self.path(found[2]) if found else text


def resolve_paths(
    document: Document, folder: Path, home: str | None, is_folder: Callable[[Path], bool]
) -> None:
    """Replace every path of the document by where it leads; the default data folder too."""
    base = _Base(folder, home, is_folder)
    for pattern in PATHS:
        _replace(document, pattern, base.path)
    _replace(document, _TOKENIZER, base.tokenizer)
    _replace(document, _DATABASE, base.database)
    for command in _COMMANDS:
        _replace(document, command, base.without_tilde)
        _replace(document, (*command[:-1], 0), base.program)
    records = document.data.setdefault("records", {})
    if isinstance(records, dict):
        records.setdefault("folder", base.path(str(Records().folder)))


def _replace(document: Document, pattern: KeyPath, change: Callable[[str], str]) -> None:
    for path in _matching(document, pattern):
        *parents, last = path
        holder = document.value_at(tuple(parents))
        if document.is_unclear(path) or not isinstance(holder[last], str):
            continue
        try:
            holder[last] = change(holder[last])
        except ValueError as problem:
            document.complain(path, str(problem))


def _matching(document: Document, pattern: KeyPath) -> Iterator[KeyPath]:
    for path in document.places:
        if len(path) == len(pattern) and all(
            part == wanted or (wanted == _EACH and isinstance(part, int))
            for part, wanted in zip(path, pattern, strict=True)
        ):
            yield path
