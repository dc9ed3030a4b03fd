"""Finished campaigns written straight into the records: no client runs, numbers are formulas."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from core.campaign_diff import statement, system_key
from core.campaign_yaml import load_campaign
from core.fingerprint import fingerprint
from core.plan import Plan, make_plan
from core.records import CampaignRecord, Owner, Records, open_records, upgrade
from core.status import AttemptState
from tests.campaigns import campaign_dict

OWNER = Owner(host="box", boot_id="b00t", pid=4242, start_time=77)
ROWS = 100
#: Levels of a curve of 32 points up to 4096; the default of the others is 7 points up to 256.
MANY = (
    *(1, 2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 64, 90, 128, 181, 256, 300, 362, 430, 512, 600),
    *(724, 860, 1024, 1200, 1448, 1700, 2048, 2400, 2896, 3400, 4096),
)
FEW = (1, 4, 16, 32, 64, 128, 256)
#: A finding of an attempt that failed; its texts would be markup if they were not escaped.
FINDING = {
    "rule": "failed-requests",
    "severity": "error",
    "seen": "3 failed requests <script>alert(1)</script>",
    "wanted": "none",
    "advice": "look at the endpoint's log",
    "about": "performance",
}


def measured(level: int, speed: float = 1.0) -> dict[str, Any]:
    """What a system measures at a level: half of the highest throughput at level 300."""
    tpot_ms = (8 + level / 12) / speed
    tps = speed * 24_000 * level / (level + 300)
    return {
        "issued": 13 * ROWS,
        "completed": 13 * ROWS,
        "failed": 0,
        "duration_s": 1300.0,
        "issue_span_s": 1280.0,
        "qps": 1.0,
        "tps": tps,
        "output_tokens": round(tps * 1300),
        "ttft_ms": {"50": 30.0 + level, "90": 40.0 + 2 * level},
        "tpot_ms": {"50": tpot_ms * 0.9, "90": tpot_ms},
        "latency_ms": {},
        "e2e_avg_interactivity": 900 / tpot_ms,
        "steady_state": None,
        "rate_qps": 1.0,
    }


@dataclass
class Place:
    """A folder with records in it."""

    folder: Path

    @property
    def url(self) -> str:
        """Their database."""
        return f"sqlite:///{self.folder / 'pareto.db'}"

    @cached_property
    def records(self) -> Records:
        """The records, made on first use."""
        upgrade(self.url)
        return open_records(self.url)

    def campaign(
        self,
        name: str = "unit",
        levels: tuple[int, ...] = FEW,
        *,
        speed: float = 1.0,
        driver: str = "550",
        failing: bool = True,
        valid: int | None = None,
        metrics: dict[int, dict[str, Any]] | None = None,
        **sections: Any,
    ) -> CampaignRecord:
        """Record a campaign.

        Args:
            name: Its name.
            levels: Its levels.
            speed: Factor on its throughput.
            driver: What a probe of its system said.
            failing: Whether the first attempt at the second level failed.
            valid: How many points, in run order, are valid; default: all.
            metrics: Level → what is measured otherwise.
            sections: Sections of the campaign file.
        """
        stated = campaign_dict(
            campaign=name,
            curve={"c_max": max(levels), "levels": list(levels)},
            instance={"accelerators": 8},
            **sections,
        )
        plan = self._enter(stated)
        looks = fingerprint({"probes": {"driver": [driver]}, "client": {"version": "1.0"}})
        for point in plan.points[:valid]:
            if failing and point.concurrency == sorted(levels)[1]:
                self._attempt(plan, point.label, looks, AttemptState.INVALID, findings=[FINDING])
            found = measured(point.concurrency, speed)
            if point.accuracy:
                found["accuracy_scores"] = {"acc": {"score": 0.95}}
            found |= (metrics or {}).get(point.concurrency, {})
            self._attempt(plan, point.label, looks, AttemptState.VALID, metrics=found)
        return self.records.campaign(name)

    def _enter(self, stated: dict[str, Any]) -> Plan:
        text, source = yaml.safe_dump(stated, sort_keys=False), self.folder / "campaign.yaml"
        campaign = load_campaign(
            text, source=str(source), folder=self.folder, env={}, is_folder=lambda _: False
        )
        plan = make_plan(campaign, ROWS)
        self.records.enter_campaign(
            plan=plan,
            text=text,
            statement=statement(campaign, self.folder),
            system=system_key(campaign, self.folder),
            source=source,
            runs_folder=self.folder / "runs",
            differences=lambda _: [],
        )
        return plan

    def _attempt(
        self, plan: Plan, label: str, looks: Any, state: AttemptState, **facts: Any
    ) -> None:
        records = self.records
        attempt = records.new_attempt(
            plan.campaign, label, owner=OWNER, samples=13 * ROWS, passes=13, client_version="1.0"
        )
        records.record_fingerprint(attempt.id, "before", looks)
        records.change_state(attempt.id, AttemptState.RUNNING)
        records.record_fingerprint(attempt.id, "after", looks)
        reason = "failed-requests" if state is AttemptState.INVALID else None
        records.change_state(
            attempt.id,
            state,
            exit_code=0,
            ended_by="itself",
            ended_at=attempt.created_at + 1500.0,
            reason=reason,
            **facts,
        )
