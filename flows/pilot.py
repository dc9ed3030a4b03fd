"""A pilot ahead of a point without a known rate: a client run of its own, never a measurement."""

from __future__ import annotations

import yaml

from core.client_config import TEMPLATES
from core.errors import InterruptedByUserError
from core.pilot import (
    LONGEST_S,
    SAMPLES,
    is_enough,
    pilot_config,
    pilot_dataset,
    pilot_rate,
    scaled_s,
)
from core.plan import Point
from core.progress import Phase
from core.records import Phase as AttemptPhase
from core.status import AttemptState
from flows.attempt import ending_client, failing
from flows.client_run import Judge, configure, follow_client, load_s, start_client, surroundings
from flows.running import Running
from flows.session import Session
from flows.stop import StopRequest
from flows.verdict import conclude, read_folder
from tasks.owner import this_process
from tasks.supervise import GuardStatus


def needs_pilot(session: Session, point: Point) -> bool:
    """Whether a pilot would tell a rate that is only guessed, or not known at all."""
    rate = point.sizing.rate
    is_known = rate is not None and not rate.guess
    return not is_known and pilot_dataset(session.campaign, point) is not None


def run_pilot(session: Session, point: Point, stop: StopRequest) -> None:
    """Run a pilot and record the rate that it shows; a failed one leaves the rate a guess.

    Raises:
        SetupError: the client can't be started.
        InterruptedByUserError: stopped on request.
    """
    attempt = session.records.new_attempt(
        session.campaign.campaign,
        point.label,
        owner=this_process(),
        samples=SAMPLES,
        phase=AttemptPhase.PILOT,
        client_version=session.client.version,
    )
    running = Running(session, point, attempt, stop)
    with ending_client(running), failing(running):
        running.step("pilot start", lambda: _start(running))
        running.step("pilot", lambda: _follow(running))
    conclude_pilot(running)


def conclude_pilot(running: Running) -> None:
    """Follow a started pilot to its end and record its rate.

    Raises:
        InterruptedByUserError: stopped on request.
    """
    status = follow_client(running, judge=_judge(running))
    running.step("pilot rate", lambda: _record(running, status))
    if running.stop:
        raise InterruptedByUserError(
            f"stopped ({running.stop.reason}) during the pilot of {running.point.label};"
            " run the same file again to continue"
        )


def _start(running: Running) -> None:
    session, point = running.session, running.point
    dataset = pilot_dataset(session.campaign, point)
    assert dataset is not None, "needs_pilot is asked first"
    made = pilot_config(
        session.client.templates[TEMPLATES[point.load_pattern]],
        session.campaign,
        point,
        dataset=dataset,
        seed_set=session.plan.seed_set,
        run_folder=running.paths.run.path,
    )
    configure(running, yaml.safe_dump(made, sort_keys=False, allow_unicode=True))
    # A pilot has no end of its own: without an orchestrator that ends it, the guard does.
    start_client(running, accuracy=False, deadline_s=LONGEST_S, when_orphaned="stop")


def _follow(running: Running) -> None:
    follow_client(running, until=(Phase.FINISHING,), judge=_judge(running))


def _judge(running: Running) -> Judge:
    failing = surroundings(running)
    return lambda status: _enough(running, status) or failing(status)


def _enough(running: Running, status: GuardStatus) -> str | None:
    campaign = running.session.campaign
    if status.errors:
        return f"pilot: {status.errors} failed requests"
    seconds = scaled_s(campaign, campaign.run.pilot.seconds)
    if is_enough(status.done, load_s(status), running.point.concurrency, seconds):
        return "pilot: long enough"
    return None


def _record(running: Running, status: GuardStatus) -> None:
    assert status.end is not None
    facts, found = read_folder(running, status)
    rate, why = pilot_rate(facts, running.point.concurrency)
    state = AttemptState.FAILED if rate is None else AttemptState.VALID
    conclude(
        running,
        AttemptState.INTERRUPTED if running.stop else state,
        found,
        exit_code=status.end.return_code,
        ended_by=status.end.ended_by,
        ended_at=status.end.ended_at,
        reason=why or None,
        metrics={} if rate is None or running.stop else {"rate_qps": rate},
    )
