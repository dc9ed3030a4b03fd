"""The official checker asked early: right after a point, about this point alone."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.disclosure import Lack
from core.layout import RunPaths
from core.retry import Next, after_failure
from core.rules_ahead import Remark
from flows.ahead import look_after, look_ahead
from tasks.collect import collect
from tests.flows.packaged import Finished, write_run


def after(finished: Finished, label: str, change: Callable[[dict[str, Any]], None]) -> list[Remark]:
    """What is said right after a point whose summary was changed."""
    ready, folder = finished.ready, finished.folder / "run"
    point = ready.plan.point(label)
    write_run(folder, ready, point)
    paths = RunPaths(folder)
    summary = json.loads(paths.summary.read_bytes())
    change(summary)
    paths.summary.write_text(json.dumps(summary))
    facts, _ = collect(folder, attempt_started_at=0.0, exit_code=0, ended_by="itself")
    return look_after(ready.campaign, ready.plan, point, paths, facts)


@pytest.mark.parametrize("kind", ["elected", "dedicated", "agentic"])
def test_nothing_is_said_of_a_good_point(kind: str, tmp_path: Path) -> None:
    """Although nothing is disclosed yet, and no other point is there."""
    finished = Finished(tmp_path, kind, disclosure={"organization": None, "system": {}})
    label = "offline" if kind == "dedicated" else "c0256"
    assert after(finished, label, lambda _summary: None) == []


def test_what_is_said_is_a_finding_under_the_official_id(tmp_path: Path) -> None:
    """With its severity, and the key that makes it right; the campaign stops at an error."""
    (said,) = after(Finished(tmp_path), "c0064", lambda s: s["tpot"]["percentiles"].clear())
    finding = said.as_finding()
    assert (finding.rule, finding.severity) == ("metric-consistency-tpot-p90", "error")
    assert "model.tokenizer" in finding.advice
    assert after_failure({finding.rule}, 0) is Next.STOP
    assert after_failure({finding.rule, "too-short"}, 0) is Next.RESIZE


def test_a_run_without_a_window_is_warned_about(tmp_path: Path) -> None:
    (said,) = after(Finished(tmp_path), "c0064", lambda s: s.pop("steady_state"))
    assert (said.rule, said.severity, said.place) == ("steady-state-basis", "warning", "c0064")


def test_what_packaging_would_refuse_is_a_warning(tmp_path: Path) -> None:
    """A window that is more than the run: told at once, and the run stays valid."""

    def widened(summary: dict[str, Any]) -> None:
        summary["steady_state"]["window"]["duration_s"] = 99_999.0

    (said,) = after(Finished(tmp_path), "c0064", widened)
    assert (said.rule, said.severity) == ("steady-state-window", "warning")


def test_a_rehearsal_is_not_asked_about(tmp_path: Path) -> None:
    """Its durations are not real."""
    finished = Finished(tmp_path, rehearsal={"time_scale": 0.01})
    assert after(finished, "c0064", lambda s: s["tpot"]["percentiles"].clear()) == []


def test_what_is_missing_is_told_once(tmp_path: Path) -> None:
    """By its key, and not again in the words of the checker; the rest is told with it."""
    finished = Finished(tmp_path)
    finished.write(disclosure={"power": None, "system": {"shortened_system_name": "x" * 21}})
    from flows.prepare import prepare

    ready = prepare(finished.file, {})
    found = look_ahead(ready.campaign, ready.plan)
    assert [lack.key for lack in found.lacks] == ["disclosure.power"]
    assert {remark.rule for remark in found.remarks} == {"system-description-valid"}
    assert found.has_errors
    assert [lack.rule for lack in found.lacks] == ["power-descriptor"]
    assert Lack("disclosure.src", "").rule == "src-readme"


@pytest.mark.parametrize("name", ["{}/out", "../../../../out", ".."])
def test_a_systems_name_leads_nowhere_else(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told of, and nothing is written but in the folder that is removed again."""
    finished = Finished(tmp_path)
    finished.write(disclosure={"system": {"system_name": name.format(tmp_path)}})
    place = tmp_path / "a" / "b"
    place.mkdir(parents=True)
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    before = sorted(tmp_path.rglob("*"))
    from flows.prepare import prepare

    ready = prepare(finished.file, {})
    found = look_ahead(ready.campaign, ready.plan)
    assert {remark.rule for remark in found.remarks} == {"system-name-path"}
    assert sorted(tmp_path.rglob("*")) == before
