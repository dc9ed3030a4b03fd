"""Drives a campaign from this process: preflight, records, Prefect server, flow, result."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from core.errors import InputError, ParetoError, SetupError
from core.identity import unverifiable
from core.overview import point_rows
from core.status import PointState
from flows.cli.live import live_view
from flows.cli.show import curve_table, duration_text, print_table, span_text
from flows.prepare import Prepared
from flows.session import Session, enter, preflight
from flows.stop import StopRequest, on_signals
from tasks.prefect_server import prefect_server


def drive(
    ready: Prepared, points: Sequence[str] | None = None, *, calibrate: bool = False
) -> Session:
    """Run a campaign here and show it until it ends well.

    Args:
        ready: The campaign, read and planned.
        points: Labels to run; default: all that are not valid.
        calibrate: Only find out rates by pilots.

    Raises:
        ParetoError: as the campaign ended; a SetupError if the Prefect server went away for good.
    """
    campaign = ready.campaign
    print(f"checking {campaign.campaign}: datasets, endpoint, client, configurations, room")
    found = preflight(ready)
    if warning := unverifiable(found.identity):
        print(f"warning: the instance is {warning}")
    session = enter(ready, found)
    if campaign.rehearsal:
        print(f"REHEARSAL (time scale {ready.plan.time_scale:g}): nothing here is a measurement")
    left = session.estimate([p.label for p in session.points() if p.state is not PointState.VALID])
    print(f"{len(left.points)} points to measure: {span_text(left.wall_s, duration_text)}")
    with on_signals(StopRequest()) as stop, prefect_server(_prefect_folder(ready)) as server:
        print(f"watch it at {server.ui_url}", flush=True)
        outcome = _flow(session, stop, points, calibrate)
    rows = point_rows(session.points())
    print_table(curve_table(campaign.campaign, rows, rehearsal=campaign.rehearsal is not None))
    print(f"records      {session.records.url.render_as_string(hide_password=True)}")
    print(f"run folders  {ready.paths.runs / campaign.campaign}")
    if outcome is not None:
        raise outcome
    return session


def labels(points: str | None, ready: Prepared) -> list[str] | None:
    """`64,128` or `c0064,offline` as labels of the plan's points.

    Raises:
        InputError: a point that the plan does not have.
    """
    if points is None:
        return None
    known = {point.label: point.label for point in ready.plan.points}
    known |= {str(p.concurrency): p.label for p in ready.plan.points if p.offline != "dedicated"}
    wanted = [item.strip() for item in points.split(",") if item.strip()]
    unknown = [item for item in wanted if item not in known]
    if unknown or not wanted:
        raise InputError(
            f"--points: no point {', '.join(unknown) or 'given'};"
            f" there are {', '.join(point.label for point in ready.plan.points)}"
        )
    return [known[item] for item in wanted]


def _prefect_folder(ready: Prepared) -> Path:
    return ready.campaign.records.folder / "prefect"


def _flow(
    session: Session, stop: StopRequest, points: Sequence[str] | None, calibrate: bool
) -> ParetoError | None:
    """Run the flow; how it ended if not well. Prefect is imported only here: it is slow."""
    # Prefect's pages have the logs; on the console they would cut through the progress.
    os.environ.setdefault("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "CRITICAL")
    os.environ.setdefault("PREFECT_INTERNAL_LOGGING_LEVEL", "CRITICAL")
    import httpx
    from prefect.logging.handlers import APILogHandler

    from flows.campaign import HandedOver, campaign_flow, handed_over

    token = handed_over.set(HandedOver(session, stop))
    try:
        with live_view(session.records, session.plan, session.prepared.paths.runs):
            state = campaign_flow(
                str(session.prepared.loaded.path),
                list(points) if points else None,
                calibrate,
                return_state=True,
            )
    except httpx.TransportError as problem:
        return SetupError(
            f"the Prefect server went away ({problem}); all that was measured is on record, run"
            " the same command again to continue"
        )
    finally:
        handed_over.reset(token)
    APILogHandler().flush()
    outcome = state.result(raise_on_failure=False)
    if isinstance(outcome, ParetoError):
        return outcome
    state.result()  # a bug raises with its traceback
    return None
