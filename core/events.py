"""Scans `events.jsonl` once, in blocks: phases, issue time, first chunks, failures, overlaps.

The events are the client's durable log (§4.4): the summary alone can't show warm-up requests that
reach into the timed phase, accuracy requests issued before it drained, answers that never began,
or the issue time that the minimum duration counts (§6.2). Memory holds the requests in flight only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum

import orjson

#: Nanoseconds in a second.
NS_PER_S = 1_000_000_000
#: How a further chunk's record begins. Nearly all of the file is such records, one a token, and
#: nothing in them is needed, so they are counted and not parsed.
_FURTHER_CHUNK = b'{"event_type":"sample.recv_non_first",'
_HEAD = len(_FURTHER_CHUNK)
#: Bytes after which a record without a line end is given up as unreadable.
_LONGEST_RECORD_BYTES = 64 << 20


@dataclass(frozen=True)
class EventFacts:
    """What the events of a run show. Stamps are the client's monotonic clock."""

    records: int  # lines, unreadable ones included
    unreadable_records: int
    ends_cleanly: bool  # the last line is whole
    session_ended: bool  # the last record is the client's own end
    tracking_started_ns: int | None  # the timed phase
    tracking_stopped_ns: int | None
    first_issue_ns: int | None  # of the timed phase
    last_issue_ns: int | None
    issued: int  # in the timed phase, like all the counts up to failed
    completed: int  # failed requests included
    first_chunks: int
    empty_answers: int  # completed without a first chunk, and not failed
    cut_streams: int  # completed without a finish reason, and not failed
    failed: int
    accuracy_issued: int
    accuracy_overlaps: int  # timed requests that completed after the first accuracy request
    warmup_issued: int
    warmup_overlaps: int  # warm-up requests answered after the timed phase began
    warmup_completed: int = 0  # without those that failed
    warmup_s: float = 0.0  # from the first warm-up request to the timed phase

    @property
    def issue_span_s(self) -> float:
        """Time from the first to the last issue of the timed phase."""
        if self.first_issue_ns is None or self.last_issue_ns is None:
            return 0.0
        return (self.last_issue_ns - self.first_issue_ns) / NS_PER_S

    @property
    def tracked_s(self) -> float | None:
        """Length of the timed phase, its drain included; None: it didn't begin or end."""
        if self.tracking_started_ns is None or self.tracking_stopped_ns is None:
            return None
        return (self.tracking_stopped_ns - self.tracking_started_ns) / NS_PER_S


class _Phase(Enum):
    BEFORE = "before the timed phase"
    TIMED = "timed phase"
    AFTER = "after the timed phase"


@dataclass(slots=True)
class _Request:
    """A request in flight."""

    phase: _Phase
    answered: bool = False
    failed: bool = False
    overlaps: bool = False


@dataclass
class _Counts:
    """Counts of the requests of one phase."""

    issued: int = 0
    completed: int = 0
    first_chunks: int = 0
    empty_answers: int = 0
    cut_streams: int = 0
    failed: int = 0
    overlaps: int = 0


class EventScanner:
    """Takes `events.jsonl` block by block, so that a hash can be fed from the same read."""

    def __init__(self) -> None:
        self._rest = b""
        self._records = 0
        self._unreadable = 0
        self._ends_session = False  # the last record so far is the client's own end
        self._phase = _Phase.BEFORE
        self._counts = {phase: _Counts() for phase in _Phase}
        self._in_flight: dict[str, _Request] = {}
        self._started_ns: int | None = None
        self._stopped_ns: int | None = None
        self._issues_ns: dict[_Phase, tuple[int, int]] = {}  # first and last stamp
        self._handlers: dict[str, Callable[[int, str, bool], None]] = {
            "session.start_performance_tracking": self._start,
            "session.stop_performance_tracking": self._stop,
            "session.ended": self._end,
            "sample.issued": self._issue,
            "sample.recv_first": self._answer,
            "sample.complete": self._complete,
        }

    def feed(self, block: bytes) -> None:
        """Take the next bytes of the file."""
        lines = (self._rest + block).split(b"\n")
        self._rest = lines.pop()
        # Slices are compared, and in a comprehension: that is twice as fast as calling methods.
        others = [line for line in lines if line[:_HEAD] != _FURTHER_CHUNK or line[-1:] != b"}"]
        self._records += len(lines) - len(others)
        for line in others:
            self._take(line)
        if lines and not (others and others[-1] is lines[-1]):
            self._ends_session = False
        if len(self._rest) > _LONGEST_RECORD_BYTES:
            self._rest = b""
            self._records += 1
            self._unreadable += 1
            self._ends_session = False

    def finish(self) -> EventFacts:
        """The facts, once the whole file was fed."""
        ends_cleanly = not self._rest
        if self._rest:
            self._take(self._rest)
        before, timed, after = (self._counts[phase] for phase in _Phase)
        if self._started_ns is None:  # no timed phase: what was issued is an accuracy run
            before, after = after, before
        first_ns, last_ns = self._issues_ns.get(_Phase.TIMED, (None, None))
        return EventFacts(
            records=self._records,
            unreadable_records=self._unreadable,
            ends_cleanly=ends_cleanly,
            session_ended=self._ends_session,
            tracking_started_ns=self._started_ns,
            tracking_stopped_ns=self._stopped_ns,
            first_issue_ns=first_ns,
            last_issue_ns=last_ns,
            issued=timed.issued,
            completed=timed.completed,
            first_chunks=timed.first_chunks,
            empty_answers=timed.empty_answers,
            cut_streams=timed.cut_streams,
            failed=timed.failed,
            accuracy_issued=after.issued,
            accuracy_overlaps=timed.overlaps,
            warmup_issued=before.issued,
            warmup_overlaps=before.overlaps,
            warmup_completed=before.completed - before.failed,
            warmup_s=self._warmup_s(),
        )

    def _warmup_s(self) -> float:
        """How long the warm-up took; 0: there was none."""
        first_ns, _ = self._issues_ns.get(_Phase.BEFORE, (None, None))
        if first_ns is None or self._started_ns is None:
            return 0.0
        return max(0, self._started_ns - first_ns) / NS_PER_S

    def _take(self, line: bytes) -> None:
        """Read one record that is not known to be unneeded."""
        self._records += 1
        self._ends_session = False
        try:
            record = orjson.loads(line)
            event, stamp_ns, uuid = (
                record[key] for key in ("event_type", "timestamp_ns", "sample_uuid")
            )
            readable = type(event) is str and type(stamp_ns) is int and type(uuid) is str
        except (ValueError, LookupError, TypeError):
            readable = False
        if not readable:
            self._unreadable += 1
        elif event in self._handlers:
            self._handlers[event](stamp_ns, uuid, "finish_reason" in record)
        elif event.startswith("error."):
            self._fail(uuid)

    def _start(self, stamp_ns: int, _uuid: str, _finished: bool) -> None:
        self._phase = _Phase.TIMED
        if self._started_ns is None:
            self._started_ns = stamp_ns

    def _stop(self, stamp_ns: int, _uuid: str, _finished: bool) -> None:
        self._phase = _Phase.AFTER
        self._stopped_ns = stamp_ns

    def _end(self, _stamp_ns: int, _uuid: str, _finished: bool) -> None:
        self._ends_session = True

    def _issue(self, stamp_ns: int, uuid: str, _finished: bool) -> None:
        self._counts[self._phase].issued += 1
        self._in_flight[uuid] = _Request(self._phase)
        first_ns, last_ns = self._issues_ns.get(self._phase, (stamp_ns, stamp_ns))
        self._issues_ns[self._phase] = (min(first_ns, stamp_ns), max(last_ns, stamp_ns))

    def _answer(self, stamp_ns: int, uuid: str, _finished: bool) -> None:
        request = self._in_flight.get(uuid)
        if request is None or request.answered:
            return
        request.answered = True
        self._counts[request.phase].first_chunks += 1
        if request.phase is _Phase.BEFORE:
            self._note_overlap(request, stamp_ns, self._started_ns)

    def _fail(self, uuid: str) -> None:
        request = self._in_flight.get(uuid)
        if request is not None and not request.failed:
            request.failed = True
            self._counts[request.phase].failed += 1

    def _complete(self, stamp_ns: int, uuid: str, finished: bool) -> None:
        request = self._in_flight.pop(uuid, None)
        if request is None:
            return
        counts = self._counts[request.phase]
        counts.completed += 1
        if not request.failed:
            counts.empty_answers += not request.answered
            counts.cut_streams += not finished
        if request.phase is _Phase.BEFORE:
            self._note_overlap(request, stamp_ns, self._started_ns)
        elif request.phase is _Phase.TIMED:
            first_accuracy_ns, _ = self._issues_ns.get(_Phase.AFTER, (None, None))
            self._note_overlap(request, stamp_ns, first_accuracy_ns)

    def _note_overlap(self, request: _Request, stamp_ns: int, next_phase_ns: int | None) -> None:
        """Count a request, once, if it was answered after the next phase began.

        Stamps decide: a completion is stamped by a worker and can be written behind younger
        records.
        """
        if next_phase_ns is not None and stamp_ns > next_phase_ns and not request.overlaps:
            request.overlaps = True
            self._counts[request.phase].overlaps += 1


def scan(blocks: Iterable[bytes]) -> EventFacts:
    """The facts of an `events.jsonl` given as blocks of any size."""
    scanner = EventScanner()
    for block in blocks:
        scanner.feed(block)
    return scanner.finish()
