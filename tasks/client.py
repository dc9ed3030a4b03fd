"""Calls the official client's small commands: its version, its templates, `validate-yaml`.

A measurement itself is started by `tasks/supervise.py`.
"""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from core.client_config import check_template
from core.errors import ClientMissingError, SetupError
from tasks.bounded import Bounds, UnreadableError, run_bounded

#: Seconds for one small command; the real client needs 3–4 s for each (`shared` measurements).
COMMAND_TIMEOUT_S = 120.0
#: Bytes that it may print; a template is about 10 KB.
_MAX_BYTES = 16 << 20
#: What the stand-in client of `tasks/rehearsal` puts into its version.
REHEARSAL_MARK = "rehearsal"
#: Lines of the client's own output shown in an error.
_SHOWN_LINES = 12


@dataclass(frozen=True)
class InstalledClient:
    """The client as installed: its command, version, and templates by name."""

    command: tuple[str, ...]
    version: str
    templates: Mapping[str, Mapping[str, Any]]

    @property
    def is_stand_in(self) -> bool:
        """Whether this is the rehearsal's stand-in and not the official client."""
        return REHEARSAL_MARK in self.version


def inspect_client(
    command: Sequence[str], templates: Sequence[str], env: Mapping[str, str]
) -> InstalledClient:
    """Ask the installed client for its version and its templates, side by side.

    Raises:
        ClientMissingError: the command is missing, or can't even tell its version.
        SetupError: it prints no usable template.
    """
    with ThreadPoolExecutor(max_workers=len(templates) + 1) as pool:
        version = pool.submit(run_command, [*command, "--version"], env)
        found = {name: pool.submit(_template, command, name, env) for name in templates}
        try:
            known = version.result()
        except SetupError as problem:
            raise ClientMissingError(str(problem)) from None
        return InstalledClient(
            command=tuple(command),
            version=_last_line(known),
            templates={name: template.result() for name, template in found.items()},
        )


def validate_config(command: Sequence[str], config: Path, env: Mapping[str, str]) -> None:
    """Let the client confirm a configuration.

    Raises:
        SetupError: with the client's own message.
    """
    run_command([*command, "validate-yaml", "-c", str(config)], env, cwd=config.parent)


def benchmark_command(command: Sequence[str], config: Path, *, accuracy: bool) -> list[str]:
    """The command of one measurement.

    With accuracy it is `--mode both`, so that the accuracy run follows at once at the same
    concurrency; `--mode acc` would force a concurrency of 1.
    """
    mode = "both" if accuracy else "perf"
    return [*command, "benchmark", "from-config", "--config", str(config), "--mode", mode]


def run_command(command: Sequence[str], env: Mapping[str, str], cwd: Path | None = None) -> str:
    """Standard output of a small command of the client.

    Raises:
        SetupError: it can't be started, fails, takes longer than `COMMAND_TIMEOUT_S`, or prints
            too much.
    """
    shown = shlex.join(command)
    try:
        done = run_bounded(command, env, Bounds(COMMAND_TIMEOUT_S, _MAX_BYTES), cwd)
    except (FileNotFoundError, NotADirectoryError):
        raise SetupError(
            f"client.command: {command[0]!r} was not found; install the official client"
            " (mlcommons/endpoints) and name its command"
        ) from None
    except PermissionError:
        raise SetupError(f"client.command: {command[0]!r} is not executable") from None
    except (OSError, ValueError) as problem:  # no program, or an argument that can't be one
        raise SetupError(f"client.command: {command[0]!r} can't be run: {problem}") from None
    except UnreadableError as problem:
        raise SetupError(f"client.command: {problem}: {shown}") from None
    if done.code != 0:
        raise SetupError(
            f"client.command: exit code {done.code} from: {shown}\n"
            + _tail(_text(done.complaints) + _text(done.printed))
        )
    return _text(done.printed)


def _text(said: bytes) -> str:
    return said.decode("utf-8", "replace")


def _template(command: Sequence[str], name: str, env: Mapping[str, str]) -> Mapping[str, Any]:
    """The client's template, whether it writes it into the working directory or prints it."""
    with tempfile.TemporaryDirectory(prefix="pareto-template-") as folder:
        printed = run_command([*command, "init", name], env, cwd=Path(folder))
        written = sorted(Path(folder).glob("*.y*ml"))
        text = written[0].read_text(encoding="utf-8") if written else printed
    try:
        template = yaml.safe_load(text)
    except yaml.YAMLError as problem:
        raise SetupError(f"client.command: init {name} gave no YAML: {problem}") from None
    if not isinstance(template, dict):
        raise SetupError(f"client.command: init {name} gave no template")
    check_template(template)
    return template


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "unknown"


def _tail(text: str) -> str:
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    return "\n".join(f"  | {line}" for line in lines[-_SHOWN_LINES:])
