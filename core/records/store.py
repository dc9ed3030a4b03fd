"""The records of campaigns: the only reader and writer of the database.

Every method is one short transaction, committed when it returns, and gives frozen plain values.
State changes of attempts go through `Records.change_state` alone.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path, PurePath
from typing import Any, Unpack, cast

from sqlalchemy import URL, CursorResult, Engine, bindparam, delete, func, select, update
from sqlalchemy.orm import Session, joinedload, selectinload

from core.errors import InputError, ParetoError
from core.files import Manifest
from core.fingerprint import Fingerprint
from core.layout import attempt_path
from core.plan import Plan, Point, as_plain
from core.records.engine import WRITING, RecordsUnavailableError, reported, shown, to_json
from core.records.schema import opened_engine
from core.records.tables import (
    AttemptRow,
    CampaignRow,
    EventRow,
    FingerprintRow,
    LeaseRow,
    Phase,
    PointRow,
    RunFileRow,
    RunFolderRow,
    SeedSetRow,
    Wish,
    storable,
)
from core.records.values import (
    AttemptRecord,
    CampaignRecord,
    EventRecord,
    Facts,
    FingerprintRecord,
    LeaseRecord,
    ListedCampaign,
    Owner,
    PointRecord,
    attempt_record,
    campaign_record,
    event_record,
    fingerprint_record,
    lease_record,
    manifest_entry,
    point_record,
    state_of_point,
)
from core.seeds import SeedSet
from core.sizing import Rate
from core.status import OPEN_STATES, AttemptState, IllegalTransitionError, transition

#: Calls what begins a transaction, perhaps again and again while the database refuses it.
Patience = Callable[[Callable[[], Session]], Session]

#: SQLite begins to write in a read-only file without a word, and fails at the first change.
CHANGE_NOTHING = "UPDATE campaign SET id = id WHERE 1 = 0"

#: First bytes of what a manifest's digest covers; a new form needs a new number.
MANIFEST_FORM = b"pareto manifest 1\n"
#: Campaigns a page.
PAGE_SIZE = 50
#: Other campaigns of a system that are asked for rates and costs, the newest: so the answer takes
#: as long after ten thousand campaigns as after ten.
KIN = 50
#: Events a call.
EVENTS_LIMIT = 1000
#: What of a planned point its measurements depend on.
_MEASURED_BY = (
    "concurrency",
    "region",
    "accuracy",
    "load_pattern",
    "min_duration_ms",
)


#: Written out, not handed over: so both databases use the index of the open attempts.
_IS_OPEN = AttemptRow.state.in_(
    bindparam("open", sorted(OPEN_STATES), expanding=True, literal_execute=True)
)


class AttemptRefusedError(ParetoError):
    """A point may not be tried now: it is valid already, or an attempt is still open."""


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


class Records:
    """The records database. Holds no connection; may be shared by threads."""

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

    def impatient(self) -> Records:
        """The same records for who would rather know at once that they can't be reached."""
        return Records(self._reading, self._clock)

    @property
    def url(self) -> URL:
        """Where the database is."""
        return self._reading.url

    # --- Campaigns -----------------------------------------------------------------------------

    def enter_campaign(
        self,
        plan: Plan,
        *,
        text: str,
        statement: Mapping[str, Any],
        system: str,
        source: Path,
        runs_folder: Path,
        differences: Callable[[dict[str, Any]], Sequence[str]],
        flow_run_id: str | None = None,
    ) -> CampaignRecord:
        """Create the campaign, or join the one of that name.

        Args:
            plan: The campaign's plan; names it.
            text: The exact YAML.
            statement: What the YAML states once its variables are filled in, as plain values.
            system: Key of the measured system: campaigns with the same one share their rates.
            source: The YAML's path.
            runs_folder: Where its attempts go.
            differences: Given the statement on record, says what in the new one could alter a
                measurement; called only if text or statement differ.
            flow_run_id: The Prefect flow run that now drives the campaign.

        Raises:
            InputError: a campaign of that name is on record and could measure otherwise.
        """
        with self._write() as session:
            row = session.scalar(select(CampaignRow).where(CampaignRow.name == plan.campaign))
            if row is None:
                row = _new_campaign(plan, text, source, runs_folder, self._clock())
                row.statement, row.system = as_json(statement), system
                row.seed_set = _seed_set_row(session, plan.seed_set)
                session.add(row)
                session.flush()
                _add_points(session, row, plan.points)
                self._log(session, row.id, "campaign.entered", {"sha256": row.text_sha256})
            elif row.text_sha256 != _sha256(text) or row.statement != as_json(statement):
                altering = differences(row.statement) or _plan_differences(session, row, plan)
                if altering:
                    raise InputError(_changed_campaign(row.name, altering))
                self._change_text(session, row, plan, text, source)
                row.statement, row.system = as_json(statement), system
            if flow_run_id is not None:
                row.flow_run_id = flow_run_id
            return campaign_record(row)

    def campaign(self, name: str) -> CampaignRecord:
        """The campaign of that name.

        Raises:
            InputError: there is none.
        """
        with self._read() as session:
            return campaign_record(self._campaign_row(session, name))

    def campaigns(self, page: int = 1) -> tuple[CampaignRecord, ...]:
        """A page of campaigns, newest first; empty past the last page."""
        newest = select(CampaignRow).order_by(CampaignRow.id.desc())
        with self._read() as session:
            rows = session.scalars(newest.limit(PAGE_SIZE).offset((page - 1) * PAGE_SIZE))
            return tuple(campaign_record(row) for row in rows)

    def listing(self, page: int = 1) -> tuple[ListedCampaign, ...]:
        """A page of campaigns as `campaigns` gives them, each with the states of its points."""
        campaigns = self.campaigns(page)
        query = (
            select(PointRow, AttemptRow.state, AttemptRow.created_at, AttemptRow.ended_at)
            .join(CampaignRow, PointRow.campaign_id == CampaignRow.id)
            .outerjoin(
                AttemptRow,
                (AttemptRow.point_id == PointRow.id)
                & (AttemptRow.phase == Phase.MEASURE)
                & (AttemptRow.baseline == CampaignRow.baseline),
            )
            .where(CampaignRow.id.in_([campaign.id for campaign in campaigns]))
            .order_by(PointRow.position, PointRow.id, AttemptRow.id)
        )
        found: dict[int, dict[PointRow, list[AttemptState]]] = {c.id: {} for c in campaigns}
        latest: dict[int, float] = {}
        with self._read() as session:
            for point, state, created_at, ended_at in session.execute(query):
                states = found[point.campaign_id].setdefault(point, [])
                if state is not None:
                    states.append(state)
                    at = max(created_at, ended_at or 0.0)
                    latest[point.campaign_id] = max(at, latest.get(point.campaign_id, 0.0))
            return tuple(
                ListedCampaign(
                    campaign=campaign,
                    states=tuple(
                        state_of_point(states, point.skipped)
                        for point, states in found[campaign.id].items()
                    ),
                    last_at=latest.get(campaign.id),
                )
                for campaign in campaigns
            )

    def pages(self) -> int:
        """How many pages of campaigns there are; one at least."""
        with self._read() as session:
            count = session.scalar(select(func.count()).select_from(CampaignRow)) or 0
            return max(1, math.ceil(count / PAGE_SIZE))

    def points_with_attempts(self, name: str) -> tuple[PointRecord, ...]:
        """The campaign's points in run order, each with its attempts in order."""
        with self._read() as session:
            campaign = self._campaign_row(session, name)
            rows = session.scalars(
                select(PointRow)
                .where(PointRow.campaign_id == campaign.id)
                .order_by(PointRow.position, PointRow.id)
                .options(selectinload(PointRow.attempts))
            )
            return tuple(point_record(row) for row in rows)

    def ask(self, name: str, wish: Wish | None) -> CampaignRecord:
        """Ask the run of a campaign to pause or to end; None takes the wish back."""
        with self._write() as session:
            row = self._campaign_row(session, name)
            if row.wish != wish:
                row.wish = wish
                self._log(session, row.id, "campaign.asked", {"wish": wish})
            return campaign_record(row)

    def wish(self, name: str) -> Wish | None:
        """What the run of a campaign is asked for; asked each second, so nothing else is read."""
        query = select(CampaignRow.wish).where(CampaignRow.name == name)
        with self._read() as session:
            wish = session.scalar(query)
            return None if wish is None else Wish(wish)

    def measured_rates(self, name: str) -> dict[int, Rate]:
        """Level → rate measured in the campaign, or else in the newest other one of its system.

        An attempt tells a rate if its metrics have `rate_qps`: it is valid, or only its count was
        wrong and not its speed. What the campaign measured itself comes before a pilot's. Of the
        other campaigns the newest `KIN` are asked.
        """
        with self._read() as session:
            campaign = self._campaign_row(session, name)
            rows = session.execute(
                select(PointRow.concurrency, AttemptRow.metrics, AttemptRow.phase, CampaignRow.name)
                .join(AttemptRow, AttemptRow.point_id == PointRow.id)
                .join(CampaignRow, PointRow.campaign_id == CampaignRow.id)
                .where(CampaignRow.id.in_([campaign.id, *_kin(session, campaign)]))
                .order_by(CampaignRow.id == campaign.id, AttemptRow.phase.desc(), AttemptRow.id)
            )
            rates = {}
            for level, metrics, phase, owner in rows:
                qps = (metrics or {}).get("rate_qps")
                if isinstance(qps, int | float) and math.isfinite(qps) and qps > 0:
                    rates[level] = Rate(float(qps), _source(phase, owner, name), guess=False)
            return rates

    def campaigns_of_system(self, name: str) -> tuple[str, ...]:
        """The campaign and then the newest `KIN` others of its system, the newest first."""
        with self._read() as session:
            campaign = self._campaign_row(session, name)
            kin = select(CampaignRow.name).where(CampaignRow.id.in_(_kin(session, campaign)))
            return (name, *session.scalars(kin.order_by(CampaignRow.id.desc())))

    # --- Attempts ------------------------------------------------------------------------------

    def new_attempt(
        self,
        name: str,
        label: str,
        *,
        owner: Owner,
        samples: int | None = None,
        passes: int | None = None,
        phase: Phase = Phase.MEASURE,
        client_version: str | None = None,
    ) -> AttemptRecord:
        """A new attempt at a point, with the next number and a folder of its own.

        Raises:
            AttemptRefusedError: the point has a valid attempt, or an open one.
            InputError: there is no such point.
        """
        with self._write() as session:
            point = self._point_row(session, name, label)
            _refuse_second_attempt(point)
            earlier = (attempt.number for attempt in point.attempts if attempt.phase == phase)
            number = 1 + max(earlier, default=0)
            row = AttemptRow(
                point=point,
                number=number,
                phase=phase,
                baseline=point.campaign.baseline,
                state=AttemptState.PREPARED,
                folder=str(attempt_path(point.campaign.name, point.label, number, phase)),
                planned_samples=samples,
                planned_passes=passes,
                created_at=self._clock(),
                client_version=client_version,
                **asdict(owner),
            )
            point.skipped = None
            session.add(row)
            session.flush()
            self._log_state(session, row, None)
            return attempt_record(row)

    def skip_point(self, name: str, label: str, reason: str) -> None:
        """Record that a run leaves a point out; a later attempt at it takes that back."""
        with self._write() as session:
            point = self._point_row(session, name, label)
            point.skipped = reason
            payload = {"label": label, "reason": reason}
            self._log(session, point.campaign_id, "point.skipped", payload)

    def change_state(
        self, attempt_id: int, wanted: AttemptState, **facts: Unpack[Facts]
    ) -> AttemptRecord:
        """Bring an attempt into another state, with what is known about it: the only way to.

        Start and end times are now, unless the facts state them.

        Raises:
            IllegalTransitionError: not from its state, or somebody else changed it meanwhile.
        """
        with self._write() as session:
            row = session.get_one(AttemptRow, attempt_id)
            before = row.state
            values = self._changed_values(transition(before, wanted), facts)
            changed = session.execute(
                update(AttemptRow)
                .where(AttemptRow.id == attempt_id, AttemptRow.state == before)
                .values(values)
            )
            if cast("CursorResult[Any]", changed).rowcount != 1:
                raise IllegalTransitionError(
                    f"attempt {attempt_id} was {before} and was changed by another program;"
                    " look at it again"
                )
            session.refresh(row)
            self._log_state(session, row, before)
            return attempt_record(row)

    def attempt(self, attempt_id: int) -> AttemptRecord:
        """One attempt."""
        with self._read() as session:
            return attempt_record(session.get_one(AttemptRow, attempt_id))

    def open_attempts(self) -> tuple[AttemptRecord, ...]:
        """Attempts of all campaigns that own, or may own, a client; oldest first."""
        query = (
            select(AttemptRow)
            .where(_IS_OPEN)
            .options(joinedload(AttemptRow.point).joinedload(PointRow.campaign))
        )
        with self._read() as session:
            # Sorted here: asked for an order, SQLite reads every attempt there ever was.
            rows = sorted(session.scalars(query), key=lambda row: row.id)
            return tuple(attempt_record(row) for row in rows)

    # --- Fingerprints --------------------------------------------------------------------------

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

    def relocate(self, name: str, runs_folder: Path) -> CampaignRecord:
        """Record that a campaign's run folders lie in another place now."""
        with self._write() as session:
            campaign = self._campaign_row(session, name)
            payload = {"before": campaign.runs_folder, "now": str(runs_folder)}
            campaign.runs_folder = str(runs_folder)
            self._log(session, campaign.id, "campaign.relocated", payload)
            return campaign_record(campaign)

    # --- Leases --------------------------------------------------------------------------------

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

    # --- Run folders ---------------------------------------------------------------------------

    def record_folder(self, attempt_id: int, path: PurePath, manifest: Manifest) -> AttemptRecord:
        """Record an attempt's run folder; the same folder may be recorded again.

        Raises:
            ParetoError: the attempt's folder is on record with other content.
        """
        digest = manifest_sha256(manifest)
        with self._write() as session:
            row = session.get_one(AttemptRow, attempt_id)
            if row.run_folder is None:
                self._add_folder(session, row, path, manifest, digest)
            elif row.run_folder.manifest_sha256 != digest:
                raise ParetoError(
                    f"the run folder {row.run_folder.path} was recorded with other content;"
                    " a run folder is written once, compare it with a copy"
                )
            return attempt_record(row)

    def manifest(self, attempt_id: int) -> Manifest:
        """Files of an attempt's recorded run folder by name; empty if none was recorded."""
        query = (
            select(RunFileRow)
            .join(RunFolderRow, RunFileRow.run_folder_id == RunFolderRow.id)
            .where(RunFolderRow.attempt_id == attempt_id)
        )
        with self._read() as session:
            files = [manifest_entry(row) for row in session.scalars(query)]
        return tuple(sorted(files, key=lambda file: file.name))

    # --- Events --------------------------------------------------------------------------------

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

    def _change_text(
        self,
        session: Session,
        row: CampaignRow,
        plan: Plan,
        text: str,
        source: Path,
    ) -> None:
        """Take the new text, which measures the same."""
        payload = {"sha256": _sha256(text), "before": row.text}
        self._log(session, row.id, "campaign.changed", payload)
        row.text, row.text_sha256, row.source = text, _sha256(text), str(source)
        row.plan = as_json(as_plain(plan))
        _update_points(session, row, plan.points)

    def _changed_values(self, wanted: AttemptState, facts: Facts) -> dict[str, Any]:
        """Column values of a state change."""
        values: dict[str, Any] = dict(facts)
        if "owner" in facts:
            values |= asdict(values.pop("owner"))
        if "findings" in facts:
            values["findings"] = [dict(finding) for finding in facts["findings"]]
        moment = "started_at" if wanted in OPEN_STATES else "ended_at"
        return {moment: self._clock(), **values, "state": wanted}

    def _add_folder(
        self,
        session: Session,
        attempt: AttemptRow,
        path: PurePath,
        manifest: Manifest,
        digest: str,
    ) -> None:
        campaign = attempt.point.campaign
        inside = path.is_relative_to(campaign.runs_folder)
        attempt.run_folder = RunFolderRow(
            path=(path.relative_to(campaign.runs_folder) if inside else path).as_posix(),
            recorded_at=self._clock(),
            total_bytes=sum(entry.size_bytes for entry in manifest),
            manifest_sha256=digest,
        )
        session.flush()
        folder = attempt.run_folder.id
        session.add_all(RunFileRow(run_folder_id=folder, **asdict(file)) for file in manifest)
        payload = {"files": len(manifest), "manifest_sha256": digest}
        self._log(session, campaign.id, "folder.recorded", payload, attempt.id)

    def _log_state(
        self, session: Session, attempt: AttemptRow, before: AttemptState | None
    ) -> None:
        payload = {
            "label": attempt.point.label,
            "number": attempt.number,
            "before": before,
            "reason": attempt.reason,
        }
        campaign_id = attempt.point.campaign_id
        self._log(session, campaign_id, f"attempt.{attempt.state}", payload, attempt.id)

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


def _kin(session: Session, campaign: CampaignRow) -> list[int]:
    """Ids of the newest other campaigns of the same system."""
    others = select(CampaignRow.id).where(
        CampaignRow.system == campaign.system, CampaignRow.id != campaign.id
    )
    return list(session.scalars(others.order_by(CampaignRow.id.desc()).limit(KIN)))


def _source(phase: str, owner: str, asked: str) -> str:
    """Where a rate comes from, for the plan."""
    if owner != asked:
        return f"measured in campaign {owner}"
    return "measured at this level" if phase == Phase.MEASURE else "pilot"


def manifest_sha256(manifest: Manifest) -> str:
    """Digest over names, sizes and contents of a run folder's files, in any order given."""
    lines = sorted(
        json.dumps([file.name, file.size_bytes, file.sha256]) + "\n" for file in manifest
    )
    return hashlib.sha256(MANIFEST_FORM + "".join(lines).encode()).hexdigest()


def _sha256(text: str) -> str:
    return hashlib.sha256(storable(text).encode()).hexdigest()


def _names(session: Session) -> str:
    """The newest campaigns, to correct a name by."""
    newest = select(CampaignRow.name).order_by(CampaignRow.id.desc()).limit(5)
    names = ", ".join(session.scalars(newest))
    return f"the newest there are {names}" if names else "there is none yet"


def _new_campaign(
    plan: Plan, text: str, source: Path, runs_folder: Path, now: float
) -> CampaignRow:
    return CampaignRow(
        name=plan.campaign,
        text=text,
        text_sha256=_sha256(text),
        source=str(source),
        runs_folder=str(runs_folder),
        created_at=now,
        rehearsal=plan.time_scale is not None,
        time_scale=plan.time_scale,
        plan=as_json(as_plain(plan)),
        c_max=plan.c_max,
        c_min=plan.c_min,
        baseline=1,
    )


def _seed_set_row(session: Session, seed_set: SeedSet) -> SeedSetRow:
    """The row of these very seeds."""
    columns = {
        "name": seed_set.id,
        "scheduler_rng_seed": seed_set.scheduler_rng_seed,
        "sample_index_rng_seed": seed_set.sample_index_rng_seed,
        "model_seed": seed_set.model_seed,
        "cohorts": ",".join(seed_set.cohorts),
    }
    return session.scalar(select(SeedSetRow).filter_by(**columns)) or SeedSetRow(**columns)


def _add_points(session: Session, campaign: CampaignRow, points: Sequence[Point]) -> None:
    session.add_all(_new_point(campaign.id, index, point) for index, point in enumerate(points))


def _new_point(campaign_id: int, position: int, point: Point) -> PointRow:
    return PointRow(
        campaign_id=campaign_id,
        label=point.label,
        position=position,
        role=point.role,
        **{name: getattr(point, name) for name in _MEASURED_BY},
    )


def _point_rows(session: Session, campaign: CampaignRow) -> dict[str, PointRow]:
    rows = session.scalars(select(PointRow).where(PointRow.campaign_id == campaign.id))
    return {row.label: row for row in rows}


def _plan_differences(session: Session, campaign: CampaignRow, plan: Plan) -> list[str]:
    """Where the plan would measure otherwise than the one on record."""
    pairs: list[tuple[str, object, object]] = [
        ("c_max", campaign.c_max, plan.c_max),
        ("c_min", campaign.c_min, plan.c_min),
        ("rehearsal.time_scale", campaign.time_scale, plan.time_scale),
        ("seed set", _seeds(campaign.seed_set), _seeds(plan.seed_set)),
    ]
    planned = {point.label: point for point in plan.points}
    for label, row in _point_rows(session, campaign).items():
        point = planned.get(label)
        for name in _MEASURED_BY:
            new = getattr(point, name, "no such point")
            pairs.append((f"point {label}, {name}", getattr(row, name), new))
    return [f"{what}: {old} → {new}" for what, old, new in pairs if old != new]


def _seeds(source: SeedSet | SeedSetRow) -> tuple[int, int, int]:
    return source.scheduler_rng_seed, source.sample_index_rng_seed, source.model_seed


def _update_points(session: Session, campaign: CampaignRow, points: Sequence[Point]) -> None:
    """Take order and roles of a new plan, and points that it adds."""
    rows = _point_rows(session, campaign)
    for position, point in enumerate(points):
        row = rows.get(point.label)
        if row is None:
            session.add(_new_point(campaign.id, position, point))
        else:
            row.position, row.role = position, point.role


def _changed_campaign(name: str, altering: Sequence[str]) -> str:
    changes = "\n".join(f"  {change}" for change in altering)
    return (
        f"campaign {name!r} is on record with another text, and these changes could alter a"
        f" measurement:\n{changes}\nUndo them, or give the changed file another name in `campaign:`"
    )


def _refuse_second_attempt(point: PointRow) -> None:
    where = f"point {point.label} of {point.campaign.name}"
    for attempt in point.attempts:
        is_of_curve = attempt.phase == Phase.MEASURE and attempt.baseline == point.campaign.baseline
        if attempt.state is AttemptState.VALID and is_of_curve:
            raise AttemptRefusedError(
                f"{where}: attempt {attempt.number} is valid, and a valid point is never measured"
                " again"
            )
        if attempt.state in OPEN_STATES:
            raise AttemptRefusedError(
                f"{where}: attempt {attempt.number} is {attempt.state} and belongs to process"
                f" {attempt.pid} on {attempt.host}; wait for it, or stop it"
            )
