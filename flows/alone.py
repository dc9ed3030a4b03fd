"""Keeps a run from one that measures: of the same campaign, and of the same instance.

A preflight sends requests and reads whole datasets, which would disturb a measurement. So a run
looks before it whether it is alone; for good it takes campaign and instance when it begins.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

from core.layout import campaign_lock_path, instance_lock_path
from core.records import LeaseRecord, Records, RecordsUnavailableError, open_records
from core.records.engine import parsed_url
from flows.prepare import Prepared
from flows.stop import StopRequest
from tasks.instance import BEAT_S, InstanceLock, Wanted, taken
from tasks.lease_keeper import is_locked
from tasks.lock import HeldError, exclusive
from tasks.owner import is_here, owner_lives

#: Seconds between two looks at a lock or a lease that somebody holds.
LOOK_S = 1.0
#: Seconds within which a living holder of a lease shows a sign of life.
_SIGN_WITHIN_S = 2 * BEAT_S


@contextmanager
def alone(
    ready: Prepared, stop: StopRequest, run_id: str | None, records: Records | None = None
) -> Iterator[None]:
    """Hold the campaign; a process of this very run, suspended and resumed since, is waited for.

    Args:
        ready: The campaign.
        stop: The user's request to stop, which ends the wait.
        run_id: Prefect's run that this is; None: none.
        records: Those of the campaign, if they are open already.

    Raises:
        HeldError: another run holds it.
    """
    name = ready.campaign.campaign
    lock = campaign_lock_path(ready.paths.runs, name)
    with ExitStack() as block:
        while True:
            try:
                block.enter_context(exclusive(lock, f"campaign {name}"))
                break
            except HeldError:
                if stop or not run_id or not _is_of(run_id, ready, records):
                    raise
                stop.wait(LOOK_S)
        yield


def refuse_taken(ready: Prepared, stop: StopRequest, run_id: str | None = None) -> None:
    """Say at once, and not after a preflight, that somebody measures this campaign or instance.

    Raises:
        HeldError: another process runs the campaign.
        SetupError: another campaign holds the instance; says who.
    """
    if campaign_lock_path(ready.paths.runs, ready.campaign.campaign).exists():
        with alone(ready, stop, run_id):
            pass
    url = parsed_url(ready.paths.database_url)
    wanted = Wanted(ready.campaign.instance.name, ready.campaign.campaign, url.render_as_string())
    _refuse_locked(ready, wanted)
    if url.get_backend_name() != "sqlite":  # of one machine, where the lock is enough
        with suppress(RecordsUnavailableError):  # they are waited for later
            _refuse_leased(open_records(ready.paths.database_url), wanted, stop)


def _is_of(run_id: str, ready: Prepared, records: Records | None) -> bool:
    """Whether the campaign was last begun by a process of this flow run."""
    known = records or open_records(ready.paths.database_url)
    began = known.campaign_events(ready.campaign.campaign, "campaign.started")[-1:]
    return any(event.payload.get("flow_run") == run_id for event in began)


def _refuse_locked(ready: Prepared, wanted: Wanted) -> None:
    """Refuse an instance that another campaign of this machine holds."""
    path = instance_lock_path(wanted.instance, ready.env)
    lock = InstanceLock(wanted, path)
    with suppress(OSError):  # told when it is taken for good
        if is_locked(path) and not lock.is_left_by_us():
            lock.acquire()
            lock.release()


def _refuse_leased(records: Records, wanted: Wanted, stop: StopRequest) -> None:
    """Refuse an instance whose lease a living process holds, here or on another machine."""
    held = records.lease(wanted.instance)
    if held is None or (is_here(held.owner) and not owner_lives(held.owner)):
        return
    if owner_lives(held.owner) or _moves(records, held, stop):
        raise taken(wanted, held)


def _moves(records: Records, held: LeaseRecord, stop: StopRequest) -> bool:
    """Whether a lease shows a sign of life soon."""
    waited_s = 0.0
    while waited_s < _SIGN_WITHIN_S and not stop.wait(LOOK_S):
        waited_s += LOOK_S
        now = records.lease(held.instance)
        if now != held:
            return now is not None and now.owner == held.owner
    return False
