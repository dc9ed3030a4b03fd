"""Every path follows from names, stays in its folder, and is what the official tools expect."""

from __future__ import annotations

from dataclasses import fields
from itertools import product
from pathlib import Path

import pytest
import submission_checker.layout as official

from core import layout
from core.errors import InputError
from core.layout import (
    AttemptPaths,
    CampaignPaths,
    RunPaths,
    attempt_path,
    instance_lock_path,
)
from tests.campaigns import make_campaign

PATHS_OF_A_RUN = ["accuracy", "config", "events", "report", "sample_map", "snapshot", "summary"]
PATHS_OF_AN_ATTEMPT = {
    "client_yaml": "client.yaml",
    "client_stdout": "client.stdout.log",
    "client_stderr": "client.stderr.log",
    "guard_spec": "guard-spec.json",
    "guard_status": "guard.json",
    "guard_log": "guard.log",
    "stop_request": "stop.json",
    "verdict": "verdict.json",
}


def test_an_attempt_has_a_folder_of_its_own() -> None:
    assert str(attempt_path("llama31-h200", "c0064", 2)) == "llama31-h200/c0064/attempt-02"
    assert str(attempt_path("x", "offline", 1, "pilot")) == "x/offline/pilot-01"
    assert str(attempt_path("x", "offline", 123)) == "x/offline/attempt-123"
    tries = list(product("ab", ("c0001", "c0002"), range(1, 200)))
    assert len({attempt_path(*one) for one in tries}) == len(tries)


def test_files_of_an_attempt_lie_in_it_beside_the_run_folder() -> None:
    paths = AttemptPaths(Path("/r/attempt-01"))
    assert {name: getattr(paths, name).name for name in PATHS_OF_AN_ATTEMPT} == PATHS_OF_AN_ATTEMPT
    assert {getattr(paths, name).parent for name in PATHS_OF_AN_ATTEMPT} == {paths.path}
    assert paths.run.path == paths.path / "run"


@pytest.mark.parametrize("case", ["c02_both_pass"])
def test_files_of_a_run_folder_are_where_the_client_writes_them(
    fixtures_dir: Path, case: str
) -> None:
    """A recorded folder of the real client has a file at every path."""
    run = RunPaths(fixtures_dir / case / "out")
    assert [name for name in PATHS_OF_A_RUN if getattr(run, name).is_file()] == PATHS_OF_A_RUN
    assert (run.path / layout.METRICS_SUBDIR / layout.READY).is_file()
    assert [field.name for field in fields(run)] == ["path"]


def test_names_of_the_official_tools_are_theirs() -> None:
    shared = [name for name in layout.__all__ if hasattr(official, name)]
    assert "RESULT_SUMMARY_JSON" in shared
    assert all(getattr(layout, name) is getattr(official, name) for name in shared)


def test_records_lie_in_the_data_folder_unless_stated(tmp_path: Path) -> None:
    paths = CampaignPaths.of(make_campaign(records={"folder": str(tmp_path)}))
    assert paths.database_url == f"sqlite:///{tmp_path}/pareto.db"
    assert paths.runs == tmp_path / "runs"
    assert paths.attempt("unit/c0064/attempt-01").path == tmp_path / "runs" / "unit" / "c0064" / "attempt-01"
    stated = {"folder": str(tmp_path), "database": "postgresql://h/d", "runs": "/fast/runs"}
    paths = CampaignPaths.of(make_campaign(records=stated))
    assert (paths.database_url, paths.runs) == ("postgresql://h/d", Path("/fast/runs"))


def test_paths_are_absolute_even_if_the_file_says_otherwise() -> None:
    """The client runs in another folder than the command that started it."""
    paths = CampaignPaths.of(make_campaign(records={"runs": "r"}))
    assert paths.runs == Path.cwd() / "r"
    assert paths.database_url == f"sqlite:///{Path.cwd()}/pareto-data/pareto.db"


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"HOME": "/home/u"}, "/home/u/.local/state/pareto/instances/box.lock"),
        ({"HOME": "/h", "XDG_STATE_HOME": "/x"}, "/x/pareto/instances/box.lock"),
        ({"HOME": "/h", "XDG_STATE_HOME": ""}, "/h/.local/state/pareto/instances/box.lock"),
        ({"HOME": "/h", "XDG_STATE_HOME": "rel"}, "/h/.local/state/pareto/instances/box.lock"),
        ({"XDG_STATE_HOME": "/x", "PARETO_STATE_DIR": "/p"}, "/p/instances/box.lock"),
    ],
)
def test_the_lock_of_an_instance_is_one_for_the_machine(
    environ: dict[str, str], expected: str
) -> None:
    """It depends on the instance alone, not on campaign or working folder."""
    assert str(instance_lock_path("box", environ)) == expected


def test_without_a_home_in_the_environment_the_account_s_is_used() -> None:
    lock = instance_lock_path("box", {})
    assert lock == Path.home() / ".local/state/pareto/instances/box.lock"


@pytest.mark.parametrize("name", ["", "..", "a/b", "/etc", "a\0b", "-rf", ".hidden", "ä", "x" * 65])
def test_no_name_leads_out_of_its_folder(name: str) -> None:
    for use in (
        lambda: attempt_path(name, "c0001", 1),
        lambda: attempt_path("unit", name, 1),
        lambda: instance_lock_path(name, {"HOME": "/h"}),
    ):
        with pytest.raises(InputError, match="can't be a folder's"):
            use()
