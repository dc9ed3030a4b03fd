"""Services with a Prefect server of their own: killed, stopped, and two on one database."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil
import pytest

from core.status import AttemptState, PointState
from tests.flows.support import (
    DECODE_MS,
    ROOT,
    Place,
    finish,
    kill,
    prefect,
    wait_until,
    write_datasets,
)

#: Seconds until a new service must serve: a Prefect server makes its database first.
SERVED_WITHIN_S = 300.0


@dataclass
class Service:
    """A service, and the place whose campaigns it runs."""

    place: Place
    data: Path
    process: subprocess.Popen[bytes]

    @property
    def family(self) -> list[int]:
        """The service and all that it started, clients and guards left out."""
        found = psutil.Process(self.process.pid).children(recursive=True)
        modules = {str(ROOT / "tasks" / "prefect_start.py"), "prefect.engine", "flows.serve"}
        ours = [process for process in found if modules & {*process.cmdline()}]
        return [self.process.pid, *(child.pid for child in ours)]

    def run(self, run_id: str) -> str:
        """State of a run."""
        found = prefect(self.place.prefect_api_url).run(run_id)
        assert found is not None
        return found.state_name


@contextmanager
def service(place: Place, data: Path, database: str) -> Iterator[Service]:
    """A service with a Prefect server of its own, at the address that the place names."""
    port = place.prefect_api_url.split(":")[-1].split("/")[0]
    env = place.env(PREFECT_API_URL="", PREFECT_HOME="", PREFECT_RUNNER_POLL_FREQUENCY="1")
    env = {k: v for k, v in env.items() if k != "PREFECT_HOME"} | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "flows.cli", "serve", str(data), "--port", port]
    with (place.folder / f"service-{port}.log").open("ab") as log:
        process = subprocess.Popen(
            [*command, "--database", database],
            cwd=place.folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        url = f"{place.prefect_api_url}/deployments/name/campaign/campaign"
        deadline_s = time.monotonic() + SERVED_WITHIN_S
        while not answers(url):
            assert time.monotonic() < deadline_s, "the service does not serve campaigns"
            time.sleep(0.5)
        yield Service(place, data, process)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


def answers(url: str) -> bool:
    """Whether there is such a thing."""
    try:
        return httpx.get(url, timeout=5).is_success
    except httpx.HTTPError:
        return False


@pytest.fixture
def places(tmp_path: Path) -> list[Place]:
    """Two views of one place, each with a Prefect server of its own to be."""
    write_datasets(tmp_path)
    with ExitStack() as block:
        probes = [block.enter_context(socket.socket()) for _ in range(2)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        ports = [probe.getsockname()[1] for probe in probes]
    return [Place(tmp_path, f"http://127.0.0.1:{port}/api", name="served") for port in ports]


def submitted(place: Place, *arguments: str) -> str:
    """Submit the place's campaign; the id of its run."""
    done = place.pareto("submit", place.file, *arguments)
    assert done.code == 0, done.err
    found = re.search(r"/flow-run/(\S+)", done.out)
    assert found
    return found[1]


def database(place: Place) -> str:
    """URL of the place's records."""
    return f"sqlite:///{place.data / 'pareto.db'}"


def test_what_a_killed_and_a_stopped_service_left_goes_on(places: list[Place]) -> None:
    """Killed, its measurement finishes and is taken in; stopped, it is interrupted and repeated."""
    place = places[0]
    with place.endpoint(slow_after=0):
        place.write()
        with service(place, place.folder / "service", database(place)) as killed:
            run = submitted(place, "--points", "1,2")
            place.wait_for_attempt("c0001", 1, AttemptState.RUNNING)
            wait_until(lambda: place.in_flight() == 1, "a client at work")
            family = killed.family
            for pid in family:
                kill(pid)
        wait_until(lambda: place.guard("c0001")["end"], "the end of the measurement")
        with service(place, place.folder / "service", database(place)) as stopped:
            place.wait_for_attempt("c0002", 1, AttemptState.RUNNING)
            first = place.attempts("c0001")
            assert [attempt.state for attempt in first] == [AttemptState.VALID]
            wait_until(lambda: place.in_flight() > 0, "a client at work")
            stopped.process.send_signal(signal.SIGTERM)
            stopped.process.wait(90)
            assert place.attempts("c0002")[0].state is AttemptState.INTERRUPTED
        place.set_faults()
        with service(place, place.folder / "service", database(place)) as again:
            wait_until(lambda: place.points()["c0002"].state is PointState.VALID, "a valid point")
            wait_until(lambda: again.run(run) == "Failed", "the end of the run")  # five are missing
    assert len(place.attempts("c0002")) == 2


def test_two_services_on_one_records_database(places: list[Place]) -> None:
    """The same campaign runs once; another one on its instance is refused and told who holds it."""
    one, other = places
    with one.endpoint(slow_after=0, decode_ms=4 * DECODE_MS) as url, ExitStack() as block:
        one.write()
        rival = Place(other.folder, other.prefect_api_url, name="rival", url=url)
        rival_file = one.folder / "rival.yaml"
        rival_file.write_text(one.file.read_text().replace("campaign: served", "campaign: rival"))
        services = [
            block.enter_context(service(place, place.folder / f"s{index}", database(one)))
            for index, place in enumerate(places)
        ]
        run = submitted(one, "--points", "1")
        one.wait_for_attempt("c0001", 1, AttemptState.RUNNING)
        second = submitted(other, "--points", "1")
        wait_until(lambda: services[1].run(second) == "Joined", "a run that joins")
        refused = finish(rival.start("run", rival_file, "--points", "1"))
        assert refused.code == 3
        assert "served" in refused.err
        wait_until(lambda: services[0].run(run) == "Failed", "the end of the run")
    states = [attempt.state for attempt in one.attempts("c0001")]
    assert states == [AttemptState.VALID]
    assert os.path.exists(one.runs / "served" / "c0001" / "attempt-01")
