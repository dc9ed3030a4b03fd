"""The event log: what happened to a campaign, appended and never changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import func, select

from core.records.tables import CampaignRow, EventRow
from core.records.transactions import Transactions
from core.records.values import EventRecord, event_record

#: Events a call.
EVENTS_LIMIT = 1000


class Events(Transactions):
    """The events of a records database."""

    def append_event(
        self,
        name: str,
        kind: str,
        payload: Mapping[str, Any],
        attempt_id: int | None = None,
    ) -> EventRecord:
        """Append to a campaign's event log."""
        with self._write() as session:
            campaign = self._campaign_row(session, name)
            return event_record(self._log(session, campaign.id, kind, payload, attempt_id))

    def attempt_events(self, attempt_id: int, kind: str) -> tuple[EventRecord, ...]:
        """The events of one kind that an attempt left, oldest first."""
        query = select(EventRow).filter_by(attempt_id=attempt_id, kind=kind).order_by(EventRow.id)
        with self._read() as session:
            return tuple(event_record(row) for row in session.scalars(query))

    def campaign_events(self, name: str, kind: str) -> tuple[EventRecord, ...]:
        """The campaign's events of one kind, oldest first."""
        with self._read() as session:
            campaign = self._campaign_row(session, name)
            query = select(EventRow).filter_by(campaign_id=campaign.id, kind=kind)
            return tuple(event_record(row) for row in session.scalars(query.order_by(EventRow.id)))

    def events(self, name: str, after_id: int = 0) -> tuple[EventRecord, ...]:
        """The campaign's events after an id, oldest first, at most `EVENTS_LIMIT` a call.

        An id that was seen is never followed by a smaller one.
        """
        with self._read() as session:
            campaign = self._campaign_row(session, name)
            rows = session.scalars(
                select(EventRow)
                .where(EventRow.campaign_id == campaign.id, EventRow.id > after_id)
                .order_by(EventRow.id)
                .limit(EVENTS_LIMIT)
            )
            return tuple(event_record(row) for row in rows)

    def latest_event(self, name: str) -> int | None:
        """Id of the campaign's last event: nothing of it changes without one."""
        query = (
            select(func.max(EventRow.id))
            .join(CampaignRow, EventRow.campaign_id == CampaignRow.id)
            .where(CampaignRow.name == name)
        )
        with self._read() as session:
            return session.scalar(query)
