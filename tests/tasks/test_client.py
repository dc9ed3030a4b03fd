"""The client's small commands, with the stand-in and with clients that misbehave."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from core.client_config import merged
from core.errors import SetupError
from tasks import client
from tasks.client import benchmark_command, inspect_client, run_command, validate_config
from tasks.processes import Identity, is_running, process_start_time

ROOT = Path(__file__).parents[2]
ENV = {**os.environ, "PYTHONPATH": str(ROOT)}
STAND_IN = (sys.executable, "-m", "tasks.rehearsal.client")


def script(folder: Path, text: str) -> list[str]:
    """A client that is a shell script."""
    path = folder / "client"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return [str(path)]


@pytest.mark.parametrize("dialect", ["2026-08", "2026-09"])
def test_the_stand_in_is_inspected(dialect: str) -> None:
    """Version, mark and both templates, of either dialect; nothing is left in the folder."""
    env = {**ENV, "PARETO_REHEARSAL_DIALECT": dialect}
    before = set(Path.cwd().iterdir())
    found = inspect_client(STAND_IN, ["concurrency", "offline"], env)
    assert found.is_stand_in
    assert found.version == "0.1.0+rehearsal"
    assert found.templates["concurrency"]["settings"]["load_pattern"]["type"] == "concurrency"
    assert found.templates["offline"]["settings"]["load_pattern"]["type"] == "max_throughput"
    assert ("timeouts" in found.templates["offline"]["settings"]) == (dialect == "2026-09")
    assert set(Path.cwd().iterdir()) == before


def test_a_template_may_be_printed(tmp_path: Path) -> None:
    """A client that prints instead of writing a file is read as well; its version is its own."""
    template = inspect_client(STAND_IN, ["concurrency"], ENV).templates["concurrency"]
    (tmp_path / "template").write_text(yaml.safe_dump(dict(template)))
    command = script(
        tmp_path,
        f"case $1 in --version) echo; echo 1.2.3; echo;; init) cat {tmp_path}/template;; esac",
    )
    found = inspect_client(command, ["concurrency"], ENV)
    assert (found.version, found.is_stand_in) == ("1.2.3", False)
    assert found.templates["concurrency"] == template


@pytest.mark.parametrize(
    ("body", "cause"),
    [
        ("exit 3", "exit code 3 from: "),
        ("case $1 in init) echo 7;; esac", "init concurrency gave no template"),
        ("case $1 in init) echo '{[';; esac", "init concurrency gave no YAML"),
        ("case $1 in init) echo 'settings: {}';; esac", "it is too old or"),
        ("case $1 in init) echo 'settings: [1]';; esac", "it is too old or"),
    ],
)
def test_a_client_without_a_usable_template_is_refused(
    tmp_path: Path, body: str, cause: str
) -> None:
    """Failing, printing something else, too old: the cause is told."""
    with pytest.raises(SetupError) as refused:
        inspect_client(script(tmp_path, body), ["concurrency"], ENV)
    assert str(refused.value).startswith("client.command: ")
    assert cause in str(refused.value)


def test_the_clients_last_words_are_shown(tmp_path: Path) -> None:
    """Of both outputs, the last lines, whatever bytes they are."""
    command = script(tmp_path, r"seq 40; printf 'bad \377 byte\n' >&2; exit 1")
    with pytest.raises(SetupError) as refused:
        run_command(command, ENV)
    shown = str(refused.value).splitlines()
    assert shown[0].startswith("client.command: exit code 1")
    assert shown[-1] == "  | 40"
    assert len(shown) == 13


@pytest.mark.parametrize(
    ("command", "cause"),
    [
        (["no-such-client", "--version"], "'no-such-client' was not found; install"),
        ([f"{__file__}/client"], "was not found; install"),
        ([__file__], "test_client.py' is not executable"),
        (["a\0b"], "can't be run: "),
    ],
)
def test_what_cannot_be_started_is_told(command: list[str], cause: str) -> None:
    """Not found, not executable, no name of a program."""
    with pytest.raises(SetupError) as refused:
        run_command(command, ENV)
    assert cause in str(refused.value)


def test_a_client_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the limit the command is told that didn't end."""
    monkeypatch.setattr(client, "COMMAND_TIMEOUT_S", 0.2)
    with pytest.raises(SetupError, match=r"no end after 0.2 s: .*client --version"):
        run_command([*script(tmp_path, "exec sleep 30"), "--version"], ENV)


def test_what_a_client_leaves_behind_holds_nobody_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that it started and that holds its output is ended with it, at the limit."""
    monkeypatch.setattr(client, "COMMAND_TIMEOUT_S", 0.5)
    body = f"sleep 30 & echo $! > {tmp_path}/pid"
    with pytest.raises(SetupError, match=r"no end after 0.5 s"):
        run_command(script(tmp_path, body), ENV)
    pid = int((tmp_path / "pid").read_text())
    deadline_s = time.monotonic() + 5.0
    child = Identity(pid, process_start_time(pid) or 0)
    while is_running(child) and time.monotonic() < deadline_s:
        time.sleep(0.01)
    assert not is_running(child)


def config_file(folder: Path, **changes: Any) -> Path:
    """The stand-in's own template, filled in, with changes."""
    template = inspect_client(STAND_IN, ["concurrency"], ENV).templates["concurrency"]
    path = folder / "client.yaml"
    path.write_text(yaml.safe_dump(merged(template, changes)))
    return path


@pytest.mark.parametrize(
    ("changes", "said"),
    [({}, None), ({"nonsense": 1}, "nonsense"), ({"name": "${NOT_SET_AT_ALL}"}, "NOT_SET_AT_ALL")],
)
def test_the_client_decides_about_a_configuration(
    tmp_path: Path, changes: Mapping[str, Any], said: str | None
) -> None:
    """What it accepts is accepted; what it refuses is refused in its own words."""
    config = config_file(tmp_path, **changes)
    if said is None:
        validate_config(STAND_IN, config, ENV)
        return
    with pytest.raises(SetupError) as refused:
        validate_config(STAND_IN, config, ENV)
    assert "validate-yaml" in str(refused.value)
    assert said in str(refused.value)


def test_accuracy_runs_after_performance_in_one_call(tmp_path: Path) -> None:
    """`--mode both` at points with accuracy, never `acc`: that would force a concurrency of 1."""
    config = tmp_path / "client.yaml"
    with_accuracy = benchmark_command(["ie"], config, accuracy=True)
    assert with_accuracy == [
        *("ie", "benchmark", "from-config", "--config", str(config), "--mode", "both")
    ]
    assert benchmark_command(["ie"], config, accuracy=False)[-1] == "perf"
