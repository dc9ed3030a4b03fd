"""How a run of a campaign ended, as a state that Prefect shows."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from prefect.client.schemas.objects import State, StateType
from prefect.exceptions import Pause
from prefect.runtime import flow_run
from prefect.states import Cancelled, Completed, Failed

from core.errors import ClientMissingError, InterruptedByUserError, ParetoError, SetupError
from core.redact import hidden
from flows.submission import AWAITING_CLIENT
from tasks.lock import HeldError
from tasks.prefect_api import PrefectApi

#: Name of the state of a run that found its campaign being run: it did nothing.
JOINED = "Joined"
#: Seconds until such a run looks again.
CLIENT_PAUSE_S = 30


def ended(work: Callable[[], str], *, joins: bool = False) -> State[None]:
    """Do the work; what the user can act on becomes a state without a traceback or a secret.

    Args:
        work: Runs the campaign; says what was done.
        joins: Whether it is a service that runs it: a campaign that is being run already is no
            failure then, and a client that is not installed yet is waited for.
    """
    try:
        done = work()
    except HeldError as held:
        if not joins:
            return _failed(held)
        text = f"nothing was started: {held}"
        return State(type=StateType.CANCELLED, name=JOINED, message=text)
    except ClientMissingError as missing:
        if joins:
            _wait_for_client(missing)
        return _failed(missing)
    except InterruptedByUserError as stopped:
        return Cancelled(message=str(stopped), data=stopped)
    except ParetoError as failure:
        return _failed(failure)
    return Completed(message=done)


def _failed(failure: ParetoError) -> State[None]:
    """The state that a failure becomes: others read its message, our caller its data."""
    return Failed(message=hidden(str(failure), os.environ), data=failure)


def _wait_for_client(missing: ClientMissingError) -> None:
    """Leave the run, to be begun anew in a while: nothing failed and nothing was tried.

    A flow that returns such a state is called crashed by its worker, which takes its exit for one;
    leaving it as a suspended one is left is not. Returns if there is no run to schedule.
    """
    api_url, run_id = os.environ.get("PREFECT_API_URL"), flow_run.id
    if not api_url or run_id is None:
        return
    again = datetime.now(UTC) + timedelta(seconds=CLIENT_PAUSE_S)
    reason = hidden(str(missing), os.environ)
    text = f"waits for the client on {socket.gethostname()}: {reason}"
    details = {"scheduled_time": again.isoformat()}
    with suppress(SetupError):  # a server that is away: failed then, and can be retried
        PrefectApi(api_url).set_state(run_id, "SCHEDULED", AWAITING_CLIENT, text, details)
        raise Pause
