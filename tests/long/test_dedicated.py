"""A curve with a dedicated Offline run, by a client of the later dialect, with an API key."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from core.status import AttemptState, PointState
from tests.flows.support import REQUEST_S, Place, finish, write_datasets

#: A dataset larger than the highest level, as a dedicated Offline run needs it.
ROWS = 34
LEVELS = (33, 20, 13, 9, 6, 4, 2)
#: The key, and the variable that holds it.
KEY, VARIABLE = "pk-never-shown-1f6b0c2d4e", "TEST_ENDPOINT_KEY"
#: How the client is told its dialect.
DIALECT = {"PARETO_REHEARSAL_DIALECT": "2026-09"}


def test_a_dedicated_offline_curve_with_a_key(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight points are valid, five with accuracy; the key is in no file, log or process argument.

    The client speaks the later dialect: its configuration starts from its own template.
    """
    monkeypatch.setenv(VARIABLE, KEY)
    write_datasets(place.folder, ROWS)
    with place.endpoint(api_key_env=VARIABLE):
        place.write(
            endpoint={"api_key_env": VARIABLE},
            curve={"levels": list(LEVELS), "offline": "dedicated"},
            run={"expected_qps": {level: level / REQUEST_S for level in (*LEVELS, ROWS)}},
        )
        process = place.start("run", place.file, **DIALECT)
        place.wait_for_attempt("c0033", state=AttemptState.RUNNING)
        arguments = command_lines()
        done = finish(process)
    assert done.code == 0, done
    assert "tasks.guard" in arguments
    assert KEY not in arguments
    points = place.points()
    assert len(points) == 8
    assert {point.state for point in points.values()} == {PointState.VALID}
    scored = {label for label in points if place.attempts(label)[0].metrics["accuracy_scores"]}
    assert scored == {label for label, point in points.items() if point.accuracy}
    assert len(scored) == 5
    assert "offline" in scored
    assert files_with(KEY, place.folder) == []
    assert KEY not in done.out + done.err
    assert_later_dialect(place)


def assert_later_dialect(place: Place) -> None:
    """The later dialect's own keys are there, the earlier one's are not, and the key is named."""
    folder = place.runs / place.attempts("c0033")[0].folder
    config = yaml.safe_load((folder / "client.yaml").read_text(encoding="utf-8"))
    assert "drain" not in config["settings"]
    assert config["settings"]["timeouts"]["endpoint_response_idle_timeout_s"] == 300.0
    assert config["settings"]["runtime"].get("max_issue_duration_ms") is None
    assert config["endpoint_config"]["api_key"] == "${" + VARIABLE + "}"


def command_lines() -> str:
    """Arguments of every process."""
    return "\n".join(
        path.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if path.exists()
    )


def files_with(text: str, folder: Path) -> list[Path]:
    """Files below a folder that hold a text."""
    wanted = text.encode()
    return [p for p in folder.rglob("*") if p.is_file() and wanted in p.read_bytes()]


def test_a_key_that_is_not_set_is_told_by_its_name(bare_place: Place) -> None:
    """Exit 2 names the variable; nothing was asked and nothing created."""
    bare_place.write(endpoint={"api_key_env": VARIABLE})
    done = bare_place.pareto("run", bare_place.file)
    assert done.code == 2, done
    assert f"endpoint.api_key_env: the environment variable {VARIABLE} is not set" in done.err
    assert not bare_place.data.exists()
