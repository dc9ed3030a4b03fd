"""Looks at this machine for the fingerprint: the client's checkout, files' digests, the host."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from core.campaign import Campaign
from core.errors import SetupError
from core.files import sha256
from tasks.bounded import Bounds, UnreadableError, command_output

#: Files of a tokenizer folder, which may hold the model's weights too.
_TOKENIZER_FILES = (
    "tokenizer*",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab*",
    "merges.txt",
    "chat_template*",
    "*.model",
)
#: For the small questions to git.
_GIT = Bounds(timeout_s=20.0, max_bytes=1 << 20)
#: Options of a runner such as uv that name the client's checkout.
_FOLDER_OPTIONS = ("--project", "--directory")


def read_checkout(command: Sequence[str], env: Mapping[str, str]) -> dict[str, Any]:
    """Commit of the client's checkout and whether it was changed; empty: it is in none."""
    folder = _checkout(command, env)
    if folder is None:
        return {}
    git = ["git", "-C", str(folder)]
    try:
        commit = command_output([*git, "rev-parse", "HEAD"], env, _GIT).decode().strip()
        changed = command_output([*git, "status", "--porcelain", "--untracked-files=no"], env, _GIT)
    except UnreadableError as problem:
        return {"git": f"can't be asked: {problem}"}
    return {"git_commit": commit, "git_dirty": bool(changed.strip())}


def _checkout(command: Sequence[str], env: Mapping[str, str]) -> Path | None:
    """The folder with the `.git` that a client's command lies in, or is run from."""
    named = [Path(value) for option, value in pairwise(command) if option in _FOLDER_OPTIONS]
    program = shutil.which(command[0], path=env.get("PATH"))
    start = named[0] if named else Path(program) if program else None
    if start is None:
        return None
    parents = [start, *start.absolute().parents]
    return next((folder for folder in parents if (folder / ".git").exists()), None)


def read_model(campaign: Campaign) -> dict[str, Any]:
    """Model and tokenizer names, and the digests of a tokenizer that is a folder here."""
    model = campaign.model
    found: dict[str, Any] = {"name": model.name, "tokenizer": model.tokenizer}
    folder = Path(model.tokenizer) if model.tokenizer else None
    if folder is None or not folder.is_dir():
        return found
    files = {path for pattern in _TOKENIZER_FILES for path in folder.glob(pattern)}
    digests = {path.name: digest_of(path) for path in sorted(files) if path.is_file()}
    return {"name": model.name, "tokenizer_files": digests}


def read_datasets(campaign: Campaign, rows: int | None, scored: Mapping[str, int]) -> list[Any]:
    """Name, rows and digest of every dataset."""
    performance = campaign.datasets.performance
    entries = [(performance, rows), *((d, scored.get(d.name)) for d in campaign.datasets.accuracy)]
    return [
        {
            "name": dataset.name,
            "rows": count,
            "sha256": None if dataset.path is None else digest_of(dataset.path),
        }
        for dataset, count in entries
    ]


def read_host() -> dict[str, Any]:
    """This machine, which runs the client."""
    return {
        "kernel": platform.release(),
        "machine": platform.machine(),
        "cpu": _cpu(),
        "cpus": os.cpu_count(),
        "python": platform.python_version(),
    }


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor())


def digest_of(path: Path) -> str:
    """Digest of a file, read again only if the file changed.

    Raises:
        SetupError: it can't be read.
    """
    try:
        stat = path.stat()
        return _digest(path, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)
    except OSError as problem:
        raise SetupError(f"{path} can't be read: {problem.strerror}") from None


@lru_cache(maxsize=1024)
def _digest(path: Path, *_as_it_is: int) -> str:
    return sha256(path)
