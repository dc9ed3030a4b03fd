"""Puts a campaign's report together: curve, steady state, time spent, looks at the system."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from core.campaign import Campaign
from core.curve import Curve
from core.curve_rows import make_curve
from core.disclosure import curve_of, point_yaml, system_desc, system_power
from core.drift import Difference, differences
from core.errors import InputError, ParetoError, SetupError
from core.estimate import Estimate, Span, estimate, first_costs, scored_samples
from core.power import point_power_kw
from core.records import CampaignRecord, PointRecord, Records
from core.report import Comparison, Report, Standing, at_equal, ratios, spending
from flows.costs import costs_left
from flows.drift import drift_overview
from flows.prepare import Prepared, prepared
from flows.windows import windows_of, windows_said
from tasks.campaign_file import load_recorded
from tasks.disclosures import read_told


@dataclass(frozen=True)
class Found:
    """A campaign on record with its curve."""

    campaign: CampaignRecord
    points: tuple[PointRecord, ...]
    curve: Curve
    ready: Prepared | None  # None: its file can't be planned from here
    notes: tuple[str, ...]


def find_curve(records: Records, name: str, env: Mapping[str, str]) -> Found:
    """The curve of a campaign; the client's detector is asked about runs that it wasn't before.

    Args:
        records: Records that hold it.
        name: Its name.
        env: The environment, for the variables of its file and for the detector.

    Raises:
        InputError: no such campaign.
    """
    campaign = records.campaign(name)
    points = records.points_with_attempts(name)
    ready, notes = _planned(campaign, env)
    windows, problems = windows_of(records, campaign, points, ready)
    power_kw = _power_kw(ready) if ready else {}
    curve = make_curve(campaign, points, windows=windows, power_kw=power_kw)
    return Found(campaign, points, curve, ready, (*notes, *problems))


def make_report(records: Records, name: str, env: Mapping[str, str]) -> Report:
    """Everything that a report shows; raises as `find_curve` does."""
    found, now = find_curve(records, name, env), time.time()
    notes = list(found.notes)
    try:
        drift = drift_overview(records, found.campaign)
        looks, history, has_drift = drift.rows, drift.lines, drift.has_drift
    except ParetoError as problem:
        looks, history, has_drift = (), (), False
        notes.append(f"fingerprints: {problem}")
    ready = found.ready
    left = costs_left(ready, records) if ready else None
    return Report(
        campaign=found.campaign,
        stated=_stated(ready.campaign) if ready else (),
        points=found.points,
        curve=found.curve,
        spending=spending(
            found.points,
            _first_estimate(ready) if ready else None,
            ready.campaign.instance.accelerators if ready else None,
            now,
        ),
        looks=looks,
        history=history,
        has_drift=has_drift,
        notes=tuple(notes),
        left=left.wall_s if left and left.points else None,
        made_at=now,
    )


def standing(records: Records, name: str, left: Estimate | None) -> Standing:
    """Where a campaign stands, by its records alone.

    Args:
        records: Records that hold it.
        name: Its name.
        left: What it still costs; None: nothing, or it isn't known.
    """
    campaign, points = records.campaign(name), records.points_with_attempts(name)
    curve = make_curve(campaign, points, windows=windows_said(records, name))
    return Standing(campaign, points, curve, left.wall_s if left else None)


def compare(wheres: Sequence[tuple[Records, str]], env: Mapping[str, str]) -> Comparison:
    """Campaigns against the first of them; raises as `find_curve` does."""
    curves = tuple(find_curve(records, name, env).curve for records, name in wheres)
    (base_records, base), *others = wheres
    return Comparison(
        curves=curves,
        ratios=ratios(curves),
        at_equal=at_equal(curves),
        differs=tuple(_differences(base_records, base, *other) for other in others),
        made_at=time.time(),
    )


def _differences(
    base_records: Records, base: str, records: Records, name: str
) -> tuple[Difference, ...] | None:
    """What differs between the fingerprints of two curves; None: one has none."""
    old, new = base_records.baseline(base), records.baseline(name)
    return differences(old.fingerprint, new.fingerprint) if old and new else None


def _planned(
    campaign: CampaignRecord, env: Mapping[str, str]
) -> tuple[Prepared | None, tuple[str, ...]]:
    """The campaign planned from its text on record, or why not from here."""
    try:
        loaded = load_recorded(campaign.text, Path(campaign.source), env)
        return prepared(loaded, env), ()
    except (InputError, SetupError) as problem:
        first = str(problem).splitlines()[0]
        return None, (f"planned time and accelerators are not known here: {first}",)


def _stated(campaign: Campaign) -> tuple[tuple[str, str], ...]:
    """What is measured, as the campaign file names it."""
    return (
        ("benchmark", campaign.benchmark),
        ("model", campaign.model.name),
        ("instance", campaign.instance.name),
    )


def _first_estimate(ready: Prepared) -> Span:
    """Wall time of all points by the campaign file alone."""
    campaign = ready.campaign
    scored = scored_samples(campaign, {})
    return estimate(campaign, ready.plan, first_costs(campaign), scored=scored).wall_s


def _power_kw(ready: Prepared) -> dict[str, float]:
    """Label → power of the point, where the campaign file discloses it."""
    campaign, plan = ready.campaign, ready.plan
    if campaign.disclosure.power is None:
        return {}
    told, _ = read_told(campaign, capture=False)
    power = system_power(told)
    if power is None:
        return {}
    curve = curve_of(campaign, plan, (point.label for point in plan.points))
    found = {
        point.label: point_power_kw(
            power,
            point_yaml(campaign, curve, point, told, None),
            system_desc(campaign, point, told),
        )
        for point in plan.points
    }
    return {label: kilowatts for label, kilowatts in found.items() if kilowatts}
