"""The flows that people start in Prefect's pages, and that `pareto serve` and workers run.

Parameters are plain text and flags, so that Prefect's form shows each with what it means. The
records decide what is done: whichever button starts a run, a valid point is not measured again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.exceptions import Abort
from prefect.runtime import flow_run

from core.errors import ParetoError
from core.records import Records, open_records
from flows.alone import refuse_taken
from flows.campaign import handed_over, run_campaign
from flows.choice import labels_of, not_valid, to_retry
from flows.monitor import own_pages
from flows.outcome import ended
from flows.prepare import Prepared, prepared
from flows.session import enter, preflight
from flows.source import is_text, submitted
from flows.stop import StopRequest, on_signals
from flows.submission import CAMPAIGN, RETRY, marks, title
from flows.wishes import is_cancelled
from tasks.prefect_pages import INTERRUPTED_LABEL

#: Points to run: named by the user once the plan is known; None: all that are not valid.
Chooser = Callable[[Prepared], list[str] | None]


def _run_name() -> str:
    """Name of a run in Prefect's lists."""
    given = handed_over.get()
    if given is not None:
        return title(given.session.prepared)
    parameters = flow_run.parameters
    try:
        loaded = submitted(parameters["campaign"], parameters.get("source", ""), os.environ)
        return title(prepared(loaded, os.environ))
    except ParetoError:
        text = parameters["campaign"]
        found = re.search(r"^campaign:\s*([\w-]+)", text, re.MULTILINE) if is_text(text) else None
        return found[1] if found else "a campaign that can't be read"


@flow(name=CAMPAIGN, flow_run_name=_run_name)
def campaign(
    campaign: str,
    points: str = "",
    calibrate: bool = False,
    check: bool = False,
    source: str = "",
) -> State[None]:
    """Measure every point of a campaign that is not valid yet.

    Args:
        campaign: The campaign's YAML, the path of such a file where the service runs, or the name
            of a campaign on record.
        points: Levels or labels of the points to run, separated by commas, e.g. 64,128; empty for
            all that are not valid.
        calibrate: Only find out rates by pilots; measure nothing.
        check: Only check datasets, endpoint, client, configurations and room where the service
            runs; measure nothing.
        source: The file that the YAML came from: relative paths start there.
    """
    given = handed_over.get()
    if given is not None:
        session, stop = given.session, given.stop
        own_pages().begin(marks(session.prepared))
        only = labels_of(points or None, session.plan)
        with on_signals(stop):  # within the flow SIGTERM is Prefect's, until we take it
            outcome = ended(lambda: run_campaign(session, stop, only, calibrate=calibrate))
        given.outcome = outcome
        return outcome
    only_checks = check
    return _served(
        campaign,
        source,
        lambda ready: labels_of(points or None, ready.plan),
        calibrate=calibrate,
        only_checks=only_checks,
    )


@flow(name=RETRY, flow_run_name=_run_name)
def retry_points(campaign: str, points: str = "", source: str = "") -> State[None]:
    """Run failed points of a campaign again, and no others.

    Args:
        campaign: The name of a campaign on record, the path of its file where the service runs, or
            its YAML.
        points: Levels or labels of failed points, separated by commas, e.g. 64,128; empty for all
            of them. A point that missed its accuracy runs again only if it is named.
        source: The file that the YAML came from: relative paths start there.
    """

    def failed(ready: Prepared) -> list[str]:
        wanted = labels_of(points or None, ready.plan)
        return list(to_retry(_records(ready), ready.campaign.campaign, wanted).labels)

    return _served(campaign, source, failed)


def _served(
    text: str,
    source: str,
    choose: Chooser,
    *,
    calibrate: bool = False,
    only_checks: bool = False,
) -> State[None]:
    """Run a campaign that was submitted; its end as a state that Prefect shows."""
    stop = StopRequest()

    def work() -> str:
        ready = prepared(submitted(text, source, os.environ), os.environ)
        own_pages().begin(marks(ready))
        chosen = choose(ready)
        if chosen == []:
            return "no failed point, nothing to retry"
        refuse_taken(ready, stop, flow_run.id)
        if only_checks:
            preflight(ready, chosen)
            count = len(ready.plan.points if chosen is None else set(chosen))
            return f"checked: {count} points can be measured from here"
        found = preflight(ready, not_valid(ready, chosen))
        session = enter(ready, found, stop.asked)
        return run_campaign(session, stop, chosen, calibrate=calibrate)

    with on_signals(stop):  # within the flow SIGTERM is Prefect's, until we take it
        outcome = ended(work, joins=True)
    if stop.is_signalled:  # by its service
        is_wanted = is_cancelled()
        if is_wanted:
            # The service calls it cancelled once this process is gone. Were it called so before, a
            # Retry that is pressed meanwhile would be undone.
            raise Abort("cancelled in Prefect")
        if is_wanted is False:  # unknown: perhaps by its user
            own_pages().label({INTERRUPTED_LABEL: True})  # the service ends, and goes on with it
    return outcome


def _records(ready: Prepared) -> Records:
    return open_records(ready.paths.database_url)
