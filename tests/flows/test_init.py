"""`pareto init`: what it writes can be planned, asks only people, and never replaces a file."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from core.campaign import BENCHMARKS, CUSTOM
from core.campaign_draft import TARGET_COHORT
from core.preset_fill import apply_preset
from core.seeds import bound_seed_set
from flows.cli import main

ROOT = Path(__file__).parents[2]
#: Seconds that a question may take to appear.
PATIENCE_S = 30.0


def pareto(*arguments: str) -> int:
    """Exit code of `pareto` in the present folder."""
    with pytest.raises(SystemExit) as caught:
        main(list(arguments))
    assert isinstance(caught.value.code, int)
    return caught.value.code


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", (tmp_path / "nobody").open("w+"))


@pytest.mark.parametrize("benchmark", [*BENCHMARKS, CUSTOM])
def test_what_it_writes_plans(benchmark: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Without edits, although the datasets are still missing."""
    given = ["--benchmark", benchmark, "--c-max", "256", "--model", "served"]
    assert pareto("init", *given) == 0
    assert capsys.readouterr().out.startswith(f"wrote {benchmark}.yaml")
    assert pareto("plan", f"{benchmark}.yaml", "--json") == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["campaign"] == benchmark
    assert sum(point["accuracy"] for point in plan["points"]) == 4
    sizes = {point["sizing"]["samples"] for point in plan["points"]}
    assert (None in sizes) == (benchmark == CUSTOM), "only a preset knows the size of no file"


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_comments_show_what_the_preset_adds(benchmark: str) -> None:
    """Uncommented they are what is filled in: whoever reads the file knows all that is sent."""
    assert pareto("init", "--benchmark", benchmark, "--c-max", "64") == 0
    text = Path(f"{benchmark}.yaml").read_text()
    shown = [line.removeprefix("#   ") for line in text.splitlines() if line.startswith("#   ")]
    shown = [line for line in shown if not line.startswith("expected_qps")]
    added = yaml.safe_load("\n".join(shown).replace("$${", "${"))
    filled = apply_preset(yaml.safe_load(text))
    assert filled["datasets"]["accuracy"] == added["datasets"]["accuracy"]
    assert filled["run"] == added.get("run", {})
    for key, value in added["datasets"]["performance"].items():
        assert filled["datasets"]["performance"][key] == value


def test_flags_end_up_in_the_file() -> None:
    """Relative paths are those of the caller, seen from the file."""
    Path("campaigns").mkdir()
    files = ["data/aime25.parquet", "/sets/gpqa.parquet", "data/livecodebench.parquet"]
    flags = ["--benchmark", "gpt-oss-120b", "--url", "http://host:8000", "--c-max", "512"]
    flags += ["--model", 'odd: "name" ${X}', "--performance", "data/perf.parquet"]
    flags += ["--accuracy", *files, "--output", "campaigns/my curve.yaml"]
    assert pareto("init", *flags) == 0
    written = yaml.safe_load(Path("campaigns/my curve.yaml").read_text())
    assert written["campaign"] == "my-curve"
    assert written["endpoint"]["urls"] == ["http://host:8000"]
    assert written["model"]["name"] == 'odd: "name" $${X}', "no variable is read into it"
    assert written["curve"] == {"c_max": 512}
    assert written["datasets"] == {
        "performance": {"path": "../data/perf.parquet"},
        "accuracy": [
            {"path": "../data/aime25.parquet"},
            {"path": "/sets/gpqa.parquet"},
            {"path": "../data/livecodebench.parquet"},
        ],
    }


def test_an_existing_file_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    Path("mine.yaml").write_text("precious")
    flags = ["--benchmark", "llama3_1-8b", "--c-max", "64", "--output", "mine.yaml"]
    assert pareto("init", *flags) == 2
    assert "mine.yaml exists and is kept" in capsys.readouterr().err
    assert Path("mine.yaml").read_text() == "precious"


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ([], "--benchmark is needed"),
        (["--benchmark", "llama3_1-8b"], "--c-max is needed"),
        (["--benchmark", "custom", "--c-max", "64"], "--model is needed"),
        (["--benchmark", "llama", "--c-max", "64"], "'llama' is none; there are llama3_1-8b"),
        (["--benchmark", "kimi-k3", "--c-max", "20"], "20 must be above 32"),
        (["--benchmark", "kimi-k3", "--c-max", "64", "--url", "host"], "must be an http:// or"),
        (
            ["--benchmark", "gpt-oss-120b", "--c-max", "64", "--accuracy", "any.jsonl"],
            "needs a scorer",
        ),
        (
            ["--benchmark", "kimi-k3", "--c-max", "64", "--output", "no/such.yaml"],
            "no/such.yaml can't be written: No such file or directory",
        ),
    ],
)
def test_what_can_not_be_used_is_refused_and_nothing_written(
    flags: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody is asked where nobody could answer."""
    assert pareto("init", *flags) == 2
    assert told in capsys.readouterr().err
    assert not list(Path().glob("**/*.yaml"))


def test_the_cohort_may_adopt_the_seed_set() -> None:
    """The last one that may, so that a new campaign has the most time."""
    assert bound_seed_set("A", TARGET_COHORT, None).cohorts[-1] == TARGET_COHORT


def _at_a_terminal(answers: dict[str, str], *flags: str) -> tuple[int, str]:
    """Exit code and output of `pareto init` at a terminal, each question answered when it comes."""
    ours, its = pty.openpty()
    command = [sys.executable, "-m", "flows.cli", "init", *flags]
    env = os.environ | {"PYTHONPATH": str(ROOT), "TERM": "dumb"}
    process = subprocess.Popen(command, env=env, stdin=its, stdout=its, stderr=its)
    os.close(its)
    seen, deadline = "", time.monotonic() + PATIENCE_S
    waiting = dict(answers)
    try:
        while time.monotonic() < deadline:
            try:
                seen += os.read(ours, 4096).decode()
            except OSError:  # the other side is closed
                break
            for question in [question for question in waiting if question in seen]:
                os.write(ours, (waiting.pop(question) + "\n").encode())
        return process.wait(timeout=PATIENCE_S), seen
    finally:
        process.kill()
        os.close(ours)


def test_a_person_is_asked_for_what_is_missing() -> None:
    """And for nothing else: a flag answers its question, Enter takes the default."""
    answers = {"Benchmark": "llama3_1-8b", "Model": "", "Highest": "128", "Performance": ""}
    code, seen = _at_a_terminal(answers, "--url", "http://host:8000")
    assert code == 0, seen
    assert "custom" in seen, "the question says what there is"
    assert "URL" not in seen
    written = yaml.safe_load(Path("llama3_1-8b.yaml").read_text())
    assert written["model"]["name"] == "meta-llama/Llama-3.1-8B-Instruct"
    assert written["curve"]["c_max"] == 128
    assert written["datasets"]["performance"]["path"] == "data/cnn_dailymail_validation.jsonl"


def test_a_person_who_does_not_answer_gets_no_file() -> None:
    code, seen = _at_a_terminal({"Benchmark": "\x04"})
    assert (code, "--benchmark: no answer" in seen) == (2, True), seen
    assert not list(Path().glob("*.yaml"))
