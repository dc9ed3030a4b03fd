"""Prefect's server, looking less often: nothing that is told is missed or late."""

from __future__ import annotations

import asyncio
import queue
import time
from types import SimpleNamespace

import pytest

from tasks.prefect_start import LOOK_S, next_message


def read(messages: queue.Queue[str], timeout: float | None) -> str | None:
    found: str | None = asyncio.run(next_message(SimpleNamespace(_queue=messages), timeout))
    return found


@pytest.mark.parametrize("timeout", [0.0, 0.1, None])
def test_a_message_that_waits_is_read(timeout: float | None) -> None:
    messages: queue.Queue[str] = queue.Queue()
    messages.put("told")
    assert read(messages, timeout) == "told"


@pytest.mark.parametrize(("timeout", "looks"), [(0.0, 0), (0.1, 1), (2 * LOOK_S, 2)])
def test_without_a_message_it_waits_for_whole_looks(timeout: float, looks: int) -> None:
    began_s = time.monotonic()
    assert read(queue.Queue(), timeout) is None
    assert time.monotonic() - began_s >= looks * LOOK_S


def test_who_waits_for_ever_gets_the_message_that_comes() -> None:
    messages: queue.Queue[str] = queue.Queue()

    async def told_later() -> str | None:
        waiting = asyncio.create_task(next_message(SimpleNamespace(_queue=messages), None))
        await asyncio.sleep(2 * LOOK_S)
        messages.put("told")
        found: str | None = await waiting
        return found

    assert asyncio.run(told_later()) == "told"
