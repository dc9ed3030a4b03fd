"""How a run of a campaign ended, as a state that Prefect shows."""

from __future__ import annotations

from collections.abc import Callable

from prefect.client.schemas.objects import State, StateType
from prefect.states import Cancelled, Completed, Failed

from core.errors import InterruptedByUserError, ParetoError
from tasks.lock import HeldError

#: Name of the state of a run that found its campaign being run: it did nothing.
JOINED = "Joined"


def ended(work: Callable[[], str], *, joins: bool = False) -> State[None]:
    """Do the work; what the user can act on becomes a state without a traceback.

    Args:
        work: Runs the campaign; says what was done.
        joins: Whether a campaign that is being run already is no failure.
    """
    try:
        done = work()
    except HeldError as held:
        if not joins:
            return Failed(message=str(held), data=held)
        text = f"nothing was started: {held}"
        return State(type=StateType.CANCELLED, name=JOINED, message=text)
    except InterruptedByUserError as stopped:
        return Cancelled(message=str(stopped), data=stopped)
    except ParetoError as failure:
        return Failed(message=str(failure), data=failure)
    return Completed(message=done)
