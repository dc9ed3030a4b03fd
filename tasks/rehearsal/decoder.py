"""Drives the batch on the event loop: one timer for all requests, whatever the concurrency."""

from __future__ import annotations

import asyncio

from tasks.rehearsal.batch import Batch, Sequence
from tasks.rehearsal.speed import SpeedModel


class Ticket:
    """One request's place in the batch, as its handler sees it."""

    def __init__(self, sequence: Sequence) -> None:
        self.sequence = sequence
        self._seen = 0
        self._changed = asyncio.Event()

    def notify(self) -> None:
        """Wake the handler: tokens have arrived or the request was dropped."""
        self._changed.set()

    async def more(self) -> int:
        """Wait for tokens and return how many arrived; 0 means that there will be no more."""
        while self._seen == self.sequence.yielded and not self.sequence.finished:
            self._changed.clear()
            await self._changed.wait()
        fresh = self.sequence.yielded - self._seen
        self._seen = self.sequence.yielded
        return fresh


class Decoder:
    """The batch in real time."""

    def __init__(self, model: SpeedModel) -> None:
        self.batch = Batch(model)
        self._tickets: dict[Sequence, Ticket] = {}
        self._timer: asyncio.TimerHandle | None = None

    def submit(self, sequence: Sequence) -> Ticket:
        """Put a request into the batch."""
        ticket = self._tickets[sequence] = Ticket(sequence)
        self.batch.submit(sequence, asyncio.get_running_loop().time())
        self._arm()
        return ticket

    def drop(self, ticket: Ticket) -> None:
        """Give up a request whose client has gone."""
        ticket.sequence.dropped = True
        self._tickets.pop(ticket.sequence, None)
        ticket.notify()

    def _advance(self) -> None:
        self._timer = None
        for sequence in self.batch.advance(asyncio.get_running_loop().time()):
            ticket = self._tickets.pop if sequence.finished else self._tickets.get
            if found := ticket(sequence, None):
                found.notify()
        self._arm()

    def _arm(self) -> None:
        due_s = self.batch.next_deadline_s()
        if self._timer is not None:
            if due_s is not None and self._timer.when() <= due_s:
                return
            self._timer.cancel()
            self._timer = None
        if due_s is not None:
            self._timer = asyncio.get_running_loop().call_at(due_s, self._advance)
