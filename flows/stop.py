"""One request to stop, from Ctrl-C or a termination signal, that a running campaign looks at.

Signals only set the request: no exception crosses a Prefect task, so nothing is half recorded.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class StopRequest:
    """Asked once: end the client cleanly and record; asked twice: end it at once."""

    def __init__(self) -> None:
        self.reason = ""
        self.at_once = False
        self.is_signalled = False
        self.asked = threading.Event()

    def ask(self, reason: str) -> None:
        """Ask to stop; the second time, at once."""
        self.at_once = self.asked.is_set()
        self.reason = self.reason or reason
        self.asked.set()

    def __bool__(self) -> bool:
        return self.asked.is_set()

    def wait(self, seconds: float) -> bool:
        """Sleep for up to `seconds`, or until asked; whether it was asked."""
        return self.asked.wait(seconds)


@contextmanager
def on_signals(stop: StopRequest) -> Iterator[StopRequest]:
    """While the block lasts, SIGINT and SIGTERM ask to stop instead of raising.

    Asked a third time, they raise: whoever waits then looks at no request, as Prefect's client does
    for half an hour when its server is gone.
    """

    def ask(number: int, _frame: FrameType | None) -> None:
        if stop.at_once:
            raise KeyboardInterrupt
        stop.is_signalled = True
        stop.ask("Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name)

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
