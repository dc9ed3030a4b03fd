"""A run that would disturb a measurement is refused before it asks anything."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from core.errors import SetupError
from core.layout import campaign_lock_path, instance_lock_path
from core.records import LeaseRecord, Owner, Records, open_records
from flows import alone
from flows.alone import refuse_taken
from flows.prepare import Prepared, prepare
from flows.stop import StopRequest
from tasks.instance import InstanceLock, Wanted
from tasks.lock import HeldError, exclusive
from tasks.owner import this_process
from tests.flows.support import Place


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alone, "LOOK_S", 0.05)
    monkeypatch.setattr(alone, "_SIGN_WITHIN_S", 0.5)


@pytest.fixture
def ready(bare_place: Place) -> Prepared:
    """A campaign, read and planned."""
    bare_place.write()
    return prepare(bare_place.file, {**os.environ, "PARETO_STATE_DIR": str(bare_place.folder)})


def refused(ready: Prepared) -> str:
    """Why a run is refused; empty: it is alone."""
    try:
        refuse_taken(ready, StopRequest())
    except SetupError as problem:
        return str(problem)
    return ""


def test_nothing_is_made_by_a_look(ready: Prepared) -> None:
    """Where nobody measures there is neither lock nor database afterwards."""
    assert refused(ready) == ""
    assert not ready.paths.runs.exists()
    assert not Path(ready.paths.database_url.partition("///")[2]).exists()


def test_a_campaign_that_runs_is_refused(ready: Prepared) -> None:
    name = ready.campaign.campaign
    lock = campaign_lock_path(ready.paths.runs, name)
    with exclusive(lock, name), pytest.raises(HeldError, match=str(os.getpid())):
        refuse_taken(ready, StopRequest())
    assert refused(ready) == ""


def test_an_instance_that_is_measured_is_refused(ready: Prepared) -> None:
    """By another campaign of this machine, which is named."""
    name = ready.campaign.instance.name
    lock = InstanceLock(Wanted(name, "other", "sqlite://"), instance_lock_path(name, ready.env))
    lock.acquire()
    assert "being measured by another campaign: other" in refused(ready)
    lock.release()
    assert refused(ready) == ""


def leased(records: Records, ready: Prepared, owner: Owner) -> LeaseRecord:
    """The lease of the campaign's instance, held by somebody."""
    return records.take_lease(ready.campaign.instance.name, "other", owner)


def test_a_lease_counts_while_its_holder_lives(ready: Prepared, tmp_path: Path) -> None:
    """Here by its process, elsewhere by its signs of life; a dead holder is no reason to wait."""
    records = open_records(f"sqlite:///{tmp_path}/leases.db")
    own, stop = this_process(), StopRequest()
    wanted = Wanted(ready.campaign.instance.name, ready.campaign.campaign, "the records")
    there = replace(own, host="there", boot_id="another")
    leased(records, ready, replace(own, start_time=1))
    alone._refuse_leased(records, wanted, stop)
    records.drop_lease(ready.campaign.instance.name, replace(own, start_time=1))
    leased(records, ready, there)
    alone._refuse_leased(records, wanted, stop)
    beat = (ready.campaign.instance.name, there, None, None)
    timer = threading.Timer(0.1, records.beat_lease, beat)
    timer.start()
    with pytest.raises(SetupError, match=r"other, since 20.*, process \d+ on there"):
        alone._refuse_leased(records, wanted, stop)
    timer.join()
    records.drop_lease(ready.campaign.instance.name, there)
    leased(records, ready, own)
    with pytest.raises(SetupError, match="being measured by another campaign"):
        alone._refuse_leased(records, wanted, stop)
