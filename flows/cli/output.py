"""What a command prints, whether or not anybody takes it: a run goes on without its reader."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TextIO


class Output:
    """A text stream that never fails: once it can't be written, the rest of it goes nowhere.

    Whatever else is asked of it is asked of the stream.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.problem: OSError | None = None  # why it couldn't be written

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    @property
    def is_lost(self) -> bool:
        """Whether something of it is missing where its user will look; a reader may go away."""
        return self.problem is not None and not isinstance(self.problem, BrokenPipeError)

    def write(self, text: str) -> int:
        """Write, to nowhere if need be."""
        self._tried(lambda: self._stream.write(text))
        return len(text)

    def flush(self) -> None:
        """Flush, to nowhere if need be."""
        self._tried(self._stream.flush)

    def _tried(self, work: Callable[[], object]) -> None:
        try:
            work()
        except OSError as problem:
            self.problem = self.problem or problem
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)
