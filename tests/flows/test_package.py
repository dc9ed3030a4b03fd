"""`pareto package`: what passes, what is refused and why, and that nothing recorded is touched."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from endpoints_submission_cli.runs.parser import parse_run_folder

from core.files import write_atomic
from flows.cli import main
from flows.package import CHECKED
from tests.disclosures import SOURCED
from tests.flows.packaged import SPAN_S, WARMUP, WARMUP_S, Finished
from tests.flows.support import Done, disk_manifest

Pareto = Callable[..., Done]


@pytest.fixture
def pareto(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Pareto:
    """Calls `pareto` in this process, in a folder, with nothing but Python on the path."""

    def call(folder: Path, *arguments: str | Path, path: Path | None = None) -> Done:
        monkeypatch.chdir(folder)
        monkeypatch.setenv("PATH", str(path or folder / "no-programs"))
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        assert isinstance(ended.value.code, int)
        return Done(ended.value.code, *capfd.readouterr())

    return call


@pytest.mark.parametrize("kind", ["elected", "dedicated", "agentic"])
def test_a_finished_campaign_packages_strictly(kind: str, tmp_path: Path, pareto: Pareto) -> None:
    """No error, no warning; every run folder is as recorded, and its copy ready for upload."""
    done = Finished(tmp_path, kind)
    done.measure()
    before = disk_manifest(tmp_path / "data" / "runs")
    ended = pareto(tmp_path, "package", done.file, "--out", "out", "--strict")
    assert ended.code == 0, ended.out + ended.err
    assert "0 errors, 0 warnings" in ended.out
    labels = [point.label for point in done.ready.plan.points]
    assert len(labels) == 7 + (kind == "dedicated")
    for label in labels:
        copy = tmp_path / "out" / "runs" / label
        parse_run_folder(copy)
        assert f"--path {copy}" in ended.out
        assert disk_manifest(done.run_of(label)).items() <= disk_manifest(copy).items()
    assert (
        "submissions create --division standardized --scenario cop --availability available"
        in ended.out
    )
    assert disk_manifest(tmp_path / "data" / "runs") == before
    systems = list((tmp_path / "out" / "tree" / "Acme" / "local" / "results").iterdir())
    assert [path.name for path in systems] == ["H200_box"]
    (event,) = done.records.campaign_events("curve", CHECKED)
    assert event.payload["errors"] == event.payload["warnings"] == 0
    assert sorted(event.payload["points"]) == sorted(labels)


def test_points_tell_what_their_runs_show(tmp_path: Path, pareto: Pareto) -> None:
    """Warm-up from the events, the client's own window, seeds, regions of the official function."""
    done = Finished(tmp_path)
    done.measure()
    assert pareto(tmp_path, "package", done.file, "--out", "out").code == 0
    point = yaml.safe_load((tmp_path / "out/runs/c0064/point.yaml").read_text())
    warmup = point["warmup"]
    assert (warmup["requests_issued"], warmup["requests_completed"]) == (WARMUP, WARMUP)
    assert (warmup["duration_s"], warmup["concurrency"]) == (WARMUP_S, 64)
    assert warmup["logs_retained"] is True
    assert point["steady_state"]["window"]["duration_s"] == SPAN_S
    assert point["runtime_settings"]["min_duration_ms"] == 1_200_000
    assert point["runtime_settings"]["runtime"] == done.ready.plan.seed_set.seeds
    assert point["region"] == "high_concurrency"
    assert "offline" not in point
    highest = yaml.safe_load((tmp_path / "out/runs/c0256/point.yaml").read_text())
    assert highest["offline"] == "elected"
    tree = tmp_path / "out/tree/Acme/local/results/H200_box/deepseek-r1/r64/system_desc.json"
    assert 0 < json.loads(tree.read_bytes())["tps_utilization"] < 1


# --- Refused -------------------------------------------------------------------------------------


def test_missing_disclosures_are_listed_at_once(tmp_path: Path, pareto: Pareto) -> None:
    """Each with its key, before and after the runs; nothing is written."""
    done = Finished(tmp_path)
    done.measure()
    stated = yaml.safe_load(done.file.read_text())
    del stated["disclosure"]["model_precision"], stated["disclosure"]["power"]
    del stated["disclosure"]["system"]["system_size"]
    del stated["disclosure"]["system"]["node_types"][0]["driver"]
    done.file.write_text(yaml.safe_dump(stated))
    ended = pareto(tmp_path, "package", done.file, "--out", "out")
    checked = pareto(tmp_path, "check", done.file, "--disclosures")
    assert (ended.code, checked.code) == (2, 1)
    for key in ("model_precision", "power", "system.system_size", "system.node_types[0].driver"):
        assert f"disclosure.{key}: " in ended.err
        assert f"disclosure.{key}: " in checked.out
    assert not (tmp_path / "out").exists()
    assert list(tmp_path.glob(".out*")) == []


@pytest.mark.parametrize(
    ("keys", "rule", "key"),
    [
        (
            {"system": {"system_name": "H200/8"}},
            "system-name-path",
            "disclosure.system.system_name",
        ),
        (
            {"system": {"shortened_system_name": "a name of more than twenty"}},
            "system-description-valid",
            "disclosure.system.shortened_system_name",
        ),
        (
            {"power": {"declared_provisioned_power": {**SOURCED, "source": ""}}},
            "power-descriptor",
            "disclosure.power.declared_provisioned_power.source",
        ),
        ({"points": {64: {"system": {"data_parallel": 9}}}}, "maximal-engagement", "disclosure."),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_wrong_disclosures_are_told_at_plan_time(
    keys: dict[str, object], rule: str, key: str, tmp_path: Path, pareto: Pareto
) -> None:
    """Before a run, under the official rule id, beside the key; and again when packaging."""
    done = Finished(tmp_path)
    done.write(disclosure=keys)
    checked = pareto(tmp_path, "check", done.file, "--disclosures")
    assert checked.code == 1
    assert rule in checked.out
    assert key in checked.out
    done.measure()
    ended = pareto(tmp_path, "package", done.file, "--out", "out")
    assert ended.code == 1
    assert "runs create --path" not in ended.out
    assert rule in ended.out or "builder-refused" in ended.out


def test_complete_disclosures_are_said_to_be(tmp_path: Path, pareto: Pareto) -> None:
    checked = pareto(tmp_path, "check", Finished(tmp_path).file, "--disclosures")
    assert (checked.code, checked.out) == (
        0,
        "disclosures complete: the official checker accepts them\n",
    )


def test_a_missing_point_is_refused_with_what_is_needed(tmp_path: Path, pareto: Pareto) -> None:
    """Its label and state, and the official reasons without it."""
    done = Finished(tmp_path)
    done.measure(*(p.label for p in done.ready.plan.points if p.label != "c0032"))
    ended = pareto(tmp_path, "package", done.file, "--out", "out")
    assert ended.code == 2
    assert "c0032: pending" in ended.err
    assert "point-count: " in ended.err
    assert "pareto run" in ended.err


def test_a_campaign_that_was_not_run_is_refused(tmp_path: Path, pareto: Pareto) -> None:
    done = Finished(tmp_path)
    done.write(campaign="other")
    ended = pareto(tmp_path, "package", done.file, "--out", "out")
    assert ended.code == 2
    assert "other" in ended.err


def test_a_changed_folder_is_refused(tmp_path: Path, pareto: Pareto) -> None:
    """A byte of one file, the size unchanged; nothing is left in the target."""
    done = Finished(tmp_path)
    done.measure()
    file = done.run_of("c0064") / "performance" / "result_summary.json"
    content = file.read_bytes()
    file.chmod(0o644)
    write_atomic(file, content.replace(b'"version": "0.2.0"', b'"version": "0.3.0"'))
    ended = pareto(tmp_path, "package", done.file, "--out", "out")
    assert ended.code == 2
    assert "c0064: performance/result_summary.json: content differs" in ended.err
    shutil.rmtree(done.run_of("c0128"))
    assert "c0128" in pareto(tmp_path, "package", done.file, "--out", "out").err
    assert not (tmp_path / "out").exists()


def test_a_target_that_is_not_empty_is_refused(tmp_path: Path, pareto: Pareto) -> None:
    """What is in it stays."""
    done = Finished(tmp_path)
    done.measure()
    target = tmp_path / "out"
    target.mkdir()
    (target / "mine").touch()
    ended = pareto(tmp_path, "package", done.file, "--out", "out")
    assert ended.code == 2
    assert "is not empty" in ended.err
    assert [path.name for path in target.iterdir()] == ["mine"]


def test_a_measurement_is_no_test_data(tmp_path: Path, pareto: Pareto) -> None:
    done = Finished(tmp_path)
    done.measure()
    ended = pareto(tmp_path, "package", done.file, "--out", "out", "--test-data")
    assert ended.code == 2
    assert "is a measurement" in ended.err


def test_points_of_before_a_rebase_are_not_packaged(tmp_path: Path, pareto: Pareto) -> None:
    """A curve is of one baseline: after a rebase every point is measured again first."""
    done = Finished(tmp_path)
    done.measure()
    done.records.rebase("curve", "new driver")
    done.measure("c0064")
    ended = pareto(tmp_path, "package", done.file, "--out", "out")
    assert ended.code == 2
    assert "c0256: pending" in ended.err


def test_points_of_two_systems_are_no_curve(tmp_path: Path, pareto: Pareto) -> None:
    """Even if both are of the present baseline."""
    done = Finished(tmp_path)
    labels = [point.label for point in done.ready.plan.points]
    done.measure(*labels[:-1])
    done.measure(labels[-1], driver="590")
    ended = pareto(tmp_path, "package", done.file, "--out", "out")
    assert ended.code == 2
    assert f"{labels[-1]}: measured on another system" in ended.err


def test_a_point_without_fingerprint_is_not_passed_over(tmp_path: Path, pareto: Pareto) -> None:
    """Nothing tells of what system it is, nor by which rows to judge it: that is an error."""
    done = Finished(tmp_path)
    labels = [point.label for point in done.ready.plan.points]
    done.measure(*labels[:-1])
    done.measure(labels[-1], driver=None)
    ended = pareto(tmp_path, "package", done.file, "--out", "out")
    assert ended.code == 1
    (event,) = done.records.campaign_events("curve", CHECKED)
    said = [(remark["rule"], remark["place"]) for remark in event.payload["remarks"]]
    assert said == [("fingerprint-missing", labels[-1])]
    assert "runs create" not in ended.out


def test_a_curve_may_do_without_a_point_of_choice(tmp_path: Path, pareto: Pareto) -> None:
    """If it is legal without it; which is left out is said."""
    done = Finished(tmp_path, curve={"levels": [1, 4, 16, 32, 64, 100, 128, 256]})
    done.measure(*(p.label for p in done.ready.plan.points if p.label != "c0100"))
    ended = pareto(tmp_path, "package", done.file, "--out", "out", "--strict")
    assert ended.code == 0, ended.out + ended.err
    assert "left out   c0100: pending" in ended.out
    assert not (tmp_path / "out" / "runs" / "c0100").exists()


def test_a_package_does_not_lie_among_the_runs(tmp_path: Path, pareto: Pareto) -> None:
    done = Finished(tmp_path)
    done.measure()
    ended = pareto(tmp_path, "package", done.file, "--out", "data/runs/package")
    assert ended.code == 2
    assert "lies among the run folders" in ended.err


def test_what_the_client_left_is_judged_again(tmp_path: Path, pareto: Pareto) -> None:
    """A finding of today's rules keeps a folder from passing, whatever it was recorded as."""
    done = Finished(tmp_path)
    done.summary = {"complete": False}
    done.measure("c0064")
    done.summary = {}
    done.measure(*(p.label for p in done.ready.plan.points if p.label != "c0064"))
    ended = pareto(tmp_path, "package", done.file, "--out", "out")
    assert ended.code == 1
    line = next(line for line in ended.out.splitlines() if "incomplete" in line)
    assert "error" in line
    assert "c0064" in line
    (event,) = done.records.campaign_events("curve", CHECKED)
    assert [remark["rule"] for remark in event.payload["remarks"]] == ["incomplete"]
    assert "runs create" not in ended.out


def test_disclosures_may_be_corrected_after_the_runs(tmp_path: Path, pareto: Pareto) -> None:
    """A changed measurement may not."""
    done = Finished(tmp_path)
    done.measure()
    done.write(disclosure={"organization": "Other & Co"})
    assert pareto(tmp_path, "package", done.file, "--out", "out").code == 0
    assert (tmp_path / "out" / "tree" / "Other_Co").is_dir()
    done.write(model={"name": "another"})
    ended = pareto(tmp_path, "package", done.file, "--out", "again")
    assert ended.code == 2
    assert "model.name" in ended.err


# --- Official tools that may be installed --------------------------------------------------------


def program(folder: Path, name: str, body: str) -> Path:
    """A program of that name."""
    folder.mkdir(exist_ok=True)
    file = folder / name
    file.write_text(f"#!{sys.executable}\nimport pathlib, sys\n{body}\n")
    file.chmod(0o755)
    return folder


def test_the_official_dashboard_is_made_where_it_can(tmp_path: Path, pareto: Pareto) -> None:
    """`mlperf-viz TREE --strict --build DIR`; what it says against it is shown."""
    done = Finished(tmp_path)
    done.measure()
    builds = "pathlib.Path(sys.argv[4]).mkdir(); assert sys.argv[2:4] == ['--strict', '--build']"
    good = program(tmp_path / "bin", "mlperf-viz", builds)
    assert pareto(tmp_path, "package", done.file, "--out", "out", path=good).code == 0
    assert (tmp_path / "out" / "dashboard").is_dir()
    bad = program(tmp_path / "bad", "mlperf-viz", "sys.exit('no such tree')")
    ended = pareto(tmp_path, "package", done.file, "--out", "again", path=bad)
    assert ended.code == 0
    assert "dashboard  none: mlperf-viz ended with 1: no such tree" in ended.out


def test_the_system_can_be_captured(tmp_path: Path, pareto: Pareto) -> None:
    """By `mlperf-sysinfo`, whose keys fill what the file leaves out; without it that is told."""
    done = Finished(tmp_path)
    stated = yaml.safe_load(done.file.read_text())
    captured = {"system_size": stated["disclosure"]["system"].pop("system_size"), "driver": "?"}
    stated["disclosure"]["sysinfo"] = "sysinfo.yaml"
    done.file.write_text(yaml.safe_dump(stated))
    writes = f"pathlib.Path('system_desc.json').write_text({json.dumps(json.dumps(captured))})"
    tool = program(tmp_path / "bin", "mlperf-sysinfo", writes)
    assert pareto(tmp_path, "check", done.file, "--disclosures", path=tool).code == 0
    ended = pareto(tmp_path, "check", done.file, "--disclosures")
    assert ended.code == 1
    assert "disclosure.sysinfo: mlperf-sysinfo is not installed" in ended.out
