"""Transactions on the records database: each method of the records is one, short and committed.

Only its beginning may be tried again: nothing was read or decided then.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from sqlalchemy import URL, Engine, select
from sqlalchemy.orm import Session

from core.errors import InputError
from core.records.engine import WRITING, RecordsUnavailableError, reported, shown, to_json
from core.records.tables import CampaignRow, EventRow, PointRow

#: Calls what begins a transaction, perhaps again and again while the database refuses it.
Patience = Callable[[Callable[[], Session]], Session]

#: SQLite begins to write in a read-only file without a word, and fails at the first change.
CHANGE_NOTHING = "UPDATE campaign SET id = id WHERE 1 = 0"


class Transactions:
    """A records database. Holds no connection; may be shared by threads."""

    def __init__(
        self,
        engine: Engine,
        clock: Callable[[], float] = time.time,
        patience: Patience = lambda begin: begin(),
    ) -> None:
        self._reading = engine
        self._writing = engine.execution_options(**{WRITING: True})
        self._clock = clock
        self._patience = patience

    def impatient(self) -> Self:
        """The same records for who would rather know at once that they can't be reached."""
        return type(self)(self._reading, self._clock)

    @property
    def url(self) -> URL:
        """Where the database is."""
        return self._reading.url

    # --- Steps of a transaction ----------------------------------------------------------------

    @contextmanager
    def _read(self) -> Iterator[Session]:
        with self._transaction(self._reading) as session:
            yield session

    @contextmanager
    def _write(self) -> Iterator[Session]:
        with self._transaction(self._writing) as session:
            yield session

    @contextmanager
    def _transaction(self, engine: Engine) -> Iterator[Session]:
        """A transaction; only its beginning is tried again: nothing was read or decided then."""
        session = self._patience(lambda: self._begun(engine))
        with reported(self.url), session:
            yield session
            session.commit()

    def _begun(self, engine: Engine) -> Session:
        """A session that has begun.

        Raises:
            RecordsUnavailableError: the database refuses, or its file is gone: SQLite would make
                an empty one in its place.
        """
        is_file = self.url.get_backend_name() == "sqlite" and self.url.database
        if is_file and not Path(str(self.url.database)).is_file():
            raise RecordsUnavailableError(f"records database {shown(self.url)}: the file is gone")
        session = Session(engine)
        try:
            with reported(self.url):
                connection = session.connection()
                if engine is self._writing:
                    connection.exec_driver_sql(CHANGE_NOTHING)
        except BaseException:
            session.close()
            raise
        return session

    def _campaign_row(self, session: Session, name: str) -> CampaignRow:
        row = session.scalar(select(CampaignRow).where(CampaignRow.name == name))
        if row is None:
            raise InputError(f"no campaign {name!r} in {shown(self.url)}; {_names(session)}")
        return row

    def _point_row(self, session: Session, name: str, label: str) -> PointRow:
        campaign = self._campaign_row(session, name)
        row = session.scalar(select(PointRow).filter_by(campaign_id=campaign.id, label=label))
        if row is None:
            raise InputError(f"campaign {name!r} has no point {label!r}")
        return row

    def _log(
        self,
        session: Session,
        campaign_id: int,
        kind: str,
        payload: Mapping[str, Any],
        attempt_id: int | None = None,
    ) -> EventRow:
        row = EventRow(
            at=self._clock(),
            campaign_id=campaign_id,
            attempt_id=attempt_id,
            kind=kind,
            payload=dict(payload),
        )
        session.add(row)
        session.flush()
        return row


def as_json(value: Mapping[str, Any]) -> dict[str, Any]:
    """Plain values as they are read back: lists for tuples."""
    kept: dict[str, Any] = json.loads(to_json(dict(value)))
    return kept


def _names(session: Session) -> str:
    """The newest campaigns, to correct a name by."""
    newest = select(CampaignRow.name).order_by(CampaignRow.id.desc()).limit(5)
    names = ", ".join(session.scalars(newest))
    return f"the newest there are {names}" if names else "there is none yet"
