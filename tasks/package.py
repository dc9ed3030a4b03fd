"""Writes a package: copies of run folders with their disclosures, the official dashboard (§8.1).

Recorded run folders are only read.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from core import layout
from core.errors import InputError, SetupError
from core.files import write_atomic
from tasks.bounded import Bounds, UnreadableError, run_bounded
from tasks.official import yaml_text

#: The official tool that makes a static dashboard of a tree.
VIZ = "mlperf-viz"
#: How long it may take, and what it may print.
_VIZ = Bounds(timeout_s=600.0, max_bytes=64 << 20)


@contextmanager
def staged(out: Path) -> Iterator[Path]:
    """A folder that becomes `out` when the block ends well, and is gone if it doesn't.

    Raises:
        InputError: `out` is there and is not an empty folder.
        SetupError: it can't be made.
    """
    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise InputError(f"--out: {out} is not empty; name a folder that is empty or not there yet")
    place = out.with_name(f".{out.name}.partial")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        if place.exists():
            shutil.rmtree(place)
        place.mkdir()
    except OSError as problem:
        raise SetupError(f"--out: {out} can't be made: {problem.strerror}") from problem
    try:
        yield place
        if out.exists():
            out.rmdir()
        place.rename(out)
    except OSError as problem:
        raise SetupError(f"--out: {out}: {problem}; look at that disk") from problem
    finally:
        shutil.rmtree(place, ignore_errors=True)


def copy_run(source: Path, target: Path) -> None:
    """Copy a run folder with the times of its files; links stay links."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copytree(source, target, symlinks=True)


def write_disclosures(
    folder: Path,
    point: Mapping[str, Any],
    system: Mapping[str, Any],
    power: Mapping[str, Any] | None,
) -> None:
    """Write what is told of a point beside the client's files."""
    write_atomic(folder / layout.POINT_YAML, yaml_text(point).encode())
    write_atomic(folder / layout.SYSTEM_DESC_JSON, _json(system))
    if power is not None:
        write_atomic(folder / layout.SYSTEM_POWER_JSON, _json(power))


def _json(document: Mapping[str, Any]) -> bytes:
    return (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode()


def drop(folder: Path) -> None:
    """Remove a folder of the package."""
    shutil.rmtree(folder)


def write_note(path: Path, lines: list[str]) -> None:
    """Write a text for people."""
    write_atomic(path, ("\n".join(lines) + "\n").encode())


def dashboard(tree: Path, folder: Path) -> str | None:
    """Make the official dashboard of a tree; None: done, else why not."""
    program = shutil.which(VIZ)
    if program is None:
        return f"{VIZ} is not installed"
    command = [program, str(tree), "--strict", "--build", str(folder)]
    try:
        done = run_bounded(command, os.environ, _VIZ)
    except (OSError, UnreadableError) as problem:
        return f"{VIZ}: {problem}"
    return None if done.code == 0 else f"{VIZ} ended with {done.code}: {done.last_line}"
