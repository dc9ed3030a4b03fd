"""Collects a run folder from disk: every file is read once, for its hash and for its content.

What can't be read becomes a problem among the facts (§8.3 files as the client writes them); the
folder is never changed.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from core import folder as names
from core.accuracy import parse_accuracy
from core.events import EventScanner
from core.files import Manifest, ManifestEntry, entry
from core.files import names as files_in
from core.folder import FileFact, FolderFacts, parse_config, parse_sample_map
from core.reading import FolderProblem
from core.summary import parse_summary

_MIB = 1 << 20
#: Files that are parsed whole: the parser, and the largest size in bytes that is no mistake. The
#: client writes 2 KB, 20 KB, 5 KB a dataset, and 45 bytes a sample.
_PARSED: dict[str, tuple[Callable[[bytes], Any], int]] = {
    names.CONFIG: (parse_config, _MIB),
    names.SUMMARY: (parse_summary, 16 * _MIB),
    names.ACCURACY: (parse_accuracy, 64 * _MIB),
    names.SAMPLE_MAP: (parse_sample_map, 512 * _MIB),
}


def collect(
    folder: Path, *, attempt_started_at: float, exit_code: int | None, ended_by: str
) -> tuple[FolderFacts, Manifest]:
    """Read a run folder.

    Args:
        folder: The client's `report_dir`; it need not exist.
        attempt_started_at: When the attempt began, in seconds since the epoch.
        exit_code: The client's exit code; None: it was never known.
        ended_by: `itself`, or who ended the client.

    Returns:
        The facts for `core.validate.validate`, and the manifest of every file.
    """
    reader = _Reader(folder)
    exists = folder.is_dir()
    if exists:
        reader.read_all()
    facts = FolderFacts(
        exists=exists,
        started_at=attempt_started_at,
        exit_code=exit_code,
        ended_by=ended_by,
        files=reader.files,
        problems=tuple(reader.problems),
        config=reader.parsed.get(names.CONFIG),
        summary=reader.parsed.get(names.SUMMARY),
        accuracy=reader.parsed.get(names.ACCURACY),
        sample_map=reader.parsed.get(names.SAMPLE_MAP),
        events=reader.parsed.get(names.EVENTS),
    )
    return facts, tuple(reader.manifest)


class _Reader:
    """What was read of a folder so far."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: dict[str, FileFact] = {}
        self.parsed: dict[str, Any] = {}
        self.problems: list[FolderProblem] = []
        self.manifest: list[ManifestEntry] = []

    def read_all(self) -> None:
        """Read every file; one that the disk doesn't give is a problem."""
        try:
            found = files_in(self.folder)
        except OSError as error:
            self.problems.append(FolderProblem(".", f"the folder can't be listed: {error}"))
            return
        for name in found:
            try:
                self._read(name)
            except OSError as error:
                self.problems.append(FolderProblem(name, f"the file can't be read: {error}"))

    def _read(self, name: str) -> None:
        stat = (self.folder / name).lstat()
        self.files[name] = FileFact(stat.st_size, stat.st_mtime)
        if name == names.EVENTS:
            scanner = EventScanner()
            self.manifest.append(entry(self.folder, name, scanner.feed))
            self.parsed[name] = scanner.finish()
        elif name in _PARSED:
            self._parse(name, stat.st_size)
        else:
            self.manifest.append(entry(self.folder, name))

    def _parse(self, name: str, size_bytes: int) -> None:
        """Read a file and parse it, unless it is too large to be what the client wrote."""
        parser, largest_bytes = _PARSED[name]
        if size_bytes > largest_bytes:
            self.manifest.append(entry(self.folder, name))
            self.problems.append(FolderProblem(name, f"too large: {size_bytes} bytes"))
            return
        content = bytearray()
        self.manifest.append(entry(self.folder, name, content.extend))
        self.parsed[name] = parser(bytes(content))
