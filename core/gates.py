"""What the official checker passes in silence or crashes on, and what breaks the builder (§9.1).

`core/validate.py` finds what a run folder shows (failed requests, interruptions, wrong seeds,
scores without a gate); this module finds what only the disclosed curve shows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from core.presets import official_dataset
from core.reading import is_number
from core.rules_ahead import Remark
from core.submission import CurveFiles, PointFiles

#: The only status under which windowed numbers are official (§4.4).
_WINDOWABLE = "windowable"
#: Metrics that a summary may store and the checker compares: it crashes on what is no number.
_STORED = ("system_tps", "tps_per_user", "e2e_avg_interactivity", "system_tps_per_kw")
#: Characters that a system's name can't have: it names a folder (the builder takes it as it is).
_NO_NAME = ("/", "\\", "\0")
_NS_PER_S = 1e9
CURVE = "curve"

#: Rule id → the key of the campaign file, or the step, that makes it right.
GATES: dict[str, str] = {
    "dataset-unknown": "benchmark",
    "fingerprint-missing": "`pareto retry`: run the point again",
    "level-duplicate": "curve.levels",
    "no-c-max-point": "curve.levels",
    "run-type": "datasets.performance",
    "steady-state-window": "run.basis",
    "stored-metric": "`pareto retry`: run the point again",
    "system-name-path": "disclosure.system.system_name",
    "checker-crashed": "see the message",
    "builder-refused": "see the message",
}


def gate_files(files: CurveFiles) -> list[Remark]:
    """What is wrong with a submission that the official checker would not say."""
    found = [*_system_name(files), *_levels(files)]
    for point in files.points:
        found += (*_dataset(files.benchmark, point), *_window(point), *_run_type(point))
        found += _stored(point)
    return found


def remark(rule: str, message: str, fix: str, place: str = CURVE) -> Remark:
    """An error under a rule id of our own."""
    return Remark(rule, "error", message, fix, place, GATES[rule])


def is_folder_name(name: str) -> bool:
    """Whether a system's name makes one folder, and not a path to another place."""
    return not any(sign in name for sign in _NO_NAME) and name.strip() not in (".", "..")


def _system_name(files: CurveFiles) -> Iterator[Remark]:
    names = {str(p.system["system_name"]) for p in files.points if p.system.get("system_name")}
    for name in sorted(names):
        if not is_folder_name(name):
            yield remark(
                "system-name-path",
                f"system_name {name!r} can't be a folder's name",
                "leave out slashes: the name is a folder of the submission",
            )


def _levels(files: CurveFiles) -> Iterator[Remark]:
    """Levels that two points have, and a curve without a point at C_max."""
    counts = Counter(point.concurrency for point in files.points)
    for level, count in sorted(counts.items()):
        if count > 1:
            yield remark(
                "level-duplicate",
                f"{count} points have concurrency {level}",
                "leave the level out: the dedicated Offline run has it",
            )
    c_max = {point.system.get("max_supported_concurrency") for point in files.points}
    fixed = {p.concurrency for p in files.points if p.point.get("offline") != "dedicated"}
    if len(c_max) == 1 and files.points and not c_max & fixed:
        yield remark(
            "no-c-max-point",
            f"no point at exactly C_max, {next(iter(c_max))}",
            "measure one: a declared maximum that was not measured is not shown to be supported",
        )


def _dataset(benchmark: str, point: PointFiles) -> Iterator[Remark]:
    wanted, seen = official_dataset(benchmark), point.point.get("dataset")
    if wanted is not None and seen != wanted:
        yield remark(
            "dataset-unknown",
            f"dataset {seen!r}: for any other name than {wanted!r} the checker counts no queries",
            f"dataset: {wanted}",
            point.label,
        )


def _window(point: PointFiles) -> Iterator[Remark]:
    """A steady-state window that is not there, or is more than the run."""
    block = point.point.get("steady_state")
    if not isinstance(block, Mapping):
        return
    window = block.get("window")
    window = window if isinstance(window, Mapping) else {}
    summary = point.summary or {}
    needed = ("super_pass_start", "super_pass_end", "duration_s")
    lacking = [key for key in needed if window.get(key) is None]
    if block.get("status") == _WINDOWABLE and lacking:
        yield _no_window(point, f"windowable without {', '.join(lacking)} of a window")
    for key, limit in (
        ("duration_s", _seconds(summary)),
        ("n_samples", summary.get("n_samples_completed")),
    ):
        value = window.get(key)
        if value is not None and limit is not None and _exceeds(value, limit):
            yield _no_window(point, f"a window with {key} {value:g}, more than the run's {limit:g}")


def _no_window(point: PointFiles, message: str) -> Remark:
    fix = "take the block as the client made it, or leave it out"
    return remark("steady-state-window", message, fix, point.label)


def _exceeds(value: Any, limit: Any) -> bool:
    return is_number(value) and is_number(limit) and value > limit


def _seconds(summary: Mapping[str, Any]) -> float | None:
    duration_ns: Any = summary.get("duration_ns")
    return duration_ns / _NS_PER_S if is_number(duration_ns) else None


def _run_type(point: PointFiles) -> Iterator[Remark]:
    """The builder takes the first dataset's type for that of the run."""
    datasets = (point.config or {}).get("datasets")
    first = datasets[0] if isinstance(datasets, list) and datasets else None
    kind = first.get("type") if isinstance(first, Mapping) else None
    if kind != "performance":
        yield remark(
            "run-type",
            f"the first dataset of config.yaml has type {kind!r}, not performance",
            "run the point with the configuration that pareto writes",
            point.label,
        )


def _stored(point: PointFiles) -> Iterator[Remark]:
    """Stored metrics that are no finite numbers."""
    for key in _STORED:
        value = (point.summary or {}).get(key)
        if value is not None and not is_number(value):
            yield remark(
                "stored-metric",
                f"{key} in result_summary.json is {value!r}, not a number",
                "ship the summary as the client wrote it",
                point.label,
            )
