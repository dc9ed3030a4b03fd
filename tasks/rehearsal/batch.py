"""The endpoint's one batch: plays the speed model through time, without a clock of its own.

Times are the caller's, in seconds. `advance` works off everything that is due, in the order of
its due time, so a late caller changes when tokens are seen but never how fast the model is.
"""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from dataclasses import dataclass, field

from tasks.rehearsal.speed import SpeedModel


@dataclass(eq=False, slots=True)
class Sequence:
    """One request in the batch: what it needs and how far it is."""

    prompt_tokens: int
    output_tokens: int
    yielded: int = 0
    dropped: bool = False

    @property
    def finished(self) -> bool:
        """Whether the sequence has nothing more to yield."""
        return self.dropped or self.yielded >= self.output_tokens


@dataclass(slots=True)
class Batch:
    """Requests waiting, in prefill and in decode."""

    model: SpeedModel
    _waiting: deque[Sequence] = field(default_factory=deque)
    _prefilling: list[tuple[float, int, Sequence]] = field(default_factory=list)
    _decoding: list[Sequence] = field(default_factory=list)
    _stepping: list[Sequence] = field(default_factory=list)
    _step_end_s: float | None = None
    _order: itertools.count[int] = field(default_factory=itertools.count)

    @property
    def running(self) -> int:
        """Requests admitted and not finished."""
        return len(self._prefilling) + len(self._decoding)

    @property
    def waiting(self) -> int:
        """Requests that wait for a place."""
        return len(self._waiting)

    def submit(self, sequence: Sequence, now_s: float) -> None:
        """Queue a request; its prefill starts now if there is a place."""
        self._waiting.append(sequence)
        self._admit(now_s)

    def next_deadline_s(self) -> float | None:
        """Return when something is due next, or None while the batch is empty."""
        due_s = [self._prefilling[0][0]] if self._prefilling else []
        if self._step_end_s is not None:
            due_s.append(self._step_end_s)
        return min(due_s, default=None)

    def advance(self, now_s: float) -> list[Sequence]:
        """Return the sequences that yield a token up to now, one entry a token, in order."""
        yielded: list[Sequence] = []
        while (due_s := self.next_deadline_s()) is not None and due_s <= now_s:
            if due_s == self._step_end_s:
                yielded += self._end_step()
            else:
                yielded += self._end_prefill()
            self._admit(due_s)
            self._start_step(due_s)
        return yielded

    def _admit(self, at_s: float) -> None:
        while self._waiting and self.running < self.model.max_batch:
            sequence = self._waiting.popleft()
            if not sequence.dropped:
                ready_s = at_s + self.model.prefill_s(sequence.prompt_tokens)
                heapq.heappush(self._prefilling, (ready_s, next(self._order), sequence))

    def _end_prefill(self) -> list[Sequence]:
        sequence = heapq.heappop(self._prefilling)[2]
        if sequence.dropped:
            return []
        sequence.yielded += 1
        if not sequence.finished:
            self._decoding.append(sequence)
        return [sequence]

    def _start_step(self, at_s: float) -> None:
        if self._step_end_s is None and self._decoding:
            self._stepping = list(self._decoding)
            self._step_end_s = at_s + self.model.step_s(len(self._stepping))

    def _end_step(self) -> list[Sequence]:
        yielded = [sequence for sequence in self._stepping if not sequence.dropped]
        for sequence in yielded:
            sequence.yielded += 1
        self._decoding = [sequence for sequence in self._decoding if not sequence.finished]
        self._stepping = []
        self._step_end_s = None
        return yielded
