"""Campaigns and their points on record."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session, selectinload

from core.errors import InputError
from core.plan import Plan, as_plain
from core.records.attempts import AttemptRefusedError
from core.records.campaign_rows import (
    add_points,
    changed_campaign,
    new_campaign,
    plan_differences,
    seed_set_row,
    sha256_of,
    update_points,
)
from core.records.tables import AttemptRow, CampaignRow, Phase, PointRow, Wish
from core.records.transactions import Transactions, as_json
from core.records.values import (
    CampaignRecord,
    ListedCampaign,
    PointRecord,
    campaign_record,
    point_record,
    state_of_point,
)
from core.sizing import Rate
from core.status import OPEN_STATES, AttemptState

#: Campaigns a page.
PAGE_SIZE = 50
#: Other campaigns of a system that are asked for rates and costs, the newest: so the answer takes
#: as long after ten thousand campaigns as after ten.
KIN = 50


class Campaigns(Transactions):
    """The campaigns of a records database."""

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
                row = new_campaign(plan, text, source, runs_folder, self._clock())
                row.statement, row.system = as_json(statement), system
                row.seed_set = seed_set_row(session, plan.seed_set)
                session.add(row)
                session.flush()
                add_points(session, row, plan.points)
                self._log(session, row.id, "campaign.entered", {"sha256": row.text_sha256})
            elif row.text_sha256 != sha256_of(text) or row.statement != as_json(statement):
                altering = differences(row.statement) or plan_differences(session, row, plan)
                if altering:
                    raise InputError(changed_campaign(row.name, altering))
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

    def _change_text(
        self,
        session: Session,
        row: CampaignRow,
        plan: Plan,
        text: str,
        source: Path,
    ) -> None:
        """Take the new text, which measures the same."""
        payload = {"sha256": sha256_of(text), "before": row.text}
        self._log(session, row.id, "campaign.changed", payload)
        row.text, row.text_sha256, row.source = text, sha256_of(text), str(source)
        row.plan = as_json(as_plain(plan))
        update_points(session, row, plan.points)


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
