"""The stand-in client as a real process, file by file beside recorded runs of the real client."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tasks.rehearsal.failures import ClientError
from tasks.rehearsal.process import running_endpoint
from tasks.rehearsal.summary import VERSION
from tests.tasks.rehearsal.support import PATIENCE_S, Client, point_config, recorded_config

#: Recorded cases, and the faults that make our endpoint do the same.
CASES: dict[str, dict[str, int]] = {
    "c01_perf_c4": {},
    "c02_both_pass": {},
    "c04_acc_only": {},
    "c05_offline": {},
    "c06_err500": {"error_rate_percent": 5},
    "c15_warmup_salt_drain": {},
    "c17_no_count": {},
    "c19_drop_midstream": {"cut_next": 4},
    "c21_empty": {"empty_rate_percent": 10},
}
#: Loggers whose lines an orchestrator may read; the rest belongs to processes we do not have.
LOGGERS = (
    "inference_endpoint.load_generator.session",
    "inference_endpoint.commands.benchmark.execute",
    "inference_endpoint.commands.benchmark.accuracy",
)
#: Lines in which the stand-in says what it is.
OWN_LINES = ("Rehearsal stand-in", "okenizer", "Version: ")


def shape(value: Any) -> Any:
    """The structure of a JSON value: keys and kinds, whatever the numbers."""
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    if isinstance(value, list):
        return [shape(item) for item in value]
    return "number" if type(value) in (int, float) else type(value).__name__


def events_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def histories(events: list[dict[str, Any]]) -> Counter[tuple[str, ...]]:
    """How often each order of event types occurs among the samples; repeated chunks as one."""
    found: dict[str, list[str]] = defaultdict(list)
    for event in events:
        if event["sample_uuid"] and found[event["sample_uuid"]][-1:] != [event["event_type"]]:
            found[event["sample_uuid"]].append(event["event_type"])
    return Counter(tuple(one) for one in found.values())


def fields(events: list[dict[str, Any]]) -> set[tuple[str, ...]]:
    """The keys that each event type occurs with."""
    return {(event["event_type"], *event) for event in events}


def log_lines(text: str) -> list[str]:
    """Logger, level and wording of each line, numbers replaced."""
    lines = re.findall(r"^\S+ \S+ - (\S+) - (\w+) - (.*)$", text, re.MULTILINE)
    return [
        f"{logger} {level} " + re.sub(r"\d+(\.\d+)?", "#", re.sub(r"<.*?>", "<>", message))
        for logger, level, message in lines
        if logger in LOGGERS and not any(own in message for own in OWN_LINES)
    ]


def test_a_run_leaves_the_recorded_folder(
    client: Client, set_faults: Callable[..., None], fixtures_dir: Path, case: str
) -> None:
    """Same files, same keys, same counts, same order of events and of samples, same log lines."""
    set_faults(**CASES[case])
    config = recorded_config(case, client.url)
    command = json.loads((fixtures_dir / case / "case.json").read_text())["command"]
    done = client.run(client.write(config), *command[5:])
    assert done.returncode == 0, done.stdout + done.stderr
    ours, theirs = client.folder / "out", fixtures_dir / case / "out"

    def files(folder: Path) -> set[str]:
        return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}

    assert files(ours) | {"metrics/.ready"} == files(theirs) | {"metrics/.ready"}
    _compare_documents(ours, theirs)
    _compare_events(events_of(ours / "events.jsonl"), events_of(theirs / "events.jsonl"), case)
    _compare_order(ours, theirs)
    recorded_log = fixtures_dir / case / "stdout.log"
    if recorded_log.exists():  # the copies in tests/data leave it out
        assert log_lines(done.stdout) == log_lines(recorded_log.read_text(encoding="utf-8"))


def _compare_documents(ours: Path, theirs: Path) -> None:
    for name in (
        "metrics/final_snapshot.json",
        "performance/result_summary.json",
        "accuracy/accuracy_results.json",
    ):
        if (theirs / name).exists():
            our, their = (
                json.loads((ours / name).read_bytes()),
                json.loads((theirs / name).read_bytes()),
            )
            assert shape(our) == shape(their), name
    summary = json.loads((ours / "performance/result_summary.json").read_bytes())
    recorded = json.loads((theirs / "performance/result_summary.json").read_bytes())
    same = ("n_samples_issued", "n_samples_completed", "n_samples_failed", "complete", "state")
    for key in (*same, "run_config", "finish_reason_counts", "test_started_at", "git_sha"):
        assert summary[key] == recorded[key], key
    assert summary["version"] == VERSION
    assert f"Version: {VERSION}\n" in (ours / "report.txt").read_text(encoding="utf-8")
    config = yaml.safe_load((ours / "config.yaml").read_text())
    config["endpoint_config"]["endpoints"] = [config["endpoint_config"]["endpoints"][0][:16]]
    saved = yaml.safe_load((theirs / "config.yaml").read_text())
    saved["endpoint_config"]["endpoints"] = [saved["endpoint_config"]["endpoints"][0][:16]]
    assert config == saved
    scores = [
        json.loads((folder / "accuracy/accuracy_results.json").read_bytes())["accuracy_scores"]
        for folder in (ours, theirs)
        if (theirs / "accuracy").exists()
    ]
    assert len({(s[0]["score"], str(s[0]["response_counts"])) for s in scores}) <= 1


def _compare_events(ours: list[dict[str, Any]], theirs: list[dict[str, Any]], case: str) -> None:
    assert fields(ours) == fields(theirs)
    assert histories(ours) == histories(theirs)
    session = [
        [event["event_type"] for event in events if not event["sample_uuid"]]
        for events in (ours, theirs)
    ]
    assert session[0] == session[1]
    counts = [Counter(event["event_type"] for event in events) for events in (ours, theirs)]
    if case == "c19_drop_midstream":
        # The recorded streams were cut a token later than ours.
        counts[0]["sample.recv_non_first"] += 4
    assert counts[0] == counts[1]


def _compare_order(ours: Path, theirs: Path) -> None:
    """The same rows in the same order, phase by phase: both follow the seeds."""
    maps = [json.loads((folder / "sample_idx_map.json").read_bytes()) for folder in (ours, theirs)]
    orders = [{phase: list(rows.values()) for phase, rows in one.items()} for one in maps]
    assert orders[0] == orders[1]


def test_a_performance_run_with_accuracy_datasets_scores_them_all_the_same(client: Client) -> None:
    assert (
        client.run(
            client.write(point_config(client.url, accuracy="acc.jsonl")), "--mode", "perf"
        ).returncode
        == 0
    )
    assert client.json("accuracy/accuracy_results.json")["accuracy_scores"][0]["score"] == 1.0


def test_repeats_ask_an_accuracy_dataset_again(client: Client) -> None:
    config = client.write(point_config(client.url, accuracy="acc.jsonl"))
    document = yaml.safe_load(config.read_text())
    document["datasets"][1]["accuracy_config"]["num_repeats"] = 2
    config.write_text(yaml.safe_dump(document))
    client.benchmark(config, "both")
    scores = client.json("accuracy/accuracy_results.json")["accuracy_scores"][0]
    assert (scores["unit_samples"], scores["total_samples"]) == (20, 40)
    assert list(client.json("sample_idx_map.json")["acc"].values()) == [*range(20)] * 2


def test_wrong_answers_lower_the_score_and_nothing_else(
    client: Client, set_faults: Callable[..., None]
) -> None:
    set_faults(wrong_answer_percent=50)
    assert (
        client.run(
            client.write(point_config(client.url, accuracy="acc.jsonl")), "--mode", "both"
        ).returncode
        == 0
    )
    assert client.json("accuracy/accuracy_results.json")["average_accuracy"] == 0.5
    assert client.json("performance/result_summary.json")["n_samples_failed"] == 0


def test_only_first_chunks_are_recorded_without_stream_all_chunks(client: Client) -> None:
    """c24_chunks_off: one chunk event a sample, and still a time per output token."""
    client.benchmark(client.write(settings__client__stream_all_chunks=False))
    counts = Counter(event["event_type"] for event in client.events())
    assert (counts["sample.recv_first"], counts["sample.recv_non_first"]) == (40, 0)
    assert client.json("performance/result_summary.json")["tpot"]["total"] > 0


def test_a_key_reaches_the_endpoint_and_not_the_folder(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REHEARSAL_KEY", "sesame")
    with running_endpoint(model="sim-model", api_key_env="REHEARSAL_KEY", decode_ms=1) as url:
        client.url = url
        config = client.write(endpoint_config__api_key="${REHEARSAL_KEY}")
        assert client.run(config).returncode == 0
    assert client.json("performance/result_summary.json")["n_samples_failed"] == 0
    kept = b"".join(path.read_bytes() for path in (client.folder / "out").rglob("*.*"))
    assert b"sesame" not in kept


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--version",), 0, "0.1.0+rehearsal\n"),
        (("init", "online"), 2, "Unknown template type: online"),
        (("benchmark", "from-config"), 1, ""),
        (("benchmark", "from-config", "--config", "missing.yaml"), 2, "not found: missing.yaml"),
    ],
)
def test_the_command_line_ends_with_the_real_codes(
    client: Client, arguments: tuple[str, ...], code: int, said: str
) -> None:
    done = client.call(*arguments)
    assert done.returncode == code
    assert said in done.stdout


def test_a_syntax_error_ends_with_2_and_names_its_place(client: Client) -> None:
    """c14_syntax; nothing is created."""
    config = client.write()
    config.write_text("name: x\n  type: [online")
    done = client.run(config)
    assert done.returncode == 2
    assert "Config error" in done.stdout
    assert "line 2, column 7" in done.stdout
    assert not (client.folder / "out").exists()


def test_an_unknown_key_ends_with_2_and_is_named(client: Client) -> None:
    """c14_unknown_key, as `validate-yaml` says it."""
    config = client.write(settings__runtime__n_samples=5)
    done = client.call("validate-yaml", "--config", str(config))
    assert done.returncode == 2
    assert "Config validation failed" in done.stdout
    assert "settings.runtime.n_samples\n  Extra inputs are not permitted" in done.stdout


def test_init_writes_a_template_that_validates(client: Client) -> None:
    done = client.call("init", "concurrency")
    assert done.returncode == 0
    assert "Created: concurrency_template.yaml" in done.stdout
    valid = client.call("validate-yaml", "-c", "concurrency_template.yaml")
    assert valid.returncode == 0
    assert "Config valid: concurrency_benchmark" in valid.stdout


def test_the_later_dialect_is_learnt_from_its_own_template(client: Client) -> None:
    """A template of one dialect does not validate in the other."""
    assert client.call("init", "offline", PARETO_REHEARSAL_DIALECT="2026-09").returncode == 0
    refused = client.call("validate-yaml", "-c", "offline_template.yaml")
    assert refused.returncode == 2
    assert "settings.timeouts" in refused.stdout


def test_probe_succeeds_or_fails_with_4(client: Client) -> None:
    """c14_probe_ok and c14_probe_dead."""
    probe = ("probe", "--model", "sim-model", "--requests", "3", "--endpoints")
    good = client.call(*probe, client.url)
    assert good.returncode == 0
    assert "Completed: 3/3 successful" in good.stdout
    dead = client.call(*probe, "http://127.0.0.1:9")
    assert dead.returncode == 4
    assert "ConnectionRefusedError(111, 'Connection refused')" in dead.stdout


def test_an_unreachable_endpoint_ends_with_3(client: Client) -> None:
    """c12_unreachable: the folder has the configuration, no events, an interrupted snapshot."""
    client.url = "http://127.0.0.1:9"
    done = client.run(client.write())
    assert done.returncode == 3
    assert "Failed to connect to endpoint" in done.stdout
    left = {path.name for path in (client.folder / "out").rglob("*") if path.is_file()}
    assert left == {"config.yaml", "events.jsonl", ".ready", "final_snapshot.json"}
    assert client.events() == []
    assert client.json("metrics/final_snapshot.json")["state"] == "interrupted"


def test_without_connection_warmup_an_unreachable_endpoint_fails_every_sample(
    client: Client,
) -> None:
    client.url = "http://127.0.0.1:9"
    done = client.run(client.write(settings__client__warmup_connections=0))
    assert done.returncode == 0
    summary = client.json("performance/result_summary.json")
    assert summary["n_samples_failed"] == summary["n_samples_completed"] == 40
    assert summary["complete"] is True
    assert "errors=40" in done.stderr


@pytest.mark.parametrize(
    ("changes", "code", "said"),
    [
        ({"datasets": [{"name": "p", "path": "gone.jsonl"}]}, 2, "not found: gone.jsonl"),
        ({"datasets": [{"name": "p", "path": "config.yaml"}]}, 3, "Failed to load dataset"),
        ({"datasets": []}, 2, "performance dataset"),
        ({"endpoint_config__api_type": "sglang"}, 3, "api_type 'sglang'"),
        ({"settings__load_pattern": {"type": "poisson", "target_qps": 5}}, 3, "'poisson'"),
    ],
)
def test_what_cannot_be_run_ends_before_any_request(
    client: Client, changes: dict[str, Any], code: int, said: str
) -> None:
    with pytest.raises(ClientError, match=said) as failure:
        client.benchmark(client.write(**changes))
    assert failure.value.exit_code == code
    assert not (client.folder / "out" / "performance").exists()


def test_numeric_truths_score_nothing_and_a_missing_column_ends_with_1(client: Client) -> None:
    """c02_both_numeric_truth; a bad column is noticed after the whole run, the report is there."""
    assert (
        client.run(
            client.write(point_config(client.url, accuracy="acc_num.jsonl")), "--mode", "both"
        ).returncode
        == 0
    )
    assert client.json("accuracy/accuracy_results.json")["average_accuracy"] == 0.0
    config = client.write(point_config(client.url, accuracy="acc.jsonl"))
    document = yaml.safe_load(config.read_text())
    document["datasets"][1]["accuracy_config"]["ground_truth"] = "gone"
    config.write_text(yaml.safe_dump(document))
    with pytest.raises(ClientError, match="gone not found") as failure:
        client.benchmark(config, "both")
    assert failure.value.exit_code == 1
    assert client.json("performance/result_summary.json")["complete"] is True


def test_a_dying_endpoint_fails_what_remains(client: Client) -> None:
    """c11_dies: exit 0, the rest refused, streams that broke off counted as completed."""
    with running_endpoint(model="sim-model", decode_ms=1, die_after=17) as url:
        client.url = url
        done = client.run(client.write())
    assert done.returncode == 0
    summary = client.json("performance/result_summary.json")
    assert summary["n_samples_completed"] == 40
    assert 20 <= summary["n_samples_failed"] <= 23
    assert sum(summary["finish_reason_counts"].values()) <= 17


def test_a_drain_that_times_out_still_ends_complete(
    client: Client, set_faults: Callable[..., None]
) -> None:
    """c10_stall_tail_drain: exit 0 and complete, with fewer completed than issued."""
    set_faults(stall_after=38)
    config = client.write(settings__drain={"performance_timeout_s": 1.0})
    done = client.run(config)
    assert done.returncode == 0
    assert "Drain timed out after 1 s with 2 responses still in flight" in done.stdout
    summary = client.json("performance/result_summary.json")
    assert (summary["n_samples_issued"], summary["n_samples_completed"]) == (40, 38)
    assert summary["complete"] is True


def test_a_maximum_duration_ends_the_phase_and_looks_complete(
    client: Client, set_faults: Callable[..., None]
) -> None:
    """c17_maxdur; what is in flight is given up, so a stalled endpoint cannot hold the run."""
    set_faults(stall_after=10)
    done = client.run(client.write(settings__runtime__max_duration_ms=500))
    assert done.returncode == 0
    assert "max_duration reached (500 ms)" in done.stdout
    summary = client.json("performance/result_summary.json")
    assert summary["n_samples_issued"] - summary["n_samples_completed"] == 4
    assert summary["n_samples_issued"] <= 14
    assert summary["complete"] is True


def _interrupt_midway(
    client: Client, set_faults: Callable[..., None], *arguments: str, **env: str
) -> Any:
    """Start a run that stalls after a few samples, and interrupt its main process."""
    set_faults(stall_after=10)
    config = client.folder / "config.yaml"
    process = client.start("benchmark", "from-config", "-c", str(config), *arguments, **env)
    deadline = time.monotonic() + PATIENCE_S
    while "rehearsal_requests_stalled 4" not in httpx.get(f"{client.url}/metrics").text:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    return process


def test_an_interrupt_ends_early_with_0_and_a_report_that_looks_complete(
    client: Client, set_faults: Callable[..., None]
) -> None:
    """c07_sigint: the lesson that exit 0 and `complete` do not make a run good."""
    client.write()
    process = _interrupt_midway(client, set_faults)
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0
    summary = client.json("performance/result_summary.json")
    assert (summary["state"], summary["complete"]) == ("complete", True)
    assert (summary["n_samples_issued"], summary["n_samples_completed"]) == (14, 10)
    assert client.events()[-1]["event_type"] == "session.ended"


def test_an_interrupt_before_the_accuracy_phase_ends_with_1_and_no_accuracy(
    client: Client, set_faults: Callable[..., None]
) -> None:
    """c07_sigint_both."""
    client.write(point_config(client.url, accuracy="acc.jsonl"))
    process = _interrupt_midway(client, set_faults, "--mode", "both")
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1
    assert client.json("performance/result_summary.json")["n_samples_issued"] == 14
    assert not (client.folder / "out" / "accuracy").exists()


def test_a_second_interrupt_loses_the_report(
    client: Client, set_faults: Callable[..., None]
) -> None:
    client.write(settings__client__worker_graceful_shutdown_wait=60.0)
    process = _interrupt_midway(client, set_faults)
    assert process.stdout is not None
    for line in process.stdout:
        if "Phase performance complete" in line:
            break
    # Between that line and the wait an interrupt changes nothing, so it is repeated.
    while process.poll() is None:
        time.sleep(1.0)
        process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert not (client.folder / "out" / "report.txt").exists()


def test_an_interrupt_during_start_up_ends_with_130(client: Client) -> None:
    """c07_sigint_startup; the dataset is a pipe that nobody writes to, so start-up lasts."""
    (client.folder / "perf.jsonl").unlink()
    os.mkfifo(client.folder / "perf.jsonl")
    process = client.start("benchmark", "from-config", "-c", str(client.write()))
    client.wait_for("config.yaml")
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert not (client.folder / "out" / "performance").exists()


def test_a_termination_leaves_the_configuration_only(
    client: Client, set_faults: Callable[..., None]
) -> None:
    """c08_sigterm: the client dies of the signal; unlike the real one it leaves no process."""
    set_faults(stall_after=10)
    process = client.start("benchmark", "from-config", "-c", str(client.write()))
    client.wait_for("metrics/.ready")
    process.terminate()
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == -signal.SIGTERM
    left = {path.name for path in (client.folder / "out").rglob("*") if path.is_file()}
    assert left == {"config.yaml", ".ready"}


def _later(client: Client, **timeouts: float) -> dict[str, str]:
    """Write a configuration of the later dialect; return the environment that selects it."""
    config = client.write(settings__timeouts=timeouts)
    document = yaml.safe_load(config.read_text())
    del document["settings"]["runtime"]["min_duration_ms"]
    config.write_text(yaml.safe_dump(document))
    return {"PARETO_REHEARSAL_DIALECT": "2026-09"}


@pytest.mark.parametrize("deadline", ["run_timeout_s", "endpoint_response_idle_timeout_s"])
def test_the_later_dialect_ends_a_stalled_run_with_4_and_says_interrupted(
    client: Client, set_faults: Callable[..., None], deadline: str
) -> None:
    set_faults(stall_after=10)
    env = _later(client, **{deadline: 0.6})
    done = client.call("benchmark", "from-config", "-c", "config.yaml", **env)
    assert done.returncode == 4
    assert deadline in done.stdout
    summary = client.json("performance/result_summary.json")
    assert (summary["state"], summary["complete"]) == ("interrupted", False)


def test_the_later_dialect_ends_an_interrupted_run_with_130_and_a_report(
    client: Client, set_faults: Callable[..., None]
) -> None:
    env = _later(client)
    process = _interrupt_midway(client, set_faults, **env)
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert client.json("performance/result_summary.json")["state"] == "interrupted"


def test_a_good_run_of_the_later_dialect_is_like_one_of_the_earlier(client: Client) -> None:
    env = _later(client, endpoint_response_idle_timeout_s=5)
    done = client.call("benchmark", "from-config", "-c", "config.yaml", "--timeout", "9", **env)
    assert done.returncode == 0
    assert client.json("performance/result_summary.json")["complete"] is True
    saved = yaml.safe_load((client.folder / "out" / "config.yaml").read_text())
    assert saved["settings"]["timeouts"]["run_timeout_s"] == 9.0


def test_the_later_dialect_waits_for_the_last_answers_of_a_capped_phase(client: Client) -> None:
    """Unlike the earlier one, which gives up what is in flight."""
    env = _later(client)
    config = client.folder / "config.yaml"
    document = yaml.safe_load(config.read_text())
    document["settings"]["runtime"] |= {"n_samples_to_issue": 100_000, "max_issue_duration_ms": 300}
    config.write_text(yaml.safe_dump(document))
    assert client.call("benchmark", "from-config", "-c", "config.yaml", **env).returncode == 0
    summary = client.json("performance/result_summary.json")
    assert 0 < summary["n_samples_completed"] == summary["n_samples_issued"] < 100_000


def test_an_interrupted_run_of_the_later_dialect_scores_what_was_asked(
    client: Client, set_faults: Callable[..., None]
) -> None:
    """Interrupted before its accuracy phase, it ends with 130 and no accuracy result."""
    env = _later(client)
    config = client.folder / "config.yaml"
    document = yaml.safe_load(config.read_text())
    document["datasets"] = point_config(client.url, accuracy="acc.jsonl")["datasets"]
    config.write_text(yaml.safe_dump(document))
    process = _interrupt_midway(client, set_faults, "--mode", "both", **env)
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert client.json("performance/result_summary.json")["complete"] is False
    assert not (client.folder / "out" / "accuracy").exists()
