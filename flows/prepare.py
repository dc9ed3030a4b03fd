"""From a campaign file to a planned campaign; only reads, and imports little."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from core.campaign import Campaign
from core.estimate import refuse_small_budget, scored_samples
from core.layout import CampaignPaths
from core.plan import Plan, make_plan
from tasks.campaign_file import LoadedCampaign, read_campaign
from tasks.dataset import rows_for_plan


@dataclass(frozen=True)
class Prepared:
    """A campaign that was read and planned; nothing outside was touched."""

    loaded: LoadedCampaign
    plan: Plan
    env: Mapping[str, str] = field(repr=False)  # holds keys and passwords

    @property
    def campaign(self) -> Campaign:
        """The campaign itself."""
        return self.loaded.campaign

    @property
    def paths(self) -> CampaignPaths:
        """Where its records and run folders lie."""
        return CampaignPaths.of(self.campaign)


def prepare(path: Path, env: Mapping[str, str]) -> Prepared:
    """Read and plan a campaign file.

    Raises:
        InputError: the file or the plan that follows from it can't be used.
        SetupError: the dataset file is there and can't be read.
    """
    return prepared(read_campaign(path, env), env)


def prepared(loaded: LoadedCampaign, env: Mapping[str, str]) -> Prepared:
    """Plan a campaign that was read before; raises as `prepare` does."""
    plan = make_plan(loaded.campaign, rows_for_plan(loaded.campaign))
    refuse_small_budget(loaded.campaign, plan, scored_samples(loaded.campaign, {}))
    return Prepared(loaded=loaded, plan=plan, env=dict(env))
