"""What a user can do about a failure: one error class per action, each with its exit code.

The codes follow the reference client's own convention (0 ok, 1 error, 2 input, 3 set-up,
4 execution, 130 interrupted; mlcommons/endpoints `exceptions.py`). Whatever is not a
`ParetoError` is a bug and keeps its traceback.
"""

from __future__ import annotations

from typing import ClassVar

#: Exit code of a finished, complete and valid curve.
EXIT_OK = 0
#: Exit code of a campaign that finished with points that are not valid.
EXIT_INCOMPLETE = 1


class ParetoError(Exception):
    """A failure that the user can act on; the message names value, place and fix."""

    exit_code: ClassVar[int] = 1


class InputError(ParetoError):
    """Correct the input: the campaign file, an argument, or the plan that follows from it."""

    exit_code: ClassVar[int] = 2


class SetupError(ParetoError):
    """Correct the surroundings: client, endpoint, dataset, disk, database, Prefect server."""

    exit_code: ClassVar[int] = 3


class ClientMissingError(SetupError):
    """Install the official client on the machine that measures; whoever can waits for it."""


class ExecutionError(ParetoError):
    """The run was stopped by a failure that would repeat; look at the findings named."""

    exit_code: ClassVar[int] = 4


class InterruptedByUserError(ParetoError):
    """The run was stopped on request; run the same file again to continue."""

    exit_code: ClassVar[int] = 130
