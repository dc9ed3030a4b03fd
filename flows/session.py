"""From a prepared campaign to a session: checked against its surroundings, then recorded.

`preflight` only asks; `enter` is the first step of a run that writes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import yaml

from core.campaign import Campaign
from core.campaign_diff import changes_since, statement, system_key
from core.client_config import TEMPLATES, client_config
from core.errors import InputError, SetupError
from core.estimate import Estimate, estimate, learned_costs, scored_samples
from core.identity import Identity
from core.layout import instance_lock_path
from core.plan import Plan, Point, resized
from core.preset_fill import too_few_samples
from core.records import Phase, PointRecord, Records, open_records
from core.status import AttemptState
from flows.prepare import Prepared
from tasks.client import InstalledClient, inspect_client, validate_config
from tasks.dataset import check_datasets
from tasks.disk import check_room
from tasks.endpoint import auth_headers, check_endpoint
from tasks.instance import Hold, Wanted
from tasks.probe import STEADY_LOOKS, check_probes, read_identity

T = TypeVar("T")


@dataclass(frozen=True)
class Session:
    """A campaign that is recorded and whose surroundings passed the preflight."""

    prepared: Prepared
    client: InstalledClient
    accuracy_rows: Mapping[str, int]
    records: Records
    hold: Hold

    @property
    def campaign(self) -> Campaign:
        """The campaign itself."""
        return self.prepared.campaign

    @property
    def plan(self) -> Plan:
        """Its plan."""
        return self.prepared.plan

    def sized_plan(self) -> Plan:
        """The plan, sized by the rates that are known by now."""
        rates = self.records.measured_rates(self.campaign.campaign)
        return resized(self.campaign, self.plan, rates)

    def sized(self, label: str) -> Point:
        """A point, sized by the rates that are known by now."""
        return self.sized_plan().point(label)

    def has_tried_pilot(self, label: str) -> bool:
        """Whether a pilot of the point already ran, for better or worse."""
        return any(
            attempt.phase == Phase.PILOT and attempt.state is not AttemptState.INTERRUPTED
            for point in self.points()
            for attempt in point.attempts
            if point.label == label
        )

    def points(self) -> tuple[PointRecord, ...]:
        """The points as they stand in the records now."""
        return self.records.points_with_attempts(self.campaign.campaign)

    def estimate(self, labels: Collection[str]) -> Estimate:
        """What these points still cost, by the rates and costs that are known by now."""
        scored = scored_samples(self.campaign, self.accuracy_rows)
        costs = learned_costs(self.campaign, self.points(), scored)
        return estimate(self.campaign, self.sized_plan(), costs, scored=scored, labels=labels)

    def spent_s(self) -> float:
        """Time that the campaign's attempts and pilots took so far."""
        attempts = (attempt for point in self.points() for attempt in point.attempts)
        return sum((a.ended_at or a.started_at or 0.0) - (a.started_at or 0.0) for a in attempts)

    @property
    def env(self) -> Mapping[str, str]:
        """Environment of the client process; the API key lives only here."""
        return self.prepared.env


@dataclass(frozen=True)
class Surroundings:
    """What the preflight found."""

    client: InstalledClient
    accuracy_rows: Mapping[str, int]
    identity: Identity


def preflight(ready: Prepared) -> Surroundings:
    """Check datasets, endpoint, client, every point's configuration, and room; start no load.

    Raises:
        SetupError: what is wrong with the surroundings.
        InputError: the API key's variable is not set.
    """
    campaign = ready.campaign
    auth_headers(campaign, ready.env)
    _, accuracy_rows = check_datasets(campaign)
    too_few = too_few_samples(campaign, accuracy_rows)
    if too_few is not None:
        raise SetupError(too_few)
    check_room(ready.paths.runs, 0)
    names = sorted({TEMPLATES[point.load_pattern] for point in ready.plan.points})
    client, _ = _side_by_side(
        lambda: inspect_client(campaign.client.command, names, ready.env),
        lambda: check_endpoint(campaign, ready.env),
    )
    _check_stand_in(campaign, client)
    _validate_all(ready, client)
    check_probes(campaign, ready.env)
    identity = read_identity(campaign, ready.env, STEADY_LOOKS)
    return Surroundings(client=client, accuracy_rows=accuracy_rows, identity=identity)


def enter(ready: Prepared, found: Surroundings) -> Session:
    """Record the campaign, or join the record of the same one.

    Raises:
        InputError: the name is taken by a campaign that would measure something else, or its run
            folders are elsewhere.
        SetupError: the records can't be opened.
    """
    records = open_records(ready.paths.database_url)
    record = records.enter_campaign(
        ready.plan,
        text=ready.loaded.text,
        statement=statement(ready.campaign),
        system=system_key(ready.campaign),
        source=ready.loaded.path,
        runs_folder=ready.paths.runs,
        differences=lambda before: changes_since(before, ready.campaign),
    )
    if Path(record.runs_folder) != ready.paths.runs:
        raise InputError(
            f"records.runs: the run folders of {record.name} lie in {record.runs_folder} by its"
            f" records, not in {ready.paths.runs}; name that place, or move them and"
            f" `pareto relocate {record.name} {ready.paths.runs}`"
        )
    return Session(
        prepared=ready,
        client=found.client,
        accuracy_rows=found.accuracy_rows,
        records=records,
        hold=_hold(ready, records),
    )


def _hold(ready: Prepared, records: Records) -> Hold:
    """The instance of the campaign, not held yet."""
    name = ready.campaign.instance.name
    wanted = Wanted(name, ready.campaign.campaign, records.url.render_as_string())
    return Hold.of(wanted, instance_lock_path(name, ready.env), records)


def config_of(ready: Prepared, client: InstalledClient, point: Point, run: Path) -> str:
    """The client's YAML for a point, with its planned number of samples."""
    assert point.sizing.samples is not None, "a point is configured after its dataset was read"
    made = client_config(
        client.templates[TEMPLATES[point.load_pattern]],
        ready.campaign,
        point,
        samples=point.sizing.samples,
        seed_set=ready.plan.seed_set,
        run_folder=run,
    )
    text: str = yaml.safe_dump(made, sort_keys=False, allow_unicode=True)
    return text


def _check_stand_in(campaign: Campaign, client: InstalledClient) -> None:
    if client.is_stand_in and campaign.rehearsal is None:
        raise SetupError(
            "client.command: this is the rehearsal's stand-in client, but the campaign is no"
            " rehearsal; name the official client, or add rehearsal: {time_scale: …}"
        )


def _validate_all(ready: Prepared, client: InstalledClient) -> None:
    """Let the client confirm every point's configuration before the first run."""
    with tempfile.TemporaryDirectory(prefix="pareto-check-") as folder, _pool() as pool:

        def validate(point: Point) -> None:
            config = Path(folder) / f"{point.label}.yaml"
            text = config_of(ready, client, point, Path(folder) / point.label)
            config.write_text(text, encoding="utf-8")
            validate_config(client.command, config, ready.env)

        for _ in pool.map(validate, ready.plan.points):
            pass


def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=4)


def _side_by_side(first: Callable[[], T], second: Callable[[], None]) -> tuple[T, None]:
    """Both results; the first failure in order is raised."""
    with _pool() as pool:
        one, other = pool.submit(first), pool.submit(second)
        return one.result(), other.result()


def room_for(session: Session, point: Point) -> None:
    """Refuse a point whose events fit neither the disk nor the client's scratch space.

    Where the size of a sample is a guess, the least it can be counts.
    """
    (needed,) = session.estimate([point.label]).points
    check_room(session.prepared.paths.runs, round(needed.disk_bytes.low))
