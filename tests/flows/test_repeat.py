"""A campaign that is run piece by piece: what is tried again, by itself and by hand, and what not.

The story is played once and looked at by every test here; nothing of it is changed by them.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest

from core.status import AttemptState
from tests import session
from tests.flows.support import Done, Place, finish, flow_runs, task_runs, write_datasets

NAME = "test-repeat"


@dataclass(frozen=True)
class Story:
    """The place; how each step ended, with the requests that the endpoint had seen by then, and the
    points whose configurations the client confirmed in it."""

    place: Place
    steps: dict[str, Done]
    requests: dict[str, int]
    confirmed: dict[str, list[str]]


def play(folder: Path, prefect_api_url: str) -> None:
    """Run, change the file and retry; the last two points are never run."""
    write_datasets(folder)
    place = Place(folder, prefect_api_url, NAME)
    steps: dict[str, Any] = {}

    def note(step: str, done: Done) -> None:
        before = sum(len(noted["confirmed"]) for noted in steps.values())
        steps[step] = {
            "done": asdict(done),
            "requests": len(place.requests()),
            "confirmed": place.confirmed()[before:],
        }

    with place.endpoint():
        # The first point is sized by far too low a rate; one request of the second fails.
        run = {"order": "descending", "duration_margin": 1.25, "expected_qps": {9: 0.5}}
        same: dict[str, Any] = {"rehearsal": {"time_scale": 0.002}}
        same["client"] = {"command": place.noting_client()}
        place.write(run={**run, "retries": 1}, **same)
        process = place.start("run", place.file, "--points", "9,1")
        place.wait_for_attempt("c0001")
        place.set_faults(error_next=1)
        note("run", finish(process))

        altered: dict[str, Any] = {"curve": {"c_max": 34}, "model": {"tokenizer": "words"}}
        place.write(run=run, **same, **altered)
        note("altered", place.pareto("run", place.file, "--points", "1"))

        place.write(run=run, **same)
        place.set_faults(error_next=1)
        note("harmless", place.pareto("run", place.file, "--points", "2"))

        note("refused", place.pareto("retry", place.file, "--points", "2,1"))
        database = f"sqlite:///{place.data / 'pareto.db'}"
        note("retry", place.pareto("retry", NAME, "--database", database))
    (folder / "story.json").write_text(json.dumps(steps))


@pytest.fixture(scope="module")
def story(prefect_api_url: str) -> Story:
    """The story, played by whoever needs it first."""
    folder = session.shared("repeat", lambda folder: play(folder, prefect_api_url))
    steps = json.loads((folder / "story.json").read_text())
    return Story(
        Place(folder, prefect_api_url, NAME),
        {name: Done(**step["done"]) for name, step in steps.items()},
        {name: step["requests"] for name, step in steps.items()},
        {name: step["confirmed"] for name, step in steps.items()},
    )


def test_a_failure_that_can_differ_is_tried_again(story: Story) -> None:
    """One failed request, one retry: the second attempt is valid, the first keeps its findings."""
    first, second = story.place.attempts("c0001")
    assert (first.state, second.state) == (AttemptState.INVALID, AttemptState.VALID)
    assert first.reason == "failed-requests"
    assert [f["rule"] for f in first.findings if f["severity"] == "error"] == ["failed-requests"]
    assert story.place.records.manifest(first.id)
    assert first.metrics["failed"] == 1


def test_a_run_that_was_too_short_is_sized_anew(story: Story) -> None:
    """The count of the second attempt follows from the rate that the first one measured."""
    first, *between, last = story.place.attempts("c0009")
    assert first.reason == "too-short"
    assert (first.state, last.state) == (AttemptState.INVALID, AttemptState.VALID)
    assert all(attempt.reason == "too-short" for attempt in between)
    assert (last.planned_samples or 0) > (first.planned_samples or 0)
    before = between[-1] if between else first
    minimum_s = story.place.points()["c0009"].min_duration_ms / 1000
    assert (last.planned_samples or 0) >= before.metrics["rate_qps"] * minimum_s


def test_points_limits_what_is_run(story: Story) -> None:
    """Only the points asked for have attempts; exit 1 names the others."""
    done = story.steps["run"]
    assert done.code == 1, done
    for label, point in story.place.points().items():
        assert bool(point.attempts) == (label in ("c0001", "c0009", "c0002"))
        assert (label in done.err) == (label not in ("c0001", "c0009"))


def test_the_client_confirms_only_what_is_run_or_retried(story: Story) -> None:
    """It takes seconds for each configuration; c0001 is valid when all are run again."""
    found = {step: sorted(labels) for step, labels in story.confirmed.items() if labels}
    assert found["run"] == ["c0001", "c0009"]
    assert found["harmless"] == found["retry"] == ["c0002"]


def test_a_changed_file_under_the_same_name_is_refused(story: Story) -> None:
    """Exit 2 shows every difference that could alter a measurement; nothing was measured."""
    done = story.steps["altered"]
    assert done.code == 2, done
    assert "curve.c_max: 33 → 34" in done.err
    assert "model.tokenizer: not set → " in done.err
    assert "run.retries" not in done.err
    assert story.requests["altered"] == story.requests["run"]


def test_a_harmless_change_is_accepted(story: Story) -> None:
    """Another number of retries can't alter a measurement: the campaign goes on with it."""
    assert story.steps["harmless"].code == 1
    assert "retries: 0" in story.place.records.campaign(NAME).text
    assert story.place.attempts("c0002")[0].reason == "failed-requests"


def test_retry_refuses_a_valid_point(story: Story) -> None:
    """Exit 2 says that the point is valid; nothing was measured, of the failed one neither."""
    done = story.steps["refused"]
    assert done.code == 2, done
    assert "c0001 is valid" in done.err
    assert story.requests["refused"] == story.requests["harmless"]


def test_retry_by_name_runs_the_failed_points_only(story: Story) -> None:
    """It says what it will do before it does it, and measures the failed point alone."""
    done = story.steps["retry"]
    assert done.code == 1, done  # four points were never run
    told = f"{NAME}: retrying c0002; 2 valid points stay as they are\n"
    assert done.out.startswith(told)
    failed, valid = story.place.attempts("c0002")
    assert (failed.state, valid.state) == (AttemptState.INVALID, AttemptState.VALID)
    new = story.requests["retry"] - story.requests["refused"]
    assert new == valid.planned_samples
    assert story.place.folders() == {
        label: len(point.attempts)
        for label, point in story.place.points().items()
        if point.attempts
    }


def test_a_second_attempt_is_told_apart_in_prefect(story: Story) -> None:
    """The tasks of a second attempt carry its number."""
    first = flow_runs(story.place)[0]
    tasks = task_runs(story.place.prefect_api_url, first["id"])
    assert [task["name"] for task in tasks if "c0001" in task["name"]] == [
        f"{NAME} · c0001 · {step}{again}"
        for again in ("", " (attempt 2)")
        for step in ("start", "performance", "validate")
    ]


def test_no_step_shows_a_traceback(story: Story) -> None:
    """Failures that a user can act on are messages."""
    assert not [done for done in story.steps.values() if "Traceback" in done.err + done.out]
