"""What the system was before and after each attempt, and the curve that it is compared with."""

from __future__ import annotations

from sqlalchemy import select

from core.fingerprint import Fingerprint
from core.records.attempts import AttemptRefusedError
from core.records.tables import AttemptRow, FingerprintRow, Phase, PointRow
from core.records.transactions import Transactions, as_json
from core.records.values import (
    CampaignRecord,
    FingerprintRecord,
    campaign_record,
    fingerprint_record,
)
from core.status import OPEN_STATES, AttemptState


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
                select(FingerprintRow)
                .join(AttemptRow, FingerprintRow.attempt_id == AttemptRow.id)
                .join(PointRow, AttemptRow.point_id == PointRow.id)
                .where(PointRow.campaign_id == campaign.id)
                .order_by(AttemptRow.id, FingerprintRow.moment.desc())
            )
            return tuple(fingerprint_record(row) for row in rows)

    def baseline(self, name: str) -> FingerprintRecord | None:
        """The fingerprint of the curve: that of its first valid attempt; None: there is none."""
        with self._read() as session:
            campaign = self._campaign_row(session, name)
            row = session.scalar(
                select(FingerprintRow)
                .join(AttemptRow, FingerprintRow.attempt_id == AttemptRow.id)
                .join(PointRow, AttemptRow.point_id == PointRow.id)
                .where(
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

    def rebase(self, name: str, reason: str) -> CampaignRecord:
        """Begin the curve anew: attempts so far are kept, and no longer of it.

        Raises:
            AttemptRefusedError: an attempt is open.
        """
        with self._write() as session:
            campaign = self._campaign_row(session, name)
            points = session.scalars(select(PointRow).filter_by(campaign_id=campaign.id)).all()
            for attempt in (attempt for point in points for attempt in point.attempts):
                if attempt.state in OPEN_STATES:
                    raise AttemptRefusedError(
                        f"{attempt.point.label} attempt {attempt.number} of {name} is"
                        f" {attempt.state}; `pareto run` it to its end first"
                    )
            campaign.baseline += 1
            payload = {"baseline": campaign.baseline, "reason": reason}
            self._log(session, campaign.id, "campaign.rebased", payload)
            return campaign_record(campaign)
