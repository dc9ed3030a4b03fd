"""What goes into the records comes out again, in both databases."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import event, text

from core.errors import InputError, ParetoError
from core.files import ManifestEntry
from core.files import manifest as read_manifest
from core.layout import attempt_path
from core.plan import Plan, make_plan
from core.records import (
    AttemptRecord,
    AttemptRefusedError,
    Owner,
    Phase,
    Records,
    RecordsUnavailableError,
    Wish,
    manifest_sha256,
    open_records,
)
from core.records import campaigns as campaigns_module
from core.records import events as events_module
from core.records.engine import WRITING, make_engine, parsed_url
from core.records.tables import CampaignRow, FileName, escaped, storable, unescaped
from core.seeds import SeedSet
from core.sizing import Rate
from core.status import AttemptState, IllegalTransitionError, PointState
from tests.campaigns import make_campaign

LARGE_SEEDS = SeedSet("A", 2**64 - 1, 2**63, 0, ("2026-10-C1", "2026-11-C0"))


def end(records: Records, attempt: AttemptRecord, state: AttemptState, **facts) -> AttemptRecord:
    records.change_state(attempt.id, AttemptState.RUNNING)
    return records.change_state(attempt.id, state, **facts)


def point_of(records: Records, label: str):
    return next(p for p in records.points_with_attempts("unit") if p.label == label)


# --- Campaigns ---------------------------------------------------------------------------------


def test_a_campaign_is_recorded_as_entered(records: Records, enter, plan: Plan) -> None:
    entered = enter(text="campaign: unit  # ä\n", flow_run_id="f1")
    assert entered == records.campaign("unit")
    assert entered.text == "campaign: unit  # ä\n"
    assert (entered.source, entered.runs_folder) == ("/home/u/unit.yaml", "/data/runs")
    assert (entered.c_max, entered.c_min) == (plan.c_max, plan.c_min)
    assert (entered.rehearsal, entered.time_scale) == (False, None)
    assert entered.flow_run_id == "f1"
    assert entered.plan["version"] == 1
    assert [p["label"] for p in entered.plan["points"]] == [p.label for p in plan.points]


def test_a_rehearsal_is_marked_as_one(enter) -> None:
    plan = make_plan(make_campaign(rehearsal={"time_scale": 0.005}), 1000)
    entered = enter(plan=plan)
    assert (entered.rehearsal, entered.time_scale) == (True, 0.005)


def test_points_are_recorded_in_run_order_with_what_was_planned(
    records: Records, enter, plan: Plan
) -> None:
    enter()
    recorded = records.points_with_attempts("unit")
    fields = ["label", "concurrency", "region", "role", "accuracy", "load_pattern"]
    fields += ["min_duration_ms"]
    assert [[getattr(p, name) for name in fields] for p in recorded] == [
        [getattr(p, name) for name in fields] for p in plan.points
    ]
    assert [p.position for p in recorded] == list(range(len(plan.points)))
    assert {p.state for p in recorded} == {PointState.PENDING}


def test_seeds_above_2_to_the_63_come_back_exactly(records: Records, enter, plan: Plan) -> None:
    enter(plan=replace(plan, seed_set=LARGE_SEEDS))
    assert records.campaign("unit").seed_set == LARGE_SEEDS


def test_campaigns_share_the_row_of_a_seed_set_but_not_of_another_with_its_name(
    records: Records, enter, plan: Plan, database_url: str
) -> None:
    other = replace(LARGE_SEEDS, model_seed=1, cohorts=())
    sets = {"a": LARGE_SEEDS, "b": LARGE_SEEDS, "c": other}
    for name, seeds in sets.items():
        enter(plan=replace(plan, campaign=name, seed_set=seeds))
    assert {name: records.campaign(name).seed_set for name in sets} == sets
    with make_engine(parsed_url(database_url)).begin() as connection:
        assert connection.execute(text("SELECT count(*) FROM seed_set")).scalar() == 2


def test_the_same_text_joins_without_a_question(records: Records, enter) -> None:
    first = enter()

    def never(_old: object) -> list[str]:
        raise AssertionError("asked for differences of equal statements")

    assert enter(differences=never) == first
    assert enter(differences=never, flow_run_id="f2").flow_run_id == "f2"
    assert [e.kind for e in records.events("unit")] == ["campaign.entered"]


def test_a_changed_text_that_could_alter_a_measurement_is_refused_with_what_changed(
    records: Records, enter
) -> None:
    first = enter()
    asked: list[dict[str, object]] = []

    def differences(old: dict[str, object]) -> list[str]:
        asked.append(old)
        return ["run.min_passes: 1 → 2"]

    with pytest.raises(InputError, match=r"(?s)'unit'.*run.min_passes: 1 → 2.*another name"):
        enter(text="changed", differences=differences)
    assert asked == [{"campaign": "unit"}]
    assert records.campaign("unit") == first


def test_a_changed_environment_is_a_change_though_the_text_stays(enter) -> None:
    """Variables are filled in from the environment: the same text may state something else."""
    enter()
    with pytest.raises(InputError, match="c_max: 64 → 65"):
        enter(statement={"campaign": "other"}, differences=lambda _old: ["c_max: 64 → 65"])
    enter(statement={"campaign": "harmless"})
    asked: list[object] = []
    enter(statement={"campaign": "again"}, differences=lambda old: asked.append(old) or [])
    assert asked == [{"campaign": "harmless"}]


def test_a_harmless_change_is_stored_and_the_text_before_it_is_kept(
    records: Records, enter, plan: Plan
) -> None:
    first = enter()
    reordered = replace(plan, points=tuple(reversed(plan.points)))
    changed = enter(text="changed", source=Path("/new.yaml"), plan=reordered)
    assert changed.id == first.id
    assert (changed.text, changed.source) == ("changed", "/new.yaml")
    labels = [p.label for p in records.points_with_attempts("unit")]
    assert labels == [p.label for p in reordered.points]
    last = records.events("unit")[-1]
    assert (last.kind, last.payload["before"]) == ("campaign.changed", first.text)


def test_a_harmless_change_may_add_points_and_roles(records: Records, enter, plan: Plan) -> None:
    added = replace(plan.points[-1], label="c0063", concurrency=63)
    renamed = replace(plan.points[0], role="choice")
    enter()
    enter(text="changed", plan=replace(plan, points=(renamed, *plan.points[1:], added)))
    points = records.points_with_attempts("unit")
    assert points[-1].label == "c0063"
    assert points[0].role == "choice"


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        ({"c_max": 65}, "c_max: 64 → 65"),
        ({"c_min": 2}, "c_min: 1 → 2"),
        ({"time_scale": 0.5}, "rehearsal.time_scale: None → 0.5"),
        ({"seed_set": LARGE_SEEDS}, "seed set: "),
    ],
)
def test_a_plan_that_measures_otherwise_is_refused_whatever_the_caller_says(
    enter, plan: Plan, change: dict[str, object], shown: str
) -> None:
    enter()
    with pytest.raises(InputError, match=shown):
        enter(text="changed", plan=replace(plan, **change), differences=lambda _old: [])


def test_a_changed_or_vanished_point_is_refused(enter, plan: Plan) -> None:
    enter()
    first, *rest = plan.points
    longer = replace(first, min_duration_ms=7)
    with pytest.raises(InputError, match=f"point {first.label}, min_duration_ms: .* → 7"):
        enter(text="changed", plan=replace(plan, points=(longer, *rest)))
    with pytest.raises(InputError, match=f"point {first.label}, .* → no such point"):
        enter(text="changed", plan=replace(plan, points=tuple(rest)))


def test_an_unknown_campaign_is_named_with_those_there(records: Records, enter) -> None:
    with pytest.raises(InputError, match=r"no campaign 'x' .*there is none yet"):
        records.campaign("x")
    enter()
    for ask in (records.campaign, records.points_with_attempts, records.events):
        with pytest.raises(InputError, match=r"no campaign 'x' .*the newest there are unit"):
            ask("x")


def test_campaigns_are_listed_newest_first_by_page(
    records: Records, enter, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(campaigns_module, "PAGE_SIZE", 2)
    for name in ("a", "b", "c"):
        enter(plan=replace(plan, campaign=name))
    pages = [[c.name for c in records.campaigns(page)] for page in (1, 2, 3)]
    assert pages == [["c", "b"], ["a"], []]


# --- Attempts ----------------------------------------------------------------------------------


def test_an_attempt_is_recorded_from_preparation_to_end(
    records: Records, enter, owner: Owner
) -> None:
    """Every fact stated on the way is on record, and each step is committed when it returns."""
    enter()
    made = records.new_attempt(
        "unit", "c0064", owner=owner, samples=3000, passes=3, client_version="0.1.0"
    )
    assert (made.state, made.number, made.phase) == (AttemptState.PREPARED, 1, "measure")
    assert (made.campaign, made.label) == ("unit", "c0064")
    assert made.folder == str(attempt_path("unit", "c0064", 1))
    assert (made.planned_samples, made.planned_passes) == (3000, 3)
    assert (made.owner, made.started_at, made.ended_at) == (owner, None, None)
    guard = replace(owner, pid=4343)
    running = records.change_state(made.id, AttemptState.RUNNING, owner=guard, planned_passes=4)
    assert (running.owner, running.planned_passes) == (guard, 4)
    assert running.started_at is not None
    assert running.ended_at is None
    ended = records.change_state(
        made.id,
        AttemptState.INVALID,
        ended_at=12.5,
        exit_code=0,
        ended_by="itself",
        reason="too short",
        findings=[{"rule": "too-short", "severity": "error"}],
        metrics={"qps": 2.5, "ttft_ms": {"99": 12.0}},
    )
    assert ended == records.attempt(made.id)
    assert (ended.started_at, ended.ended_at) == (running.started_at, 12.5)
    assert (ended.exit_code, ended.ended_by, ended.reason) == (0, "itself", "too short")
    assert ended.findings == ({"rule": "too-short", "severity": "error"},)
    assert ended.metrics == {"qps": 2.5, "ttft_ms": {"99": 12.0}}
    assert ended.client_version == "0.1.0"
    assert point_of(records, "c0064").attempts == (ended,)


@pytest.mark.parametrize("end_state", ["invalid", "failed", "interrupted"])
def test_a_point_not_valid_is_tried_again_in_a_new_row_and_folder(
    records: Records, enter, owner: Owner, end_state: str
) -> None:
    enter()
    first = records.new_attempt("unit", "c0064", owner=owner)
    end(records, first, AttemptState(end_state))
    second = records.new_attempt("unit", "c0064", owner=owner)
    assert (second.number, second.folder) == (2, "unit/c0064/attempt-02")
    assert point_of(records, "c0064").state is PointState.RUNNING


def test_a_valid_point_is_never_tried_again(records: Records, enter, owner: Owner) -> None:
    enter()
    end(records, records.new_attempt("unit", "c0064", owner=owner), AttemptState.VALID)
    with pytest.raises(AttemptRefusedError, match="c0064 of unit: attempt 1 is valid"):
        records.new_attempt("unit", "c0064", owner=owner)
    assert point_of(records, "c0064").state is PointState.VALID
    assert records.new_attempt("unit", "c0001", owner=owner).number == 1


def test_a_point_with_an_open_attempt_is_not_tried_beside_it(
    records: Records, enter, owner: Owner
) -> None:
    enter()
    attempt = records.new_attempt("unit", "c0064", owner=owner)
    with pytest.raises(AttemptRefusedError, match=r"prepared .* process 4242 on box"):
        records.new_attempt("unit", "c0064", owner=owner)
    records.change_state(attempt.id, AttemptState.RUNNING)
    with pytest.raises(AttemptRefusedError, match="running"):
        records.new_attempt("unit", "c0064", owner=owner)


def test_an_unknown_point_is_named(records: Records, enter, owner: Owner) -> None:
    enter()
    with pytest.raises(InputError, match="campaign 'unit' has no point 'c9999'"):
        records.new_attempt("unit", "c9999", owner=owner)


def test_an_illegal_step_changes_nothing(records: Records, enter, owner: Owner) -> None:
    enter()
    attempt = records.new_attempt("unit", "c0064", owner=owner)
    events = records.events("unit")
    with pytest.raises(IllegalTransitionError, match="prepared can't become valid"):
        records.change_state(attempt.id, AttemptState.VALID, reason="no")
    assert records.attempt(attempt.id) == attempt
    assert records.events("unit") == events


def test_open_attempts_are_those_of_all_campaigns_that_may_own_a_client(
    records: Records, enter, plan: Plan, owner: Owner
) -> None:
    for name in ("a", "b"):
        enter(plan=replace(plan, campaign=name))
    prepared = records.new_attempt("a", "c0064", owner=owner)
    running = records.new_attempt("b", "c0064", owner=owner)
    running = records.change_state(running.id, AttemptState.RUNNING)
    ended = records.new_attempt("b", "c0001", owner=owner)
    records.change_state(ended.id, AttemptState.FAILED)
    assert records.open_attempts() == (prepared, running)


def test_broken_numbers_and_bytes_of_a_run_go_on_record(
    records: Records, enter, owner: Owner
) -> None:
    """NaN, NUL, half characters and huge integers never stop an attempt from being recorded."""
    enter()
    attempt = records.new_attempt("unit", "c0064", owner=owner)
    ended = end(
        records,
        attempt,
        AttemptState.INVALID,
        reason="log: \0 \udcff",
        findings=[{"rule": "nan", "seen": math.nan, "all": (math.inf, 1.5)}],
        metrics={"seed": 2**64, "bytes": "\0\udcff", "qps": math.nan},
    )
    assert ended.reason == "log: \\x00 \\udcff"
    assert ended.findings == ({"rule": "nan", "seen": "nan", "all": ["inf", 1.5]},)
    assert ended.metrics == {"seed": 2**64, "bytes": "\0\udcff", "qps": "nan"}
    assert records.measured_rates("unit") == {}


# --- Rates -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metrics", "rates"),
    [
        ({"rate_qps": 2.5}, {64: 2.5}),
        ({"rate_qps": 3}, {64: 3.0}),
        ({"qps": 2.5}, {}),  # not one to rely on
        ({}, {}),
        ({"rate_qps": None}, {}),
        ({"rate_qps": 0}, {}),
        ({"rate_qps": -1.0}, {}),
        ({"rate_qps": float("inf")}, {}),
        ({"rate_qps": "2.5"}, {}),
    ],
)
def test_a_rate_counts_if_the_attempt_says_that_it_can_be_relied_on(
    records: Records, enter, owner: Owner, metrics: dict[str, Any], rates: dict[int, float]
) -> None:
    enter()
    attempt = records.new_attempt("unit", "c0064", owner=owner)
    end(records, attempt, AttemptState.INVALID, metrics=metrics)
    assert {at: rate.qps for at, rate in records.measured_rates("unit").items()} == rates


def test_costs_may_be_learned_from_campaigns_of_the_same_system(
    records: Records, enter, plan: Plan
) -> None:
    """The campaign itself comes first, then the others of its system, the newest first."""
    for name, system in (("older", "box"), ("strange", "elsewhere"), ("newer", "box")):
        enter(plan=replace(plan, campaign=name), system=system)
    enter()
    assert records.campaigns_of_system("unit") == ("unit", "newer", "older")
    assert records.campaigns_of_system("older") == ("older", "unit", "newer")


def test_only_the_newest_of_a_system_are_asked(
    records: Records, enter, plan: Plan, owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many campaigns there are, a fixed number of them tells rates and costs."""
    monkeypatch.setattr("core.records.campaigns.KIN", 2)
    for number in range(4):
        enter(plan=replace(plan, campaign=f"c{number}"), system="box")
        attempt = records.new_attempt(f"c{number}", "c0064", owner=owner)
        metrics = {"rate_qps": 1.0 + number} if number < 2 else {}
        end(records, attempt, AttemptState.VALID, metrics=metrics)
    enter()
    assert records.campaigns_of_system("unit") == ("unit", "c3", "c2")
    assert records.measured_rates("unit") == {}
    monkeypatch.setattr("core.records.campaigns.KIN", 3)
    assert records.measured_rates("unit")[64].qps == 2.0


def test_every_change_of_an_attempt_is_the_latest_event(
    records: Records, enter, owner: Owner
) -> None:
    """Who looks each second need not read the points again before there is a new one."""
    enter()
    enter_id = records.latest_event("unit")
    assert records.latest_event("nobody") is None
    attempt = records.new_attempt("unit", "c0064", owner=owner)
    prepared_id = records.latest_event("unit")
    records.change_state(attempt.id, AttemptState.RUNNING)
    assert (enter_id or 0) < (prepared_id or 0) < (records.latest_event("unit") or 0)
    assert records.latest_event("unit") == records.events("unit")[-1].id


def test_rates_name_their_source_and_the_best_comes_first(
    records: Records, enter, plan: Plan, owner: Owner
) -> None:
    """Own attempts, then own pilots, then other campaigns of the same system."""
    for name, system, qps in (("older", "box", 1.0), ("strange", "elsewhere", 99.0)):
        enter(plan=replace(plan, campaign=name), system=system)
        attempt = records.new_attempt(name, "c0064", owner=owner)
        end(records, attempt, AttemptState.VALID, metrics={"rate_qps": qps})
    enter()
    found = records.measured_rates("unit")
    assert found == {64: Rate(1.0, "measured in campaign older", guess=False)}
    first = records.new_attempt("unit", "c0064", owner=owner)
    end(records, first, AttemptState.INVALID, metrics={"rate_qps": 2.0})
    pilot = records.new_attempt("unit", "c0064", owner=owner, phase=Phase.PILOT)
    end(records, pilot, AttemptState.VALID, metrics={"rate_qps": 3.0})
    found = records.measured_rates("unit")
    assert found == {64: Rate(2.0, "measured at this level", guess=False)}
    second = records.new_attempt("unit", "c0064", owner=owner)
    end(records, second, AttemptState.VALID, metrics={"rate_qps": 1.9})
    assert records.measured_rates("unit")[64].qps == 1.9


def test_a_pilot_is_no_measurement(records: Records, enter, owner: Owner) -> None:
    """It has a folder and numbers of its own, and leaves its point as it was."""
    enter()
    pilot = records.new_attempt("unit", "c0064", owner=owner, phase=Phase.PILOT)
    end(records, pilot, AttemptState.VALID, metrics={"rate_qps": 3.0})
    assert pilot.folder == "unit/c0064/pilot-01"
    (point,) = (p for p in records.points_with_attempts("unit") if p.label == "c0064")
    assert (point.state, point.measurements) == (PointState.PENDING, ())
    attempt = records.new_attempt("unit", "c0064", owner=owner)
    assert (attempt.number, attempt.folder) == (1, "unit/c0064/attempt-01")


# --- Run folders -------------------------------------------------------------------------------

MANIFEST = (
    ManifestEntry("performance/result_summary.json", 3 * 2**40, "b" * 64),
    ManifestEntry("config.yaml", 7, "a" * 64),
)


def test_a_run_folder_is_recorded_with_every_file(records: Records, enter, owner: Owner) -> None:
    enter()
    attempt = records.new_attempt("unit", "c0064", owner=owner)
    assert records.manifest(attempt.id) == ()
    place = Path("/data/runs") / attempt.folder / "run"
    folder = records.record_folder(attempt.id, place, MANIFEST).run_folder
    assert folder is not None
    assert folder.path == "unit/c0064/attempt-01/run"
    assert folder.total_bytes == 3 * 2**40 + 7
    assert folder.manifest_sha256 == manifest_sha256(MANIFEST)
    assert records.manifest(attempt.id) == (MANIFEST[1], MANIFEST[0])
    assert records.attempt(attempt.id).run_folder == folder
    assert records.events("unit")[-1].kind == "folder.recorded"


def test_a_folder_outside_the_runs_folder_keeps_its_own_path(
    records: Records, enter, owner: Owner
) -> None:
    enter()
    attempt = records.new_attempt("unit", "c0064", owner=owner)
    folder = records.record_folder(attempt.id, Path("/else/run"), MANIFEST).run_folder
    assert folder is not None
    assert folder.path == "/else/run"


def test_recording_a_folder_again_changes_nothing_and_other_content_is_refused(
    records: Records, enter, owner: Owner
) -> None:
    enter()
    attempt = records.new_attempt("unit", "c0064", owner=owner)
    first = records.record_folder(attempt.id, Path("/r"), MANIFEST)
    assert records.record_folder(attempt.id, Path("/r"), MANIFEST[::-1]) == first
    with pytest.raises(ParetoError, match="recorded with other content"):
        records.record_folder(attempt.id, Path("/r"), MANIFEST[:1])
    assert records.manifest(attempt.id) == (MANIFEST[1], MANIFEST[0])


def test_file_names_that_are_not_utf_8_come_back_exactly(
    records: Records, enter, owner: Owner, tmp_path: Path
) -> None:
    for name in (b"\xff", b"back\\slash", b"\\udcff", "ä".encode()):
        (tmp_path / "run").mkdir(exist_ok=True)
        (Path(str(tmp_path / "run")) / name.decode("utf-8", "surrogateescape")).touch()
    manifest = read_manifest(tmp_path / "run")
    enter()
    attempt = records.new_attempt("unit", "c0064", owner=owner)
    records.record_folder(attempt.id, tmp_path / "run", manifest)
    assert set(records.manifest(attempt.id)) == set(manifest)
    assert len(manifest) == 4


@given(st.text(alphabet=st.sampled_from("\\ud0c5fe8 \udcff\ud800ä")))
def test_every_name_is_stored_as_text_that_gives_it_back(name: str) -> None:
    assert unescaped(escaped(name)) == name
    escaped(name).encode()


@given(st.text(alphabet=st.characters()))
def test_storable_text_is_utf_8_without_nul_and_ordinary_text_stays(value: str) -> None:
    stored = storable(value)
    assert "\0" not in stored
    stored.encode()
    assert storable(stored) == stored


def test_an_absent_name_stays_absent() -> None:
    column = FileName()
    assert column.process_bind_param(None, None) is None
    assert column.process_result_value(None, None) is None


def test_a_manifest_digest_covers_names_sizes_and_contents_in_any_order() -> None:
    """The golden value belongs to form 1: a change of the form needs a new number."""
    first, second = MANIFEST
    same = manifest_sha256(MANIFEST)
    assert same == "f41900f204000ea814123f3eb024b737598d58e27b1e653590bb1ecccc024e37"
    assert manifest_sha256((second, first)) == same
    changes = [{"name": "x"}, {"size_bytes": 8}, {"sha256": "c" * 64}]
    others = {manifest_sha256((first, replace(second, **change))) for change in changes}
    assert len(others | {same, manifest_sha256(())}) == 5


# --- Events ------------------------------------------------------------------------------------


def test_events_are_read_from_where_the_reader_stopped(
    records: Records, enter, owner: Owner, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    enter()
    enter(plan=replace(plan, campaign="other"))
    attempt = records.new_attempt("unit", "c0064", owner=owner)
    noted = records.append_event("unit", "note", {"text": "hi"}, attempt.id)
    events = records.events("unit")
    assert [e.kind for e in events] == ["campaign.entered", "attempt.prepared", "note"]
    assert events[-1] == noted
    assert (noted.attempt_id, noted.payload) == (attempt.id, {"text": "hi"})
    assert records.events("unit", after_id=noted.id) == ()
    monkeypatch.setattr(events_module, "EVENTS_LIMIT", 2)
    assert records.events("unit") == events[:2]
    assert records.events("unit", after_id=events[1].id) == events[2:]


def test_every_state_change_is_an_event_with_its_reason(
    records: Records, enter, owner: Owner
) -> None:
    enter()
    attempt = records.new_attempt("unit", "c0064", owner=owner)
    end(records, attempt, AttemptState.FAILED, reason="endpoint lost")
    last = records.events("unit")[-1]
    assert (last.kind, last.attempt_id) == ("attempt.failed", attempt.id)
    assert last.payload == {
        "label": "c0064",
        "number": 1,
        "before": "running",
        "reason": "endpoint lost",
    }


def test_times_come_from_the_clock_given(records: Records, plan: Plan, owner: Owner) -> None:
    ticks = iter(range(100, 200))
    timed = Records(make_engine(records.url), lambda: float(next(ticks)))
    timed.enter_campaign(
        plan,
        text="",
        statement={},
        system="box",
        source=Path("/u"),
        runs_folder=Path("/r"),
        differences=lambda _old: [],
    )
    attempt = end(timed, timed.new_attempt("unit", "c0064", owner=owner), AttemptState.VALID)
    moments = [timed.campaign("unit").created_at, attempt.created_at]
    moments += [attempt.started_at, attempt.ended_at]
    assert moments == sorted(moments)
    assert 100 <= moments[0] < moments[-1] < 200


# --- Many campaigns ----------------------------------------------------------------------------


COLUMNS = ", ".join(
    column.name for column in CampaignRow.__table__.columns if column.name not in ("id", "name")
)
MANY_CAMPAIGNS = f"""
    WITH RECURSIVE many(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM many WHERE n < 10000)
    INSERT INTO campaign (name, {COLUMNS}) SELECT 'many-' || n, {COLUMNS} FROM campaign, many
"""


def explained(connection, name: str, statement: str, parameters) -> str:
    prefix = "EXPLAIN QUERY PLAN " if name == "sqlite" else "EXPLAIN "
    return "\n".join(map(str, connection.exec_driver_sql(prefix + statement, parameters)))


def test_no_read_of_one_campaign_scans_ten_thousand(
    records: Records, enter, owner: Owner, engine_name: str
) -> None:
    """The plan of every statement of a read finds its campaign by an index."""
    enter()
    end(records, records.new_attempt("unit", "c0064", owner=owner), AttemptState.VALID)
    engine = make_engine(records.url)
    with engine.execution_options(**{WRITING: True}).begin() as connection:
        connection.exec_driver_sql(MANY_CAMPAIGNS)
        connection.exec_driver_sql("ANALYZE")
    asked: list[tuple[str, object]] = []
    listen = (records._reading, "before_cursor_execute")

    def note(_connection, _cursor, statement, parameters, _context, _many) -> None:
        asked.append((statement, parameters))

    event.listen(*listen, note)
    for read in (records.campaign, records.points_with_attempts, records.events):
        read("unit")
    event.remove(*listen, note)
    with engine.begin() as connection:
        plans = [
            explained(connection, engine_name, *call) for call in asked if "campaign" in call[0]
        ]
    assert len(plans) >= 5
    for shown in plans:
        assert "SCAN campaign" not in shown
        assert "Seq Scan on campaign" not in shown
    assert any("uq_campaign_name" in shown or "autoindex_campaign" in shown for shown in plans)


def test_a_wish_is_kept_until_it_is_taken_back(records: Records, enter) -> None:
    """Asked twice is asked once; each change is an event."""
    enter()
    assert records.campaign("unit").wish is None
    for _ in range(2):
        assert records.ask("unit", Wish.PAUSE).wish is Wish.PAUSE
    assert records.campaign("unit").wish is Wish.PAUSE
    assert records.wish("unit") is Wish.PAUSE
    assert records.ask("unit", None).wish is None
    assert records.wish("unit") is None
    kinds = [event.kind for event in records.events("unit")]
    assert kinds == ["campaign.entered", "campaign.asked", "campaign.asked"]


def test_a_file_that_is_gone_is_not_made_anew(tmp_path: Path) -> None:
    """An empty database in its place would look like one without records."""
    path = tmp_path / "pareto.db"
    records = open_records(f"sqlite:///{path}")
    path.rename(tmp_path / "away.db")
    with pytest.raises(RecordsUnavailableError, match="the file is gone"):
        records.campaigns()
    assert not path.exists()
