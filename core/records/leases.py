"""Leases of instances: who measures which, across the machines that share the records."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, cast

from sqlalchemy import CursorResult, delete, select, update

from core.records.tables import LeaseRow
from core.records.transactions import Transactions
from core.records.values import LeaseRecord, Owner, lease_record


class Leases(Transactions):
    """The leases of a records database."""

    def take_lease(
        self, instance: str, campaign: str, owner: Owner, seen: LeaseRecord | None = None
    ) -> LeaseRecord:
        """Take the lease of an instance if it is free, or still as it was seen to be.

        Returns:
            The lease as it is now: the owner's, or of somebody else who holds it.
        """
        with self._write() as session:
            row = session.get(LeaseRow, instance)
            now = None if row is None else lease_record(row)
            if row is not None and now != seen:
                return lease_record(row)
            if row is not None:
                session.delete(row)
                session.flush()
            taken = LeaseRow(
                instance=instance,
                campaign=campaign,
                since=self._clock(),
                beat=0,
                **asdict(owner),
            )
            session.add(taken)
            session.flush()
            return lease_record(taken)

    def lease(self, instance: str) -> LeaseRecord | None:
        """Who measures an instance; None: nobody."""
        with self._read() as session:
            row = session.get(LeaseRow, instance)
            return None if row is None else lease_record(row)

    def beat_lease(
        self, instance: str, owner: Owner, label: str | None, client_until: float | None
    ) -> bool:
        """Say that the owner lives and what it does; False: the lease is no longer its own."""
        with self._write() as session:
            changed = session.execute(
                update(LeaseRow)
                .filter_by(instance=instance, **asdict(owner))
                .values(beat=LeaseRow.beat + 1, label=label, client_until=client_until)
            )
            return cast("CursorResult[Any]", changed).rowcount == 1

    def leases(self) -> tuple[LeaseRecord, ...]:
        """Who measures which instance, by name."""
        with self._read() as session:
            rows = session.scalars(select(LeaseRow).order_by(LeaseRow.instance))
            return tuple(lease_record(row) for row in rows)

    def free_lease(self, seen: LeaseRecord, reason: str) -> bool:
        """Take a lease from its holder for a reason; False: it is no longer as it was seen to be.

        The reason goes on record with the campaign that held it.
        """
        with self._write() as session:
            row = session.get(LeaseRow, seen.instance)
            if row is None or lease_record(row) != seen:
                return False
            session.delete(row)
            campaign = self._campaign_row(session, seen.campaign)
            payload = {**asdict(seen), "reason": reason}
            self._log(session, campaign.id, "instance.freed", payload)
            return True

    def drop_lease(self, instance: str, owner: Owner) -> None:
        """Give a lease back, if it is still the owner's."""
        with self._write() as session:
            session.execute(delete(LeaseRow).filter_by(instance=instance, **asdict(owner)))
