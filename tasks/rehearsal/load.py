"""Issues a run's requests phase by phase and records what comes back.

A request whose phase is over goes on: its answer is still recorded, as the reference client does.
The warm-up's completions are not recorded unless they come in after it.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice

from tasks.rehearsal import events
from tasks.rehearsal.events import Event, EventLog
from tasks.rehearsal.phases import ACCURACY, MS_PER_S, PERFORMANCE, WARMUP, Phase
from tasks.rehearsal.progress import Progress
from tasks.rehearsal.schema import Limits
from tasks.rehearsal.transport import Answer, Asker

_LOG = logging.getLogger("inference_endpoint.load_generator.session")
_EXECUTE_LOG = logging.getLogger("inference_endpoint.commands.benchmark.execute")

#: Seconds between two looks at the deadlines of the later dialect.
_WATCH_S = 0.1


class Stop(StrEnum):
    """Why a session ended before its phases were through."""

    INTERRUPT = "interrupted by the user"
    TIMEOUT = "run timeout (settings.timeouts.run_timeout_s) reached"
    IDLE = "no response within settings.timeouts.endpoint_response_idle_timeout_s"


@dataclass
class PhaseResult:
    """What was issued in a phase, and when it started and ended."""

    phase: Phase
    start_ns: int
    end_ns: int = 0
    #: Row of every sample issued, by id.
    index: dict[str, int] = field(default_factory=dict)

    @property
    def duration_s(self) -> float:
        """Length of the phase."""
        return (self.end_ns - self.start_ns) / 1e9


class _Running:
    """A phase under way."""

    def __init__(self, phase: Phase) -> None:
        self.phase = phase
        self.result = PhaseResult(phase, time.monotonic_ns())
        self.in_flight = 0
        self.stopped = False
        self.drained = asyncio.Event()
        self.slots = asyncio.Semaphore(phase.concurrency or phase.count)

    def done(self) -> None:
        """Count an answer to one of the phase's samples."""
        self.in_flight -= 1
        self.slots.release()
        if self.in_flight == 0:
            self.drained.set()


class Session:
    """One run: its phases in order over one set of connections."""

    def __init__(
        self,
        asker: Asker,
        log: EventLog,
        progress: Progress,
        limits: Limits,
        *,
        all_chunks: bool,
    ) -> None:
        self._asker = asker
        self._log = log
        self._progress = progress
        self._limits = limits
        self._all_chunks = all_chunks
        self._current: _Running | None = None
        self._issuing: asyncio.Task[None] | None = None
        self._requests: set[asyncio.Task[None]] = set()
        self._last_answer_s = 0.0
        self._bug: BaseException | None = None
        self.results: list[PhaseResult] = []
        #: Text of every completed accuracy sample, by id.
        self.outputs: dict[str, str] = {}
        self.stopped: Stop | None = None

    async def run(self, phases: list[Phase]) -> None:
        """Run all phases; a stop ends the session in good order."""
        self._log.session(events.STARTED)
        watch = asyncio.create_task(self._watch())
        try:
            for phase in phases:
                if self.stopped is None:
                    await self._run_phase(phase)
        finally:
            watch.cancel()
            for request in self._requests:
                request.cancel()
            await asyncio.gather(*self._requests, return_exceptions=True)
            self._log.session(events.ENDED)
        if self._bug is not None:
            raise self._bug

    @property
    def errors(self) -> int:
        """Samples that failed, the warm-up's aside."""
        return self._progress.errors

    def stop(self, reason: Stop) -> None:
        """End the session now; what is in flight is given up."""
        self.stopped = self.stopped or reason
        self._end_issuing(drained=True)

    def _cap(self, maximum_ms: int) -> None:
        _EXECUTE_LOG.warning(
            "Performance phase max_duration reached (%d ms); ending performance phase.", maximum_ms
        )
        if self._current is not None:
            self._current.stopped = True
        self._end_issuing(drained=not self._limits.later)

    def _end_issuing(self, *, drained: bool) -> None:
        if self._issuing is not None:
            self._issuing.cancel()
        if drained and self._current is not None:
            self._current.drained.set()

    async def _run_phase(self, phase: Phase) -> None:
        _LOG.info("Starting phase: %s (%s)", phase.name, phase.kind)
        running = self._current = _Running(phase)
        tracked = phase.kind == PERFORMANCE
        if tracked:
            self._log.session(events.START_TRACKING)
        cap = self._arm_cap() if tracked else None
        await self._issue_all(running)
        if phase.drain:
            await self._drain(running)
        if cap is not None:
            cap.cancel()
        if tracked:
            self._log.session(events.STOP_TRACKING)
        running.result.end_ns = time.monotonic_ns()
        _LOG.info("Phase %s complete: %d samples issued", phase.name, len(running.result.index))
        if phase.kind != WARMUP:
            self.results.append(running.result)

    def _arm_cap(self) -> asyncio.TimerHandle | None:
        maximum_ms = self._limits.max_duration_ms
        if maximum_ms is None:
            return None
        loop = asyncio.get_running_loop()
        return loop.call_later(maximum_ms / MS_PER_S, self._cap, maximum_ms)

    async def _issue_all(self, running: _Running) -> None:
        self._issuing = asyncio.create_task(self._issue_each(running))
        try:
            await self._issuing
        except asyncio.CancelledError:
            if self.stopped is None and not running.stopped:
                raise
            _LOG.info("Strategy cancelled for phase %s", running.phase.name)
        finally:
            self._issuing = None

    async def _issue_each(self, running: _Running) -> None:
        for index in islice(running.phase.order, running.phase.count):
            await running.slots.acquire()
            self._issue(running, index)
            # Answers are handled between two issues, also when there is a place for all.
            await asyncio.sleep(0)

    def _issue(self, running: _Running, index: int) -> None:
        sample = uuid.uuid4().hex
        prompt = running.phase.prompt(index)
        if not running.in_flight:
            self._last_answer_s = time.monotonic()
        running.result.index[sample] = index
        running.in_flight += 1
        data = events.prompt_data(prompt)
        self._log.add(Event(events.ISSUED, time.monotonic_ns(), sample, data))
        body = running.phase.request(index, prompt)
        request = asyncio.create_task(self._ask(running, sample, body))
        self._requests.add(request)
        request.add_done_callback(self._ended)

    def _ended(self, request: asyncio.Task[None]) -> None:
        """Let a request that ended by a bug end the session, which would wait for it for ever."""
        self._requests.discard(request)
        if not request.cancelled() and (bug := request.exception()) is not None:
            self._bug = self._bug or bug
            self.stop(Stop.INTERRUPT)

    async def _ask(self, running: _Running, sample: str, body: dict[str, object]) -> None:
        answer = await self._asker.ask(body, self._chunks(sample))
        self._record(sample, answer)
        if running is not self._current:
            return
        running.done()
        if running.phase.kind != WARMUP:
            self._progress.add(failed=answer.error is not None)
        if running.phase.kind == ACCURACY:
            self.outputs[sample] = answer.text

    def _chunks(self, sample: str) -> Callable[[], None]:
        first = True

        def on_chunk() -> None:
            nonlocal first
            self._last_answer_s = time.monotonic()
            if first or self._all_chunks:
                event_type = events.FIRST if first else events.NEXT
                self._log.add(Event(event_type, time.monotonic_ns(), sample))
            first = False

        return on_chunk

    def _record(self, sample: str, answer: Answer) -> None:
        self._last_answer_s = time.monotonic()
        if answer.error is not None:
            data = events.error_data(*answer.error)
            self._log.add(Event(events.ERROR, time.monotonic_ns(), sample, data))
        if self._current is None or self._current.phase.kind == WARMUP:
            return
        output = None if answer.output is None else events.output_data(answer.output)
        now_ns, finish = time.monotonic_ns(), answer.finish_reason
        self._log.add(Event(events.COMPLETE, now_ns, sample, output, finish, events.WORKER))

    async def _drain(self, running: _Running) -> None:
        capped = running.stopped and not self._limits.later
        if running.in_flight <= 0 or self.stopped is not None or capped:
            return
        _LOG.info("Draining %d in-flight responses...", running.in_flight)
        running.drained.clear()
        timeout_s = running.phase.drain_timeout_s
        try:
            await asyncio.wait_for(running.drained.wait(), timeout_s)
        except TimeoutError:
            _LOG.error(
                "Drain timed out after %.0f s with %d responses still in flight; "
                "proceeding to next phase.",
                timeout_s,
                running.in_flight,
            )

    async def _watch(self) -> None:
        """Stop the session at the deadlines that the later dialect has."""
        started_s = time.monotonic()
        run_s, idle_s = self._limits.run_timeout_s, self._limits.response_idle_timeout_s
        while run_s is not None or idle_s is not None:
            await asyncio.sleep(_WATCH_S)
            now_s = time.monotonic()
            waiting = self._current is not None and self._current.in_flight > 0
            if run_s is not None and now_s - started_s > run_s:
                self.stop(Stop.TIMEOUT)
            if idle_s is not None and waiting and now_s - self._last_answer_s > idle_s:
                self.stop(Stop.IDLE)
