"""One curve, run three times: its third point fails, then it alone is run, then nothing is.

The story is played once and looked at by every test here; nothing of it is changed by them.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from core.records import AttemptRecord
from core.status import AttemptState, PointState
from tests import session
from tests.flows.support import (
    LABELS,
    SCORED,
    SCORED_ROWS,
    Done,
    Place,
    Request,
    disk_manifest,
    finish,
    flow_runs,
    task_runs,
    write_datasets,
)

NAME = "test-curve"
#: The third point in run order, which fails once.
THIRD = LABELS[2]


@dataclass(frozen=True)
class Run:
    """One call of `pareto run`; the requests that the endpoint had seen when it ended, and the
    points whose configurations the client had confirmed."""

    done: Done
    ended_at: float
    requests: int
    preflights: int
    confirmed: list[str]


@dataclass(frozen=True)
class Story:
    """The place and the three runs."""

    place: Place
    runs: list[Run]

    def decided(self, label: str) -> AttemptRecord:
        """The valid attempt at a point."""
        (valid,) = [a for a in self.place.attempts(label) if a.state is AttemptState.VALID]
        return valid

    def requests_of(self, attempt: AttemptRecord) -> list[Request]:
        """The requests within an attempt's time."""
        began, ended = attempt.started_at or 0, attempt.ended_at or 0
        return [r for r in self.place.requests() if began <= r.received_at <= ended]


def play(folder: Path, prefect_api_url: str) -> None:
    """Run the campaign three times, the first time with one failing request at the third point."""
    write_datasets(folder)
    place = Place(folder, prefect_api_url, NAME)
    runs: list[dict[str, Any]] = []
    with place.endpoint():
        place.write(client={"command": place.noting_client()})
        process = place.start("run", place.file)
        place.wait_for_attempt(THIRD)
        place.set_faults(error_next=1)
        runs.append(_noted(place, finish(process)))
        runs.append(_noted(place, place.pareto("run", place.file)))
        runs.append(_noted(place, place.pareto("run", place.file)))
    (folder / "story.json").write_text(json.dumps(runs))


def _noted(place: Place, done: Done) -> dict[str, Any]:
    measured = len(place.requests())
    asked = len(place.all_requests()) - measured
    return asdict(Run(done, time.time(), measured, asked, place.confirmed()))


@pytest.fixture(scope="module")
def story(prefect_api_url: str) -> Story:
    """The story, played by whoever needs it first."""
    folder = session.shared("curve", lambda folder: play(folder, prefect_api_url))
    runs = json.loads((folder / "story.json").read_text())
    return Story(
        Place(folder, prefect_api_url, NAME),
        [Run(**{**run, "done": Done(**run["done"])}) for run in runs],
    )


def test_a_failed_point_does_not_stop_the_others(story: Story) -> None:
    """Exit 1 names the one point that is not valid; every other point was measured."""
    done = story.runs[0].done
    assert done.code == 1, done
    assert f"1 of 7 points are not valid: {THIRD}" in done.err
    first = {label: story.place.attempts(label)[0].state for label in LABELS}
    assert first.pop(THIRD) is AttemptState.INVALID
    assert set(first.values()) == {AttemptState.VALID}
    assert "Traceback" not in done.err


def test_the_client_confirms_only_what_is_to_be_run(story: Story) -> None:
    """All points, then the one that is not valid, then none: it takes seconds for each."""
    first, second, third = (run.confirmed for run in story.runs)
    assert sorted(first) == sorted(LABELS)
    assert second == third == [*first, THIRD]


def test_the_failed_attempt_stays_on_record(story: Story) -> None:
    """The attempt that failed keeps its findings, its folder and its manifest."""
    failed, valid = story.place.attempts(THIRD)
    assert failed.reason == "failed-requests"
    (finding,) = [f for f in failed.findings if f["severity"] == "error"]
    assert finding["rule"] == "failed-requests"
    assert finding["advice"]
    assert failed.folder != valid.folder
    assert story.place.records.manifest(failed.id)


def test_running_again_runs_only_the_failed_point(story: Story) -> None:
    """The second run adds one run folder, at the third point, and its requests alone."""
    first, second = story.runs[:2]
    assert second.done.code == 0, second.done
    assert story.place.folders() == {label: 2 if label == THIRD else 1 for label in LABELS}
    late = [r for r in story.place.requests() if r.received_at > first.ended_at]
    attempt = story.decided(THIRD)
    assert attempt.number == 2
    assert late == story.requests_of(attempt)
    assert len(late) == second.requests - first.requests
    assert len(late) == (attempt.planned_samples or 0) + SCORED_ROWS


def test_running_a_finished_campaign_measures_nothing(story: Story) -> None:
    """The third run ends with 0; the endpoint saw a preflight and nothing else."""
    second, third = story.runs[1:]
    assert third.done.code == 0, third.done
    assert third.requests == second.requests
    assert third.preflights == second.preflights + 1


def test_every_point_is_valid_and_measured(story: Story) -> None:
    """All seven points are valid, with the numbers of a curve; four carry a score."""
    points = story.place.points()
    assert tuple(points) == LABELS
    assert {point.state for point in points.values()} == {PointState.VALID}
    for label in LABELS:
        metrics = story.decided(label).metrics
        assert metrics["issued"] == metrics["completed"] == story.decided(label).planned_samples
        assert metrics["failed"] == 0
        assert metrics["tpot_ms"]["90"] > 0
        assert metrics["issue_span_s"] * 1000 >= points[label].min_duration_ms
        assert bool(metrics["accuracy_scores"]) == (label in SCORED)


def test_exactly_four_valid_folders_carry_accuracy(story: Story) -> None:
    """An accuracy result lies at the four mandatory points and nowhere else."""
    scored = {
        path.parts[-5]
        for path in story.place.runs.glob("*/*/attempt-*/run/accuracy/accuracy_results.json")
    }
    assert scored == SCORED
    assert {label for label, point in story.place.points().items() if point.accuracy} == SCORED


def test_every_recorded_manifest_is_what_lies_on_the_disk(story: Story) -> None:
    """Names, sizes and digests of every attempt's run folder, the failed one's too."""
    attempts = [a for point in story.place.points().values() for a in point.attempts]
    assert len(attempts) == 8
    for attempt in attempts:
        recorded = {
            file.name: (file.size_bytes, file.sha256)
            for file in story.place.records.manifest(attempt.id)
        }
        assert attempt.run_folder is not None
        assert recorded == disk_manifest(story.place.runs / attempt.run_folder.path)
        assert "events.jsonl" in recorded


@pytest.mark.parametrize("label", sorted(SCORED))
def test_accuracy_runs_at_the_points_level_right_after_performance(
    story: Story, label: str
) -> None:
    """The endpoint's log: timed requests, then scored ones, never mixed, both at the level.

    A busy machine may not reach a high level with few requests; it never exceeds it, and one after
    another, as `--mode acc` would have it, they never come.
    """
    level = int(label[1:])
    requests = story.requests_of(story.decided(label))
    kinds = [request.kind for request in requests]
    timed = kinds.count("performance")
    assert kinds == ["performance"] * timed + ["accuracy"] * SCORED_ROWS
    for phase in (requests[:timed], requests[timed:]):
        peak = max(request.in_flight for request in phase)
        assert level / 2 < peak <= level
        assert peak == level or level > 3


def test_points_never_overlap(story: Story) -> None:
    """Every measured request belongs to one attempt, and attempts follow each other."""
    points = story.place.points().values()
    attempts = sorted((a for p in points for a in p.attempts), key=lambda a: a.started_at or 0)
    assert [a.label for a in attempts] == [*LABELS, THIRD]
    for one, next_one in pairwise(attempts):
        assert (one.ended_at or 0) <= (next_one.started_at or 0)
    assert sum(len(story.requests_of(a)) for a in attempts) == len(story.place.requests())


def test_seeds_and_whole_passes_reach_the_client(story: Story) -> None:
    """Each configuration has the set's own seeds, exactly, and a whole number of passes."""
    import yaml

    seeds = story.place.records.campaign(NAME).seed_set
    for label in LABELS:
        attempt = story.decided(label)
        config = yaml.safe_load(
            (story.place.runs / attempt.folder / "client.yaml").read_text(encoding="utf-8")
        )
        runtime = config["settings"]["runtime"]
        assert runtime["scheduler_random_seed"] == seeds.scheduler_rng_seed
        assert runtime["dataloader_random_seed"] == seeds.sample_index_rng_seed
        assert runtime["n_samples_to_issue"] == attempt.planned_samples
        assert (attempt.planned_samples or 0) % 8 == 0


def test_plain_lines_tell_the_progress(story: Story) -> None:
    """Without a terminal: a line a phase, one a verdict, the table, and no control characters."""
    out = story.runs[0].done.out
    for label in LABELS:
        verdict = "invalid: failed-requests" if label == THIRD else "valid"
        assert f"{label} attempt 1: {verdict}\n" in out
    assert "(campaign: " in out
    assert "REHEARSAL" in out
    assert str(story.place.data / "pareto.db") in out
    assert "\x1b" not in out


def test_prefects_list_of_tasks_reads_as_a_curve(story: Story) -> None:
    """Task names are campaign, level and step, in run order, tagged to search by."""
    first = flow_runs(story.place)[0]
    tasks = task_runs(story.place.prefect_api_url, first["id"])
    expected = []
    for label in LABELS:
        steps = ["start", "performance", "accuracy", "validate"]
        expected += [f"{NAME} · {label} · {s}" for s in steps if s != "accuracy" or label in SCORED]
    assert [task["name"] for task in tasks] == expected
    (task,) = [task for task in tasks if task["name"] == f"{NAME} · c0009 · performance"]
    assert {f"campaign:{NAME}", "instance:box", "level:9", "rehearsal"} <= set(task["tags"])


def test_prefect_shows_what_failed_and_why(story: Story) -> None:
    """The failed point's validate task is Failed with the finding and its advice as message."""
    first = flow_runs(story.place)[0]
    tasks = task_runs(story.place.prefect_api_url, first["id"])
    failed = {task["name"]: task["state"]["message"] for task in tasks if _is_failed(task)}
    (finding,) = [f for f in story.place.attempts(THIRD)[0].findings if f["severity"] == "error"]
    (message,) = failed.values()
    assert list(failed) == [f"{NAME} · {THIRD} · validate"]
    assert finding["seen"] in message
    assert finding["advice"] in message


def test_prefects_runs_end_as_the_campaign_did(story: Story) -> None:
    """Failed while a point is not valid, Completed when all are."""
    runs = flow_runs(story.place)
    assert [run["state_type"] for run in runs] == ["FAILED", "COMPLETED", "COMPLETED"]
    assert THIRD in runs[0]["state"]["message"]


def _is_failed(task: dict[str, Any]) -> bool:
    return bool(task["state_type"] == "FAILED")


def test_status_tells_the_curve(story: Story) -> None:
    """`status` ends with 0 for a valid curve; its JSON has a version, the mark and every number."""
    done = story.place.pareto("status", story.place.file, "--json")
    assert done.code == 0, done
    told = json.loads(done.out)
    assert (told["version"], told["state"], told["rehearsal"]) == (1, "valid", True)
    assert [row["label"] for row in told["points"]] == sorted(LABELS)
    for row in told["points"]:
        assert row["system_tps"] > 0
        assert row["tps_per_user"] > 0
        assert (story.place.runs / row["folder"]).is_dir()
        assert bool(row["scores"]) == (row["label"] in SCORED)
    database = f"sqlite:///{story.place.data / 'pareto.db'}"
    table = story.place.pareto("status", NAME, "--database", database)
    assert "REHEARSAL, not a measurement" in table.out
    listed = story.place.pareto("status", "--database", database, "--json")
    (row,) = json.loads(listed.out)
    counts = {"points": len(LABELS), "valid": len(LABELS)}
    assert row == {"campaign": NAME, "rehearsal": True, "state": "valid", **counts}


def test_runs_lists_every_attempt_with_its_folder(story: Story) -> None:
    """`runs --json` has the eight attempts; the table names the folder and the finding."""
    done = story.place.pareto("runs", story.place.file, "--json")
    told = json.loads(done.out)
    assert (done.code, len(told)) == (0, 8)
    assert all((story.place.runs / attempt["folder"]).is_dir() for attempt in told)
    table = story.place.pareto(
        "runs", NAME, "--database", f"sqlite:///{story.place.data}/pareto.db"
    )
    assert f"{NAME}/{THIRD}/attempt-02" in table.out
    assert f"{THIRD} attempt 1: failed-requests" in table.out


def test_retry_finds_nothing_to_do(story: Story) -> None:
    """`retry` of a valid curve ends with 0 and touches neither endpoint nor records."""
    done = story.place.pareto("retry", story.place.file)
    assert (done.code, done.err) == (0, ""), done
    assert "nothing to retry" in done.out
