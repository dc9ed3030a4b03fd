"""Reads a campaign file from disk; what is wrong with the file itself is told like any mistake."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from core.campaign import Campaign
from core.campaign_yaml import load_campaign
from core.errors import InputError
from core.yaml_tree import MAX_BYTES


@dataclass(frozen=True)
class LoadedCampaign:
    """A campaign with the exact text that it was read from."""

    campaign: Campaign
    text: str
    path: Path


def read_campaign(path: Path, env: Mapping[str, str]) -> LoadedCampaign:
    """The campaign in a file.

    Args:
        path: The file.
        env: The environment, for the file's variables.

    Raises:
        InputError: no such file, not a file, unreadable, too large, or a mistake in it.
    """
    content = _content(path)
    absolute = Path(os.path.abspath(path))  # as named: symbolic links are not followed
    campaign = _load(content, str(path), absolute, env)
    return LoadedCampaign(campaign=campaign, text=content.decode("utf-8-sig"), path=absolute)


def _load(content: str | bytes, source: str, path: Path, env: Mapping[str, str]) -> Campaign:
    return load_campaign(content, source=source, folder=path.parent, env=env, is_folder=Path.is_dir)


def _content(path: Path) -> bytes:
    """Content of the file, no more of it than a campaign may have."""
    try:
        if path.is_dir():
            raise InputError(f"{path}: is a folder → name a campaign file{_example(path)}")
        if path.exists() and not path.is_file():
            raise InputError(f"{path}: is not a regular file → name a campaign file")
        with path.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        example = _example(path.parent)
        raise InputError(f"{path}: no such file → name a campaign file{example}") from None
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise InputError(f"{path}: can't be read: {reason} → name a campaign file") from None
    if len(content) > MAX_BYTES:
        raise InputError(f"{path}: more than {MAX_BYTES:,} bytes → a campaign file is far smaller")
    return content


def _example(folder: Path) -> str:
    """A campaign file of the folder, if it has one."""
    found = sorted(folder.glob("*.yaml"))
    return f", e.g. {found[0]}" if found else ""


def load_recorded(text: str, source: Path, env: Mapping[str, str]) -> LoadedCampaign:
    """A campaign from the text on record; its relative paths start at the file it came from."""
    return LoadedCampaign(_load(text, f"{source} as recorded", source, env), text, source)
