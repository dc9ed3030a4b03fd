"""What a running campaign is asked from outside: by `pareto pause` and `cancel`, or in Prefect.

Prefect does not signal a flow that was called directly, nor one whose `serve` process went through
an outage: so the flow looks at its own state, and treats a cancelled run as a request to stop.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from prefect.exceptions import Pause
from prefect.runtime import deployment, flow_run

from core.errors import InterruptedByUserError
from core.records import Records, RecordsUnavailableError, Wish
from flows.session import Session
from flows.stop import StopRequest
from tasks.prefect_server import flow_run_state, suspend

#: Seconds between two looks at the records.
LOOK_S = 1.0
#: Seconds between two looks at the state of the flow's run in Prefect.
PREFECT_LOOK_S = 2.0
#: State of a run that was suspended in Prefect.
_PAUSED = "PAUSED"
#: States of a run that was cancelled in Prefect.
_CANCELLED = frozenset({"CANCELLING", "CANCELLED"})


@dataclass
class Wishes:
    """What the run was asked for in Prefect."""

    #: Set when it was suspended there: it ends after the running point, and is started anew by the
    #: service. One without a deployment can't be, and goes on.
    suspended: threading.Event = field(default_factory=threading.Event)


@contextmanager
def heeded(session: Session, stop: StopRequest) -> Iterator[Wishes]:
    """While the block lasts, a campaign or flow run that is cancelled asks to stop."""
    records, name = session.records.impatient(), session.campaign.campaign
    api_url, run_id = os.environ.get("PREFECT_API_URL"), flow_run.id
    ended, wishes = threading.Event(), Wishes()

    def look() -> None:
        due_s = 0.0
        while not ended.wait(LOOK_S) and not stop:
            if _wish(records, name) is Wish.CANCEL:
                return stop.ask("pareto cancel")
            if api_url and run_id and time.monotonic() >= due_s:
                due_s = time.monotonic() + PREFECT_LOOK_S
                state = flow_run_state(api_url, run_id)
                if state in _CANCELLED:
                    return stop.ask("cancelled in Prefect")
                if state == _PAUSED and deployment.id and not wishes.suspended.is_set():
                    suspend(api_url, run_id)
                    wishes.suspended.set()
        return None

    thread = threading.Thread(target=look, name="wishes", daemon=True)
    thread.start()
    try:
        yield wishes
    finally:
        ended.set()  # not joined: it may be waiting for a database or a server that is away


def is_cancelled() -> bool | None:
    """Whether the run that this is was cancelled in Prefect; None: its server doesn't say."""
    api_url, run_id = os.environ.get("PREFECT_API_URL"), flow_run.id
    if not api_url or not run_id:
        return False
    state = flow_run_state(api_url, run_id)
    return None if state is None else state in _CANCELLED


def wait_while_paused(session: Session, stop: StopRequest, wishes: Wishes, label: str) -> None:
    """Return once the campaign is not, or no longer, asked to pause.

    Raises:
        InterruptedByUserError: stopped on request.
        Pause: the run was suspended in Prefect; resumed there, it is started anew.
    """
    records, name = session.records.impatient(), session.campaign.campaign
    while not stop and _wish(records, name) is Wish.PAUSE:
        stop.wait(LOOK_S)
    if wishes.suspended.is_set() and not stop:
        raise Pause(f"suspended before {label}")
    if stop:
        raise InterruptedByUserError(f"stopped ({stop.reason}) before {label}")


def _wish(records: Records, name: str) -> Wish | None:
    with suppress(RecordsUnavailableError):
        return records.wish(name)
    return None
