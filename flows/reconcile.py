"""Brings Prefect's runs in line with the processes that are left, when a service starts.

A run whose process died stays Running for ever: nobody is left to say otherwise. Its owner stands
in its labels; a dead owner of this machine makes it Crashed, and the service goes on with it.
"""

from __future__ import annotations

from collections.abc import Iterator

from core.records import Owner, Records
from flows.submission import CAMPAIGN, RETRY
from tasks.owner import owner_lives, this_process
from tasks.prefect_api import FlowRun, PrefectApi
from tasks.prefect_pages import INTERRUPTED_LABEL, OWNER_LABELS


def reconcile(api: PrefectApi) -> Iterator[str]:
    """End runs of dead processes, go on with what was interrupted; one line for each.

    Raises:
        SetupError: the server is away.
    """
    flows = (CAMPAIGN, RETRY)
    for run in api.runs(flows=flows, states=("RUNNING", "CANCELLING")):
        owner = _owner(run)
        if owner is None or owner.host != this_process().host or owner_lives(owner):
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
        owner, is_interrupted = _owner(run), run.labels.get(INTERRUPTED_LABEL) is True
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


def _owner(run: FlowRun) -> Owner | None:
    host, boot_id, pid, start_time = (run.labels.get(name) for name in OWNER_LABELS)
    if host is None or boot_id is None or pid is None or start_time is None:
        return None
    return Owner(str(host), str(boot_id), int(pid), int(start_time))
