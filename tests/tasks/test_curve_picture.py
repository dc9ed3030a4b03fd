"""The curve so far, drawn by a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from core.curve import make_curve
from core.records import open_records
from tasks.bounded import UnreadableError
from tasks.chart import curve_png
from tasks.curve_picture import curve_picture
from tests.curves import Place


def test_the_picture_is_the_one_of_the_curve_on_record(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.campaign()
    campaign = place.records.campaign("unit")
    curve = make_curve(campaign, place.records.points_with_attempts("unit"))
    wanted = curve_png(curve, title="unit", rehearsal=campaign.rehearsal)
    assert curve_picture(place.records, "unit") == wanted


def test_what_can_not_be_drawn_is_told_with_its_reason(tmp_path: Path) -> None:
    records = open_records(f"sqlite:///{tmp_path / 'empty.db'}")
    with pytest.raises(UnreadableError, match="'unit'"):
        curve_picture(records, "unit")


def test_what_accompanies_a_measurement_does_without_the_libraries_that_draw() -> None:
    """They would take 110 MB of the client's machine."""
    heavy = {"pandas", "matplotlib", "numpy"}
    loaded = f"import sys, flows.cli.drive, flows.deployments; print({heavy} & set(sys.modules))"
    found = subprocess.run(
        [sys.executable, "-c", loaded], check=False, capture_output=True, text=True
    )
    assert found.stdout == "set()\n", found.stderr
