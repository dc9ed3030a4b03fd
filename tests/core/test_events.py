"""The event scan: phases, counts and overlaps, whatever the blocks, in constant memory."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core import events as module
from core import folder as names
from core.events import EventFacts, scan

START = ("session.start_performance_tracking", "")
STOP = ("session.stop_performance_tracking", "")
ENDED = ("session.ended", "")


def record(event: str, uuid: str, stamp_ns: int, **more: Any) -> bytes:
    """One record as the client writes it."""
    document = {"event_type": event, "timestamp_ns": stamp_ns, "sample_uuid": uuid, **more}
    return json.dumps(document, separators=(",", ":")).encode() + b"\n"


def log(*steps: tuple[str, ...]) -> bytes:
    """Records 1 s apart; `complete` has a finish reason, `complete?` none."""
    lines = []
    for second, (event, uuid) in enumerate(steps):
        name = event if "." in event else f"sample.{event.rstrip('?')}"
        more = {"finish_reason": "stop"} if event == "complete" else {}
        lines.append(record(name, uuid, second * 10**9, **more))
    return b"".join(lines)


def facts_of(*steps: tuple[str, ...]) -> EventFacts:
    """Facts of records 1 s apart."""
    return scan([log(*steps)])


def test_a_run_with_all_its_phases() -> None:
    """Warm-up, timed phase and accuracy are told apart and counted apart."""
    facts = facts_of(
        ("session.started", ""),
        ("issued", "w"),
        ("recv_first", "w"),
        START,
        ("issued", "a"),
        ("recv_first", "a"),
        ("recv_non_first", "a"),
        ("issued", "b"),
        ("complete", "a"),
        ("recv_first", "b"),
        ("complete", "b"),
        STOP,
        ("issued", "x"),
        ("recv_first", "x"),
        ("complete", "x"),
        ENDED,
    )
    assert facts == EventFacts(
        records=16,
        unreadable_records=0,
        ends_cleanly=True,
        session_ended=True,
        tracking_started_ns=3 * 10**9,
        tracking_stopped_ns=11 * 10**9,
        first_issue_ns=4 * 10**9,
        last_issue_ns=7 * 10**9,
        issued=2,
        completed=2,
        first_chunks=2,
        empty_answers=0,
        cut_streams=0,
        failed=0,
        accuracy_issued=1,
        accuracy_overlaps=0,
        warmup_issued=1,
        warmup_overlaps=0,
        warmup_completed=0,
        warmup_s=2.0,
    )
    assert (facts.issue_span_s, facts.tracked_s) == (3.0, 8.0)


def test_an_empty_file_has_no_facts() -> None:
    """No records, no phases, no end, no time."""
    facts = scan([])
    assert facts.records == facts.issued == 0
    assert not facts.session_ended
    assert (facts.issue_span_s, facts.tracked_s) == (0.0, None)


def test_without_a_timed_phase_what_was_issued_is_accuracy() -> None:
    """An accuracy-only run has no warm-up: its requests stand before any timed phase."""
    facts = facts_of(("issued", "x"), ("complete", "x"), ENDED)
    assert (facts.accuracy_issued, facts.warmup_issued, facts.issued) == (1, 0, 0)


def test_failures_are_not_empty_answers_nor_cut_streams() -> None:
    """A failed request has neither a first chunk nor a finish reason, and counts once."""
    facts = facts_of(
        START,
        ("issued", "f"),
        ("error.generic", "f"),
        ("error.client", "f"),
        ("complete?", "f"),
        ("issued", "e"),
        ("complete", "e"),
        ("issued", "d"),
        ("complete", "d"),
        ("issued", "c"),
        ("recv_first", "c"),
        ("recv_first", "c"),
        ("complete?", "c"),
    )
    assert (facts.completed, facts.failed) == (4, 1)
    assert (facts.empty_answers, facts.cut_streams) == (2, 1)
    assert facts.first_chunks == 1


def test_errors_of_no_request_count_as_no_failed_request() -> None:
    """Errors of the session, and of requests that are not in flight, fail no timed request."""
    facts = facts_of(START, ("error.session", ""), ("error.generic", "gone"), ("complete", "gone"))
    assert (facts.failed, facts.completed, facts.unreadable_records) == (0, 0, 0)


@pytest.mark.parametrize("late", ["recv_first", "complete"])
def test_warmup_answers_in_the_timed_phase_overlap(late: str) -> None:
    """A warm-up request answered after the start overlaps, and counts once."""
    facts = facts_of(("issued", "w"), START, (late, "w"), ("complete", "w"))
    assert facts.warmup_overlaps == 1


def test_a_late_written_warmup_answer_does_not_overlap() -> None:
    """Stamps decide: a completion stamped before the start is no overlap where it stands after."""
    lines = [
        record("sample.issued", "w", 1),
        record("session.start_performance_tracking", "", 10),
        record("sample.complete", "w", 9),
    ]
    assert scan(lines).warmup_overlaps == 0


def test_accuracy_before_the_drain_overlaps() -> None:
    """Timed requests that complete after the first accuracy request were measured beside it."""
    facts = facts_of(
        START, ("issued", "a"), ("issued", "b"), STOP, ("issued", "x"), ("complete", "a")
    )
    assert facts.accuracy_overlaps == 1


def test_the_last_record_ends_the_session() -> None:
    """An end that something follows, even a further chunk, is no end."""
    assert not facts_of(ENDED, ("recv_non_first", "a")).session_ended
    assert not facts_of(ENDED, ("issued", "a")).session_ended
    assert facts_of(("recv_non_first", "a"), ENDED).session_ended


def test_truncation_shows_at_the_end() -> None:
    """A cut line is no clean end; a whole one without its line end isn't either."""
    whole = log(START, ENDED)
    assert scan([whole]).ends_cleanly
    without_newline = scan([whole[:-1]])
    assert (without_newline.ends_cleanly, without_newline.session_ended) == (False, True)
    cut = scan([whole[:-10]])
    assert (cut.ends_cleanly, cut.session_ended, cut.unreadable_records) == (False, False, 1)


RUBBISH = [
    b"",
    b"x",
    b"[]",
    b"{}",
    b"null",
    b'{"event_type":"sample.issued"}',
    b'{"event_type":1,"timestamp_ns":1,"sample_uuid":"a"}',
    b'{"event_type":"sample.issued","timestamp_ns":"1","sample_uuid":"a"}',
    b'{"event_type":"sample.issued","timestamp_ns":true,"sample_uuid":"a"}',
    b'{"event_type":"sample.issued","timestamp_ns":1.5,"sample_uuid":"a"}',
    b'{"event_type":"sample.issued","timestamp_ns":1,"sample_uuid":null}',
    b'{"event_type":"sample.recv_non_first","timestamp_ns":1,"sample_',
    b'{"event_type":"sample.complete","timestamp_ns":1,"sample_uuid":"\xff"}',
]


@pytest.mark.parametrize("line", RUBBISH)
def test_rubbish_is_counted_and_passed_over(line: bytes) -> None:
    """A line that is no record is counted; the records around it are read."""
    facts = scan([log(START, ("issued", "a")), line + b"\n", log(("complete", "a"), ENDED)])
    assert (facts.unreadable_records, facts.records, facts.completed) == (1, 5, 1)


def test_records_in_another_order_of_keys_are_read() -> None:
    """The shortcut for further chunks is no requirement on how records are written."""
    lines = [
        b'{"sample_uuid": "", "timestamp_ns": 5, "event_type": "session.ended"}\n',
        b'{"sample_uuid": "a", "timestamp_ns": 6, "event_type": "sample.recv_non_first"}\n',
    ]
    facts = scan(lines)
    assert (facts.records, facts.unreadable_records, facts.session_ended) == (2, 0, False)


def test_a_line_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that outgrows every record is unreadable and held no longer."""
    monkeypatch.setattr(module, "_LONGEST_RECORD_BYTES", 1000)
    facts = scan([b"x" * 600, b"x" * 600, b"x\n", log(START, ENDED)])
    assert (facts.unreadable_records, facts.session_ended) == (2, True)


@settings(deadline=None)
@given(st.data())
def test_blocks_may_be_cut_anywhere(fixtures_dir: Path, data: st.DataObject) -> None:
    """The facts are those of the file, wherever the reads end."""
    content = (fixtures_dir / "c13_wrong_model" / "out" / names.EVENTS).read_bytes()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(content)), max_size=8)))
    blocks = [content[a:b] for a, b in zip([0, *cuts], [*cuts, len(content)], strict=True)]
    assert scan(blocks) == scan([content])


def test_recorded_events_agree_with_the_summary(recorded: Path) -> None:
    """Issued, completed and failed are what the client counted, where its counter lived."""
    events, summary = recorded / "out" / names.EVENTS, recorded / "out" / names.SUMMARY
    if not (events.exists() and summary.exists()):
        assert recorded.name.startswith(("c07", "c08", "c09", "c10", "c12", "c14", "c25"))
        return
    facts, counted = scan([events.read_bytes()]), json.loads(summary.read_bytes())
    assert facts.ends_cleanly
    assert facts.session_ended
    assert facts.unreadable_records == 0
    if counted["complete"]:
        assert facts.issued == counted["n_samples_issued"]
        assert facts.completed == counted["n_samples_completed"]
        assert facts.failed == counted["n_samples_failed"]


def test_memory_holds_the_requests_in_flight_only() -> None:
    """Scanning 40 MB of two requests at a time takes a small part of that."""

    def blocks() -> Iterator[bytes]:
        chunk = record("sample.recv_non_first", "a" * 32, 1, conversation_id="", data=None)
        yield log(START)
        for number in range(200):
            uuid = f"{number:032}"
            yield record("sample.issued", uuid, number)
            yield record("sample.recv_first", uuid, number)
            yield chunk * 1500
            yield record("sample.complete", uuid, number, finish_reason="stop")

    tracemalloc.start()
    facts = scan(blocks())
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert facts.completed == 200
    assert facts.records == 1 + 200 * 1503
    assert peak_bytes < 4 << 20


def test_a_second_start_keeps_the_first_stamp() -> None:
    """Tracking that stops and starts again is one timed phase from first start to last stop."""
    facts = facts_of(START, ("issued", "a"), STOP, START, ("issued", "b"), STOP)
    assert (facts.issued, facts.tracked_s) == (2, 5.0)
    assert replace(facts, tracking_stopped_ns=None).tracked_s is None
