"""How the stand-in client ends: the reference client's exit codes (its `exceptions.py`)."""

from __future__ import annotations

from typing import ClassVar

#: Exit code after an interrupt that left no report.
EXIT_INTERRUPTED = 130


class ClientError(Exception):
    """A failure with a message and no traceback: a wrong flag, an unfinished run."""

    exit_code: ClassVar[int] = 1


class ClientInputError(ClientError):
    """The configuration or a file it names is wrong."""

    exit_code: ClassVar[int] = 2


class ClientSetupError(ClientError):
    """Something the run needs is not there, or the stand-in does not have it."""

    exit_code: ClassVar[int] = 3


class ClientExecutionError(ClientError):
    """The run itself failed."""

    exit_code: ClassVar[int] = 4
