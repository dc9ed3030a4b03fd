"""A point with the real client against the rehearsal endpoint.

Collected only where `PARETO_TEST_CLIENT` is the path of `inference-endpoint`, as its user installed
it; `PARETO_TEST_TOKENIZER` names a tokenizer's folder (its recipe: one token a word).
"""

from __future__ import annotations

import os
from pathlib import Path

import orjson

from core.status import AttemptState
from tests.flows.support import SCORED_ROWS, Place, disk_manifest, write_datasets

CLIENT = os.environ["PARETO_TEST_CLIENT"]
TOKENIZER = os.environ["PARETO_TEST_TOKENIZER"]


def test_a_point_with_accuracy(tmp_path: Path, prefect_api_url: str) -> None:
    """Valid at the first try: performance, then accuracy at the same level, all of it on record.

    The client is not the stand-in, so the mark of the rehearsal comes from the campaign alone.
    """
    write_datasets(tmp_path)
    place = Place(tmp_path, prefect_api_url)
    with place.endpoint():
        settings = {"client": {"num_workers": 1, "warmup_connections": 4, "max_connections": 64}}
        place.write(
            model={"tokenizer": TOKENIZER},
            client={"command": [CLIENT], "overrides": {"settings": settings}},
        )
        done = place.pareto("run", place.file, "--points", "9", HF_HUB_OFFLINE="1")
    assert "c0009 attempt 1: valid" in done.out, done
    (attempt,) = place.attempts("c0009")
    assert attempt.state is AttemptState.VALID
    assert attempt.exit_code == 0
    assert "rehearsal" not in (attempt.client_version or "")
    assert attempt.metrics["failed"] == 0
    assert attempt.metrics["tpot_ms"]["90"] > 0
    assert attempt.metrics["accuracy_scores"]["accuracy"]["score"] == 1
    assert place.records.campaign("curve").rehearsal
    kinds = [request.kind for request in place.requests()]
    timed = attempt.planned_samples or 0
    assert kinds == ["performance"] * timed + ["accuracy"] * SCORED_ROWS
    assert max(request.in_flight for request in place.requests()) == 9
    assert attempt.run_folder is not None
    folder = place.runs / attempt.run_folder.path
    recorded = {
        file.name: (file.size_bytes, file.sha256) for file in place.records.manifest(attempt.id)
    }
    assert recorded == disk_manifest(folder)
    summary = orjson.loads((folder / "performance" / "result_summary.json").read_bytes())
    assert summary["n_samples_issued"] == timed
