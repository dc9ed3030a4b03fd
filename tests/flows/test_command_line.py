"""The command line: help, JSON, output that nobody takes, looking that leaves nothing behind."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from core.status import AttemptState
from flows.cli import app
from tests.flows.support import LABELS, SCORED, Done, Place, tree

#: Every command, `db upgrade` as it is called.
COMMANDS = [name for name in app if not name.startswith("-") and name != "db"] + ["db upgrade"]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(
    bare_place: Place, call: Callable[..., Done], command: str
) -> None:
    """`--help` says what the command does, and gives an example that calls it."""
    done = call(bare_place, *command.split(), "--help")
    assert done.code == 0, done
    assert f"pareto {command}" in done.out.partition("Example")[2], done.out


def test_help_lists_every_command(bare_place: Place) -> None:
    """`pareto --help` has a line for each."""
    done = bare_place.pareto("--help")
    assert done.code == 0, done
    words = done.out.replace("│", " ").split()
    assert [name for name in COMMANDS if name.split()[0] not in words] == []


def test_plan_tells_the_curve_as_json(bare_place: Place) -> None:
    """Version, order, roles and seeds by name; endpoint, client and records are not asked for."""
    bare_place.write(client={"command": ["no-such-client"]})
    before = tree(bare_place.folder)
    done = bare_place.pareto("plan", bare_place.file, "--json")
    assert done.code == 0, done
    told = json.loads(done.out)
    assert isinstance(told["version"], int)
    assert told["seed_set"] == "A"
    assert tuple(point["label"] for point in told["points"]) == LABELS
    assert {point["label"] for point in told["points"] if point["accuracy"]} == SCORED
    assert all(point["purpose"] for point in told["points"])
    assert tree(bare_place.folder) == before


def test_plan_tells_the_curve_as_a_table(bare_place: Place) -> None:
    """Marked as a rehearsal, each point with its purpose, without control characters in a pipe."""
    bare_place.write()
    done = bare_place.pareto("plan", bare_place.file)
    assert done.code == 0, done
    assert "REHEARSAL, not a measurement" in done.out
    assert "declared C_max, elected Offline result" in done.out
    assert "note: no spare" in done.out
    assert "\x1b" not in done.out


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_reader_that_has_seen_enough_is_no_failure(bare_place: Place, form: list[str]) -> None:
    """`pareto plan … | head -0` ends with 0 and without a traceback."""
    bare_place.write()
    process = bare_place.start("plan", bare_place.file, *form)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait() == 0


def test_a_run_goes_on_without_its_reader(bare_place: Place) -> None:
    """`pareto run … | head -1` measures all the same, and ends with the code of the curve."""
    with bare_place.endpoint():
        bare_place.write()
        process = bare_place.start("run", bare_place.file, "--points", "1")
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        told = process.stderr.read()
    assert process.wait() == 1
    assert "6 of 7 points are not valid" in told
    assert [attempt.state for attempt in bare_place.attempts("c0001")] == [AttemptState.VALID]


def test_output_that_could_not_be_written_is_told(bare_place: Place) -> None:
    """Not as if all were well, and without a traceback."""
    bare_place.write()
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "flows.cli", "plan", str(bare_place.file)],
            check=False,
            env=bare_place.env(),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 3
    assert done.stderr.startswith("pareto: not all of its output could be written: [Errno 28]")
    assert done.stderr.count("\n") == 1


def test_a_name_that_no_file_can_have_is_told(bare_place: Place) -> None:
    bare_place.write(datasets={"performance": {"path": "a" * 5000}})
    done = bare_place.pareto("plan", bare_place.file)
    assert (done.code, done.err.strip()) == (
        3,
        "pareto: datasets.performance.path: File name too long; correct it",
    )


def test_records_are_looked_for_where_the_variable_says(bare_place: Place) -> None:
    """`PARETO_DATABASE` names the records for commands that take a name or none."""
    from core.records import open_records

    url = f"sqlite:///{bare_place.folder / 'elsewhere.db'}"
    open_records(url)
    listed = bare_place.pareto("status", "--json", PARETO_DATABASE=url)
    assert (listed.code, json.loads(listed.out)) == (0, []), listed
    done = bare_place.pareto("status", "unheard-of", PARETO_DATABASE=url)
    assert done.code == 2, done
    assert "no campaign 'unheard-of'" in done.err
    assert bare_place.pareto("db", "upgrade", PARETO_DATABASE=url).code == 0
