"""What a recorded campaign still costs, by the rates and costs that its records show."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping

from core.estimate import Costs, Estimate, estimate, first_costs, learned_costs, scored_samples
from core.plan import Plan, resized
from core.records import PointRecord, Records
from core.status import OPEN_STATES, PointState
from flows.prepare import Prepared


def sized_plan(ready: Prepared, records: Records) -> Plan:
    """The plan, sized by the rates that are known by now."""
    rates = records.measured_rates(ready.campaign.campaign)
    return resized(ready.campaign, ready.plan, rates)


def costs_of(
    ready: Prepared,
    records: Records,
    accuracy_rows: Mapping[str, int],
    labels: Collection[str],
) -> Estimate:
    """What points cost, by the rates and costs that are known by now.

    Args:
        ready: The campaign, read and planned.
        records: Records that hold it.
        accuracy_rows: Rows of each accuracy dataset, where known.
        labels: The points to count.
    """
    scored = scored_samples(ready.campaign, accuracy_rows)
    costs = _known_costs(ready, records, scored)
    plan = sized_plan(ready, records)
    return estimate(ready.campaign, plan, costs, scored=scored, labels=labels)


def _known_costs(ready: Prepared, records: Records, scored: int) -> Costs:
    """What the campaign's own attempts show, or else those of the newest other of its system."""
    for name in records.campaigns_of_system(ready.campaign.campaign):
        costs = learned_costs(ready.campaign, records.points_with_attempts(name), scored)
        if costs.learned:
            return costs
    return first_costs(ready.campaign)


def costs_left(ready: Prepared, records: Records) -> Estimate:
    """What is left of a campaign: points that are not valid, less what a running one has behind it.

    Args:
        ready: The campaign, read and planned.
        records: Records that hold it.
    """
    points = records.points_with_attempts(ready.campaign.campaign)
    labels = [point.label for point in points if point.state is not PointState.VALID]
    found = costs_of(ready, records, {}, labels)
    return found.after(sum(running_s(point, time.time()) for point in points))


def running_s(point: PointRecord, now: float) -> float:
    """Seconds that the point's open attempt has run for; 0 without one."""
    open_ones = [a for a in point.measurements if a.state in OPEN_STATES]
    return sum(max(0.0, now - attempt.created_at) for attempt in open_ones)
