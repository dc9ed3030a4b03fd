"""Instance identity: what changes when a server restarts or is replaced (§4.3: the performance run
and the accuracy run of a point are of one instance).

An identity has one entry for each URL: source → value, empty if the server reveals nothing. What
can't be told apart is `unverifiable`, never equal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from itertools import pairwise
from typing import Any

from core.findings import Finding

#: URL → source → value.
Identity = Mapping[str, Mapping[str, Any]]

#: Rule ids.
CHANGED_RULE, UNVERIFIABLE_RULE = "instance-changed", "instance-unverifiable"
#: Source of the process start time, as Prometheus clients name it.
START_TIME = "process_start_time_seconds"
#: Seconds by which the start time of one process may differ between two looks: some exporters work
#: it out from the clock each time. No server is loaded within this time.
START_TOLERANCE_S = 1.0


class Sameness(StrEnum):
    """What two identities say."""

    SAME = "same"
    CHANGED = "changed"
    UNVERIFIABLE = "unverifiable"


def compare(old: Identity, new: Identity) -> Sameness:
    """Whether two looks were at the same instance."""
    found = {_compare_url(old.get(url, {}), new.get(url, {})) for url in {*old, *new}}
    if Sameness.CHANGED in found:
        return Sameness.CHANGED
    return Sameness.SAME if found == {Sameness.SAME} else Sameness.UNVERIFIABLE


def changes(old: Identity, new: Identity) -> list[str]:
    """What says that the instance changed, one a line."""
    return [
        f"{url}: {source}: {old[url][source]!r} → {new[url][source]!r}"
        for url in sorted(old.keys() & new.keys())
        for source in sorted(old[url].keys() & new[url].keys())
        if not _is_same(source, old[url][source], new[url][source])
    ]


def steady(looks: Sequence[Identity]) -> Identity:
    """The identity that looks in a row have in common.

    A balancer answers for another server each time: what differs at once is no identity.
    """
    first, *others = looks
    return {
        url: {
            source: value
            for source, value in seen.items()
            if all(_is_same(source, value, other.get(url, {}).get(source)) for other in others)
        }
        for url, seen in first.items()
    }


def unverifiable(identity: Identity) -> str | None:
    """Which URLs reveal nothing, and what to do about it; None: all of them reveal something."""
    hidden = sorted(url for url, seen in identity.items() if not seen)
    if not hidden:
        return None
    return (
        f"unverifiable: {', '.join(hidden)} reveals nothing that a restart would change;"
        f" {START_TIME} in /metrics or a probe with identity: true would"
    )


def instance_finding(looks: Sequence[tuple[str, Identity]]) -> Finding | None:
    """What the looks during one attempt, each with its moment, say against it; None: nothing."""
    for (before, old), (after, new) in pairwise(looks):
        if compare(old, new) is Sameness.CHANGED:
            return Finding(
                CHANGED_RULE,
                "error",
                f"between {before} and {after}: {'; '.join(changes(old, new))}",
                "one instance for the performance run and the accuracy run",
                "the point is tried again; look at the server's log for why it restarted",
            )
    first, last = looks[0][1], looks[-1][1]
    if len(looks) > 1 and compare(first, last) is Sameness.SAME:
        return None
    hidden = sorted(url for url, seen in last.items() if not seen) or sorted(last)
    return Finding(
        UNVERIFIABLE_RULE,
        "warning",
        f"{', '.join(hidden)} reveals nothing that a restart would change",
        f"{START_TIME} in /metrics, or a probe with identity: true",
        "whether it was one instance all the time can't be shown from here",
    )


def _compare_url(old: Mapping[str, Any], new: Mapping[str, Any]) -> Sameness:
    common = old.keys() & new.keys()
    if not common:
        return Sameness.UNVERIFIABLE
    same = all(_is_same(source, old[source], new[source]) for source in common)
    return Sameness.SAME if same else Sameness.CHANGED


def _is_same(source: str, old: Any, new: Any) -> bool:
    if source != START_TIME or not isinstance(new, list) or len(old) != len(new):
        return bool(old == new)
    return all(abs(a - b) <= START_TOLERANCE_S for a, b in zip(old, new, strict=True))
