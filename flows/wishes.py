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

from prefect.runtime import flow_run

from core.errors import InterruptedByUserError
from core.records import Records, RecordsUnavailableError, Wish
from flows.session import Session
from flows.stop import StopRequest
from tasks.prefect_server import flow_run_state

#: Seconds between two looks at the records.
LOOK_S = 1.0
#: Seconds between two looks at the state of the flow's run in Prefect.
PREFECT_LOOK_S = 2.0
#: States of a run that was cancelled in Prefect.
_CANCELLED = frozenset({"CANCELLING", "CANCELLED"})


@contextmanager
def heeded(session: Session, stop: StopRequest) -> Iterator[None]:
    """While the block lasts, a campaign or flow run that is cancelled asks to stop."""
    records, name = session.records.impatient(), session.campaign.campaign
    api_url, run_id = os.environ.get("PREFECT_API_URL"), flow_run.id
    ended = threading.Event()

    def look() -> None:
        due_s = 0.0
        while not ended.wait(LOOK_S) and not stop:
            if _wish(records, name) is Wish.CANCEL:
                return stop.ask("pareto cancel")
            if api_url and run_id and time.monotonic() >= due_s:
                due_s = time.monotonic() + PREFECT_LOOK_S
                if flow_run_state(api_url, run_id) in _CANCELLED:
                    return stop.ask("cancelled in Prefect")
        return None

    thread = threading.Thread(target=look, name="wishes", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()  # not joined: it may be waiting for a database or a server that is away


def wait_while_paused(session: Session, stop: StopRequest, label: str) -> None:
    """Return once the campaign is not, or no longer, asked to pause.

    Raises:
        InterruptedByUserError: stopped on request.
    """
    records, name = session.records.impatient(), session.campaign.campaign
    while not stop and _wish(records, name) is Wish.PAUSE:
        stop.wait(LOOK_S)
    if stop:
        raise InterruptedByUserError(f"stopped ({stop.reason}) before {label}")


def _wish(records: Records, name: str) -> Wish | None:
    with suppress(RecordsUnavailableError):
        return records.campaign(name).wish
    return None
