"""Each service's exact command and health check, started here without containers."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.compose import ROOT, read_compose, resolved
from tests.flows.support import wait_until
from tests.postgres import Postgres, free_port, running_postgres

#: Seconds that a service gets to end after SIGTERM; compose gives it two minutes.
END_S = 100.0


@dataclass(frozen=True)
class Stack:
    """What stands for the containers: one folder, ports of this machine instead of names."""

    folder: Path
    server: Postgres
    port: int

    @property
    def secrets(self) -> Path:
        """The secrets, as `deploy/secrets.sh` made them."""
        return self.folder / "secrets"

    @property
    def api_url(self) -> str:
        """Prefect's API."""
        return f"http://127.0.0.1:{self.port}/api"

    @property
    def login(self) -> tuple[str, str]:
        """User and password of Prefect's API."""
        user, _, password = (self.secrets / "prefect_auth").read_text().partition(":")
        return user, password

    def get(self, url: str) -> httpx.Response:
        """What Prefect's server answers to who has the login."""
        return httpx.get(url, auth=self.login, timeout=60.0)

    def here(self, name: str, value: Any) -> Any:
        """A value of a service as it is on this machine."""
        if isinstance(value, dict):
            return {key: self.here(name, inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [self.here(name, inner) for inner in value]
        for container, ours in (
            ("database:5432", f"127.0.0.1:{self.server.port}"),
            ("prefect:4200", f"127.0.0.1:{self.port}"),
            ("127.0.0.1:4200", f"127.0.0.1:{self.port}"),
            ("0.0.0.0", "127.0.0.1"),
            ("/data", str(self.folder / "data")),
            ("/state", str(self.folder / name)),
        ):
            value = value.replace(container, ours)
        return str(self.port) if value == "4200" else value

    def env(self, name: str, service: dict[str, Any]) -> dict[str, str]:
        """Environment of a service: the image's, and what the compose file gives it."""
        secrets = self.folder / f"{name}-secrets"
        secrets.mkdir(exist_ok=True)
        for secret in service["secrets"]:
            source, target = (
                (secret, secret)
                if isinstance(secret, str)
                else (secret["source"], secret["target"])
            )
            (secrets / target).write_text((self.secrets / source).read_text())
        image = {
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "PREFECT_HOME": "/state/prefect",
            "PARETO_STATE_DIR": "/state",
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
            "DO_NOT_TRACK": "1",
            "PARETO_SECRETS": str(secrets),
        }
        given = resolved(image | service.get("environment", {}), {"PARETO_PORT": str(self.port)})
        return os.environ | self.here(name, given)

    @contextmanager
    def running(self, name: str) -> Iterator[subprocess.Popen[bytes]]:
        """A service by its own command, healthy by its own check; ends well when asked to."""
        service = read_compose()["services"][name]
        env = self.env(name, service)
        command = self.here(name, resolved(service["command"], {}))
        entry = ["sh", str(ROOT / "deploy" / "entrypoint.sh")]
        with (self.folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [*entry, *command],
                env=env,
                cwd=self.folder / "data",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            wait_until(
                lambda: process.poll() is not None or self.is_healthy(name, service, env),
                f"{name} to be healthy",
                pause_s=1.0,
            )
            assert process.poll() is None, (self.folder / f"{name}.log").read_text()
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(END_S)

    def is_healthy(self, name: str, service: dict[str, Any], env: dict[str, str]) -> bool:
        """Whether the service's own check says so."""
        kind, *check = self.here(name, resolved(service["healthcheck"]["test"], {}))
        command = ["sh", "-c", check[0]] if kind == "CMD-SHELL" else check
        done = subprocess.run(command, env=env, capture_output=True, check=False, timeout=30)
        return done.returncode == 0


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Stack]:
    """PostgreSQL as the compose file sets it up, and programs by the names of the image."""
    for name in ("data", "bin", "prefect", "serve", "worker", "pareto"):
        (tmp_path / name).mkdir()
    modules = {"pareto": "-m flows.cli", "prefect": "-m prefect", "python": ""}
    for name, module in modules.items():
        program = tmp_path / "bin" / name
        program.write_text(f'#!/bin/sh\nexec {sys.executable} {module} "$@"\n')
        program.chmod(0o755)
    made = ["sh", str(ROOT / "deploy" / "secrets.sh"), str(tmp_path / "secrets")]
    subprocess.run(made, check=True)
    password = (tmp_path / "secrets" / "database_password").read_text()
    with running_postgres(password) as server:
        stack = Stack(tmp_path, server, free_port())
        set_up_databases(stack)
        yield stack


def set_up_databases(stack: Stack) -> None:
    """What the PostgreSQL image does in a new cluster."""
    env = os.environ | {
        "PATH": f"{stack.server.programs}:{os.environ['PATH']}",
        "PARETO_SECRETS": str(stack.secrets),
        "POSTGRES_USER": "postgres",
        "PGHOST": str(stack.server.folder),
        "PGPORT": str(stack.server.port),
    }
    subprocess.run(["sh", str(ROOT / "deploy" / "databases.sh")], env=env, check=True)


def test_every_service_starts_by_its_own_command(stack: Stack) -> None:
    """Healthy by its own check, with its own secrets; Prefect's API is closed to others."""
    compose = read_compose()["services"]
    with ExitStack() as block:
        block.enter_context(stack.running("prefect"))
        assert httpx.get(f"{stack.api_url}/admin/version", timeout=60).status_code == 401
        assert stack.get(f"{stack.api_url}/admin/version").is_success
        serve = block.enter_context(stack.running("serve"))
        worker = block.enter_context(stack.running("worker"))
        for deployment in ("campaign/campaign", "campaign/rehearsal-box"):
            url = f"{stack.api_url}/deployments/name/{deployment}"
            wait_until(
                lambda at=url: httpx.get(at, auth=stack.login, timeout=60).is_success, deployment
            )
        tools = compose["pareto"]
        command = [*tools["entrypoint"][1:], *tools["command"]]
        entry = ["sh", str(ROOT / "deploy" / "entrypoint.sh")]
        done = subprocess.run(
            [*entry, *command],
            env=stack.env("pareto", tools),
            cwd=stack.folder / "data",
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done
        assert "campaign" in done.stdout
    assert (serve.returncode, worker.returncode) == (0, 0)
    for path in stack.folder.glob("*.log"):
        leaked = [s.name for s in stack.secrets.iterdir() if s.read_text() in path.read_text()]
        assert [name for name in leaked if name != "endpoint_api_key"] == [], path


def test_secrets_are_made_once_and_closed(tmp_path: Path) -> None:
    """A second call keeps them; others of the machine can't enter their folder."""
    folder = tmp_path / "secrets"
    before: dict[str, str] = {}
    for _ in range(2):
        subprocess.run(["sh", str(ROOT / "deploy" / "secrets.sh"), str(folder)], check=True)
        now = {path.name: path.read_text() for path in folder.iterdir()}
        assert before in ({}, now)
        before = now
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert before.keys() == read_compose()["secrets"].keys()
    assert len(before["pareto_database_password"]) == 48
