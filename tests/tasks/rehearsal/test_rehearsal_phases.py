"""Order, counts and salts are those of the recorded runs, from the same seeds."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tasks.rehearsal.config import dialect
from tasks.rehearsal.phases import Phase, performance_phases, sample_count, shuffled_passes
from tasks.rehearsal.schema import Config
from tests.tasks.rehearsal.support import performance_rows, point_config, recorded_config

#: Recorded runs whose order is compared.
CASES = ["c01_perf_c4", "c02_both_pass", "c05_offline", "c15_warmup_salt_drain"]


def config_of(**settings: Any) -> Config:
    """A plain run's configuration with parts of its settings replaced."""
    document = point_config("http://127.0.0.1:1")
    document["settings"] |= settings
    return dialect().model_validate(document)


def phases(config: Config) -> list[Phase]:
    return performance_phases(config, config.datasets[0], performance_rows())


def issued_prompts(fixtures: Path, case: str) -> list[str]:
    """The prompts of a recorded run in the order in which they were issued."""
    lines = (fixtures / case / "out" / "events.jsonl").read_text().splitlines()
    events = [json.loads(line) for line in lines]
    return [event["data"][1] for event in events if event["event_type"] == "sample.issued"]


def test_every_prompt_is_the_recorded_one_in_the_recorded_order(
    fixtures_dir: Path, case: str
) -> None:
    """Shuffling follows the data loader's seed; warm-up order and salts follow the warm-up's."""
    prompts = [
        phase.prompt(index)
        for phase in phases(dialect().model_validate(recorded_config(case, "http://127.0.0.1:1")))
        for index in islice(phase.order, phase.count)
    ]
    assert prompts == issued_prompts(fixtures_dir, case)[: len(prompts)]


def test_every_pass_has_every_row_once_in_another_order() -> None:
    order = list(islice(shuffled_passes(50, 2**64 - 1), 150))
    passes = [order[:50], order[50:100], order[100:]]
    assert all(sorted(one) == list(range(50)) for one in passes)
    assert passes[0] != passes[1] != passes[2]


@pytest.mark.parametrize(
    ("runtime", "rows", "count"),
    [
        ({"n_samples_to_issue": 7, "min_duration_ms": 0}, 20, 7),
        ({"min_duration_ms": 0}, 20, 20),
        ({"min_duration_ms": 600_000}, 1000, 7000),
        ({"min_duration_ms": "3s"}, 20, 40),
    ],
)
def test_counts_are_taken_as_they_are_or_worked_out_in_whole_passes(
    runtime: dict[str, Any], rows: int, count: int
) -> None:
    """Without a count: ten a second for the minimum duration and a tenth more, whole passes."""
    assert sample_count(config_of(runtime=runtime), rows) == count


def test_a_request_has_what_was_set_and_nothing_else() -> None:
    assert phases(config_of())[0].request(0, "Hello") == {
        "model": "sim-model",
        "messages": [{"role": "user", "content": "Hello"}],
        "stream": True,
        "max_completion_tokens": 16,
    }


def test_generation_parameters_and_overrides_are_sent() -> None:
    document = point_config("http://127.0.0.1:1", offline=True)
    document["model_params"] |= {"temperature": 0.5, "seed": 7}
    document["datasets"][0]["generation_config_override"] = {"temperature": 0.0}
    config = dialect().model_validate(document)
    rows = [{"prompt": "Hello", "system": "Be brief."}]
    request = performance_phases(config, config.datasets[0], rows)[0].request(0, "Hello")
    assert (request["temperature"], request["seed"]) == (0.0, 7)
    assert request["messages"][0] == {"role": "system", "content": "Be brief."}
    assert "stream" not in request
