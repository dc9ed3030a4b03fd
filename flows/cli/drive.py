"""Drives a campaign from this process: preflight, records, Prefect server, flow, result."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from core.errors import ParetoError, SetupError
from core.identity import unverifiable
from core.overview import offline_note, point_rows
from core.records import RecordsUnavailableError
from core.records.engine import shown
from core.status import PointState
from core.texts import duration_text, span_text
from flows.alone import refuse_taken
from flows.choice import not_valid
from flows.cli.live import live_view
from flows.cli.show import print_curve
from flows.prepare import Prepared
from flows.session import Session, enter, preflight
from flows.stop import StopRequest, on_signals
from flows.view import View
from tasks.prefect_server import prefect_server, set_up


def drive(
    ready: Prepared, points: Sequence[str] | None = None, *, calibrate: bool = False
) -> Session:
    """Run a campaign here and show it until it ends well.

    Args:
        ready: The campaign, read and planned.
        points: Labels to run; default: all that are not valid.
        calibrate: Only find out rates by pilots.

    Raises:
        ParetoError: as the campaign ended.
    """
    campaign = ready.campaign
    refuse_taken(ready, StopRequest())
    print(f"checking {campaign.campaign}: datasets, endpoint, client, configurations, room")
    found = preflight(ready, not_valid(ready, points))
    if warning := unverifiable(found.identity):
        print(f"warning: the instance is {warning}")
    stop = StopRequest()
    session = enter(ready, found, stop.asked)
    if campaign.rehearsal:
        print(f"REHEARSAL (time scale {ready.plan.time_scale:g}): nothing here is a measurement")
    _tell_costs(session, points, calibrate)
    with on_signals(stop):
        outcome = _shown_or_not(session, stop, points, calibrate)
    _show_curve(session)
    print(f"records      {shown(session.records.url)}")
    print(f"run folders  {ready.paths.runs / campaign.campaign}")
    if outcome is not None:
        raise outcome
    return session


def _set_up_prefect() -> None:
    """Settings that must stand before the first import of Prefect."""
    set_up()
    # Prefect's pages have the logs; on the console they would cut through the progress.
    os.environ.setdefault("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "CRITICAL")
    os.environ.setdefault("PREFECT_INTERNAL_LOGGING_LEVEL", "CRITICAL")


def _shown_or_not(
    session: Session, stop: StopRequest, points: Sequence[str] | None, calibrate: bool
) -> ParetoError | None:
    """Run the campaign as a Prefect flow, or without Prefect if there is no server."""
    with ExitStack() as block:
        try:
            server = block.enter_context(prefect_server(_prefect_folder(session.prepared)))
        except SetupError as problem:
            print(f"pareto: {problem}\nmeasuring without Prefect's pages", file=sys.stderr)
            return _plainly(session, stop, points, calibrate)
        print(f"watch it at {server.ui_url}", flush=True)
        return _flow(session, stop, points, calibrate)


def _show_curve(session: Session) -> None:
    name, is_rehearsal = session.campaign.campaign, session.campaign.rehearsal is not None
    try:
        rows = point_rows(session.records.impatient().points_with_attempts(name))
    except RecordsUnavailableError as problem:
        print(f"pareto: {problem}", file=sys.stderr)
        return
    print_curve(name, rows, rehearsal=is_rehearsal)
    if note := offline_note(rows, session.plan.c_max):
        print(note)


def _tell_costs(session: Session, points: Sequence[str] | None, calibrate: bool) -> None:
    """What the points to measure are expected to cost."""
    to_do = [p.label for p in session.points() if p.state is not PointState.VALID]
    left = session.estimate([label for label in to_do if not points or label in points])
    if not calibrate:
        print(f"{len(left.points)} points to measure: {span_text(left.wall_s, duration_text)}")


def _prefect_folder(ready: Prepared) -> Path:
    return ready.campaign.records.folder / "prefect"


def _plainly(
    session: Session, stop: StopRequest, points: Sequence[str] | None, calibrate: bool
) -> ParetoError | None:
    """Run the campaign without Prefect; how it ended if not well."""
    from flows.campaign import run_campaign

    try:
        with live_view(View.of(session)):
            run_campaign(session, stop, points, calibrate=calibrate)
    except ParetoError as outcome:
        return outcome
    return None


def _flow(
    session: Session, stop: StopRequest, points: Sequence[str] | None, calibrate: bool
) -> ParetoError | None:
    """Run the flow; how it ended if not well. Prefect is imported only here: it is slow."""
    _set_up_prefect()
    import httpx
    from prefect.client.schemas.objects import State
    from prefect.exceptions import PrefectException
    from prefect.logging.handlers import APILogHandler

    from flows.campaign import HandedOver, handed_over
    from flows.deployments import campaign as campaign_flow

    given = HandedOver(session, stop)
    token = handed_over.set(given)
    try:
        with live_view(View.of(session)):
            state: State[Any] = campaign_flow(
                str(session.prepared.loaded.path),
                points=",".join(points or ()),
                calibrate=calibrate,
                return_state=True,
            )
    except (httpx.HTTPError, PrefectException) as problem:
        if given.outcome is None:  # it went away before the flow began
            print(f"pareto: the Prefect server went away ({problem})", file=sys.stderr)
            return _plainly(session, stop, points, calibrate)
        print(
            f"pareto: the Prefect server went away ({problem}); our records are complete, its"
            " pages are not",
            file=sys.stderr,
        )
        state = given.outcome
    else:
        APILogHandler().flush()
    finally:
        handed_over.reset(token)
    outcome = state.result(raise_on_failure=False)
    if isinstance(outcome, ParetoError):
        return outcome
    state.result()  # a bug raises with its traceback
    return None
