"""Tables and lines for people; a pipe gets the same text without colours or cut columns."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from core.estimate import Estimate, Span
from core.fingerprint import PARTS
from core.plan import Plan
from core.regions import band_name
from core.status import PointState
from core.texts import bytes_text, duration_text, hours_text, span_text, time_text

if TYPE_CHECKING:  # the records load SQL, which `pareto plan` can do without
    from core.drift import DriftRow
    from core.overview import PointRow
    from core.records import CampaignRecord, ListedCampaign, PointRecord
    from core.report import Comparison
    from core.rules_ahead import Remark

#: Columns of a table that goes to a pipe or a file.
_WIDE = 400
#: Columns of a terminal from which on a curve has all its columns.
_ROOMY = 118
_STYLES = {
    PointState.VALID: "green",
    PointState.FAILED: "red",
    PointState.INTERRUPTED: "yellow",
    PointState.RUNNING: "cyan",
}


def console() -> Console:
    """A console for standard output."""
    return Console() if sys.stdout.isatty() else Console(width=_WIDE, no_color=True)


def print_table(table: Table) -> None:
    """Print a table to standard output."""
    console().print(table)


def plan_table(plan: Plan, costs: Estimate) -> Table:
    """A plan in run order, with what each point costs."""
    title = (
        f"{_marked(plan.campaign, rehearsal=plan.time_scale is not None)}: C_max {plan.c_max},"
        f" C_min {plan.c_min}, seed set {plan.seed_set.id}"
    )
    table = _table(title, "point", "level", "region", "role", "accuracy", "passes", "samples")
    table.add_column("minimum", justify="right")
    for column in ("time", "disk"):
        table.add_column(column, justify="right")
    for column in ("rate", "sized by", "what it is for"):
        table.add_column(column)
    by_label = {point.label: point for point in costs.points}
    for point in plan.points:
        sizing, cost = point.sizing, by_label[point.label]
        table.add_row(
            point.label,
            str(point.concurrency),
            band_name(point.region),
            point.role,
            "yes" if point.accuracy else "no",
            _number(sizing.passes),
            _number(sizing.samples),
            f"{point.min_duration_ms / 1000:g} s",
            span_text(cost.wall_s, duration_text),
            span_text(cost.disk_bytes, bytes_text),
            f"{sizing.rate.qps:.3g}/s, {sizing.rate.source}" if sizing.rate else "unknown",
            f"{sizing.basis}: {sizing.why}",
            point.purpose,
        )
    return table


def estimate_lines(costs: Estimate, now: float) -> list[str]:
    """What the points cost together, and when they would be done if they began now."""
    done = costs.wall_s
    count = f"{costs.accelerators} accelerator{'' if costs.accelerators == 1 else 's'}"
    return [
        f"time               {span_text(done, duration_text)}",
        f"accelerator-hours  {span_text(costs.accelerator_hours, hours_text)} ({count})",
        f"disk               {span_text(costs.disk_bytes, bytes_text)}",
        f"done               {_moments(done, now)}",
    ]


def _moments(span: Span, now: float) -> str:
    earliest = time_text(now + span.low)
    if span.high is None:
        return f"not before {earliest}"
    latest = time_text(now + span.high)
    return f"at {latest}" if earliest == latest else f"from {earliest} to {latest}"


def print_curve(name: str, rows: Sequence[PointRow], *, rehearsal: bool) -> None:
    """Print a curve, and below it why points are not valid."""
    print_table(curve_table(name, rows, rehearsal=rehearsal))
    for line in reason_lines(rows):
        print(line)


def curve_table(name: str, rows: Sequence[PointRow], *, rehearsal: bool) -> Table:
    """The points of a campaign with what was measured; a narrow terminal gets fewer columns."""
    is_wide = console().width >= _ROOMY
    table = _table(_marked(name, rehearsal=rehearsal), "point", "region", "state")
    numbers = ["tries", "tokens/s", "per user", "TTFT P90"]
    for column in [*(["samples", "issue time"] if is_wide else []), *numbers]:
        table.add_column(column, justify="right")
    for column in ["accuracy", *(["role"] if is_wide else [])]:
        table.add_column(column)
    for row in rows:
        size = [_number(row.samples), _unit(row.issue_time_s, "s")] if is_wide else []
        table.add_row(
            row.label,
            band_name(row.region),
            f"[{_STYLES.get(row.state, 'default')}]{row.state}[/]",
            *size,
            str(row.attempts),
            _unit(row.system_tps),
            _unit(row.tps_per_user),
            _unit(row.ttft_p90_ms, "ms"),
            _scores(row),
            *([row.role] if is_wide else []),
        )
    return table


def reason_lines(rows: Sequence[PointRow]) -> list[str]:
    """Why each point that is not valid is not."""
    return [f"{row.label}: {row.reason}" for row in rows if row.reason]


def campaigns_table(campaigns: Sequence[ListedCampaign], instances: Mapping[str, str]) -> Table:
    """Campaigns on record; those that measure an instance now with its name."""
    from core.overview import state_word

    table = _table("campaigns", "campaign", "state", "valid", "measures", "C_max", "seed set")
    for column in ("entered", "last attempt", "file"):
        table.add_column(column)
    for listed in campaigns:
        campaign = listed.campaign
        table.add_row(
            _marked(campaign.name, rehearsal=campaign.rehearsal),
            state_word(listed.states, campaign.wish),
            f"{listed.states.count(PointState.VALID)} of {len(listed.states)}",
            instances.get(campaign.name, "–"),
            str(campaign.c_max),
            campaign.seed_set.id,
            time_text(campaign.created_at),
            time_text(listed.last_at),
            campaign.source,
        )
    return table


def attempts_table(campaign: CampaignRecord, points: Sequence[PointRecord]) -> Table:
    """Every attempt of a campaign with its run folder."""
    title = _marked(campaign.name, rehearsal=campaign.rehearsal)
    table = _table(
        title, "point", "attempt", "baseline", "state", "started", "took", "exit", "ended by"
    )
    table.add_column("why")
    table.add_column("folder", overflow="fold")
    for attempt in (attempt for point in points for attempt in point.attempts):
        took_s = (attempt.ended_at or 0) - (attempt.started_at or 0)
        table.add_row(
            attempt.label,
            str(attempt.number) if attempt.phase == "measure" else f"pilot {attempt.number}",
            str(attempt.baseline),
            attempt.state,
            time_text(attempt.started_at),
            _unit(took_s, "s") if attempt.ended_at and attempt.started_at else "–",
            "–" if attempt.exit_code is None else str(attempt.exit_code),
            attempt.ended_by or "–",
            attempt.reason or "",
            attempt.folder,
        )
    return table


def drift_table(campaign: CampaignRecord, rows: Sequence[DriftRow]) -> Table:
    """Looks at the system by part: = as the baseline, ≠ not."""
    title = _marked(campaign.name, rehearsal=campaign.rehearsal)
    table = _table(title, "point", "attempt", "look", "baseline", "state", *PARTS, "fingerprint")
    for row in rows:
        cells = ("[red]≠[/]" if part in row.differs else "=" for part in PARTS)
        baseline = f"{row.baseline}{'' if row.baseline == campaign.baseline else ', not of curve'}"
        numbers = (str(row.number), row.moment, baseline, row.state)
        table.add_row(row.label, *numbers, *cells, row.sha256[:12])
    return table


def ratios_table(found: Comparison) -> Table:
    """The best of each region: tokens/s, and over the first campaign's."""
    table = _table("best tokens/s by region, and over the first campaign's", "region")
    for curve in found.curves:
        table.add_column(_marked(curve.name, rehearsal=curve.rehearsal), justify="right")
    for region, cells in found.ratios.items():
        texts = (
            f"{_unit(c.tps)} ({c.tps_ratio:.3f} ×)" if c.tps_ratio else _unit(c.tps) for c in cells
        )
        table.add_row(region, *texts)
    return table


def _marked(name: str, *, rehearsal: bool) -> str:
    return f"{name} – REHEARSAL, not a measurement" if rehearsal else name


def _scores(row: PointRow) -> str:
    if not row.accuracy_planned:
        return "–"
    return ", ".join(
        f"{metric} {value:.4g}" for metrics in row.scores.values() for metric, value in _s(metrics)
    )


def _s(metrics: Mapping[str, float]) -> Sequence[tuple[str, float]]:
    return sorted(metrics.items())


def _number(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"


def _unit(value: float | None, unit: str = "") -> str:
    return "–" if value is None else f"{value:,.1f} {unit}".strip()


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    for index, column in enumerate(columns):
        table.add_column(column, no_wrap=index == 0, min_width=7 if index == 0 else None)
    return table


def remarks_table(remarks: Sequence[Remark]) -> Table:
    """What is wrong with a submission, each thing once, beside the points and the key."""
    places: dict[tuple[str, str, str, str], list[str]] = {}
    for remark in remarks:
        what = f"{remark.message}. {remark.fix}" if remark.fix else remark.message
        places.setdefault((remark.severity, remark.rule, what, remark.key), []).append(remark.place)
    table = _table("", "", "rule", "where", "what", "made right by")
    for (severity, rule, what, key), where in places.items():
        table.add_row(severity, rule, ", ".join(dict.fromkeys(where)), what, key)
    return table
