"""How a run of a campaign ended, as a state that Prefect shows."""

from __future__ import annotations

import socket
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from prefect.client.schemas.objects import State, StateType
from prefect.states import Cancelled, Completed, Failed, Scheduled

from core.errors import ClientMissingError, InterruptedByUserError, ParetoError
from flows.submission import AWAITING_CLIENT
from tasks.lock import HeldError

#: Name of the state of a run that found its campaign being run: it did nothing.
JOINED = "Joined"
#: Seconds until such a run looks again.
CLIENT_PAUSE_S = 30


def ended(work: Callable[[], str], *, joins: bool = False) -> State[None]:
    """Do the work; what the user can act on becomes a state without a traceback.

    Args:
        work: Runs the campaign; says what was done.
        joins: Whether it is a service that runs it: a campaign that is being run already is no
            failure then, and a client that is not installed yet is waited for.
    """
    try:
        done = work()
    except HeldError as held:
        if not joins:
            return Failed(message=str(held), data=held)
        text = f"nothing was started: {held}"
        return State(type=StateType.CANCELLED, name=JOINED, message=text)
    except ClientMissingError as missing:
        if not joins:
            return Failed(message=str(missing), data=missing)
        return _waiting(missing)
    except InterruptedByUserError as stopped:
        return Cancelled(message=str(stopped), data=stopped)
    except ParetoError as failure:
        return Failed(message=str(failure), data=failure)
    return Completed(message=done)


def _waiting(missing: ClientMissingError) -> State[None]:
    """Nothing failed and nothing was tried: the run looks again in a while."""
    again = datetime.now(UTC) + timedelta(seconds=CLIENT_PAUSE_S)
    text = f"waits for the client on {socket.gethostname()}: {missing}"
    return Scheduled(scheduled_time=again, name=AWAITING_CLIENT, message=text)
