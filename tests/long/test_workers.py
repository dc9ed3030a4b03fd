"""Workers beside instances, on one Prefect server and one records database in PostgreSQL."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest

from core.records import Records, open_records, upgrade
from core.status import AttemptState, PointState
from tasks.prefect_server import SETTINGS, answers, find_or_start, stop_server
from tests.flows.support import LABELS, SCORED_ROWS, Place, prefect, wait_until
from tests.postgres import Postgres, free_port, running_postgres

#: What every preflight asks.
PREFLIGHT = "Reply with one word."
#: Seconds that a process gets to end after SIGTERM.
END_S = 60.0


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    """PostgreSQL with a database for Prefect and one for the records."""
    with running_postgres() as server:
        server.create("prefect", "pareto")
        upgrade(server.url_of("pareto"))
        yield server


@pytest.fixture(scope="module")
def api_url(server: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Prefect server on PostgreSQL."""
    home, port = tmp_path_factory.mktemp("prefect"), free_port()
    url = f"http://127.0.0.1:{port}/api"
    database = f"postgresql+asyncpg://postgres@127.0.0.1:{server.port}/prefect"
    env = os.environ | SETTINGS | {"PREFECT_HOME": str(home), "PREFECT_API_URL": url}
    env |= {"PREFECT_SERVER_DATABASE_CONNECTION_URL": database}
    command = [sys.executable, "-m", "prefect", "server", "start"]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    with (home / "server.log").open("wb") as log:
        process = subprocess.Popen(command, env=env, stdout=log, stderr=log)
    try:
        wait_until(lambda: answers(url) or process.poll() is not None, "the Prefect server")
        assert process.poll() is None, (home / "server.log").read_text()
        yield url
    finally:
        process.terminate()
        process.wait(END_S)


class Bench(Place):
    """A place whose campaign is measured by a worker beside its instance."""

    @property
    def instance(self) -> str:
        """Name of the instance."""
        return f"box-{self.name}"

    def env(self, **variables: str) -> dict[str, str]:
        """Environment that names the shared records."""
        return super().env(PARETO_DATABASE=str(self.database), **variables)

    def write(self, text: str | None = None, **sections: Any) -> Path:
        """Write the campaign; its requests can be told from those of others."""
        for name, rows in (("performance", self.prompts[:8]), ("accuracy", self.prompts[8:])):
            lines = [
                json.dumps({"prompt": prompt, "ground_truth": f"x{3 * row}"})
                for row, prompt in enumerate(rows)
            ]
            (self.folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
        instance = sections.pop("instance", {"name": self.instance})
        return super().write(text, instance=instance, **sections)

    @property
    def prompts(self) -> list[str]:
        """What only this place's client asks."""
        performance = [f"{self.name}: explain the number {row} in plain words." for row in range(8)]
        return performance + [
            f"{self.name}, problem {row}: What is {row} + {2 * row}? Put the answer in \\boxed{{}}."
            for row in range(SCORED_ROWS)
        ]

    @contextmanager
    def worker(self, instance: str | None = None) -> Iterator[subprocess.Popen[str]]:
        """The worker beside the instance, which takes runs."""
        wanted = instance or self.instance
        process = self.start("worker", wanted, "--folder", self.folder)
        try:
            wait_until(lambda: self.is_served(wanted), f"the deployment of {wanted}")
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            out, err = process.communicate(timeout=END_S)
            assert process.returncode == 0, (out, err)

    def is_served(self, instance: str) -> bool:
        """Whether runs can be submitted for an instance."""
        return prefect(self.prefect_api_url).deployment(f"campaign/{instance}") is not None

    def run_state(self, wanted: str) -> dict[str, Any] | None:
        """The state of the newest run of this campaign, if it has that name."""
        body = {"flow_runs": {"tags": {"all_": [f"campaign:{self.name}"]}}, "limit": 1}
        body |= {"sort": "EXPECTED_START_TIME_DESC"}
        found = prefect(self.prefect_api_url).ask("POST", "/flow_runs/filter", body)
        is_wanted = found and found[0]["state"]["name"] == wanted
        return found[0]["state"] if is_wanted else None

    def is_valid(self) -> bool:
        """Whether every point is valid."""
        return {point.state for point in self.points().values()} == {PointState.VALID}

    def strangers(self) -> list[str]:
        """Requests at this place's endpoint that its own client did not send."""
        own = {hashlib.sha256(p.encode()).hexdigest() for p in [*self.prompts, PREFLIGHT]}
        asked = [orjson.loads(line)["prompt_sha256"] for line in self.log.read_bytes().splitlines()]
        assert len(asked) > len(own)
        return [digest for digest in asked if digest not in own]


@pytest.fixture
def bench(tmp_path: Path, server: Postgres, api_url: str) -> Any:
    """Makes places by the names of their campaigns."""

    def make(name: str, **options: Any) -> Bench:
        url = options.pop("prefect_api_url", api_url)
        database = server.url_of("pareto")
        (tmp_path / name).mkdir()
        return Bench(tmp_path / name, url, name, database=database, **options)

    return make


@pytest.fixture
def records(server: Postgres) -> Records:
    """The records that all share."""
    return open_records(server.url_of("pareto"))


def test_two_instances_are_measured_side_by_side(bench: Any, records: Records) -> None:
    """Two workers, one server: both curves are complete, and no request went astray."""
    places = [bench("alpha"), bench("beta")]
    alpha, beta = places
    with alpha.endpoint(), beta.endpoint():
        for place in places:
            place.write(records={"database": "${PARETO_DATABASE}"})
        with alpha.worker(), beta.worker():
            for place in places:
                done = place.pareto("submit", place.file)
                assert done.code == 0, done
                assert f"{place.name}: submitted, {len(LABELS)} points" in done.out
            wait_until(lambda: len(records.leases()) == len(places), "both being measured")
            assert {lease.instance for lease in records.leases()} == {"box-alpha", "box-beta"}
            for place in places:
                wait_until(lambda at=place: at.run_state("Completed"), f"the end of {place.name}")
        assert [place.is_valid() for place in places] == [True, True]
        assert [place.strangers() for place in places] == [[], []]
    spans = [_span(place) for place in places]
    assert max(begin for begin, _ in spans) < min(end for _, end in spans)
    assert records.leases() == ()


def _span(place: Place) -> tuple[float, float]:
    attempts = [attempt for point in place.points().values() for attempt in point.attempts]
    begins = [attempt.started_at for attempt in attempts if attempt.started_at]
    return min(begins), max(attempt.ended_at or 0.0 for attempt in attempts)


def test_a_run_waits_for_the_client(bench: Any) -> None:
    """Named at submission and in the run's state; no attempt is made, and nothing failed."""
    place = bench("gamma")
    client = place.folder / "inference-endpoint"
    with place.endpoint():
        place.write(client={"command": [str(client)]})
        with place.worker():
            # This machine's name: the submitter is another one.
            done = place.pareto("submit", place.file, "--points", "1", PARETO_TEST_MACHINE="far")
            assert done.code == 0, done
            state = wait_until(lambda: place.run_state("AwaitingClient"), "a run that waits")
            assert f"client.command: '{client}' was not found" in state["message"]
            assert state["type"] == "SCHEDULED"
            assert not place.attempts("c0001")
            program = f"{sys.executable} -m tasks.rehearsal.client"
            client.write_text(f'#!/bin/sh\nexec {program} "$@"\n')
            client.chmod(0o755)
            place.wait_for_attempt("c0001", state=AttemptState.VALID)
            wait_until(lambda: place.run_state("Failed"), "its end")  # other points are not valid
    assert [a.state for a in place.attempts("c0001")] == [AttemptState.VALID]


def test_two_servers_on_one_records_database(bench: Any, tmp_path: Path) -> None:
    """The lock of an instance holds across them: the second's run is refused, and measures nothing.

    The two say to be two machines.
    """
    near = bench("delta", machine="near")
    other_server = tmp_path / "other-server"
    try:
        other = find_or_start(other_server).api_url
        far = bench("epsilon", machine="far", prefect_api_url=other)
        with near.endpoint(stall_after=3) as url:
            far.url = url
            near.write()
            far.write(instance={"name": near.instance})
            with near.worker(), far.worker(near.instance):
                assert near.pareto("submit", near.file, "--points", "1").code == 0
                near.wait_for_attempt("c0001", state=AttemptState.RUNNING)
                assert far.pareto("submit", far.file, "--points", "1").code == 0
                state = wait_until(lambda: far.run_state("Failed"), "the refusal")
                assert "is being measured by another campaign: delta, at point" in state["message"]
                assert re.search(r"on near#\w{8}; one at a time may load it", state["message"])
                assert near.pareto("cancel", near.file).code == 0
                wait_until(lambda: near.run_state("Cancelled"), "its end")
        assert not far.attempts("c0001")
        sent = near.log.read_text()
        assert not [p for p in far.prompts if hashlib.sha256(p.encode()).hexdigest() in sent]
    finally:
        stop_server(other_server)
