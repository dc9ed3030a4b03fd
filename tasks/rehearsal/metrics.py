"""What a run's events add up to: counters and series, as `metrics/final_snapshot.json` has them.

Only samples issued between start and stop of performance tracking are tracked. Tokens are
whitespace-separated words. The time per output token is what lies between first chunk and
completion, divided by the tokens after the first chunk.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from tasks.rehearsal import events
from tasks.rehearsal.events import Event
from tasks.rehearsal.series import Series

#: Finish reasons with a counter of their own; the rest is `other`.
FINISH_REASONS = ("stop", "length", "tool_calls", "content_filter", "function_call")
#: What the counter of a finish reason is called.
FINISH_PREFIX = "tracked_finish_reason_"
#: The counters, in the order of the file.
COUNTERS = (
    "total_samples_issued",
    "total_samples_completed",
    "total_samples_failed",
    "tracked_samples_issued",
    "tracked_samples_completed",
    "tracked_samples_failed",
    *(FINISH_PREFIX + reason for reason in (*FINISH_REASONS, "other")),
    "tracked_duration_ns",
    "legacy_loadgen_window_duration_ns",
    "total_duration_ns",
)


@dataclass(slots=True)
class _Sample:
    """A tracked sample under way."""

    issued_ns: int
    first_ns: int | None = None
    last_ns: int | None = None


class Aggregator:
    """Takes a run's events in order and keeps the sums."""

    def __init__(self, *, streaming: bool, estimates: bool) -> None:
        self.counters: dict[str, int] = dict.fromkeys(COUNTERS, 0)
        names = ["sample_latency_ns", "isl", "osl"]
        names += ["ttft_ns", "chunk_delta_ns", "tpot_ns"] if streaming else []
        estimated = ("sample_latency_ns", "ttft_ns", "tpot_ns") if estimates else ()
        self.series = {name: Series(name, name != "tpot_ns", name in estimated) for name in names}
        self.records = 0
        self._streaming = streaming
        self._samples: dict[str, _Sample] = {}
        self._tracking = False
        self._started_ns: int | None = None
        self._tracking_since_ns = 0
        self._window_start_ns: int | None = None
        self._last_issued_ns = -1

    def observe(self, event: Event) -> None:
        """Take one event."""
        self.records += 1
        if self._started_ns is not None:
            elapsed_ns = event.timestamp_ns - self._started_ns
            self.counters["total_duration_ns"] = max(elapsed_ns, self.counters["total_duration_ns"])
        match event.event_type:
            case events.FIRST | events.NEXT:
                self._chunk(event)
            case events.ISSUED:
                self._issued(event)
            case events.COMPLETE:
                self._complete(event)
            case events.ERROR:
                self._count("failed", tracked=event.sample_uuid in self._samples)
            case _:
                self._session(event)

    def snapshot(self, state: str) -> dict[str, Any]:
        """Return the content of `final_snapshot.json` for a run that ended in this state."""
        counters = [
            {"type": "counter", "name": name, "value": value}
            for name, value in self.counters.items()
        ]
        final = state == "complete"
        return {
            "counter": 1,
            "timestamp_ns": time.monotonic_ns(),
            "state": state,
            "n_pending_tasks": 0,
            "metrics": counters + [one.stat(final=final) for one in self.series.values()],
        }

    def _count(self, what: str, *, tracked: bool) -> None:
        self.counters[f"total_samples_{what}"] += 1
        if tracked:
            self.counters[f"tracked_samples_{what}"] += 1

    def _session(self, event: Event) -> None:
        match event.event_type:
            case events.STARTED:
                self._started_ns = event.timestamp_ns
            case events.START_TRACKING:
                self._tracking, self._tracking_since_ns = True, event.timestamp_ns
            case events.STOP_TRACKING:
                self._tracking = False

    def _issued(self, event: Event) -> None:
        self._count("issued", tracked=self._tracking)
        if not self._tracking:
            return
        self._samples[event.sample_uuid] = _Sample(event.timestamp_ns)
        if self._window_start_ns is None:
            self._window_start_ns = event.timestamp_ns
        if event.data and event.data[1]:
            self.series["isl"].values.append(len(event.data[1].split()))

    def _chunk(self, event: Event) -> None:
        sample = self._samples.get(event.sample_uuid)
        if sample is None or not self._streaming:
            return
        now_ns = event.timestamp_ns
        if event.event_type == events.FIRST:
            self.series["ttft_ns"].values.append(now_ns - sample.issued_ns)
            sample.first_ns = now_ns
        if sample.last_ns is not None:
            self.series["chunk_delta_ns"].values.append(now_ns - sample.last_ns)
        sample.last_ns = now_ns

    def _complete(self, event: Event) -> None:
        sample = self._samples.pop(event.sample_uuid, None)
        self._count("completed", tracked=sample is not None)
        if sample is None:
            return
        if event.finish_reason is not None:
            known = event.finish_reason in FINISH_REASONS
            self.counters[FINISH_PREFIX + (event.finish_reason if known else "other")] += 1
        self.series["sample_latency_ns"].values.append(event.timestamp_ns - sample.issued_ns)
        self._tokens(event, sample)
        self._windows(event, sample)

    def _tokens(self, event: Event, sample: _Sample) -> None:
        output = event.data[1] if event.data else ""
        if words := len("".join(output).split()):
            self.series["osl"].values.append(words)
        if sample.first_ns is None or isinstance(output, str):
            return
        if rest := len("".join(output[1:]).split()):
            self.series["tpot_ns"].values.append((event.timestamp_ns - sample.first_ns) / rest)

    def _windows(self, event: Event, sample: _Sample) -> None:
        duration_ns = event.timestamp_ns - self._tracking_since_ns
        self.counters["tracked_duration_ns"] = max(
            duration_ns, self.counters["tracked_duration_ns"]
        )
        if sample.issued_ns > self._last_issued_ns and self._window_start_ns is not None:
            self._last_issued_ns = sample.issued_ns
            window_ns = event.timestamp_ns - self._window_start_ns
            self.counters["legacy_loadgen_window_duration_ns"] = window_ns
