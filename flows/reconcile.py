"""Brings Prefect's runs in line with the processes that are left, when a service starts.

A run whose process died stays Running for ever: nobody is left to say otherwise. Its owner stands
in its labels; a dead owner of this machine makes it Crashed, and the service goes on with it. One
that died while it started has no owner yet: it is of the service that takes runs of its kind.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from core.records import Records
from flows.submission import CAMPAIGN, RETRY, host_tag
from tasks.owner import owner_lives, this_process
from tasks.prefect_api import FlowRun, PrefectApi
from tasks.prefect_pages import INTERRUPTED_LABEL, owner_in


def reconcile(api: PrefectApi, instance: str | None = None) -> Iterator[str]:
    """End runs of dead processes, go on with what was interrupted; one line for each.

    Args:
        api: The Prefect server.
        instance: Whose worker starts; None: the service.

    Raises:
        SetupError: the server is away.
    """
    flows, ours = (CAMPAIGN, RETRY), _served_here(api, instance)
    for run in api.runs(flows=flows, states=("PENDING", "RUNNING", "CANCELLING")):
        if not _is_left(run, ours):
            continue
        was_cancelled = run.state_type == "CANCELLING"
        text = "the process that ran it is gone"
        if was_cancelled:
            api.set_state(run.id, "CANCELLED", "Cancelled", text)
        else:
            api.set_state(run.id, "CRASHED", "Crashed", text)
        yield f"{run.name}: {text}"
        if not was_cancelled and run.deployment_id is not None:
            yield _resumed(api, run)
    for run in api.runs(flows=flows, states=("CANCELLED", "CRASHED", "FAILED")):
        owner, is_interrupted = owner_in(run.labels), run.labels.get(INTERRUPTED_LABEL) is True
        if not is_interrupted or run.deployment_id is None or owner is None:
            continue
        if owner.host == this_process().host:  # whoever stopped another machine goes on there
            yield _resumed(api, run)


def left_open(records: Records) -> Iterator[str]:
    """Attempts that a process which is gone left open; the next run of each takes it in."""
    for attempt in records.open_attempts():
        if attempt.owner.host == this_process().host and not owner_lives(attempt.owner):
            yield (
                f"{attempt.campaign}: {attempt.label} attempt {attempt.number} was left by a"
                " process that is gone; the campaign's next run takes it in"
            )


def _resumed(api: PrefectApi, run: FlowRun) -> str:
    """Schedule a run anew; it continues, since the records say what is done.

    The label goes last: a run that could not be scheduled is found again at the next start.
    """
    api.set_state(run.id, "SCHEDULED", "AwaitingRetry", "goes on after an interruption")
    api.ask("PATCH", f"/flow_runs/{run.id}/labels", {INTERRUPTED_LABEL: False})
    return f"{run.name}: goes on"


def _is_left(run: FlowRun, ours: Collection[str]) -> bool:
    """Whether no process is left that runs it.

    One that never got as far as its labels, or bears those of its last process, is of whoever
    serves its deployment: that begins now.
    """
    owner = None if run.state_type == "PENDING" else owner_in(run.labels)
    if owner is None:
        return run.deployment_id in ours
    return owner.host == this_process().host and not owner_lives(owner)


def _served_here(api: PrefectApi, name: str | None) -> set[str]:
    """Ids of the deployments that whoever starts here served before, by their tag."""
    names = (f"{flow}/{name or flow}" for flow in (CAMPAIGN, RETRY))
    found = [each for each in map(api.deployment, names) if each is not None]
    return {str(each["id"]) for each in found if host_tag() in each.get("tags", ())}
