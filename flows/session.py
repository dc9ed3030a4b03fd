"""From a prepared campaign to a session: checked against its surroundings, then recorded.

`preflight` only asks; `enter` is the first step of a run that writes.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import yaml

from core.campaign import Campaign
from core.campaign_diff import changes_since, statement, system_key
from core.client_config import TEMPLATES, client_config
from core.errors import InputError, SetupError
from core.estimate import Estimate, estimate, first_costs, scored_samples
from core.identity import Identity
from core.layout import instance_lock_path
from core.plan import Plan, Point
from core.preset_fill import too_few_samples
from core.records import CampaignRecord, PointRecord, Records, open_records
from core.status import AttemptState
from flows.costs import costs_of, sized_plan
from flows.prepare import Prepared
from tasks.client import InstalledClient, inspect_client, validate_config
from tasks.dataset import check_datasets
from tasks.disk import check_room
from tasks.endpoint import auth_headers, check_endpoint
from tasks.instance import Hold, Wanted
from tasks.patience import patient
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
        return sized_plan(self.prepared, self.records)

    def sized(self, label: str) -> Point:
        """A point, sized by the rates that are known by now."""
        return self.sized_plan().point(label)

    def has_tried_pilot(self, label: str) -> bool:
        """Whether a pilot of the point already ran, for better or worse."""
        return any(
            attempt.is_pilot and attempt.state is not AttemptState.INTERRUPTED
            for point in self.points()
            for attempt in point.attempts
            if point.label == label
        )

    def points(self) -> tuple[PointRecord, ...]:
        """The points as they stand in the records now."""
        return self.records.points_with_attempts(self.campaign.campaign)

    def estimate(self, labels: Collection[str]) -> Estimate:
        """What these points still cost, by the rates and costs that are known by now."""
        return costs_of(self.prepared, self.records, self.accuracy_rows, labels)

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


def preflight(ready: Prepared, labels: Collection[str] | None = None) -> Surroundings:
    """Check datasets, endpoint, client, the points' configurations, and room; start no load.

    Args:
        ready: The campaign.
        labels: Points to be run, whose configurations the client is to confirm; None: all.

    Raises:
        SetupError: what is wrong with the surroundings.
        InputError: the API key's variable is not set.
    """
    campaign = ready.campaign
    auth_headers(campaign, ready.env)
    problems: list[SetupError] = []
    names = sorted({TEMPLATES[point.load_pattern] for point in ready.plan.points})
    with _pool() as pool:
        looked_at = pool.submit(inspect_client, campaign.client.command, names, ready.env)
        asked = pool.submit(check_endpoint, campaign, ready.env)
        rows = _noted(problems, lambda: _accuracy_rows(ready))
        client = _noted(problems, looked_at.result)
        _noted(problems, asked.result)
    if len(problems) == 1:  # of its own kind: a run waits for a client that is missing
        raise problems[0]
    if problems:
        raise SetupError("\n".join(map(str, problems)))
    assert client is not None
    assert rows is not None
    _check_stand_in(campaign, client)
    _validate_all(ready, client, labels)
    check_probes(campaign, ready.env)
    identity = read_identity(campaign, ready.env, STEADY_LOOKS)
    return Surroundings(client=client, accuracy_rows=rows, identity=identity)


def _noted(problems: list[SetupError], look: Callable[[], T]) -> T | None:
    """What a look finds; a problem is noted, so that all of them are told at once."""
    try:
        return look()
    except SetupError as problem:
        problems.append(problem)
        return None


def _accuracy_rows(ready: Prepared) -> Mapping[str, int]:
    """Rows of each accuracy dataset; all datasets and the room for their runs were looked at."""
    _, accuracy_rows = check_datasets(ready.campaign)
    too_few = too_few_samples(ready.campaign, accuracy_rows)
    if too_few is not None:
        raise SetupError(too_few)
    _check_room_for_any(ready, accuracy_rows)
    return accuracy_rows


def enter(ready: Prepared, found: Surroundings, given_up: threading.Event) -> Session:
    """Record the campaign, or join the record of the same one.

    Args:
        ready: The campaign.
        found: What its preflight found.
        given_up: Set when nobody wants to wait for a database that is away.

    Raises:
        InputError: the name is taken by a campaign that would measure something else, or its run
            folders are elsewhere.
        SetupError: the records can't be opened.
    """
    patience = patient(ready.campaign.run.recovery_timeout_s, given_up)
    records = open_records(ready.paths.database_url, patience=patience)
    join_record(ready, records)
    return Session(
        prepared=ready,
        client=found.client,
        accuracy_rows=found.accuracy_rows,
        records=records,
        hold=_hold(ready, records),
    )


def join_record(ready: Prepared, records: Records) -> CampaignRecord:
    """Record the campaign, or join the record of the same one, wherever its folders lie now.

    Raises:
        InputError: the name is taken by a campaign that would measure something else, or its run
            folders are elsewhere.
    """
    record = recorded_in(records, ready)
    recorded = Path(record.runs_folder)
    if _was_moved(record.name, recorded, ready.paths.runs):
        records.relocate(record.name, ready.paths.runs)
    elif recorded != ready.paths.runs:
        raise InputError(
            f"records.runs: the run folders of {record.name} lie in {record.runs_folder} by its"
            f" records, not in {ready.paths.runs}; name that place, or move them and"
            f" `pareto relocate {record.name} {ready.paths.runs}`"
        )
    return record


def recorded_in(records: Records, ready: Prepared) -> CampaignRecord:
    """Record a campaign with its exact text, or join the record of the same one.

    Raises:
        InputError: the name is taken by a campaign that would measure something else.
    """
    folder = ready.loaded.path.parent
    stated = statement(ready.campaign, folder)
    return records.enter_campaign(
        ready.plan,
        text=ready.loaded.text,
        statement=stated,
        system=system_key(ready.campaign, folder),
        source=ready.loaded.path,
        runs_folder=ready.paths.runs,
        differences=lambda before: changes_since(before, stated),
    )


def _was_moved(name: str, recorded: Path, now: Path) -> bool:
    """Whether the campaign's folders lie in another runs folder than recorded, and only there."""
    return (now / name).is_dir() and not (recorded / name).exists()


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


def _validate_all(ready: Prepared, client: InstalledClient, labels: Collection[str] | None) -> None:
    """Let the client confirm configurations before the first run: it takes seconds for each."""
    points = [point for point in ready.plan.points if labels is None or point.label in labels]
    with tempfile.TemporaryDirectory(prefix="pareto-check-") as folder, _pool() as pool:

        def validate(point: Point) -> None:
            config = Path(folder) / f"{point.label}.yaml"
            text = config_of(ready, client, point, Path(folder) / point.label)
            config.write_text(text, encoding="utf-8")
            validate_config(client.command, config, ready.env)

        for _ in pool.map(validate, points):
            pass


def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=4)


def room_for(session: Session, labels: Collection[str]) -> None:
    """Refuse points that don't fit: all of them on the disk, the largest in the client's scratch.

    Where the size of a sample is a guess, the least it can be counts.

    Raises:
        SetupError: with the numbers.
    """
    _check_room(session.prepared, session.estimate(labels))


def _check_room_for_any(ready: Prepared, accuracy_rows: Mapping[str, int]) -> None:
    """Refuse a campaign whose largest point doesn't fit; what is done already is not known here."""
    scored = scored_samples(ready.campaign, accuracy_rows)
    found = estimate(ready.campaign, ready.plan, first_costs(ready.campaign), scored=scored)
    largest = max(found.points, key=lambda point: point.disk_bytes.low)
    _check_room(ready, replace(found, points=(largest,), disk_bytes=largest.disk_bytes))


def _check_room(ready: Prepared, needed: Estimate) -> None:
    largest = max((point.disk_bytes.low for point in needed.points), default=0.0)
    check_room(ready.paths.runs, round(needed.disk_bytes.low), round(largest))
