"""The commands `report`, `curve`, `compare` and `status --html` on recorded campaigns."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from submission_checker.power_summary import derive_point_power

from core.records import Records
from tests.curves import Place
from tests.disclosures import power_dict, system_dict

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def pareto(
    place: Place, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Call:
    """Calls the command in this process, in the place, on its records."""
    from flows.cli import main

    monkeypatch.chdir(place.folder)
    monkeypatch.setenv("PARETO_DATABASE", place.url)

    def call(*arguments: str) -> tuple[int, str, str]:
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(list(arguments))
        assert isinstance(ended.value.code, int)
        return ended.value.code, *capfd.readouterr()

    return call


def test_a_report_lies_beside_its_pictures(place: Place, pareto: Call) -> None:
    """Page, SVG and PNG of one name; the records stay as they are."""
    place.campaign()
    before = place.records.events("unit")
    assert pareto("report", "unit") == (
        0,
        "wrote unit-report.html\nwrote unit-report.svg\nwrote unit-report.png\n",
        "",
    )
    assert "3 failed requests &lt;script&gt;" in (place.folder / "unit-report.html").read_text()
    assert (place.folder / "unit-report.png").read_bytes().startswith(b"\x89PNG")
    assert (place.folder / "unit-report.svg").read_text().startswith("<svg")
    assert place.records.events("unit") == before
    assert pareto("report", "unit")[0] == 0  # a report is written anew


def test_all_three_kinds_of_curve_have_a_report(place: Place, pareto: Call) -> None:
    """A dedicated Offline run is the ceiling; agentic points are placed by their own rate."""
    place.campaign("elected")
    place.campaign("dedicated", curve={"offline": "dedicated"})
    place.campaign("agentic", curve={"agentic": True})
    ceilings, shown = {}, {}
    for name in ("elected", "dedicated", "agentic"):
        assert pareto("report", name, "--out", "r.html")[0] == 0
        assert pareto("curve", name, "--out", "c.json")[0] == 0
        curve = json.loads((place.folder / "c.json").read_bytes())
        ceilings[name] = curve["offline_tps"]
        points = {point["label"]: point for point in curve["points"]}
        shown[name] = points["c0064"]["interactivity"]
    assert ceilings["elected"] == pytest.approx(11_050.36)
    assert ceilings["dedicated"] == pytest.approx(22_641.5, abs=0.1)
    assert ceilings["agentic"] is None
    assert shown == {"elected": 75.0, "dedicated": 75.0, "agentic": 67.5}


def test_tokens_per_kw_are_those_of_the_official_derivation(place: Place, pareto: Call) -> None:
    """Where the campaign file discloses power."""
    system, power = system_dict(), power_dict()
    place.campaign(disclosure={"system": system, "power": power})
    assert pareto("curve", "unit", "--out", "c.json")[0] == 0
    points = json.loads((place.folder / "c.json").read_bytes())["points"]
    for point in points:
        tokens = point["system_tps"] * point["duration_s"]
        summary = {
            "duration_ns": point["duration_s"] * 1e9,
            "output_sequence_lengths": {"total": tokens},
        }
        official = derive_point_power({"system_desc_id": "x", **power}, {}, system, summary)
        assert point["system_tps_per_kw"] == official["system_tps_per_kw"]
        assert point["system_tps_per_kw"] > 0
    assert pareto("report", "unit", "--out", "r.html")[0] == 0
    assert "tokens/s per kW" in (place.folder / "r.html").read_text()


def test_an_unfinished_campaign_has_a_report(place: Place, pareto: Call) -> None:
    place.campaign(valid=0)
    assert pareto("report", "unit", "--out", "r.html")[0] == 0
    assert "no valid point yet" in (place.folder / "r.html").read_text()


def test_a_campaign_whose_file_needs_a_variable_has_a_report(place: Place, pareto: Call) -> None:
    """What follows from the file is said to be not known; the rest is there."""
    place.campaign()
    _state(place, "unit", "http://127.0.0.1:8000", "${NOT_SET_HERE}")
    code, out, _ = pareto("report", "unit", "--out", "r.html")
    assert code == 0
    assert "not known: planned time and accelerators are not known here" in out
    assert "not known" in (place.folder / "r.html").read_text()


def _state(place: Place, name: str, old: str, new: str) -> None:
    """Replace a part of the text on record."""
    import sqlite3

    with sqlite3.connect(place.folder / "pareto.db") as database:
        change = "UPDATE campaign SET text = replace(text, ?, ?) WHERE name = ?"
        database.execute(change, (old, new, name))


def test_the_table_goes_to_programs(place: Place, pareto: Call) -> None:
    """CSV to the standard output, and each form to a file."""
    place.campaign()
    code, out, _ = pareto("curve", "unit")
    assert code == 0
    assert len(out.splitlines()) == 8
    assert out.startswith("campaign,rehearsal,label,concurrency,")
    for name in ("c.csv", "c.parquet", "c.json"):
        assert pareto("curve", "unit", "--out", name)[:2] == (0, f"wrote {name}\n")
    table = pd.read_parquet(place.folder / "c.parquet")
    assert table["label"].tolist()[-1] == "c0256"
    assert json.loads((place.folder / "c.json").read_bytes())["campaign"] == "unit"


def test_what_a_reviewer_would_ask_goes_beside_the_table(place: Place, pareto: Call) -> None:
    place.campaign(metrics={64: {"output_tokens": 100}})
    _, out, err = pareto("curve", "unit")
    assert "note: c0064: 0.1 tokens/s, less than" in err
    assert "note:" not in out


def test_campaigns_are_compared(place: Place, pareto: Call) -> None:
    """Ratios by region in the terminal, what differs in the fingerprints, and a page."""
    place.campaign("old")
    place.campaign("new", speed=1.5, driver="560")
    place.campaign("empty", valid=0)
    code, out, _ = pareto("compare", "old", "new", "empty")
    assert code == 0
    assert "16,575.5 (1.500 ×)" in out
    assert "new against old: probes: driver[0]: '550' → '560'" in out
    assert "empty against old: fingerprints not known" in out
    assert out.endswith("wrote compare.html\n")
    assert "16,575.5 (1.500 ×)" in (place.folder / "compare.html").read_text()


def test_a_status_page_of_one_or_all(place: Place, pareto: Call) -> None:
    """Of one campaign with the exit code of `status`."""
    place.campaign("whole")
    place.campaign("part", valid=2)
    assert pareto("status", "whole", "--html", "s.html")[:2] == (0, "wrote s.html\n")
    assert pareto("status", "part", "--html", "s.html")[0] == 1
    text = (place.folder / "s.html").read_text()
    assert "2 of 7 points are valid" in text
    assert "left" in text
    assert pareto("status", "--html", "all.html")[0] == 0
    text = (place.folder / "all.html").read_text()
    assert "whole" in text
    assert "part" in text


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("report unit --out r.pdf", "--out r.pdf: name a file that ends with .html"),
        ("report unit --out no/r.html", "--out no/r.html: there is no folder no; make it first"),
        ("report unit --out folder.html", "--out folder.html: is a folder; name a file"),
        ("report nobody", "no campaign 'nobody'"),
        ("curve unit --out c.xlsx", "name a file that ends with .csv or .parquet or .json"),
        ("curve nobody", "no campaign 'nobody'"),
        ("compare unit", "name two or more campaigns"),
        ("compare unit unit", "name two or more campaigns"),
        ("compare unit nobody", "no campaign 'nobody'"),
        ("status unit --html s.txt", "--html s.txt: name a file that ends with .html"),
    ],
)
def test_mistakes_are_told_before_any_work(
    place: Place, pareto: Call, arguments: str, told: str
) -> None:
    """Exit code 2, one line, and no file."""
    place.campaign(valid=0)
    (place.folder / "folder.html").mkdir()
    before = sorted(place.folder.iterdir())
    code, out, err = pareto(*arguments.split())
    assert (code, out) == (2, "")
    assert told in err
    assert len(err.splitlines()) == 1
    assert sorted(place.folder.iterdir()) == before


# --- The client's detector -------------------------------------------------------------------


def detector(folder: Path, said: str) -> list[str]:
    """A detector that says this, and notes that it was asked."""
    asked = f"open({str(folder / 'asked')!r}, 'a').write('x'); "
    return [sys.executable, "-c", f"{asked}print({said!r})"]


@pytest.fixture
def measured(place: Place, fixtures_dir: Path) -> Callable[[str], Records]:
    """Records a campaign with a detector and with run folders."""

    def made(said: str) -> Records:
        place.campaign(client={"steady_state_command": detector(place.folder, said)})
        for point in place.records.points_with_attempts("unit"):
            run = place.folder / "runs" / point.attempts[-1].folder / "run"
            shutil.copytree(fixtures_dir / "c02_both_pass" / "out", run)
        return place.records

    return made


def test_the_detector_is_asked_once_about_each_run(
    place: Place, pareto: Call, measured: Callable[[str], Records]
) -> None:
    """What it said is on record; the point's basis says so."""
    records = measured('{"status": "insufficient_passes", "verdict": "not found"}')
    for _ in range(2):
        assert pareto("curve", "unit", "--out", "c.csv")[0] == 0
    assert (place.folder / "asked").read_text() == "x" * 7
    assert len(records.campaign_events("unit", "steady-state.found")) == 7
    table = pd.read_csv(place.folder / "c.csv")
    assert set(table["steady_state_status"]) == {"insufficient_passes"}
    assert set(table["basis"]) == {"whole run"}


def test_a_detector_that_says_nothing_is_told_and_asked_again(
    place: Place, pareto: Call, measured: Callable[[str], Records]
) -> None:
    """The report is written all the same."""
    records = measured("no idea")
    code, out, _ = pareto("report", "unit", "--out", "r.html")
    assert code == 0
    assert out.count("client.steady_state_command on unit/") == 7
    assert records.campaign_events("unit", "steady-state.found") == ()
    pareto("curve", "unit")
    assert os.stat(place.folder / "asked").st_size == 14
    assert "printed no steady-state block" in (place.folder / "r.html").read_text()
