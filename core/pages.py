"""What Prefect's pages say of a campaign: keys, tables, texts and events; plain values to texts.

Markdown shows best there; a page stays small, and nothing in it is read from the environment.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from typing import Any

from core.estimate import Estimate
from core.overview import PointRow
from core.plan import Plan, Point
from core.records.values import AttemptRecord, EventRecord
from core.redact import scrubbed, without_values
from core.regions import band_name
from core.status import OPEN_STATES, AttemptState, PointState
from core.texts import bytes_text, duration_text, hours_text, span_text

#: What our events are called by: `pareto.point.completed`.
EVENT_PREFIX = "pareto."
#: Lines of the client's that a failure shows.
LAST_LINES = 50
#: Longest of those lines, characters.
_LONGEST_LINE = 300
#: Least valid points that a chart needs.
_LEAST_OF_A_CHART = 2
_REHEARSAL = "**REHEARSAL: nothing here is a measurement.**\n\n"


def artifact_key(*parts: str) -> str:
    """Key of an artifact: lowercase letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", "-".join(parts).lower()).strip("-")


# --- Plan and result ---------------------------------------------------------------------------


def plan_table(plan: Plan, costs: Estimate) -> list[dict[str, Any]]:
    """The points in run order with what each costs; one row each."""
    by_label = {point.label: point for point in costs.points}
    return [
        {
            "point": point.label,
            "level": point.concurrency,
            "region": band_name(point.region),
            "role": str(point.role),
            "accuracy": "yes" if point.accuracy else "no",
            "samples": point.sizing.samples,
            "minimum": f"{point.min_duration_ms / 1000:g} s",
            "rate": _rate(point),
            "time": span_text(by_label[point.label].wall_s, duration_text),
            "disk": span_text(by_label[point.label].disk_bytes, bytes_text),
            "what it is for": point.purpose,
        }
        for point in plan.points
    ]


def plan_note(plan: Plan, costs: Estimate) -> str:
    """What the whole plan costs, above its table."""
    return "\n".join(
        [
            f"{_banner(plan.time_scale is not None)}**{plan.campaign}**: {len(plan.points)} points,"
            f" C_max {plan.c_max}, C_min {plan.c_min}, seed set {plan.seed_set.id}",
            f"* time: {span_text(costs.wall_s, duration_text)}",
            f"* accelerator-hours: {span_text(costs.accelerator_hours, hours_text)}",
            f"* disk: {span_text(costs.disk_bytes, bytes_text)}",
        ]
    )


def result_table(rows: Sequence[PointRow]) -> list[dict[str, Any]]:
    """The points by level with what was measured; one row each."""
    return [
        {
            "point": row.label,
            "region": band_name(row.region),
            "state": str(row.state),
            "tries": row.attempts,
            "samples": row.samples,
            "issue time": _number(row.issue_time_s, "s"),
            "tokens/s": _number(row.system_tps),
            "tokens/s per user": _number(row.tps_per_user),
            "TTFT P90": _number(row.ttft_p90_ms, "ms"),
            "accuracy": _scores(row),
            "why": row.reason or "",
        }
        for row in rows
    ]


def result_note(name: str, rows: Sequence[PointRow], *, rehearsal: bool) -> str:
    """How many points are valid, above their table."""
    valid = sum(row.state is PointState.VALID for row in rows)
    return f"{_banner(rehearsal)}**{name}**: {valid} of {len(rows)} points are valid"


def has_chart(rows: Sequence[PointRow]) -> bool:
    """Whether enough points are valid for a chart."""
    return sum(row.state is PointState.VALID for row in rows) >= _LEAST_OF_A_CHART


def chart_page(picture: bytes, rows: Sequence[PointRow], *, rehearsal: bool) -> str:
    """The curve so far: a picture, and its numbers."""
    encoded = base64.b64encode(picture).decode()
    valid = [row for row in rows if row.state is PointState.VALID]
    image = f"![the curve so far](data:image/png;base64,{encoded})"
    return f"{_banner(rehearsal)}{image}\n\n{_markdown_table(_chart_rows(valid))}\n"


def _chart_rows(rows: Sequence[PointRow]) -> list[dict[str, Any]]:
    return [
        {
            "point": row.label,
            "tokens/s": _number(row.system_tps),
            "tokens/s per user": _number(row.tps_per_user),
        }
        for row in rows
    ]


# --- Progress ----------------------------------------------------------------------------------


def campaign_percent(spent_s: float, left_s: float) -> float:
    """How much of the campaign's time is behind it, in percent."""
    whole_s = spent_s + left_s
    return round(100 * spent_s / whole_s, 1) if whole_s > 0 else 100.0


def campaign_note(rows: Sequence[PointRow], left: Estimate, now: str | None) -> str:
    """Where the campaign stands, in one line."""
    valid = sum(row.state is PointState.VALID for row in rows)
    text = f"{valid} of {len(rows)} points valid"
    if left.points or left.wall_s.expected > 0:
        text += f", {span_text(left.wall_s, duration_text)} left"
    return f"{text} · {now}" if now else text


# --- Findings ----------------------------------------------------------------------------------


def finding_page(attempt: AttemptRecord, tail: Sequence[str], *, rehearsal: bool) -> str:
    """Why an attempt is not valid, and what to do; with the client's last lines."""
    head = f"## {attempt.label} attempt {attempt.number} is {attempt.state}"
    found = [_finding(finding) for finding in attempt.findings]
    again = (
        f"Press *Retry* on the run, or `pareto retry {attempt.campaign}`: only points that are not"
        " valid run again."
    )
    parts = [_banner(rehearsal) + head, scrubbed(attempt.reason or ""), *found, again]
    if tail:
        lines = "\n".join(tail).replace("```", "'''")
        parts.append(f"### The client's last lines\n\n```text\n{lines}\n```")
    return "\n\n".join(part for part in parts if part)


def last_lines(outputs: Sequence[str], env: Mapping[str, str], key: str | None = None) -> list[str]:
    """The last lines of the client's outputs, bars left out and secrets replaced.

    Args:
        outputs: What the client printed.
        env: The environment.
        key: The variable of the endpoint's key.
    """
    outputs = [without_values(text, env, key) for text in outputs]
    lines = [line for text in outputs for line in re.split(r"[\r\n]+", text) if line.strip()]
    kept = [line for line in lines if not _is_bar(line)][-LAST_LINES:]
    return [scrubbed(line)[:_LONGEST_LINE] for line in kept]


def _is_bar(line: str) -> bool:
    """Whether a line is a progress bar drawn by tqdm."""
    return re.search(r"\d+%\|.*\| *\d+/\d+ \[", line) is not None


def _finding(finding: Mapping[str, Any]) -> str:
    rows = [f"* {name}: {scrubbed(str(finding.get(name)))}" for name in ("seen", "wanted")]
    what = scrubbed(str(finding.get("advice")))
    return "\n".join(
        [
            f"### {finding.get('severity')}: {finding.get('rule')}",
            "",
            *rows,
            f"* **what to do:** {what}",
        ]
    )


# --- Events and messages -----------------------------------------------------------------------

#: What ends a client that made no progress (`tasks/guard_files.py: EndedBy`).
_WATCHDOG = "watchdog"


def message_of(event: EventRecord, attempt: AttemptRecord | None) -> tuple[str, str] | None:
    """What a recorded event is worth telling: its word and the text; None: nothing.

    Args:
        event: The event.
        attempt: The attempt that it is about.
    """
    payload = event.payload
    match event.kind:
        case "point.failed":
            return "failed", f"{payload['label']} is not valid: {payload['reason']}"
        case "drift.found":
            parts = ", ".join(
                f"{difference['part']}.{difference['key']}" for difference in payload["differences"]
            )
            return "drift", f"the system changed before {payload['label']}: {parts}"
        case "campaign.finished":
            missing = ", ".join(payload["not_valid"])
            return "finished", f"points not valid: {missing}" if missing else "every point is valid"
        case "campaign.stopped":
            return "finished", f"stopped: {payload['reason']}"
        case "attempt.failed" | "attempt.invalid" if attempt and attempt.ended_by == _WATCHDOG:
            where = f"{attempt.label} attempt {attempt.number}"
            return "stalled", f"{where} made no progress and was ended: {attempt.reason}"
    return None


def is_told(event: EventRecord) -> bool:
    """Whether an event is a change that an automation may act on."""
    return event.kind.startswith(("attempt.", "point.", "campaign.", "drift.", "instance.changed"))


def shows_findings(event: EventRecord) -> bool:
    """Whether an event ends an attempt without a valid result."""
    return event.kind in (f"attempt.{AttemptState.INVALID}", f"attempt.{AttemptState.FAILED}")


def changes_results(event: EventRecord) -> bool:
    """Whether an event changes what the result's table and chart show."""
    if event.kind in (f"attempt.{state}" for state in OPEN_STATES):
        return False
    return event.kind.startswith(("attempt.", "point.", "campaign."))


# --- Words -------------------------------------------------------------------------------------


def _banner(rehearsal: bool) -> str:
    return _REHEARSAL if rehearsal else ""


def _rate(point: Point) -> str:
    rate = point.sizing.rate
    return f"{rate.qps:.3g}/s, {rate.source}" if rate else "unknown"


def _scores(row: PointRow) -> str:
    if not row.accuracy_planned:
        return "–"
    pairs = (pair for metrics in row.scores.values() for pair in sorted(metrics.items()))
    return ", ".join(f"{metric} {value:.4g}" for metric, value in pairs)


def _number(value: float | None, unit: str = "") -> str:
    return "–" if value is None else f"{value:,.1f} {unit}".strip()


def _markdown_table(rows: Sequence[Mapping[str, Any]]) -> str:
    names = list(rows[0])
    lines = [names, ["---"] * len(names), *([str(row[name]) for name in names] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
