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
    from flows.submission import LOOK_S
    from flows.view import View

    run: FlowRun | None = found.run
    with live_view(View(ready, found.records.impatient())):
        while run is not None and not run.is_final:
            time.sleep(LOOK_S)
            run = api.run(run.id)
    if run is not None:
        print(f"{run.state_name}: {run.message}")
    return _code(run, found)


def _code(run: FlowRun | None, found: Submitted) -> int:
    from core.errors import EXIT_INCOMPLETE, EXIT_OK, ExecutionError, InterruptedByUserError

    if run is None or run.state_type == "CANCELLED":
        return InterruptedByUserError.exit_code
    if run.state_type == "COMPLETED":
        return EXIT_OK
    name = dict(tag.split(":", 1) for tag in run.tags if ":" in tag).get("campaign")
    kinds = found.records.campaign_events(str(name), "campaign.finished")
    return EXIT_INCOMPLETE if kinds else ExecutionError.exit_code
