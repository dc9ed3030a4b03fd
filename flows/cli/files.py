"""Files that a command writes for its user: named before any work, replaced as a whole."""

from __future__ import annotations

import os
from pathlib import Path

from core.errors import InputError, SetupError
from core.files import write_atomic


def target(path: Path, *suffixes: str, option: str = "--out") -> Path:
    """The file to write, named by an option.

    Raises:
        InputError: its suffix is none of these, its folder isn't there or not yours to write in,
            or it is a folder.
    """
    if path.suffix.lower() not in suffixes:
        raise InputError(f"{option} {path}: name a file that ends with {' or '.join(suffixes)}")
    if not path.parent.is_dir():
        raise InputError(f"{option} {path}: there is no folder {path.parent}; make it first")
    if path.is_dir():
        raise InputError(f"{option} {path}: is a folder; name a file")
    if not os.access(path.parent, os.W_OK):
        raise InputError(f"{option} {path}: you may not write in {path.parent}; name another")
    return path


def write(path: Path, content: bytes) -> None:
    """Write a file and say so.

    Raises:
        SetupError: the disk doesn't take it.
    """
    try:
        write_atomic(path, content)
    except OSError as problem:
        raise SetupError(f"{path}: can't be written: {problem.strerror}") from None
    print(f"wrote {path}")
