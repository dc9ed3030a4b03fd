"""Hands a campaign to the service: checked and planned here, recorded, then queued once.

Prefect is asked over its API: a submission takes a second, and imports none of it.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.errors import (
    EXIT_INCOMPLETE,
    EXIT_OK,
    ExecutionError,
    InputError,
    InterruptedByUserError,
    SetupError,
)
from core.plan import Plan
from core.records import EventRecord, Records, open_records
from core.redact import HIDDEN, scrubbed
from core.status import PointState
from flows.choice import labels_of
from flows.prepare import Prepared
from flows.session import recorded_in
from tasks.owner import owner_lives, this_process
from tasks.prefect_api import FlowRun, PrefectApi
from tasks.prefect_pages import owner_in
from tasks.prefect_server import known_api_url

#: Names of the flows, of their deployments, and of both together as Prefect looks them up.
CAMPAIGN, RETRY = "campaign", "retry-points"
CAMPAIGN_DEPLOYMENT = f"{CAMPAIGN}/{CAMPAIGN}"
#: Name of the state of a run that waits for the client to be installed where it is to run.
AWAITING_CLIENT = "AwaitingClient"
#: State of a run that was suspended in Prefect's pages.
SUSPENDED = "PAUSED"
#: States of a run that is not over.
_ACTIVE = ("SCHEDULED", "PENDING", "RUNNING", SUSPENDED, "CANCELLING")
#: States of a run that is over.
_FINAL = ("COMPLETED", "FAILED", "CANCELLED", "CRASHED")
#: Events of a campaign by which a run of it begins and ends.
STARTED, FINISHED, STOPPED = "campaign.started", "campaign.finished", "campaign.stopped"
#: Seconds between two looks at a run, and seconds that a check on another machine may take.
LOOK_S, CHECK_TIMEOUT_S = 1.0, 180.0


@dataclass(frozen=True)
class Submitted:
    """A run that measures the campaign, and whether it was there before."""

    run: FlowRun
    joined: bool
    records: Records
    note: str = ""  # what it waits for, if that is known


def marks(ready: Prepared) -> list[str]:
    """Tags of a campaign's runs."""
    campaign = ready.campaign
    found = [f"campaign:{campaign.campaign}", f"instance:{campaign.instance.name}"]
    return [*found, "rehearsal"] if campaign.rehearsal else found


def title(ready: Prepared) -> str:
    """What a campaign's runs are called: the campaign and the instance that it measures."""
    return f"{ready.campaign.campaign} @ {ready.campaign.instance.name}"


def host_tag() -> str:
    """Tag of a deployment that names the machine which serves it: this one."""
    return f"host:{this_process().host}"


def service(ready: Prepared) -> PrefectApi:
    """The Prefect server of the service.

    Raises:
        SetupError: none answers, or it is of another major version.
    """
    folders = [ready.campaign.records.folder / "prefect", Path("pareto-data/prefect").absolute()]
    api = PrefectApi(known_api_url(folders))
    api.refuse_other_version()
    return api


def submit(api: PrefectApi, ready: Prepared, points: Sequence[str] | None) -> Submitted | None:
    """Record a campaign and queue it, or find the run that measures it; None: it is complete.

    Args:
        api: The service's Prefect server.
        ready: The campaign, read and planned.
        points: Labels of the points to run; None: all that are not valid.

    Raises:
        InputError: it has a secret in it, or its name is taken.
        SetupError: nobody serves campaigns there, or its surroundings there don't fit.
    """
    _refuse_secrets(ready)
    deployment = _deployment(api, ready)
    records = open_records(ready.paths.database_url)
    name = recorded_in(records, ready).name
    states = {point.state for point in records.points_with_attempts(name)}
    if states == {PointState.VALID}:
        return None
    active = api.runs(flows=(CAMPAIGN,), tags=marks(ready)[:1], states=_ACTIVE)
    if running := _same(active, ready, points):
        return Submitted(running, joined=True, records=records)
    note = _beside(api, active)
    is_here = host_tag() in deployment.get("tags", ())
    if not is_here and not _is_busy(api, deployment, ready):
        note = _check_there(api, deployment["id"], ready) or note
    run = _created(api, deployment["id"], ready, points, active)
    return Submitted(run, joined=False, records=records, note=note)


def exit_code(run: FlowRun | None, events: Sequence[EventRecord]) -> int:
    """What `pareto run` would have ended with.

    Args:
        run: The run at its end; None: it was deleted.
        events: The campaign's, of all its runs; only those of this run's last process count.
    """
    if run is None or run.state_type == "CANCELLED":
        return InterruptedByUserError.exit_code
    if run.state_type == "COMPLETED":
        return EXIT_OK
    kinds = {STARTED, FINISHED, STOPPED}
    known = sorted((e for e in events if e.kind in kinds), key=lambda event: event.id)
    of_run = [e.id for e in known if e.kind == STARTED and e.payload.get("flow_run") == run.id]
    if not of_run and run.state_type == "FAILED":  # in its preflight
        return SetupError.exit_code
    after = [event for event in known if of_run and event.id > of_run[-1]]
    if not after or after[0].kind == STARTED:  # it was killed
        return ExecutionError.exit_code
    code = EXIT_INCOMPLETE if after[0].kind == FINISHED else ExecutionError.exit_code
    return int(after[0].payload.get("exit_code", code))


def _deployment(api: PrefectApi, ready: Prepared) -> dict[str, Any]:
    """Who runs the campaign: the worker beside its instance, else the service.

    Raises:
        SetupError: nobody does.
    """
    instance = ready.campaign.instance.name
    for name in (f"{CAMPAIGN}/{instance}", CAMPAIGN_DEPLOYMENT):
        if (found := api.deployment(name)) is not None:
            return found
    raise SetupError(
        f"nobody runs campaigns of {instance} at {api.ui_url}; start `pareto serve` there, or"
        f" `pareto worker {instance}` beside the instance"
    )


def _is_busy(api: PrefectApi, deployment: Mapping[str, Any], ready: Prepared) -> bool:
    """Whether a worker measures now: a check would wait for that, and disturb it."""
    is_worker = deployment.get("work_pool_name") is not None
    return is_worker and bool(api.runs(tags=marks(ready)[1:2], states=_ACTIVE))


def _same(runs: Sequence[FlowRun], ready: Prepared, points: Sequence[str] | None) -> FlowRun | None:
    """The run of this very campaign, of its file or with its text, that measures these points."""
    source, text = str(ready.loaded.path), ready.loaded.text.strip()
    for run in runs:
        given = run.parameters
        if not _measures(run) or not _covers(str(given.get("points") or ""), points, ready.plan):
            continue
        if given.get("source") == source or source == given.get("campaign"):
            return run
        if str(given.get("campaign", "")).strip() == text:
            return run
    return None


def _measures(run: FlowRun) -> bool:
    """Whether a run that is not over will measure."""
    only_looks = run.parameters.get("check") or run.parameters.get("calibrate")
    return not only_looks and run.state_type != "CANCELLING" and not _is_dead(run)


def _covers(theirs: str, wanted: Sequence[str] | None, plan: Plan) -> bool:
    """Whether a run of these points, as its user named them, measures all that are wanted."""
    if not theirs:
        return True
    try:
        return wanted is not None and set(wanted) <= set(labels_of(theirs, plan) or ())
    except InputError:  # it can't run
        return False


def _beside(api: PrefectApi, active: Sequence[FlowRun]) -> str:
    """What is worth telling of the campaign's runs that were not joined."""
    running = [run for run in active if _measures(run)]
    if not running:
        return ""
    return (
        f"another run of it measures something else: {api.run_url(running[0].id)}; one runs at a"
        " time: a worker takes this one after it, a service ends it as Joined"
    )


def _is_dead(run: FlowRun) -> bool:
    """Whether a run is shown as running whose process on this machine is gone."""
    owner = owner_in(run.labels)
    if run.state_type != "RUNNING" or owner is None or owner.host != this_process().host:
        return False
    return not owner_lives(owner)


def _created(
    api: PrefectApi,
    deployment_id: str,
    ready: Prepared,
    points: Sequence[str] | None,
    passed: Sequence[FlowRun],
) -> FlowRun:
    """A new run; two submissions at once get the same one, and never one that was passed over."""
    ended = api.runs(flows=(CAMPAIGN,), tags=marks(ready)[:1], states=_FINAL)
    known = [run.id for run in (*ended[:1], *passed) if not run.parameters.get("check")]
    after = sorted(known)
    parameters = _parameters(ready) | {"points": ",".join(points or ())}
    digest = hashlib.sha256(f"{sorted(parameters.items())}{after}".encode()).hexdigest()
    return api.create_run(
        deployment_id, parameters, name=title(ready), tags=marks(ready), once=digest
    )


def _check_there(api: PrefectApi, deployment_id: str, ready: Prepared) -> str:
    """Let the machine that would measure say whether it has all that the campaign names.

    Returns:
        What its run will wait for; nothing if it can begin.

    Raises:
        SetupError: it lacks something, or does not say.
    """
    tags, name = ["check"], f"check of {ready.campaign.campaign}"
    parameters, once = _parameters(ready) | {"check": True}, f"check {time.time_ns()}"
    run: FlowRun | None = api.create_run(deployment_id, parameters, name=name, tags=tags, once=once)
    deadline_s = time.monotonic() + CHECK_TIMEOUT_S
    while run is not None and not run.is_final:
        if run.state_name == AWAITING_CLIENT:
            api.set_state(run.id, "CANCELLED", "Cancelled", run.message)
            return run.message
        if time.monotonic() > deadline_s:
            raise SetupError(
                "the machine that runs campaigns is busy, or its worker is not running; see"
                f" {api.run_url(run.id)}"
            )
        time.sleep(LOOK_S)
        run = api.run(run.id)
    if run is None or run.state_type != "COMPLETED":
        reason = "its check was deleted" if run is None else run.message
        raise SetupError(f"where campaigns are run, this one can't be: {reason}")
    return ""


def _parameters(ready: Prepared) -> dict[str, object]:
    return {"campaign": ready.loaded.text, "source": str(ready.loaded.path)}


def _refuse_secrets(ready: Prepared) -> None:
    """Refuse a password in the database's address: the text is shown in Prefect's pages.

    Raises:
        InputError: naming the key.
    """
    url = ready.campaign.records.database
    if url and url in ready.loaded.text and HIDDEN in scrubbed(url):
        raise InputError(
            "records.database: has a password in it, and a submitted text is shown in Prefect's"
            " pages; put it into a variable, postgresql://user:${PGPASSWORD}@host/name"
        )
