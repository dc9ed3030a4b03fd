"""Holds a lock file: one process of this machine at a time drives a campaign."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from core.errors import SetupError


class HeldError(SetupError):
    """Another process does this very work; watch it there."""


@contextmanager
def exclusive(path: Path, what: str) -> Iterator[None]:
    """Hold the lock while the block lasts; the kernel frees it when the process dies.

    Raises:
        HeldError: another process holds it.
        SetupError: there can't be such a file.
    """
    with _opened(path) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read(32).decode("ascii", "replace").strip() or "another"
            raise HeldError(
                f"{what} is being run by process {holder}; watch it with `pareto status`"
            ) from None
        file.truncate(0)
        file.write(str(os.getpid()).encode())
        file.flush()
        yield


def _opened(path: Path) -> IO[bytes]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("a+b")
    except OSError as problem:
        raise SetupError(
            f"{path}: can't be made ({problem.strerror}); look at its folder"
        ) from None
