"""Which points of a campaign are meant: as the user names them, or those that failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.errors import InputError, ParetoError
from core.plan import Plan
from core.records import Records, open_existing
from core.status import PointState
from flows.prepare import Prepared

#: States of a point that a retry is for.
_FAILED = frozenset({PointState.FAILED, PointState.INTERRUPTED})


def labels_of(points: str | None, plan: Plan) -> list[str] | None:
    """`64,128` or `c0064,offline` as labels of the plan's points; None: none are named.

    Raises:
        InputError: a point that the plan does not have.
    """
    if points is None:
        return None
    known = {point.label: point.label for point in plan.points}
    known |= {str(p.concurrency): p.label for p in plan.points if p.offline != "dedicated"}
    wanted = [item.strip() for item in points.split(",") if item.strip()]
    unknown = [item for item in wanted if item not in known]
    if unknown or not wanted:
        raise InputError(
            f"--points: no point {', '.join(unknown) or 'given'};"
            f" there are {', '.join(point.label for point in plan.points)}"
        )
    return [known[item] for item in wanted]


def not_valid(ready: Prepared, wanted: Sequence[str] | None) -> list[str]:
    """Labels of the wanted points, or of all, that are not valid by the records there are."""
    labels = [point.label for point in ready.plan.points if not wanted or point.label in wanted]
    try:
        records = open_existing(ready.paths.database_url)
        points = records.points_with_attempts(ready.campaign.campaign)
    except ParetoError:  # none yet, or away: a run says so where it needs them
        return labels
    valid = {point.label for point in points if point.state is PointState.VALID}
    return [label for label in labels if label not in valid]


@dataclass(frozen=True)
class ToRetry:
    """The failed points of a campaign that run again."""

    labels: tuple[str, ...]
    valid: int  # points that stay as they are
    missed: tuple[str, ...]  # left out: a missed accuracy is tried again only if it is named


def to_retry(records: Records, name: str, wanted: Sequence[str] | None) -> ToRetry:
    """The failed points of a campaign, or those of them that are named.

    Raises:
        InputError: a named point has not failed.
    """
    found = records.points_with_attempts(name)
    states = {point.label: point.state for point in found}
    valid = sum(state is PointState.VALID for state in states.values())
    failed = [label for label, state in states.items() if state in _FAILED]
    if wanted is not None:
        others = [f"{label} is {states[label]}" for label in wanted if label not in failed]
        if others:
            raise InputError(f"--points: only failed points are retried; {', '.join(others)}")
        return ToRetry(tuple(wanted), valid, ())
    missed = tuple(p.label for p in found if p.missed_accuracy and p.label in failed)
    return ToRetry(tuple(label for label in failed if label not in missed), valid, missed)
