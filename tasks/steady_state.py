"""Asks the client's own detector about a finished run (§4.4); the run folder stays as it is.

The detector gets a folder of its own: copies of the small files and a link to the events, so that
what it writes does not reach the recorded run folder.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from core.layout import EVENTS_JSONL, STEADY_STATE_JSON
from core.steady_state import parse_block
from tasks.bounded import Bounds, UnreadableError, command_output

__all__ = ["UnreadableError", "detect"]

#: A detector reads events of hours once; what it says is a few kilobytes.
BOUNDS = Bounds(timeout_s=600.0, max_bytes=1 << 20)


def detect(
    command: Sequence[str], run_folder: Path, env: Mapping[str, str], bounds: Bounds = BOUNDS
) -> dict[str, Any]:
    """The steady-state block of a run, by the client's detector.

    Args:
        command: The detector; it gets the folder as its last argument.
        run_folder: The run folder.
        env: The environment of the detector.
        bounds: How long it may take and how much it may say.

    Raises:
        UnreadableError: no folder, no answer in time, or no steady-state block in it.
    """
    with tempfile.TemporaryDirectory(prefix="pareto-steady-") as place:
        copy = Path(place) / "run"
        _lay_out(run_folder, copy)
        printed = command_output([*command, str(copy)], env, bounds)
        written = copy / STEADY_STATE_JSON
        found = parse_block(printed) or (_written(written, bounds) if written.is_file() else None)
    if found is None:
        raise UnreadableError(
            f"printed no steady-state block, and wrote none as {STEADY_STATE_JSON}"
        )
    return found


def _lay_out(run_folder: Path, copy: Path) -> None:
    try:
        shutil.copytree(
            run_folder,
            copy,
            copy_function=shutil.copyfile,
            ignore=lambda folder, _: {EVENTS_JSONL} if Path(folder) == run_folder else set(),
        )
        for folder in (copy, *(path for path in copy.rglob("*") if path.is_dir())):
            folder.chmod(0o755)  # a recorded folder is read-only, and copying keeps that
        (copy / EVENTS_JSONL).symlink_to((run_folder / EVENTS_JSONL).absolute())
    except (OSError, shutil.Error) as problem:
        raise UnreadableError(f"{run_folder} can't be copied: {problem}") from None


def _written(path: Path, bounds: Bounds) -> dict[str, Any] | None:
    with path.open("rb") as file:
        return parse_block(file.read(bounds.max_bytes))
