"""Waits for a records database that is locked, read-only or away, for a limited time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from tenacity import (
    Retrying,
    retry_if_exception_type,
    sleep_using_event,
    stop_after_delay,
    stop_when_event_set,
    wait_exponential,
)

from core.records import RecordsUnavailableError

T = TypeVar("T")

#: Longest pause between two tries, seconds.
_LONGEST_PAUSE_S = 10.0


def patient(timeout_s: float, given_up: threading.Event) -> Callable[[Callable[[], T]], T]:
    """Calls again what raised `RecordsUnavailableError`, until time is up or `given_up` is set."""
    return Retrying(
        retry=retry_if_exception_type(RecordsUnavailableError),
        stop=stop_after_delay(timeout_s) | stop_when_event_set(given_up),
        wait=wait_exponential(multiplier=0.2, max=_LONGEST_PAUSE_S),
        sleep=sleep_using_event(given_up),
        reraise=True,
    )
