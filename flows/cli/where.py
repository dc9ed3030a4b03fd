"""Finds the records that a command is about: by campaign file, or by campaign name."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from core.errors import InputError
from core.layout import DATABASE, AttemptPaths
from core.records import AttemptRecord, Records, open_existing
from tasks.owner import owner_lives
from tasks.supervise import FINAL_STATES, is_alive, read_status

#: Environment variable that names the records database for commands that take a campaign's name.
DATABASE_ENV = "PARETO_DATABASE"


@dataclass(frozen=True)
class Where:
    """Records, and a campaign in them."""

    records: Records
    name: str


def find(campaign: str, database: str | None) -> Where:
    """Records of a campaign.

    Args:
        campaign: A campaign file, or the name of a campaign on record.
        database: Database URL for a name; default: `PARETO_DATABASE`, then the data folder
            `pareto-data` here or in `campaigns/`.

    Raises:
        InputError: there are no records to look into.
    """
    if is_file(campaign):
        from flows.prepare import prepare

        ready = prepare(Path(campaign), os.environ)
        return Where(open_existing(ready.paths.database_url), ready.campaign.campaign)
    return Where(records_here(database), campaign)


def is_file(campaign: str) -> bool:
    """Whether a campaign is given by its file and not by its name."""
    return Path(campaign).suffix in (".yaml", ".yml") or Path(campaign).is_file()


def unattended_attempts(where: Where) -> list[tuple[AttemptRecord, AttemptPaths]]:
    """Attempts of a campaign that go on under their guard although their orchestrator is dead."""
    runs = Path(where.records.campaign(where.name).runs_folder)
    mine = (a for a in where.records.open_attempts() if a.campaign == where.name)
    found = [(attempt, AttemptPaths(runs / attempt.folder)) for attempt in mine]
    return [pair for pair in found if not owner_lives(pair[0].owner) and _is_guarded(pair[1])]


def _is_guarded(paths: AttemptPaths) -> bool:
    status = read_status(paths.guard_status)
    return status is not None and status.state not in FINAL_STATES and is_alive(status)


def records_here(database: str | None) -> Records:
    """The records named by a URL, by `PARETO_DATABASE`, or lying here; see `find`."""
    return open_existing(database or os.environ.get(DATABASE_ENV) or url_here())


def url_here() -> str:
    """URL of the SQLite records in the data folder here.

    Raises:
        InputError: there are none.
    """
    for folder in (Path("pareto-data"), Path("campaigns/pareto-data")):
        if (folder / DATABASE).is_file():
            return f"sqlite:///{(folder / DATABASE).absolute()}"
    raise InputError(
        "no records here; give the campaign file instead of its name, or name the database with"
        f" --database or {DATABASE_ENV}"
    )
