"""Shows a running campaign in Prefect's pages and tells its user, from a thread of its own.

It reads the records and the guard's status and never the flow's state: what it shows is on record,
and neither a server that is away nor an address that does not answer delays a measurement.
"""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from prefect.runtime import flow_run

from core import pages as texts
from core.curve_rows import make_curve
from core.overview import PointRow, point_rows
from core.records import AttemptRecord, EventRecord, PointRecord, RecordsUnavailableError
from core.redact import all_hidden
from core.status import OPEN_STATES, AttemptState
from flows.session import Session
from flows.steps import task_run_of
from flows.view import Now, View, attempt_name
from tasks.bounded import UnreadableError
from tasks.curve_picture import curve_picture
from tasks.notify import notify
from tasks.prefect_pages import Pages

#: Seconds between two looks.
LOOK_S = 2.0
#: Seconds between two changes of a progress artifact, and between two log lines about a phase.
PROGRESS_EVERY_S, LINE_EVERY_S = 5.0, 20.0
#: Seconds within which a next client is expected to start.
GAP_S = 10.0
#: Seconds that the last pages and messages get when the campaign has ended.
END_TIMEOUT_S = 30.0
#: Bytes at the end of each output of the client that its last lines are taken from.
_TAIL_BYTES = 64 << 10


@contextmanager
def monitored(session: Session, since_id: int) -> Iterator[None]:
    """Show and tell what happens while the block lasts.

    Args:
        session: The campaign.
        since_id: Events up to this one are known already.
    """
    monitor = Monitor(session, own_pages(), since_id)
    ended = threading.Event()
    thread = threading.Thread(target=monitor.run, args=(ended,), name="monitor", daemon=True)
    if monitor.is_wanted:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        if monitor.is_wanted:
            thread.join(END_TIMEOUT_S)


def own_pages() -> Pages:
    """The pages of the flow run that this is; of none without a flow or a server."""
    return Pages(os.environ.get("PREFECT_API_URL"), flow_run.id or None)


@dataclass
class _Shown:
    """The progress artifact of an attempt, and what was said about it."""

    attempt_id: int
    key: str
    percent: float = 0.0
    phase: str = ""
    told_s: float = 0.0


@dataclass
class Monitor:
    """What has been shown and told of a campaign so far."""

    session: Session
    pages: Pages
    last_id: int  # of the last event that was taken in
    put: dict[str, str] = field(default_factory=dict)  # key → artifact that changes in place
    shown: _Shown | None = None
    due: bool = True  # whether result and chart are older than the records
    planned: bool = False  # whether the plan is shown
    changed_s: float = 0.0
    ran_s: float = -math.inf  # when an attempt was last seen running
    view: View = field(init=False)

    def __post_init__(self) -> None:
        self.session = replace(self.session, records=self.session.records.impatient())
        self.view = View.of(self.session)

    @property
    def is_wanted(self) -> bool:
        """Whether there is anybody to show or tell something."""
        return self.pages.exist or bool(self.session.campaign.notify.addresses)

    def run(self, ended: threading.Event) -> None:
        """Look until the campaign has ended, and once more then."""
        last = False
        while not last:
            last = ended.wait(LOOK_S)
            try:
                self.look(last)
            except RecordsUnavailableError:
                continue  # whatever happens meanwhile is on record, and is shown then
            except Exception:  # pages must never end a measurement, and the next look may work
                logging.getLogger("pareto.monitor").exception("a look at the campaign failed")

    def look(self, last: bool = False) -> None:
        """Take in what happened since the last look."""
        points = self.view.points()
        if not last and self._is_gap(points):
            return
        attempts = {a.id: a for point in points for a in point.attempts}
        for event in self.view.events_after(self.last_id):
            self.last_id = event.id
            self._take(event, attempts.get(event.attempt_id or 0))
        if not self.pages.exist:
            return
        rows, now = point_rows(points), self.view.now(points)
        self._show_plan()
        self._show_progress(points, rows, now, last=last)
        if self.due:
            self.due = not self._show_results(points, rows)

    def _is_gap(self, points: tuple[PointRecord, ...]) -> bool:
        """Whether this may be the gap between two clients: pages would take its processor time."""
        if any(a.state is AttemptState.RUNNING for point in points for a in point.attempts):
            self.ran_s = time.monotonic()
            return False
        return time.monotonic() - self.ran_s < GAP_S

    # --- Events ----------------------------------------------------------------------------------

    def _take(self, event: EventRecord, attempt: AttemptRecord | None) -> None:
        campaign = self.session.campaign
        self.due = self.due or texts.changes_results(event)
        if texts.is_told(event):
            self._show_event(event)
        if attempt is not None and texts.shows_findings(event):
            self._show_findings(attempt)
        message = texts.message_of(event, attempt)
        if message is not None and message[0] in campaign.notify.when:
            self._tell(*message)

    def _show_event(self, event: EventRecord) -> None:
        campaign = self.session.campaign
        labels = {"pareto.campaign": campaign.campaign, "pareto.instance": campaign.instance.name}
        where = f"pareto.campaign.{campaign.campaign}"
        label = event.payload.get("label")
        if label:
            labels["pareto.point"], where = label, f"{where}.{label}"
        self.pages.event(
            f"{texts.EVENT_PREFIX}{event.kind}", where, labels, self._shown_to_all(event.payload)
        )

    def _tell(self, word: str, text: str) -> None:
        campaign = self.session.campaign
        marked = " (rehearsal)" if campaign.rehearsal else ""
        title = f"{campaign.campaign} @ {campaign.instance.name}{marked}: {word}"
        untold = notify(
            campaign.notify.addresses, self.session.env, title, self._shown_to_all(text)
        )
        for problem in untold:
            self.pages.log(f"nobody was told: {problem}", level=logging.WARNING)

    def _shown_to_all(self, value: Any) -> Any:
        """Plain values as they may leave this machine."""
        return all_hidden(value, self.session.env, self.session.campaign.endpoint.api_key_env)

    # --- Pages -----------------------------------------------------------------------------------

    def _key(self, *parts: str) -> str:
        return texts.artifact_key(self.view.plan.campaign, *parts)

    def _attempt_key(self, attempt: AttemptRecord) -> str:
        again = [] if attempt.number == 1 else [str(attempt.number)]
        return self._key(attempt.label, *(["pilot"] if attempt.is_pilot else again), "progress")

    @property
    def _is_rehearsal(self) -> bool:
        return self.session.campaign.rehearsal is not None

    def _show_plan(self) -> None:
        if self.planned:
            return
        plan = self.session.sized_plan()
        costs = self.session.estimate([point.label for point in plan.points])
        rows, note = texts.plan_table(plan, costs), texts.plan_note(plan, costs)
        self.planned = self.pages.put(self._key("plan"), "table", rows, note) is not None

    def _show_results(self, points: tuple[PointRecord, ...], rows: list[PointRow]) -> bool:
        """Show result and chart; whether the server took them."""
        name, is_rehearsal = self.view.plan.campaign, self._is_rehearsal
        note = texts.result_note(name, rows, rehearsal=is_rehearsal)
        self._put(self._key("result"), "table", texts.result_table(rows), note)
        if texts.has_chart(rows):
            try:
                curve = make_curve(self.view.records.campaign(name), points)
                picture = curve_picture(curve)
            except UnreadableError as problem:  # the next point's chart has all that this one lacks
                self.pages.log(f"no chart: {problem}", level=logging.WARNING)
            else:
                chart = texts.chart_page(picture, rows, rehearsal=is_rehearsal)
                self._put(self._key("chart"), "markdown", chart, note)
        return self.pages.are_taken

    def _show_findings(self, attempt: AttemptRecord) -> None:
        paths = self.view.paths(attempt)
        outputs = []
        for path in (paths.client_stdout, paths.client_stderr):
            with suppress(OSError), path.open("rb") as stream:
                stream.seek(max(0, path.stat().st_size - _TAIL_BYTES))
                outputs.append(stream.read(_TAIL_BYTES).decode("utf-8", "replace"))
        key = self.session.campaign.endpoint.api_key_env
        tail = texts.last_lines(outputs, self.session.env, key)
        task = task_run_of(attempt.id)
        page = texts.finding_page(attempt, tail, rehearsal=self._is_rehearsal)
        note = f"why {attempt.label} attempt {attempt.number} is {attempt.state}, and what to do"
        self.pages.put(self._key(attempt.label, "findings"), "markdown", page, note, task)
        if tail:
            self.pages.log("\n".join(tail), task, logging.ERROR)

    def _show_progress(
        self, points: tuple[PointRecord, ...], rows: list[PointRow], now: Now | None, *, last: bool
    ) -> None:
        """The campaign's progress and that of the running attempt, each so often."""
        self._end_shown(points, now)
        clock_s = time.monotonic()
        is_new = now is not None and (self.shown is None or self.shown.key not in self.put)
        if not (last or is_new or clock_s - self.changed_s >= PROGRESS_EVERY_S):
            return
        self.changed_s = clock_s
        left = self.view.left(points, now)
        line = None if now is None else now.line(None)
        spent_s = self.session.spent_s() + (time.time() - now.attempt.created_at if now else 0.0)
        percent = texts.campaign_percent(spent_s, left.wall_s.expected)
        note = texts.campaign_note(rows, left, line)
        self._put(self._key("progress"), "progress", percent, note)
        if now is not None:
            self._show_attempt(now, left.wall_s.expected)

    def _show_attempt(self, now: Now, left_s: float) -> None:
        """Progress and a log line of the running attempt."""
        if self.shown is None or self.shown.attempt_id != now.attempt.id:
            self.shown = _Shown(now.attempt.id, self._attempt_key(now.attempt))
        shown, clock_s = self.shown, time.monotonic()
        task, line = task_run_of(now.attempt.id), now.line(left_s)
        percent = shown.percent = round(100 * now.done_fraction, 1)
        if task is not None:  # else its first step is not shown yet
            self._put(shown.key, "progress", percent, line, task)
        phase = str(now.status.phase) if now.status else ""
        if phase != shown.phase or clock_s - shown.told_s >= LINE_EVERY_S:
            shown.phase, shown.told_s = phase, clock_s
            self.pages.log(line, task)

    def _end_shown(self, points: tuple[PointRecord, ...], now: Now | None) -> None:
        """Bring the progress of an attempt that ended to its last word."""
        shown = self.shown
        if shown is None or (now is not None and now.attempt.id == shown.attempt_id):
            return
        self.shown = None
        attempts = (attempt for point in points for attempt in point.attempts)
        ended = next((a for a in attempts if a.id == shown.attempt_id), None)
        if ended is None or ended.state in OPEN_STATES:
            return
        why = f": {ended.reason}" if ended.reason else ""
        line: str = self._shown_to_all(f"{attempt_name(ended)}: {ended.state}{why}")
        self.pages.log(line, task_run_of(ended.id))
        if shown.key in self.put:
            percent = 100.0 if ended.state is AttemptState.VALID else shown.percent
            self.pages.change(self.put[shown.key], "progress", percent, line)

    def _put(
        self, key: str, kind: str, data: Any, note: str, task_run_id: str | None = None
    ) -> None:
        """Show an artifact, or change it in place."""
        if key in self.put:
            self.pages.change(self.put[key], kind, data, note)
            return
        artifact_id = self.pages.put(key, kind, data, note, task_run_id)
        if artifact_id is not None:
            self.put[key] = artifact_id
