"""`pareto submit`: hand a campaign to the service."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flows.prepare import Prepared
    from flows.submission import Submitted
    from tasks.prefect_api import FlowRun, PrefectApi

#: Seconds that a watched run's server may be away: its run goes on meanwhile.
_PATIENCE_S = 1800.0


def submit(file: Path, *, points: str | None = None, watch: bool = False) -> int:
    """Check and plan a campaign, record it, and queue it; one that is queued or running is joined.

    Example: `pareto submit campaigns/rehearsal.yaml --watch`

    Args:
        file: The campaign YAML.
        points: Only these points, by level or label, separated by commas.
        watch: Show its progress until it ends; the exit code is then that of the campaign.
    """
    from flows.choice import labels_of
    from flows.prepare import prepare
    from flows.submission import service
    from flows.submission import submit as submit_campaign

    ready = prepare(file, os.environ)
    wanted = labels_of(points, ready.plan)
    api = service(ready)
    found = submit_campaign(api, ready, wanted)
    name = ready.campaign.campaign
    if found is None:
        print(f"{name}: every point is valid, nothing to measure")
        return 0
    how = _how(found)
    print(
        f"{name}: {how}, {len(ready.plan.points)} points\n{api.run_url(found.run.id)}", flush=True
    )
    if found.note:
        print(found.note)
    return _watched(api, ready, found) if watch else 0


def _how(found: Submitted) -> str:
    """What became of the submission, in a few words."""
    from flows.submission import SUSPENDED

    if not found.joined:
        return "submitted"
    is_suspended = found.run.state_type == SUSPENDED
    return "suspended, resume its run" if is_suspended else "is being measured already"


def _watched(api: PrefectApi, ready: Prepared, found: Submitted) -> int:
    """Show a run until it ends; its exit code."""
    from flows.cli.live import live_view
    from flows.submission import FINISHED, STARTED, STOPPED, exit_code
    from flows.view import View

    records, name = found.records.impatient(), ready.campaign.campaign
    with live_view(View(ready, records)):
        run = _ended(api, found.run)
    if run is not None:
        print(f"{run.state_name}: {run.message}")
    kinds = (STARTED, FINISHED, STOPPED)
    return exit_code(run, [e for kind in kinds for e in records.campaign_events(name, kind)])


def _ended(api: PrefectApi, begun: FlowRun) -> FlowRun | None:
    """A run at its end; None: it was deleted. A server that is away for a while is waited for.

    Raises:
        SetupError: it stays away.
    """
    from core.errors import SetupError
    from flows.submission import LOOK_S

    run: FlowRun | None = begun
    answered_s = time.monotonic()
    while run is not None and not run.is_final:
        time.sleep(LOOK_S)
        try:
            run = api.run(run.id)
            answered_s = time.monotonic()
        except SetupError:
            if time.monotonic() - answered_s > _PATIENCE_S:
                raise
    return run
