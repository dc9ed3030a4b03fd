"""The records of campaigns: the only reader and writer of the database.

Every method is one short transaction, committed when it returns, and gives frozen plain values.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from core.errors import InputError
from core.records.attempts import Attempts
from core.records.campaigns import Campaigns
from core.records.events import Events
from core.records.fingerprints import Fingerprints
from core.records.leases import Leases
from core.records.schema import opened_engine
from core.records.transactions import Patience


class Records(Campaigns, Attempts, Fingerprints, Leases, Events):
    """The records database; each base has the methods of one topic. May be shared by threads."""


def open_records(
    url: str,
    clock: Callable[[], float] = time.time,
    patience: Patience = lambda begin: begin(),
) -> Records:
    """Open the records; a fresh SQLite file is created, a PostgreSQL one needs `upgrade` first.

    Args:
        url: SQLAlchemy URL of the database.
        clock: Unix seconds.
        patience: How to begin a transaction that may fail with `RecordsUnavailableError`.

    Raises:
        SetupError: not reachable, not supported, or of another schema version.
    """
    return Records(opened_engine(url), clock, patience)


def open_existing(url: str) -> Records:
    """Open records without creating any.

    Raises:
        InputError: the SQLite file does not exist.
    """
    file = url.removeprefix("sqlite:///")
    if file != url and not Path(file).is_file():
        raise InputError(f"there are no records at {file} yet; `pareto run FILE` makes them")
    return open_records(url)
