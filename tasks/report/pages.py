"""Fills the templates: report, comparison and status → the text of a page; escapes everything."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from core.curve import Curve, Row
from core.drift import drift_lines
from core.estimate import SECONDS_PER_HOUR, Span
from core.fingerprint import PARTS
from core.overview import campaign_state, offline_note, point_rows
from core.point_facts import facts_of, scores_text
from core.records.values import AttemptRecord, PointRecord
from core.regions import band_name
from core.report import Comparison, Report, Spending, Standing, took_s
from core.status import PointState
from core.texts import duration_text, hours_text, span_text, time_text
from tasks.chart import curve_png, hit_name
from tasks.chart_svg import overlay_svg

_HERE = Path(__file__).parent
#: Sections of a report: id of the heading, text of the link to it.
_SECTIONS = (
    ("curve", "Curve"),
    ("points-title", "Points"),
    ("time", "Time and accelerators"),
    ("attempts", "Attempts"),
    ("findings", "Findings"),
    ("system", "System"),
)


def report_page(report: Report, drawing: str) -> str:
    """The page of one campaign.

    Args:
        report: What it tells.
        drawing: Its curve, as `tasks.chart_svg.svg_and_png` draws it.
    """
    campaign, curve = report.campaign, report.curve
    return _render(
        "report.html.j2",
        report=report,
        rehearsal=campaign.rehearsal,
        made_at=report.made_at,
        facts=_facts(report),
        sections=_SECTIONS,
        drawing=Markup(drawing),  # noqa: S704 - ours
        detail={hit_name(0, row["label"]): _detail(row, "row-") for row in curve.rows},
        offline_note=offline_note(point_rows(report.points), campaign.c_max),
        rows=_table_rows(report),
        bases=_bases(curve),
        per_user="e2e interactivity" if curve.agentic else "per user",
        has_power=any(row["system_tps_per_kw"] is not None for row in curve.rows),
        costs=_costs(report.spending, report.left),
        took=lambda attempt: took_s(attempt, report.made_at),
        findings=[(a, finding) for a in report.attempts for finding in a.findings],
        fingerprint_parts=PARTS,
    )


def compare_page(found: Comparison) -> str:
    """The page of several campaigns."""
    names = [curve.name for curve in found.curves]
    return _render(
        "compare.html.j2",
        rehearsal=found.rehearsal,
        made_at=found.made_at,
        names=names,
        no_measurement=[curve.name for curve in found.curves if curve.rehearsal],
        curves=found.curves,
        drawing=Markup(overlay_svg(found.curves, title=" · ".join(names))),  # noqa: S704 - ours
        detail={
            hit_name(index, row["label"]): _detail(row, "", f"{curve.name}: ")
            for index, curve in enumerate(found.curves)
            for row in curve.rows
        },
        ratios=found.ratios,
        at_equal=found.at_equal,
        differs=[
            (name, None if differs is None else drift_lines(differs))
            for name, differs in zip(names[1:], found.differs, strict=True)
        ],
    )


def status_page(standings: Sequence[Standing], made_at: float) -> str:
    """The page of where campaigns stand."""
    return _render(
        "status.html.j2",
        rehearsal=any(standing.campaign.rehearsal for standing in standings),
        made_at=made_at,
        entries=[_entry(standing) for standing in standings],
    )


# --- Parts of the report ---------------------------------------------------------------------


def _facts(report: Report) -> list[tuple[str, str]]:
    campaign = report.campaign
    versions = sorted({row["client_version"] for row in report.curve.rows} - {""})
    states = [point.state for point in report.points]
    return [
        ("state", campaign_state(report.points, campaign.wish)),
        *report.stated,
        ("valid points", f"{states.count(PointState.VALID)} of {len(states)}"),
        ("C_max", f"{campaign.c_max:,}"),
        ("C_min", f"{campaign.c_min:,}"),
        ("seed set", campaign.seed_set.id),
        ("baseline", str(campaign.baseline)),
        ("client", ", ".join(versions) or "–"),
        ("entered", time_text(campaign.created_at)),
        *([("minimum durations", f"× {campaign.time_scale:g}")] if campaign.time_scale else []),
        ("run folders", campaign.runs_folder),
    ]


def _table_rows(report: Report) -> list[dict[str, Any]]:
    """Every planned point by level: what was measured, else why it is missing."""
    measured = {row["label"]: row for row in report.curve.rows}
    found: list[dict[str, Any]] = []
    for planned in point_rows(report.points):
        row = measured.get(planned.label)
        if row is None:
            found.append({**vars(planned), "measured": False})
        else:
            found.append({**row, "measured": True, "accuracy_text": scores_text(row)})
    return found


def _bases(curve: Curve) -> list[str]:
    """What numbers are measured over and why, points alike in one line."""
    alike: dict[tuple[str, str], list[str]] = {}
    for row in curve.rows:
        alike.setdefault((row["basis"], row["basis_why"]), []).append(row["label"])
    return [f"{basis}: {', '.join(labels)} ({why})" for (basis, why), labels in alike.items()]


def _costs(spent: Spending, left: Span | None) -> list[tuple[str, str, str]]:
    """What, time and accelerator-hours, as text."""
    parts = [
        ("points of the curve", spent.valid_s),
        ("attempts that don't count", spent.lost_s),
        ("pilots", spent.pilot_s),
        ("spent", spent.total_s),
    ]
    rows = [(what, duration_text(s), _hours(spent.accelerator_hours(s))) for what, s in parts]
    planned, count = spent.planned_s, spent.accelerators
    for what, span in (("planned, by the campaign file alone", planned), ("still to come", left)):
        if span is not None and count is not None:
            hours = span_text(span.times(count / SECONDS_PER_HOUR), hours_text)
            rows.append((what, span_text(span, duration_text), hours))
    return rows


def _hours(hours: float | None) -> str:
    return "not known" if hours is None else hours_text(hours)


def _detail(row: Row, row_id: str, before: str = "") -> dict[str, Any]:
    """What the script shows of a point."""
    where = f"{row_id}{row['label']}" if row_id else ""
    return {"title": f"{before}{row['label']}", "facts": facts_of(row), "row": where}


# --- Parts of the status ---------------------------------------------------------------------


def _entry(standing: Standing) -> dict[str, Any]:
    campaign, curve, points = standing.campaign, standing.curve, standing.points
    picture = None
    if curve.placed:
        drawn = curve_png(curve, title=campaign.name, rehearsal=campaign.rehearsal)
        picture = f"data:image/png;base64,{base64.b64encode(drawn).decode()}"
    return {
        "name": campaign.name,
        "rehearsal": campaign.rehearsal,
        "state": campaign_state(points, campaign.wish),
        "summary": _summary(points, standing.left),
        "picture": picture,
        "picture_text": f"Curve of {campaign.name}; its numbers are in the table below",
        "rows": point_rows(points),
    }


def _summary(points: Sequence[PointRecord], left: Span | None) -> str:
    valid = sum(point.state is PointState.VALID for point in points)
    text = f"{valid} of {len(points)} points are valid"
    return f"{text}; {span_text(left, duration_text)} left" if left else text


# --- Templates -------------------------------------------------------------------------------


def _render(template: str, **values: Any) -> str:
    style, script = (
        Markup((_HERE / name).read_text(encoding="utf-8"))  # noqa: S704 - our own files
        for name in ("style.css", "points.js")
    )
    return _environment().get_template(template).render(style=style, script=script, **values)


@cache
def _environment() -> Environment:
    found = Environment(
        loader=FileSystemLoader(_HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {
        "amount": _amount,
        "attempt_name": _attempt_name,
        "duration": duration_text,
        "over": _over,
        "region": band_name,
        "time": time_text,
    }
    return found


def _amount(value: Any, decimals: int) -> str:
    return "–" if value is None else f"{value:,.{decimals}f}"


def _over(value: float | None, ratio: float | None) -> str:
    return f"{_amount(value, 1)} ({_amount(ratio, 3)} ×)" if ratio else _amount(value, 1)


def _attempt_name(attempt: AttemptRecord) -> str:
    kind = "pilot" if attempt.is_pilot else "attempt"
    return f"{kind} {attempt.number}"
