"""From what a user submits to a campaign: a path, the YAML itself, or a name on record.

The service runs elsewhere than its users: relative paths start at the file that the text came
from, and what does not exist where the campaign runs is named by the preflight there.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from core.errors import InputError
from core.layout import DATABASE
from core.records import Records, open_records
from tasks.campaign_file import LoadedCampaign, load_recorded, read_campaign

#: Environment variable that names the records database of a service.
DATABASE_ENV = "PARETO_DATABASE"
#: Name of the file that a text without one would be in.
_UNNAMED = "campaign.yaml"


def submitted(campaign: str, source: str, env: Mapping[str, str]) -> LoadedCampaign:
    """The campaign that a user means.

    Args:
        campaign: A campaign's YAML, the path of such a file, or the name of one on record.
        source: The file that the YAML came from; empty: it is in none.
        env: The environment of the service.

    Raises:
        InputError: a mistake in it, or no such file or name.
    """
    if is_text(campaign):
        path = Path(os.path.abspath(source or _UNNAMED))
        return load_recorded(campaign, path, env)
    named = campaign.strip()
    if not named:
        raise InputError("campaign: is empty; paste the campaign's YAML, or name its file")
    if named.endswith((".yaml", ".yml")) or "/" in named:
        return read_campaign(Path(named), env)
    record = service_records(env).campaign(named)
    return load_recorded(record.text, Path(record.source), env)


def is_text(campaign: str) -> bool:
    """Whether a campaign is given by its YAML and not by a path or name."""
    return "\n" in campaign.strip() or ": " in campaign


def service_records(env: Mapping[str, str]) -> Records:
    """The records of the service: those that `PARETO_DATABASE` names, or of the data folder here.

    Raises:
        InputError: there are none.
    """
    url = env.get(DATABASE_ENV)
    if url is None:
        file = Path("pareto-data", DATABASE).absolute()
        if not file.is_file():
            raise InputError(f"there are no records at {file}; give the campaign's file or text")
        url = f"sqlite:///{file}"
    return open_records(url)
