"""The records: campaigns, points, attempts and run folders in SQLite or PostgreSQL.

Our records are the truth; Prefect only shows it.
"""

from core.records.attempts import AttemptRefusedError, manifest_sha256
from core.records.engine import RecordsUnavailableError
from core.records.schema import upgrade
from core.records.store import Records, open_existing, open_records
from core.records.tables import Phase, Wish
from core.records.values import (
    AttemptRecord,
    CampaignRecord,
    EventRecord,
    Facts,
    FingerprintRecord,
    FolderRecord,
    LeaseRecord,
    ListedCampaign,
    Owner,
    PointRecord,
)

__all__ = [
    "AttemptRecord",
    "AttemptRefusedError",
    "CampaignRecord",
    "EventRecord",
    "Facts",
    "FingerprintRecord",
    "FolderRecord",
    "LeaseRecord",
    "ListedCampaign",
    "Owner",
    "Phase",
    "PointRecord",
    "Records",
    "RecordsUnavailableError",
    "Wish",
    "manifest_sha256",
    "open_existing",
    "open_records",
    "upgrade",
]
