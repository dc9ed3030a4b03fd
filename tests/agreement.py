"""Submissions of each kind that pass, and one way after another to break them, for the agreement of
what we find before packaging with what the official checker says of the tree."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from core import specimen
from core.accuracy import parse_accuracy
from core.campaign import Campaign
from core.client_config import merged
from core.disclosure import Curve, Told, curve_of, point_yaml, system_desc, system_power
from core.events import EventFacts
from core.folder import ACCURACY, CONFIG, EVENTS, SUMMARY, FileFact, FolderFacts, parse_config
from core.gates import gate_files
from core.layout import ACCURACY_RESULTS_JSON, CONFIG_YAML, RESULT_SUMMARY_JSON, point_dir_name
from core.plan import MAX_THROUGHPUT, Plan, Point, make_plan
from core.reading import load_json, load_yaml
from core.run import PlannedRun, planned_run
from core.submission import CurveFiles, PointFiles, labels, specimen_files
from core.summary import parse_summary
from core.validate import validate
from tasks.official import check_files, check_tree, write_tree
from tests.campaigns import make_campaign
from tests.disclosures import power_dict, system_dict

LEVELS = (1, 4, 16, 32, 64, 128, 256)
TOLD = Told(system_dict(), power_dict(), ("vllm",))
#: Rows of the performance datasets.
ROWS = {"elected": 13368, "dedicated": 13368, "agentic": 613}
#: Files of a run, by their key in a stage.
RESULTS = ("summary", "accuracy", "config")
_RESULT_FILES = {
    "summary": RESULT_SUMMARY_JSON,
    "accuracy": ACCURACY_RESULTS_JSON,
    "config": CONFIG_YAML,
}


@dataclass
class Stage:
    """A submission of which everything can be changed: label → file → content.

    A content that is bytes is that file as it stands; None: there is no such file.
    """

    kind: str
    points: dict[str, dict[str, Any]]
    power: dict[str, Any] | None
    implementations: list[str] = field(default_factory=lambda: ["vllm"])

    def each(self, name: str) -> Iterator[dict[str, Any]]:
        """One file of every point."""
        return (point[name] for point in self.points.values())


def campaign_of(kind: str, **sections: Any) -> Campaign:
    """An official campaign; sections given are merged in."""
    told = {"model_precision": "FP8", "link_to_model": "https://m", "dataset_link": "https://d"}
    told |= {"organization": "Acme", "availability": "Available", "scenario": "cop"}
    if kind == "agentic":
        scored = {"name": "swe_bench", "rows": 200, "scorer": {"eval_method": "swe_bench_scorer"}}
        benchmark = "qwen3_6-35b-a3b"
    else:
        scored = {"path": "/d/acc.jsonl", "rows": 13368, "scorer": {"eval_method": "rouge"}}
        benchmark = "llama3_1-8b"
    offline = {"elected": "elected", "dedicated": "dedicated", "agentic": "none"}[kind]
    stated = {
        "benchmark": benchmark,
        "curve": {"c_max": 256, "levels": list(LEVELS), "offline": offline},
        "datasets": {"accuracy": [scored]},
        "disclosure": told,
    }
    return make_campaign(**merged(stated, sections))


@dataclass(frozen=True)
class Base:
    """What a kind of submission is built from."""

    campaign: Campaign
    plan: Plan
    curve: Curve
    stage: Stage


@cache
def base_of(kind: str) -> Base:
    """A submission of a kind that passes without a warning."""
    campaign = campaign_of(kind)
    plan = make_plan(campaign, ROWS[kind])
    curve = curve_of(campaign, plan, [point.label for point in plan.points])
    points = {point.label: _point(campaign, curve, point) for point in curve.points}
    return Base(campaign, plan, curve, Stage(kind, points, dict(system_power(TOLD) or {})))


def _point(campaign: Campaign, curve: Curve, point: Point) -> dict[str, Any]:
    disclosed = point_yaml(campaign, curve, point, TOLD, None)
    return {
        "point": {**disclosed, "steady_state": specimen.steady_state()},
        "system": system_desc(campaign, point, TOLD),
        "summary": _summary(campaign, curve, point),
        "accuracy": _accuracy(campaign, point),
        "config": _config(curve, point),
    }


def _pattern(point: Point) -> dict[str, Any]:
    level = None if point.load_pattern == MAX_THROUGHPUT else point.concurrency
    return {"type": point.load_pattern, "target_concurrency": level}


def _seeds(curve: Curve) -> dict[str, int]:
    seeds = curve.seed_set
    return {
        "scheduler_random_seed": seeds.scheduler_rng_seed,
        "dataloader_random_seed": seeds.sample_index_rng_seed,
    }


def _summary(campaign: Campaign, curve: Curve, point: Point) -> dict[str, Any]:
    made = specimen.summary(campaign.benchmark, point)
    counts = {"n_samples_issued": 13368, "n_samples_completed": 13368}
    run_config = {"load_pattern": _pattern(point), "warmup": {}, **_seeds(curve)}
    return {**made, **counts, "finish_reason_counts": {"stop": 13368}, "run_config": run_config}


def _accuracy(campaign: Campaign, point: Point) -> dict[str, Any] | None:
    made = specimen.accuracy(campaign.benchmark, point)
    for entry in (made or {}).get("accuracy_scores", ()):
        if entry["dataset_type"] == "accuracy":
            samples = entry.setdefault("unit_samples", 200)
            counts = {"issued": samples, "scored": samples, "empty": 0, "missing": 0}
            entry |= {"response_counts": counts, "complete": True, "num_repeats": 1}
    return made


def _config(curve: Curve, point: Point) -> dict[str, Any]:
    return {
        "model_params": {"streaming": "on"},
        "datasets": [
            {"name": "perf", "type": "performance"},
            {"name": "accuracy", "type": "accuracy"},
            {"name": "swe_bench", "type": "accuracy"},
        ],
        "settings": {
            "runtime": _seeds(curve),
            "load_pattern": _pattern(point),
            "client": {"stream_all_chunks": True},
        },
    }


# --- What we find before packaging ---------------------------------------------------------------


def ours(stage: Stage) -> set[str]:
    """Rule ids of our error findings: at plan time, right after each point, and by our gates."""
    base = base_of(stage.kind)
    files = _files(stage)
    found = {remark.rule for remark in gate_files(files)}
    if _differs(stage, base.stage, ("point", "system")) or stage.power != base.stage.power:
        found |= _errors(check_files(_planned(files, base.stage), None))
    changed = [label for label in stage.points if _is_changed(stage, base.stage, label)]
    for label in changed:
        found |= validate(*_run(base, stage, label), benchmark=base.campaign.benchmark).rules
    if changed or stage.points.keys() != base.stage.points.keys():
        found |= _errors(check_files(_measured(base, files, stage), None))
    return found


def _errors(remarks: list[Any]) -> set[str]:
    return {remark.rule for remark in remarks if remark.severity == "error"}


def _differs(stage: Stage, base: Stage, names: tuple[str, ...]) -> bool:
    return any(
        point.get(name) != base.points.get(label, {}).get(name)
        for label, point in stage.points.items()
        for name in names
    )


def _is_changed(stage: Stage, base: Stage, label: str) -> bool:
    then, now = base.points.get(label), stage.points[label]
    if then is None:
        return False
    shown = (then["point"].get(key) != now["point"].get(key) for key in ("steady_state", "warmup"))
    return any(then[name] != now[name] for name in RESULTS) or any(shown)


def _files(stage: Stage) -> CurveFiles:
    """The stage as values, as packaging reads it."""
    campaign = base_of(stage.kind).campaign
    points = tuple(
        PointFiles(
            label=label,
            concurrency=point["point"].get("concurrency", 0),
            point=point["point"],
            system=point["system"],
            summary=_read(point["summary"]),
            accuracy=_read(point["accuracy"]),
            config=_read_config(point["config"]),
        )
        for label, point in stage.points.items()
    )
    return CurveFiles(campaign.benchmark, points, stage.power, tuple(stage.implementations))


def _read(content: Any) -> Any:
    if not isinstance(content, (bytes, dict)):
        return content
    value, problems = load_json(_bytes("summary", content), "file")
    return value if isinstance(value, dict) and not problems else {}


def _read_config(content: Any) -> Any:
    return None if content is None else deepcopy(_config_in(_bytes("config", content)))


@cache
def _config_in(data: bytes) -> dict[str, Any] | None:
    """What we read of a configuration; most points have the same in most trees."""
    value, problems = load_yaml(data, "file")
    return value if isinstance(value, dict) and not problems else None


def _planned(files: CurveFiles, base: Stage) -> CurveFiles:
    """What the campaign discloses, with results that pass: the question at plan time."""
    faultless = next(iter(base.points.values()))
    points = tuple(
        replace(point, **{name: base.points.get(point.label, faultless)[name] for name in RESULTS})
        for point in files.points
    )
    return replace(files, points=points)


def _measured(base: Base, files: CurveFiles, stage: Stage) -> CurveFiles:
    """What was measured, with disclosures that pass: the question right after a point."""
    there = [label for label in stage.points if label in base.stage.points]
    measured = {
        point.label: (
            {key: point.point[key] for key in ("steady_state", "warmup") if key in point.point},
            point.accuracy,
            point.summary,
        )
        for point in files.points
        if point.label in there
    }
    made = specimen_files(
        base.campaign.benchmark,
        base.campaign.curve.c_max,
        curve_of(base.campaign, base.plan, there),
        measured=measured,
        target_cohort=base.campaign.seeds.target_cohort,
    )
    configs = {point.label: point.config for point in files.points}
    points = tuple(replace(point, config=configs[point.label]) for point in made.points)
    return replace(made, points=points)


def _run(base: Base, stage: Stage, label: str) -> tuple[PlannedRun, FolderFacts]:
    """The planned run and the facts of a point's folder, its events those of a faultless run."""
    point, content = base.plan.point(label), stage.points[label]
    names = {d.name: d.rows or 0 for d in base.campaign.datasets.accuracy}
    wanted = planned_run(base.campaign, base.plan, point, 13368, names)
    contents = {
        SUMMARY: content["summary"],
        ACCURACY: content["accuracy"],
        CONFIG: content["config"],
    }
    kinds = {SUMMARY: "summary", ACCURACY: "accuracy", CONFIG: "config"}
    parsers = {SUMMARY: parse_summary, ACCURACY: parse_accuracy, CONFIG: parse_config}
    parsed = {
        name: parsers[name](_bytes(kinds[name], value))
        for name, value in contents.items()
        if value is not None
    }
    facts = FolderFacts(
        exists=True,
        started_at=0.0,
        exit_code=0,
        ended_by="itself",
        files={name: FileFact(1, 1.0) for name in (*parsed, EVENTS)},
        config=parsed.get(CONFIG),
        summary=parsed.get(SUMMARY),
        accuracy=parsed.get(ACCURACY),
        events=_events(),
    )
    return wanted, facts


def _events() -> EventFacts:
    span_ns = 3_900_000_000_000
    zeros = dict.fromkeys(
        ("unreadable_records", "empty_answers", "cut_streams", "failed", "accuracy_overlaps",
         "warmup_issued", "warmup_overlaps"), 0
    )  # fmt: skip
    return EventFacts(
        records=60_000, ends_cleanly=True, session_ended=True, tracking_started_ns=0,
        tracking_stopped_ns=span_ns, first_issue_ns=0, last_issue_ns=span_ns, issued=13368,
        completed=13368, first_chunks=13368, accuracy_issued=0, **zeros,
    )  # fmt: skip


def _bytes(name: str, content: Any) -> bytes:
    if isinstance(content, bytes):
        return content
    plain = json.dumps(content)
    return _as_yaml(plain) if name == "config" else plain.encode()


@cache
def _as_yaml(plain: str) -> bytes:
    return yaml.safe_dump(json.loads(plain)).encode()


# --- What the official checker says of the tree --------------------------------------------------


def theirs(stage: Stage, folder: Path) -> set[str]:
    """Rule ids of the official checker's errors; one of them may be that it crashed."""
    files = _files(stage)
    write_tree(files, folder)
    curve = folder / "results" / files.system_name / files.benchmark
    for point in stage.points.values():
        place = curve / point_dir_name(point["point"].get("concurrency", 0))
        for name in RESULTS:
            content, path = point[name], place / _RESULT_FILES[name]
            if content is None:
                path.unlink(missing_ok=True)
            elif place.is_dir():
                path.write_bytes(_bytes(name, content))
    return _errors(check_tree(folder, None, labels(files.points)))


# --- Ways to break it ----------------------------------------------------------------------------

Change = Callable[[Stage], None]


@dataclass(frozen=True)
class Mutation:
    """One way to break a submission."""

    name: str
    kind: str
    change: Change

    def applied(self) -> Stage:
        """A fresh submission, broken."""
        stage = deepcopy(base_of(self.kind).stage)
        self.change(stage)
        return stage


def at(stage: Stage, path: str) -> tuple[Any, Any]:
    """The holder and the key of a place: `c0064.point.warmup.duration_s`; `*` is every point."""
    label, *keys = path.split(".")
    value: Any = stage.points[label]
    for key in keys[:-1]:
        value = value[int(key) if key.isdigit() and isinstance(value, list) else key]
    return value, keys[-1]


def put(path: str, value: Any) -> Change:
    """Replace a value, at one point or at every."""

    def change(stage: Stage) -> None:
        label, _, rest = path.partition(".")
        for name in list(stage.points) if label == "*" else [label]:
            holder, key = at(stage, f"{name}.{rest}")
            holder[key] = deepcopy(value)

    return change


def drop(path: str) -> Change:
    """Remove a key, at one point or at every."""

    def change(stage: Stage) -> None:
        label, _, rest = path.partition(".")
        for name in list(stage.points) if label == "*" else [label]:
            holder, key = at(stage, f"{name}.{rest}")
            holder.pop(key, None)

    return change


def power(path: str, value: Any) -> Change:
    """Replace a value of the power descriptor; ... removes it."""

    def change(stage: Stage) -> None:
        holder: Any = stage.power
        *parents, last = path.split(".")
        for key in parents:
            holder = holder[int(key)] if isinstance(holder, list) else holder[key]
        if value is ...:
            holder.pop(last)
        else:
            holder[last] = deepcopy(value)

    return change


def without(*names: str) -> Change:
    """Remove points."""

    def change(stage: Stage) -> None:
        for name in names:
            stage.points.pop(name)

    return change


def both(*changes: Change) -> Change:
    """One change after another."""

    def change(stage: Stage) -> None:
        for each in changes:
            each(stage)

    return change


def _no_power(stage: Stage) -> None:
    stage.power = None


def _crowded(stage: Stage) -> None:
    """More points than are allowed."""
    template = stage.points["c0064"]
    for level in range(65, 65 + 27):
        point = deepcopy(template)
        point["point"]["concurrency"] = level
        point["accuracy"] = None
        stage.points[f"c{level:04d}"] = point


def _entry(**changes: Any) -> Change:
    """Change the one accuracy entry of the C_max point."""

    def change(stage: Stage) -> None:
        entry = stage.points["c0256"]["accuracy"]["accuracy_scores"][-1]
        entry.update(deepcopy(changes))

    return change


def _scores(**changes: Any) -> Change:
    def change(stage: Stage) -> None:
        stage.points["c0256"]["accuracy"]["accuracy_scores"][-1]["score"].update(changes)

    return change


def _extra(stage: Stage) -> None:
    """Two more results in one band; one alone would leave the elected point the Offline result."""
    for label in ("c0064", "c0128"):
        stage.points[label]["accuracy"] = deepcopy(stage.points["c0256"]["accuracy"])


def _unscored(stage: Stage) -> None:
    stage.points["c0256"]["accuracy"]["accuracy_scores"].pop()


def _inline(**changes: Any) -> Change:
    def change(stage: Stage) -> None:
        stage.points["c0064"]["accuracy"]["accuracy_scores"][0].update(changes)

    return change


def _swe(score: float, *names: str) -> Change:
    def change(stage: Stage) -> None:
        for name in names or stage.points:
            entries = (stage.points[name]["accuracy"] or {}).get("accuracy_scores", [])
            for entry in entries:
                if entry["dataset_name"] == "swe_bench":
                    entry["score"] = score

    return change


_SYSTEM = ("system_name", "shortened_system_name", "division", "system_availability_status")
_SYSTEM += ("availability_url", "max_supported_concurrency", "system_size", "node_types")
_SYSTEM += ("system_node_ensemble_count", "system_node_ensemble_total")
_NODE = ("host_memory_configuration", "host_network_card_count", "driver", "filesystem")
_NODE += ("host_processor_core_count",)
_POINT = ("division", "max_supported_concurrency", "model_name", "model_precision", "seed_set")
_POINT += ("link_to_model", "dataset_name", "dataset_type", "dataset_link", "target_cohort")
_POINT += ("shared_src", "shared_docs", "warmup", "concurrency", "runtime_settings")
_WRONG_WINDOW = {**specimen.steady_state()["window"], "super_pass_end": 2}
_BAD_BYTES = b"\xff\xfe\x00broken"


def _many() -> Iterator[tuple[str, str, Change]]:
    """What the official checker has an error for."""
    for key in _SYSTEM:
        yield f"system without {key}", "elected", drop(f"*.system.{key}")
    for key in _NODE:
        yield f"node without {key}", "elected", drop(f"*.system.node_types.0.{key}")
    for key in _POINT:
        yield f"point without {key}", "elected", drop(f"c0064.point.{key}")
        if key in ("model_name", "seed_set", "warmup", "shared_src"):
            yield f"agentic point without {key}", "agentic", drop(f"c0016.point.{key}")
    for seed in ("scheduler_rng_seed", "sample_index_rng_seed", "model_seed"):
        yield f"wrong {seed}", "elected", put(f"c0064.point.runtime_settings.runtime.{seed}", 7)
    for region, label in (("Ultra Low", "c0001"), ("Medium", "c0016"), ("Low", "c0004")):
        yield f"without {region}", "elected", without(label)
    for label in ("c0064", "c0256"):
        yield f"agentic without {label}", "agentic", without(label)
    yield "without C_max", "elected", without("c0256")
    yield "too many", "elected", _crowded
    yield "two points", "elected", without("c0001", "c0004", "c0016", "c0032", "c0064")
    yield "dedicated without one", "dedicated", without("c0032")
    yield "dedicated without Offline", "dedicated", without("offline")
    changes: dict[str, Change] = {
        "other division": put("*.system.division", "Open"),
        "other availability": put("*.system.system_availability_status", "soon"),
        "long short name": put("*.system.shortened_system_name", "a name of more than twenty"),
        "blank short name": put("*.system.shortened_system_name", "  "),
        "preview without date": both(
            put("*.system.system_availability_status", "Preview"),
            put("*.system.target_availability_date", None),
        ),
        "no date": put("*.system.target_availability_date", "next year"),
        "systems differ": put("c0064.system.system_size", "other"),
        "low C_max": put("*.system.max_supported_concurrency", 32),
        "high C_max": put("*.system.max_supported_concurrency", 100_000),
        "override without its point": put("*.system.c_min_override", 7),
        "override at one point": put("c0064.system.c_min_override", 4),
        "override is no integer": put("*.system.c_min_override", True),
        "overrides differ": both(
            put("*.system.c_min_override", 4), put("c0064.system.c_min_override", 16)
        ),
        "too many replicas": put("*.system.data_parallel", 9),
        "too few replicas": put("*.system.data_parallel", 4),
        "no replica": put("*.system.data_parallel", 0),
        "unknown ensemble": put(
            "c0064.point.nodes_used", [{"system_node_ensemble_id": 5, "nodes": 1}]
        ),
        "too many nodes": put(
            "c0064.point.nodes_used", [{"system_node_ensemble_id": 0, "nodes": 2}]
        ),
        "wrong shortfall": both(
            put("*.system.data_parallel", 4),
            put("*.point.dp_shortfall", {"dp_actual": 3, "dp_formula": 8, "reason": "memory"}),
        ),
        "no power": _no_power,
        "no cooling": power("cooling", ...),
        "cooling contradicts": power("cooling", "liquid"),
        "power without source": power(
            "node_sets.0.components.cpu.tdp_per_unit", {"value_w": 1, "source_type": "vendor_spec"}
        ),
        "source is no link": power("node_sets.0.components.cpu.tdp_per_unit.source", "a brochure"),
        "two values": power("node_sets.0.components.cpu.tdp_per_unit.value_kw", 1),
        "no nodes": power("node_sets.0.nodes_provisioned", 0),
        "no components": power("node_sets.0.components", ...),
        "no switches": power("scale_out.present", True),
        "no scale-up": power("node_sets.0.components.scale_up_network", ...),
        "wrong sum": power("provisioned_power_kw", 1.0),
        "not offline": drop("c0256.point.offline"),
        "two offline": put("c0128.point.offline", "elected"),
        "elected elsewhere": both(
            drop("c0256.point.offline"), put("c0128.point.offline", "elected")
        ),
        "odd offline": put("c0064.point.offline", "maybe"),
        "odd region": put("c0064.point.region", "fast"),
        "Poisson": put("c0064.point.runtime_settings.load_pattern", "poisson"),
        "mixed patterns": put("c0064.point.runtime_settings.load_pattern", "agentic_inference"),
        "above the margin": put("c0064.point.concurrency", 999),
        "level zero": put("c0001.point.concurrency", 0),
        "other model": put("*.point.model_name", "gpt-5"),
        "model as on the hub": put("*.point.model_name", "meta-llama/Llama-3.1-8B"),
        "models differ": put("c0064.point.model_name", "deepseek-r1"),
        "datasets differ": put("c0064.point.dataset", "open_orca"),
        "seed sets differ": put("c0064.point.seed_set", "B"),
        "unknown seed set": put("*.point.seed_set", "Z"),
        "late cohort": put("*.point.target_cohort", "2027-12-C1"),
        "no cohort": put("*.point.target_cohort", "soon"),
        "sources elsewhere": put("c0064.point.shared_src", "src/other"),
        "documents outside": put("c0064.point.shared_docs", "../docs"),
        "drafter": put("c0064.point.speculative_decoding", {"model_id": "own/drafter"}),
        "warm-up of more": put("c0064.point.warmup.requests_completed", 9),
        "warm-up at zero": both(
            put("c0064.point.warmup.requests_issued", 9), put("c0064.point.warmup.duration_s", 3)
        ),
        "negative warm-up": put("c0064.point.warmup.duration_s", -1),
        "odd status": put("c0064.point.steady_state.status", "stable"),
        "odd verdict": put("c0064.point.steady_state.verdict", "fine"),
        "odd state": put("c0064.point.steady_state.state.ttft_p90", "Flat"),
        "short window": put("c0064.point.steady_state.window", _WRONG_WINDOW),
        "drifting": put("c0064.point.steady_state.state.ttft_p90", "Drifting Up"),
        "no passes": put("c0064.point.steady_state.status", "insufficient_passes"),
        "no summary": put("c0064.summary", None),
        "summary is no JSON": put("c0064.summary", b"{"),
        "no completed": drop("c0064.summary.n_samples_completed"),
        "no duration": drop("c0064.summary.duration_ns"),
        "duration zero": put("c0064.summary.duration_ns", 0),
        "few queries": put("c0064.summary.n_samples_completed", 13367),
        "failed requests": put("c0064.summary.n_samples_failed", 5),
        "negative tokens": put("c0064.summary.output_sequence_lengths.total", -5),
        "no TPOT": put("c0064.summary.tpot", {"percentiles": {}}),
        "TPOT zero": put("c0064.summary.tpot", {"percentiles": {"90.0": 0.0}}),
        "no percentile": put("c0064.summary.ttft", {"percentiles": {"fast": 1.0}}),
        "percentiles disagree": put(
            "c0064.summary.ttft", {"percentiles": {"90.0": 1.0, "90": 2.0}}
        ),
        "other tps": put("c0064.summary.system_tps", 1.0),
        "other user tps": put("c0064.summary.tps_per_user", 1.0),
        "other interactivity": put("c0064.summary.e2e_avg_interactivity", 1.0),
        "other tps per kW": put("c0064.summary.system_tps_per_kw", 1e9),
        "no config": put("c0064.config", None),
        "config is no mapping": put("c0064.config", b"- 1"),
        "config is no YAML": put("c0064.config", b"a: ["),
        "no accuracy": put("c0256.accuracy", None),
        "accuracy is no JSON": put("c0256.accuracy", b"{"),
        "accuracy empty": put("c0256.accuracy", {"accuracy_scores": []}),
        "accuracy without name": _entry(dataset_name=""),
        "few samples": _entry(unit_samples=100),
        "low rouge1": _scores(rouge1=10.0),
        "low rouge2": _scores(rouge2=10.0),
        "long answers": _scores(gen_len=9e9),
        "extra accuracy": _extra,
        "configuration of other encoding": put("c0064.config", _BAD_BYTES),
    }
    for name, change in changes.items():
        yield name, "elected", change
    agentic: dict[str, Change] = {
        "agentic with Offline": put("c0256.point.offline", "elected"),
        "low inline": _inline(score=0.2),
        "inline in percent": _inline(score=57.0),
        "no inline score": _inline(score=None),
        "no inline": put("c0064.accuracy", None),
        "low mean": _swe(0.5),
        "mean in percent": _swe(72.0),
        "no mean at C_max": lambda stage: stage.points["c0256"]["accuracy"][
            "accuracy_scores"
        ].pop(),
        "long turns": put(
            "c0064.summary.output_sequence_lengths_full_run.output_sequence_lengths.avg", 900.0
        ),
    }
    for name, change in agentic.items():
        yield name, "agentic", change


def _silent() -> Iterator[tuple[str, str, Change]]:
    """What it passes in silence, or crashes on (shared knowledge of checker 1.5.3)."""
    seeds = "c0064.config.settings.runtime"
    changes: dict[str, Change] = {
        "failed requests counted out": both(
            put("c0064.summary.n_samples_failed", 5),
            put("c0064.summary.n_samples_issued", 13373),
        ),
        "summary incomplete": put("c0064.summary.complete", False),
        "summary interrupted": put("c0064.summary.state", "interrupted"),
        "accuracy incomplete": _entry(complete=False),
        "accuracy file interrupted": put("c0256.accuracy.state", "interrupted"),
        "scheduler seed in the configuration": put(f"{seeds}.scheduler_random_seed", 42),
        "dataloader seed in the configuration": put(f"{seeds}.dataloader_random_seed", 42),
        "seed in the run's record": put("c0064.summary.run_config.scheduler_random_seed", 42),
        "level in the configuration": put(
            "c0064.config.settings.load_pattern.target_concurrency", 8
        ),
        "level in the run's record": put(
            "c0064.summary.run_config.load_pattern.target_concurrency", 8
        ),
        "scalar accuracy": _entry(score=0.9),
        "null accuracy": _entry(score=None),
        "text as accuracy": _entry(score="good"),
        "repeats for samples": _entry(unit_samples=6684, num_repeats=2),
        "dataset as the client calls it": put("*.point.dataset", "cnn_dailymail::llama3_8b"),
        "windowable without a window": put("c0064.point.steady_state.window", {}),
        "window longer than the run": put("c0064.point.steady_state.window.duration_s", 9999.0),
        "summary of other encoding": put("c0064.summary", _BAD_BYTES),
        "accuracy of other encoding": put("c0256.accuracy", _BAD_BYTES),
        "stored metric is text": put("c0064.summary.system_tps", "fast"),
        "stored user metric is text": put("c0064.summary.tps_per_user", "fast"),
        "huge C_max": put("*.system.max_supported_concurrency", 10**400),
        "tokens are NaN": put("c0064.summary.output_sequence_lengths.total", float("nan")),
        "run type unknown": put("c0064.config.datasets", []),
    }
    for name, change in changes.items():
        yield name, "elected", change
    yield (
        "no point at C_max",
        "dedicated",
        both(put("c0256.point.concurrency", 255), put("c0256.point.region", "high_concurrency")),
    )


def _breaking() -> Iterator[tuple[str, str, Change, str]]:
    """What breaks the builder's tree, with the rule of ours that comes first."""
    changes: dict[str, Change] = {
        "slash": put("*.system.system_name", "H200/8"),
        "backslash": put("*.system.system_name", "H200\\8"),
        "dots": put("*.system.system_name", ".."),
    }
    for name, change in changes.items():
        yield name, "elected", change, "system-name-path"
    level = put("c0256.point.concurrency", 13368)
    yield "level of the Offline run", "dedicated", level, "level-duplicate"
    yield "accuracy first", "elected", put("c0064.config.datasets.0.type", "accuracy"), "run-type"


MUTATIONS = tuple(Mutation(*each) for each in _many())
SILENT = tuple(Mutation(*each) for each in _silent())
BREAKING = tuple((Mutation(*each), rule) for *each, rule in _breaking())
