"""What the system was before and after each attempt, and the curve that it is compared with."""

from __future__ import annotations

from sqlalchemy import select

from core.fingerprint import Fingerprint
from core.records.tables import AttemptRow, FingerprintRow, Phase, PointRow
from core.records.transactions import Transactions, as_json
from core.records.values import FingerprintRecord, fingerprint_record
from core.status import AttemptState

#: Fingerprints with the attempts and points that they are of.
_OF_POINTS = (
    select(FingerprintRow)
    .join(AttemptRow, FingerprintRow.attempt_id == AttemptRow.id)
    .join(PointRow, AttemptRow.point_id == PointRow.id)
)


class Fingerprints(Transactions):
    """The fingerprints of a records database."""

    def record_fingerprint(self, attempt_id: int, moment: str, found: Fingerprint) -> None:
        """Record what the system was at a moment of an attempt; the first one stays."""
        with self._write() as session:
            if session.get(FingerprintRow, (attempt_id, moment)) is None:
                session.add(
                    FingerprintRow(
                        attempt_id=attempt_id,
                        moment=moment,
                        at=self._clock(),
                        sha256=found.sha256,
                        content=as_json(found.as_json()),
                    )
                )

    def fingerprints(self, name: str) -> tuple[FingerprintRecord, ...]:
        """All fingerprints of a campaign, in the order in which they were taken."""
        with self._read() as session:
            campaign = self._campaign_row(session, name)
            rows = session.scalars(
                _OF_POINTS.where(PointRow.campaign_id == campaign.id).order_by(
                    AttemptRow.id, FingerprintRow.moment.desc()
                )
            )
            return tuple(fingerprint_record(row) for row in rows)

    def baseline(self, name: str) -> FingerprintRecord | None:
        """The fingerprint of the curve: that of its first valid attempt; None: there is none."""
        with self._read() as session:
            campaign = self._campaign_row(session, name)
            row = session.scalar(
                _OF_POINTS.where(
                    PointRow.campaign_id == campaign.id,
                    AttemptRow.baseline == campaign.baseline,
                    AttemptRow.phase == Phase.MEASURE,
                    AttemptRow.state == AttemptState.VALID,
                    FingerprintRow.moment == "before",
                )
                .order_by(AttemptRow.id)
                .limit(1)
            )
            return None if row is None else fingerprint_record(row)
