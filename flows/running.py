"""An attempt while it runs, and its steps by the names that Prefect shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from core.layout import AttemptPaths
from core.plan import Point
from core.records import AttemptRecord
from flows.session import Session
from flows.steps import step
from flows.stop import StopRequest

T = TypeVar("T")


@dataclass(frozen=True)
class Running:
    """What the steps of one attempt share."""

    session: Session
    point: Point
    attempt: AttemptRecord
    stop: StopRequest

    @property
    def paths(self) -> AttemptPaths:
        """Where the attempt lies."""
        return self.session.prepared.paths.attempt(self.attempt.folder)

    def step(self, what: str, work: Callable[[], T]) -> T:
        """Run a step of this attempt under its name and tags."""
        campaign = self.session.campaign
        again = "" if self.attempt.number == 1 else f" (attempt {self.attempt.number})"
        marks = {
            f"campaign:{campaign.campaign}",
            f"instance:{campaign.instance.name}",
            f"level:{self.point.concurrency}",
            f"region:{self.point.region}",
            *(["rehearsal"] if campaign.rehearsal else []),
        }
        name = f"{campaign.campaign} · {self.point.label} · {what}{again}"
        return step(name, marks, work, self.attempt.id)
