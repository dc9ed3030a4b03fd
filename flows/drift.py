"""The drift of a campaign from its records: points × parts, differences, restarts, rebases."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from core.drift import Difference, DriftRow, differences, drift_lines
from core.fingerprint import PARTS, Fingerprint
from core.records import CampaignRecord, FingerprintRecord, Records
from core.status import AttemptState


@dataclass(frozen=True)
class DriftOverview:
    """Every look of a campaign, and what there is to say."""

    rows: tuple[DriftRow, ...]
    lines: tuple[str, ...]
    has_drift: bool

    def as_json(self) -> dict[str, Any]:
        """Plain values; their form carries a version."""
        rows = [asdict(row) for row in self.rows]
        return {"version": 1, "drift": self.has_drift, "looks": rows, "notes": list(self.lines)}


def drift_overview(records: Records, campaign: CampaignRecord) -> DriftOverview:
    """The drift of a campaign.

    Raises:
        SetupError: a fingerprint is of another version.
    """
    looks = records.fingerprints(campaign.name)
    bases = _baselines(looks)
    rows: list[DriftRow] = []
    lines: list[str] = []
    for found in looks:
        base = bases.get(found.baseline)
        differing = differences(base, found.fingerprint) if base else ()
        rows.append(_row(found, differing))
        where = f"{found.label} attempt {found.number}, {found.moment}"
        lines += (f"{where}: {line}" for line in drift_lines(differing))
    stops = list(_stops(records, campaign.name))
    lines += [*stops, *_notes(records, campaign.name)]
    of_curve = [row for row in rows if row.baseline == campaign.baseline]
    has_drift = bool(stops) or any(r.differs and r.state is AttemptState.VALID for r in of_curve)
    return DriftOverview(tuple(rows), tuple(lines), has_drift)


def _row(found: FingerprintRecord, differing: tuple[Difference, ...]) -> DriftRow:
    parts = {difference.part for difference in differing}
    return DriftRow(
        found.label,
        found.number,
        found.moment,
        found.baseline,
        found.state,
        found.sha256,
        tuple(part for part in PARTS if part in parts),
    )


def _baselines(looks: tuple[FingerprintRecord, ...]) -> dict[int, Fingerprint]:
    """The fingerprint of each baseline: that of its first valid attempt."""
    found: dict[int, Fingerprint] = {}
    for look in looks:
        if look.state is AttemptState.VALID and look.moment == "before":
            found.setdefault(look.baseline, look.fingerprint)
    return found


def _stops(records: Records, name: str) -> Iterator[str]:
    """The drift that stopped the campaign, if nothing was run or rebased since."""
    events = records.campaign_events(name, "drift.found")[-1:]
    later = [*records.campaign_events(name, "attempt.prepared")]
    later += records.campaign_events(name, "campaign.rebased")
    for event in events:
        if all(other.id < event.id for other in later):
            found = [Difference(**difference) for difference in event.payload["differences"]]
            for line in drift_lines(found):
                yield f"stopped before {event.payload['label']}: {line}"


def _notes(records: Records, name: str) -> Iterator[str]:
    """Restarts between points, and rebases."""
    for event in records.campaign_events(name, "instance.changed"):
        changes = "; ".join(event.payload["changes"])
        yield (
            f"another instance after {event.payload['after']}, before {event.payload['before']}:"
            f" {changes}"
        )
    for event in records.campaign_events(name, "campaign.rebased"):
        yield f"baseline {event.payload['baseline']}: {event.payload['reason']}"
