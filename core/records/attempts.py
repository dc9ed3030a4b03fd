"""Attempts on record: begun, brought from state to state, their run folders with every file."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import PurePath
from typing import Any, Unpack, cast

from sqlalchemy import CursorResult, bindparam, select, update
from sqlalchemy.orm import Session, joinedload

from core.errors import ParetoError
from core.files import Manifest
from core.layout import attempt_path
from core.records.tables import AttemptRow, Phase, PointRow, RunFileRow, RunFolderRow
from core.records.transactions import Transactions
from core.records.values import AttemptRecord, Facts, Owner, attempt_record, manifest_entry
from core.status import OPEN_STATES, AttemptState, IllegalTransitionError, transition

#: First bytes of what a manifest's digest covers; a new form needs a new number.
MANIFEST_FORM = b"pareto manifest 1\n"

#: Written out, not handed over: so both databases use the index of the open attempts.
_IS_OPEN = AttemptRow.state.in_(
    bindparam("open", sorted(OPEN_STATES), expanding=True, literal_execute=True)
)


class AttemptRefusedError(ParetoError):
    """A point may not be tried now: it is valid already, or an attempt is still open."""


class Attempts(Transactions):
    """The attempts of a records database. Their state is changed by `change_state` alone."""

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


def manifest_sha256(manifest: Manifest) -> str:
    """Digest over names, sizes and contents of a run folder's files, in any order given."""
    lines = sorted(
        json.dumps([file.name, file.size_bytes, file.sha256]) + "\n" for file in manifest
    )
    return hashlib.sha256(MANIFEST_FORM + "".join(lines).encode()).hexdigest()


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
