"""Two machines share one PostgreSQL: an instance is loaded by one of them, and nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from core.records import upgrade
from core.status import AttemptState
from tests.flows.support import Place, finish, kill, wait_until, write_datasets
from tests.postgres import schema

#: Requests that are answered before the endpoint falls silent.
ANSWERED = 3


@pytest.fixture
def database(postgres_url: str) -> Iterator[str]:
    """Records that machines share."""
    with schema(postgres_url) as url:
        upgrade(url)
        yield url


def machine(folder: Path, name: str, database: str, campaign: str = "curve") -> Place:
    """A place on a machine of that name, without Prefect."""
    folder.mkdir()
    write_datasets(folder)
    return Place(folder, "http://127.0.0.1:9/api", campaign, database=database, machine=name)


def test_an_instance_is_one_machines_until_its_client_is_gone(
    tmp_path: Path, database: str
) -> None:
    """Also while that goes on without orchestrator; then the other machine measures at once."""
    near = machine(tmp_path / "near", "near", database)
    far = machine(tmp_path / "far", "far", database, "other")
    with near.endpoint(stall_after=ANSWERED) as url:
        far.url = url
        near.write()
        far.write()
        orchestrator = near.start("run", near.file, "--points", "1")
        near.wait_for_attempt("c0001", state=AttemptState.RUNNING)
        holder = near.records.lease("box").owner
        refused = far.pareto("run", far.file, "--points", "1")
        assert (refused.code, holder.host.partition("#")[0]) == (3, "near"), refused
        assert "by another campaign: curve, at point c0001, since" in refused.err
        assert f"process {holder.pid} on {holder.host}; one at a time may load it" in refused.err
        kill(orchestrator.pid)
        finish(orchestrator)
        running = far.start("run", far.file, "--points", "1")
        unlocked = far.pareto("unlock", "curve", "--reason", "x", "--database", database)
        refused = finish(running)
        assert refused.code == 3, refused
        assert unlocked.code == 2, unlocked
        assert f"process {holder.pid} on {holder.host} is alive and measures it" in unlocked.err
        assert near.pareto("cancel", near.file).code == 0
        wait_until(lambda: near.records.lease("box") is None, "the end of the lease")
        near.set_faults(stall_after=None)
        done = far.pareto("run", far.file, "--points", "1")
    assert [a.state for a in far.attempts("c0001")] == [AttemptState.VALID], done
    assert [a.state for a in near.attempts("c0001")] == [AttemptState.RUNNING]
