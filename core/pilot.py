"""A pilot: a short run ahead of a point whose rate is not known, and the rate that it shows.

It is no measurement. Performance samples are forbidden outside the timed phase unless salted, so it
sends those of an accuracy dataset or of one that the user names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.campaign import Campaign
from core.campaign_datasets import Dataset
from core.client_config import client_config, merged
from core.folder import FolderFacts
from core.plan import CONCURRENCY, Point
from core.seeds import SeedSet
from core.sizing import issue_rate
from core.summary import Summary

#: Completed requests per concurrent stream that a pilot waits for.
REQUESTS_PER_STREAM = 2
#: Samples that a pilot may issue before it is ended: more than any gets to.
SAMPLES = 1_000_000
#: Most seconds of a pilot over its planned ones: a slow point needs two requests per stream.
LONGEST_S = 3600.0


def pilot_dataset(campaign: Campaign, point: Point) -> dict[str, Any] | None:
    """The pilot's dataset in the client's YAML; None if this point can have no pilot.

    Conversations and the Offline run have none: the former have no dataset that fits, the latter
    runs at the saturated rate of the `C_max` point.
    """
    if not campaign.run.pilot.enabled or point.load_pattern != CONCURRENCY:
        return None
    entry: dict[str, Any] = {"name": "pilot", "type": "performance"}
    if campaign.run.pilot.dataset is not None:
        parser = campaign.datasets.performance.settings
        return {**parser, **entry, "path": str(campaign.run.pilot.dataset)}
    first = _accuracy_dataset(campaign)
    if first is None:
        return None
    if first.path is None:
        return {**first.settings, **entry, "name": first.name}
    return {**first.settings, **entry, "path": str(first.path)}


def _accuracy_dataset(campaign: Campaign) -> Dataset | None:
    """The first accuracy dataset that does not hold the performance samples themselves."""
    timed = campaign.datasets.performance
    others = (d for d in campaign.datasets.accuracy if not _is_same_data(d, timed))
    return next(others, None)


def _is_same_data(one: Dataset, other: Dataset) -> bool:
    if one.path is None or other.path is None:
        return one.path is other.path and one.name == other.name
    return one.path == other.path


def pilot_note(campaign: Campaign) -> str | None:
    """Why a campaign has no pilots although they are wanted; None: it has."""
    run = campaign.run.pilot
    if not run.enabled or run.dataset or campaign.agentic or _accuracy_dataset(campaign):
        return None
    return (
        "no pilots: there is no accuracy dataset beside the performance samples, which are"
        " forbidden outside the timed phase; name another file in run.pilot.dataset"
    )


def scaled_s(campaign: Campaign, seconds: float) -> float:
    """Seconds of load, shortened in a rehearsal as minimum durations are."""
    return seconds * (campaign.rehearsal.time_scale if campaign.rehearsal else 1.0)


def pilot_config(
    template: Mapping[str, Any],
    campaign: Campaign,
    point: Point,
    *,
    dataset: Mapping[str, Any],
    seed_set: SeedSet,
    run_folder: Any,
) -> dict[str, Any]:
    """The client's configuration of a pilot: the point's own, with another dataset and no score."""
    made = client_config(
        template, campaign, point, samples=SAMPLES, seed_set=seed_set, run_folder=run_folder
    )
    return merged(made, {"name": f"{made['name']}-pilot", "datasets": [dict(dataset)]})


def is_enough(done: int, load_s: float, level: int, seconds: float) -> bool:
    """Whether a pilot has run its time and completed two requests per stream."""
    return load_s >= seconds and done >= REQUESTS_PER_STREAM * level


def pilot_rate(facts: FolderFacts, level: int) -> tuple[float | None, str]:
    """The rate that a pilot shows, or why it shows none.

    Args:
        facts: Its run folder.
        level: The point's concurrency.
    """
    summary, events = facts.summary, facts.events
    if not isinstance(summary, Summary) or events is None:
        return None, "the pilot left no results"
    failed = max(summary.failed, events.failed)
    if failed:
        return None, f"{failed} of {summary.completed} requests of the pilot failed"
    rate = issue_rate(summary.issued, level, events.issue_span_s, summary.qps or 0.0)
    return rate, "" if rate is not None else "the pilot completed nothing"
