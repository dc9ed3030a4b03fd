"""`pareto worker` before it takes a run: what it refuses, and what a run without client becomes."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from core.errors import ClientMissingError, SetupError
from core.records import upgrade
from core.records.engine import WRITING, make_engine, parsed_url
from core.redact import HIDDEN
from flows.outcome import ended
from tasks.client import inspect_client
from tests.flows.support import Done, Place
from tests.postgres import schema

NOBODY = "http://127.0.0.1:9/api"


@pytest.fixture
def database(postgres_url: str) -> Iterator[str]:
    """Records that machines share."""
    with schema(postgres_url) as url:
        upgrade(url)
        yield url


@pytest.fixture(autouse=True)
def _signals_as_before() -> Iterator[None]:
    """Services take signals for themselves."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("missing", ["PREFECT_API_URL", "PARETO_DATABASE"])
def test_what_it_shares_with_others_is_named(
    bare_place: Place, call: Callable[..., Done], missing: str
) -> None:
    known = {"PREFECT_API_URL": NOBODY, "PARETO_DATABASE": "sqlite:////x.db", missing: ""}
    done = call(bare_place, "worker", "box", **known)
    assert (done.code, done.err.partition(";")[0]) == (3, f"pareto: {missing} is not set")


def test_records_of_a_newer_version_are_refused(
    bare_place: Place, call: Callable[..., Done], database: str
) -> None:
    """At once, before any server is asked, by the service and by a worker alike."""
    engine = make_engine(parsed_url(database)).execution_options(**{WRITING: True})
    with engine.begin() as connection:
        connection.execute(text("UPDATE pareto_version SET version_num = '9999'"))
    for command in (["worker", "box"], ["serve"], ["list"]):
        done = call(bare_place, *command, PARETO_DATABASE=database)
        assert done.code == 3, done
        assert "is of version 9999, this pareto knows only" in done.err
        assert "use the newer pareto that wrote it" in done.err


def test_a_place_that_is_none_is_refused(bare_place: Place, call: Callable[..., Done]) -> None:
    known = {"PREFECT_API_URL": NOBODY, "PARETO_DATABASE": "sqlite:////x.db"}
    done = call(bare_place, "worker", "box", "--folder", "nowhere", **known)
    assert (done.code, done.err) == (
        2,
        "pareto: --folder: nowhere is no folder; make it, or name another\n",
    )
    done = call(bare_place, "worker", "../box", **known)
    assert done.code == 2
    assert "name '../box' can't be a folder's" in done.err


@pytest.mark.parametrize("client", ["no-such-client", "/", "false"])
def test_a_client_that_cannot_tell_its_version_is_missing(client: str, tmp_path: Path) -> None:
    """Not found, not a program, or without what it needs."""
    with pytest.raises(ClientMissingError, match=r"client\.command: "):
        inspect_client([client], ["concurrency"], {"PATH": "/bin:/usr/bin", "HOME": str(tmp_path)})


@pytest.mark.parametrize("joins", [True, False])
def test_without_a_run_that_could_wait_a_missing_client_is_a_failure(joins: bool) -> None:
    """As `pareto run` has it; tests/long has the run of a worker that waits."""

    def work() -> str:
        raise ClientMissingError("client.command: 'x' was not found")

    state = ended(work, joins=joins)
    assert state.is_failed()
    assert "client.command: 'x' was not found" in str(state.message)


def test_no_secret_is_in_the_state_of_a_failed_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prefect keeps and shows a state's message; who called still gets the whole error."""
    monkeypatch.setenv("MY_PASSWORD", "correct horse")

    def fail() -> str:
        raise SetupError("client.command: exit code 1 from: client --pw 'correct horse'\nsk-abc")

    state = ended(fail)
    assert state.message == f"client.command: exit code 1 from: client --pw '{HIDDEN}'\n{HIDDEN}"
    assert "correct horse" in str(state.data)
