"""Reads what a campaign's disclosure names: descriptions in files, sources, documents (§8.1, §8.2).

What can't be read is told like what is missing, all of it at once.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
import yaml

from core.campaign import Campaign
from core.disclosure import Lack, Told
from core.layout import README_MD, SYSTEM_DESC_JSON
from tasks.bounded import Bounds, UnreadableError, run_bounded

#: The official tool that captures a system's description.
SYSINFO = "mlperf-sysinfo"
#: It may take its time: it asks every node.
_SYSINFO = Bounds(timeout_s=600.0, max_bytes=64 << 20)
#: Largest description, bytes.
_MAX_BYTES = 4 << 20


def read_told(campaign: Campaign, *, capture: bool = True) -> tuple[Told, list[Lack]]:
    """What the campaign's disclosure names, and what of it can't be read.

    Args:
        campaign: The campaign.
        capture: Whether to run `mlperf-sysinfo` where the campaign has a configuration for it.
    """
    stated = campaign.disclosure
    lacks: list[Lack] = []
    system = _document(stated.system, "system", lacks)
    if stated.sysinfo is not None and capture:
        captured = _captured(stated.sysinfo, lacks)
        system = {**captured, **(system or {})} if captured else system
    power = _document(stated.power, "power", lacks)
    names = _implementations(stated.src, lacks)
    if stated.docs is not None and not stated.docs.is_dir():
        lacks.append(Lack("disclosure.docs", f"{stated.docs} is no folder"))
    return Told(system, power, names), lacks


def _document(
    stated: Mapping[str, Any] | Path | None, key: str, lacks: list[Lack]
) -> Mapping[str, Any] | None:
    """A description, in the campaign file or in one of its own."""
    if not isinstance(stated, Path):
        return stated
    try:
        with stated.open("rb") as stream:
            content = stream.read(_MAX_BYTES)
        value = orjson.loads(content) if stated.suffix == ".json" else yaml.safe_load(content)
    except (OSError, ValueError, yaml.YAMLError) as problem:
        reason = str(problem).splitlines()[0]
        lacks.append(Lack(f"disclosure.{key}", f"{stated} can't be read: {reason}"))
        return None
    if not isinstance(value, dict):
        lacks.append(Lack(f"disclosure.{key}", f"{stated} holds no mapping"))
        return None
    return value


def _implementations(src: Path | None, lacks: list[Lack]) -> tuple[str, ...]:
    """Names of the folders of sources."""
    if src is None:
        return ()
    if not src.is_dir():
        lacks.append(Lack("disclosure.src", f"{src} is no folder"))
        return ()
    folders = sorted(path for path in src.iterdir() if path.is_dir())
    for folder in folders:
        if README_MD.lower() not in {path.name.lower() for path in folder.iterdir()}:
            what = "how to build the system and reproduce a point"
            lacks.append(Lack("disclosure.src", f"{folder} has no {README_MD} that tells {what}"))
    return tuple(folder.name for folder in folders)


def _captured(config: Path, lacks: list[Lack]) -> Mapping[str, Any] | None:
    """The description that the official tool captures now."""
    program = shutil.which(SYSINFO)
    if program is None:
        lacks.append(
            Lack("disclosure.sysinfo", f"{SYSINFO} is not installed; install it or leave this out")
        )
        return None
    with tempfile.TemporaryDirectory(prefix="pareto-sysinfo-") as folder:
        command = [program, "capture", "-c", str(config)]
        try:  # the places in its configuration are relative to its working directory
            done = run_bounded(command, os.environ, _SYSINFO, cwd=Path(folder))
        except (OSError, UnreadableError) as problem:
            lacks.append(Lack("disclosure.sysinfo", f"{SYSINFO}: {problem}"))
            return None
        found = sorted(Path(folder).rglob(SYSTEM_DESC_JSON))
        if done.code or not found:
            why = f"{SYSINFO} capture ended with {done.code} and wrote no description"
            hint = "let its output.dir be relative"
            lacks.append(Lack("disclosure.sysinfo", f"{why}: {done.last_line}; {hint}"))
            return None
        return _document(found[0], "sysinfo", lacks)
