"""What a client run must answer to, from the plan."""

from __future__ import annotations

from core.plan import make_plan
from core.run import PlannedAccuracy, PlannedRun, planned_run
from tests.campaigns import make_campaign

ROWS = 70


def runs(**sections: object) -> dict[str, PlannedRun]:
    """The run of every point of a campaign, by label."""
    campaign = make_campaign(**sections)
    plan = make_plan(campaign, ROWS)
    return {
        point.label: planned_run(campaign, plan, point, 2 * ROWS, {"accuracy": 10})
        for point in plan.points
    }


def test_a_fixed_concurrency_point() -> None:
    """Level, count, seeds of the set and minimum duration, streaming."""
    campaign = make_campaign()
    plan = make_plan(campaign, ROWS)
    run = runs()["c0064"]
    assert (run.load_pattern, run.concurrency, run.samples) == ("concurrency", 64, 140)
    assert run.dataset_rows == ROWS
    assert run.scheduler_random_seed == plan.seed_set.scheduler_rng_seed > 2**63
    assert run.dataloader_random_seed == plan.seed_set.sample_index_rng_seed
    assert run.min_duration_ms == 1_200_000
    assert run.streaming


def test_accuracy_is_wanted_where_it_is_planned() -> None:
    """Rows, repeats and accepted range at the mandatory points; none elsewhere."""
    scorer = {"eval_method": "pass_at_1", "num_repeats": 3}
    dataset = {"path": "/a.jsonl", "scorer": scorer, "targets": {"score": {"min": 0.5, "max": 1.0}}}
    found = runs(datasets={"accuracy": [dataset]})
    planned = PlannedAccuracy("accuracy", rows=10, repeats=3, bounds={"score": (0.5, 1.0)})
    assert planned.samples == 30
    assert {label for label, run in found.items() if run.accuracy} == {
        point.label for point in make_plan(make_campaign(), ROWS).points if point.accuracy
    }
    assert all(run.accuracy in ((), (planned,)) for run in found.values())


def test_a_dedicated_offline_run_has_no_level() -> None:
    """All samples at once, whole answers, accuracy of its own."""
    run = runs(curve={"offline": "dedicated"})["offline"]
    assert (run.load_pattern, run.concurrency) == ("max_throughput", None)
    assert not run.streaming
    assert len(run.accuracy) == 1


def test_an_agentic_run_counts_its_turns_itself() -> None:
    """The campaign counts trajectories, the client turns: no number of samples is planned."""
    campaign = make_campaign(benchmark="kimi-k3", datasets={"accuracy": []})
    plan = make_plan(campaign, ROWS)
    run = planned_run(campaign, plan, plan.points[0], ROWS, {})
    assert (run.load_pattern, run.samples) == ("agentic_inference", None)
