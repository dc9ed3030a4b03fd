"""A rehearsal of an official benchmark whose client claims official scores, and its package."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from endpoints_submission_cli.exceptions import RunFolderError
from endpoints_submission_cli.runs.parser import parse_run_folder

from flows.package import CHECKED
from tests.disclosures import disclosure_dict
from tests.flows.support import Done, Place, disk_manifest, write_datasets

#: Milliseconds of a request: prefill and four decode steps. The dedicated Offline run must outdo
#: the highest level, so there the endpoint and not the machine is what limits that.
SPEED = {"prefill_ms": 5, "decode_ms": 2}
SLOW = {"prefill_ms": 20, "decode_ms": 20}
#: Factor that makes the rehearsal's durations real again: its time scale is 0.0002.
CLOCK = 6000.0
#: Rows of a dataset larger than the highest level.
ROWS = 34
#: Rows of the others.
FEW_ROWS = 8
#: Seconds after which a campaign has hung.
PATIENCE_S = 480.0
#: Samples that the official checker wants of deepseek-r1's accuracy.
SCORED = 4388
LEVELS = (33, 28, 20, 13, 9, 6, 5)
SCORER = {"eval_method": "string_match", "ground_truth": "ground_truth"}
SCORER |= {"extractor": "identity_extractor"}

KINDS: dict[str, dict[str, Any]] = {
    "elected": {"curve": {"offline": "elected"}},
    "dedicated": {"curve": {"offline": "dedicated", "levels": list(LEVELS)}},
    "agentic": {
        "benchmark": "qwen3_6-35b-a3b",
        "datasets": {
            "performance": {"rows": FEW_ROWS},
            "accuracy": [
                {"name": "swe_bench", "rows": 200, "scorer": {"eval_method": "swe_bench_scorer"}}
            ],
        },
    },
}
CLAIMS: dict[str, dict[str, Any]] = {
    "agentic": {"scores": {"swe_bench": 0.72}, "inline": 0.57, "tokens_per_turn": 383.0},
}
SINGLE_TURN = {"scores": {"r1_accuracy": {"exact_match": 81.5}}}


def speed(kind: str) -> dict[str, int]:
    """The endpoint's speed."""
    return SLOW if kind == "dedicated" else SPEED


def request_s(kind: str) -> float:
    """Seconds of a request."""
    return (speed(kind)["prefill_ms"] + 4 * speed(kind)["decode_ms"]) / 1000


def write_campaign(place: Place, kind: str) -> None:
    """A rehearsal of an official benchmark, with complete disclosures."""
    write_datasets(place.folder, ROWS if kind == "dedicated" else FEW_ROWS)
    if kind == "agentic":
        turns = ({"prompt": f"turn {n}", "conversation_id": n} for n in range(FEW_ROWS))
        (place.folder / "performance.jsonl").write_text("\n".join(map(json.dumps, turns)))
    rows = (json.dumps({"prompt": f"row {n}", "ground_truth": "x"}) for n in range(SCORED))
    (place.folder / "accuracy.jsonl").write_text("\n".join(rows))
    accuracy = [{"name": "r1_accuracy", "path": "accuracy.jsonl", "rows": SCORED, "scorer": SCORER}]
    sections: dict[str, Any] = {
        "benchmark": "deepseek-r1",
        "datasets": {"performance": {"name": "timed"}, "accuracy": accuracy},
        **KINDS[kind],
    }
    place.write(
        endpoint={"api_type": "openai"},
        run={
            "expected_qps": {level: level / request_s(kind) for level in range(1, ROWS + 1)},
            "min_passes": 4,
        },
        disclosure=disclosure_dict(place.folder),
        **sections,
    )


def run_campaign(place: Place, claims: dict[str, Any]) -> Done:
    """Run the campaign to its end; a machine with other work takes its time."""
    process = place.start(
        "run",
        place.file,
        PARETO_REHEARSAL_TEST_DATA=json.dumps(claims),
        SWEBENCH_SERVICE_AUTH_TOKEN="none",
    )
    try:
        out, err = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
    return Done(process.returncode, out, err)


def assert_packages(place: Place, kind: str) -> None:
    """No error and no warning; the tree is marked, and holds nothing that could be uploaded.

    Without the option a rehearsal is refused, whatever its summaries claim.
    """
    claims = {"clock": CLOCK, **CLAIMS.get(kind, SINGLE_TURN)}
    with place.endpoint(**speed(kind)):
        write_campaign(place, kind)
        ran = run_campaign(place, claims)
    assert ran.code == 0, ran
    before = disk_manifest(place.runs)
    refused = place.pareto("package", place.file, "--out", "package", "--strict")
    assert refused.code == 2
    assert "is a rehearsal and never a measurement" in refused.err
    done = place.pareto("package", place.file, "--out", "package", "--strict", "--test-data")
    assert done.code == 0, done.out + done.err
    assert_passes(place, done)
    assert_marked(place.folder / "package")
    assert disk_manifest(place.runs) == before


def assert_passes(place: Place, done: Done) -> None:
    """No error, no warning, and so on record."""
    assert "0 errors, 0 warnings" in done.out
    assert "runs create" not in done.out
    (event,) = place.records.campaign_events(place.name, CHECKED)
    assert (event.payload["errors"], event.payload["warnings"]) == (0, 0)
    assert event.payload["test_data"] is True


def assert_marked(package: Path) -> None:
    """Each point's files and the folders' names say what it is; no folder of it is a run folder."""
    points = list(package.glob("tree/TEST-DATA_Acme/local/results/TEST-DATA_H200_box/*/r*"))
    assert len(points) >= 7
    assert not (package / "runs").exists()
    for point in points:
        assert json.loads((point / "system_desc.json").read_bytes())["test_data"] is True
        assert "test_data: true" in (point / "point.yaml").read_text()
        assert json.loads((point / "result_summary.json").read_bytes())["test_data"]
        with pytest.raises(RunFolderError):
            parse_run_folder(point)
