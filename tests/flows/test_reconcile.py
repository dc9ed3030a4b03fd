"""What a service or worker finds at its start on a real Prefect server, and what it then does."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from prefect.settings import PREFECT_API_URL, temporary_settings

from core.errors import SetupError
from core.records import Owner
from flows.reconcile import reconcile
from flows.submission import CAMPAIGN, host_tag
from flows.work import _make_pool
from flows.worker import pool_of
from tasks.owner import this_process
from tasks.prefect_api import FlowRun, PrefectApi
from tasks.prefect_pages import INTERRUPTED_LABEL, OWNER_LABELS
from tests import session


class Server:
    """A real server with one deployment of our own; the service of other tests is left alone."""

    def __init__(self, api: PrefectApi) -> None:
        self.api = api
        flow = api.ask("POST", "/flows/", {"name": CAMPAIGN})["id"]
        self.name = f"box-{uuid.uuid4().hex[:8]}"
        made = {"name": self.name, "flow_id": flow, "tags": [host_tag()]}
        self.deployment_id = api.ask("POST", "/deployments/", made)["id"]

    def run(self, kind: str, owner: Owner | None = None, *, interrupted: bool = False) -> str:
        """A run in this state, with the labels of its owner."""
        name = uuid.uuid4().hex
        run = self.api.create_run(self.deployment_id, {}, name=name, tags=(), once=name).id
        labels: dict[str, Any] = {INTERRUPTED_LABEL: interrupted}
        if owner is not None:
            values = (owner.host, owner.boot_id, owner.pid, owner.start_time)
            labels |= dict(zip(OWNER_LABELS, values, strict=True))
        self.api.ask("PATCH", f"/flow_runs/{run}/labels", labels)
        self.api.set_state(run, kind, kind.title(), "")
        return run

    def state(self, run: str) -> str:
        """Type of a run's state."""
        return self.found(run).state_type

    def found(self, run: str) -> FlowRun:
        """A run as it is now."""
        found = self.api.run(run)
        assert found is not None
        return found


@pytest.fixture
def server() -> Iterator[Server]:
    """Without its deployment afterwards: nobody goes on with its runs."""
    made = Server(PrefectApi(session.prefect_api_url()))
    yield made
    made.api.ask("DELETE", f"/deployments/{made.deployment_id}")


def dead(host: str | None = None) -> Owner:
    """A process that is gone, of this machine or of another."""
    own = replace(this_process(), start_time=1)
    return own if host is None else replace(own, host=host, boot_id="another")


def test_what_was_interrupted_goes_on_where_it_was_stopped(server: Server) -> None:
    """A run that another machine's operator stopped is not started by us."""
    ours = server.run("CANCELLED", dead(), interrupted=True)
    theirs = server.run("CANCELLED", dead("another"), interrupted=True)
    by_user = server.run("CANCELLED", dead())
    list(reconcile(server.api, server.name))
    assert server.state(ours) == "SCHEDULED"
    assert server.found(ours).labels[INTERRUPTED_LABEL] is False
    assert [server.state(run) for run in (theirs, by_user)] == ["CANCELLED", "CANCELLED"]


def test_runs_that_died_while_they_started_go_on(server: Server) -> None:
    """They bear no labels, or those of an earlier process; only who serves them takes them."""
    runs = [server.run("PENDING"), server.run("PENDING", dead("another")), server.run("RUNNING")]
    cancelled = server.run("CANCELLING")
    living = server.run("RUNNING", this_process())
    theirs = server.run("RUNNING", dead("another"))
    list(reconcile(server.api, "another-box"))
    assert [server.state(run) for run in runs] == ["PENDING", "PENDING", "RUNNING"]
    list(reconcile(server.api, server.name))
    assert [server.state(run) for run in runs] == ["SCHEDULED"] * 3
    assert server.state(cancelled) == "CANCELLED"
    assert [server.state(run) for run in (living, theirs)] == ["RUNNING", "RUNNING"]


def test_a_run_that_could_not_go_on_is_found_again(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that fails between two requests loses no run."""
    run = server.run("CANCELLED", dead(), interrupted=True)

    def fails(*_: object) -> None:
        raise SetupError("away")

    with monkeypatch.context() as patch:
        patch.setattr(server.api, "set_state", fails)
        with pytest.raises(SetupError):
            list(reconcile(server.api, server.name))
    assert server.found(run).labels[INTERRUPTED_LABEL] is True
    list(reconcile(server.api, server.name))
    assert server.state(run) == "SCHEDULED"


def test_a_paused_work_pool_stays_paused_when_its_worker_starts_again() -> None:
    """Only what is ours of it is brought up to date."""
    api, instance = PrefectApi(session.prefect_api_url()), f"box-{uuid.uuid4().hex[:8]}"
    with temporary_settings({PREFECT_API_URL: api.api_url}):
        asyncio.run(_make_pool(instance))
        path = f"/work_pools/{pool_of(instance)}"
        api.ask("PATCH", path, {"is_paused": True, "concurrency_limit": 3, "description": "old"})
        asyncio.run(_make_pool(instance))
    pool = api.ask("GET", path)
    assert (pool["is_paused"], pool["concurrency_limit"]) == (True, 3)
    assert instance in pool["description"]
    api.ask("DELETE", path)
