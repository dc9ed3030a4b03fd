"""The curve so far, drawn by a process of its own."""

from __future__ import annotations

import errno
import subprocess
import sys
from dataclasses import replace

import pytest

from core.plan import Role
from tasks.bounded import UnreadableError
from tasks.chart import curve_png
from tasks.curve_picture import curve_picture
from tests.core.test_curve_rows import at, curve_of


def test_the_picture_is_the_one_of_the_curve() -> None:
    """With a point that has no place, and one with a score."""
    offline = at(1000, 400, None, label="offline", role=Role.OFFLINE)
    scored = at(8, 200, 40, accuracy_scores={"acc": {"score": 0.9}})
    curve = replace(curve_of(at(4, 100, 50), scored, offline), rehearsal=True)
    assert curve_picture(curve) == curve_png(curve, title=curve.name, rehearsal=True)


def test_what_can_not_be_drawn_is_told_with_its_reason() -> None:
    with pytest.raises(UnreadableError, match="'interactivity'"):
        curve_picture(replace(curve_of(), rows=[{"label": "c0001"}]))


def test_a_disk_that_takes_no_more_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is to be drawn goes through a file."""

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("tasks.bounded.tempfile.TemporaryFile", full)
    with pytest.raises(UnreadableError, match="No space left on device"):
        curve_picture(curve_of())


def loaded_by(modules: str) -> set[str]:
    """What of the libraries that take time and memory a process loads with these modules."""
    heavy = {"pandas", "matplotlib", "sqlalchemy", "prefect", "submission_checker", "pydantic"}
    program = f"import sys, {modules}; print(*({heavy} & set(sys.modules)))"
    found = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    return set(found.stdout.split())


def test_what_accompanies_a_measurement_does_without_the_libraries_that_draw() -> None:
    """They would take 50 MB of the client's machine for good."""
    assert not loaded_by("flows.cli.drive, flows.deployments") & {"pandas", "matplotlib"}


def test_drawing_does_without_all_that_is_not_drawing() -> None:
    """It is done once a point, beside a client."""
    assert loaded_by("tasks.curve_picture, tasks.chart") == {"matplotlib"}
