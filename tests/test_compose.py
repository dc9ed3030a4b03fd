"""The compose file: right by its schema, and safe by default."""

from __future__ import annotations

import copy
import json
import os
import re
import subprocess
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.compose import COMPOSE, ROOT, read_compose, resolved

#: A tag that names one version: at least three parts, or two with a named variant.
_PINNED = re.compile(r":v?\d+\.\d+(\.\d+|-[a-z0-9.]+)[a-z0-9.-]*$")


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    """The file as compose reads it, before variables are filled in."""
    return read_compose()


def schema() -> Any:
    """The schema of the Compose Specification, as `check-jsonschema` brings it."""
    folder = files("check_jsonschema") / "builtin_schemas" / "vendor"
    return json.loads((folder / "compose-spec.json").read_text(encoding="utf-8"))


def problems(document: dict[str, Any]) -> list[str]:
    """What the schema has against a compose file."""
    validator = jsonschema.validators.validator_for(schema())(schema())
    return [error.message for error in validator.iter_errors(document)]


def test_it_is_a_compose_file(compose: dict[str, Any]) -> None:
    """By the schema of the specification, which does refuse what is none."""
    assert problems(compose) == []
    for path, wrong in (
        (("services", "worker", "restarts"), "always"),
        (("services", "worker", "depends_on", "prefect", "condition"), "service_well"),
        (("services", "database", "healthcheck", "intervall"), "5s"),
        (("volume",), {}),
    ):
        broken = copy.deepcopy(compose)
        place = broken
        for part in path[:-1]:
            place = place[part]
        place[path[-1]] = wrong
        assert problems(broken), path


def test_every_image_is_pinned(compose: dict[str, Any]) -> None:
    """Also those that the image is built from."""
    images = [service["image"] for service in compose["services"].values()]
    built_from = re.findall(r"^FROM (\S+)", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert built_from
    assert [image for image in images + built_from if not _PINNED.search(image)] == []
    assert not _PINNED.search("postgres:17")
    assert not _PINNED.search("python:latest")


def test_nothing_runs_as_root(compose: dict[str, Any]) -> None:
    users = re.findall(r"^USER (\S+)", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert users == ["pareto"]
    for name, service in compose["services"].items():
        assert service.get("user", users[-1]) not in ("root", "0"), name
        assert service.get("image", "").startswith("pareto-campaigns:") or service["user"], name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert not service.get("privileged"), name


def test_every_service_is_watched_and_started_again(compose: dict[str, Any]) -> None:
    """And waits for what it needs; the command line alone ends by itself."""
    for name, service in compose["services"].items():
        if service.get("profiles") == ["tools"]:
            continue
        assert service["restart"] == "unless-stopped", name
        assert {"test", "interval", "timeout", "retries"} <= service["healthcheck"].keys(), name
        needed = service.get("depends_on", {})
        assert {need["condition"] for need in needed.values()} <= {"service_healthy"}, name


def test_secrets_come_from_files_alone(compose: dict[str, Any]) -> None:
    """No password stands in the file; each is one of `deploy/secrets.sh`, and is used."""
    text = COMPOSE.read_text()
    assert re.findall(r"://[^@\s]*:[^@/\s]+@", text) == []
    made = (ROOT / "deploy" / "secrets.sh").read_text()
    used = set()
    for service in compose["services"].values():
        wanted = service.get("secrets", [])
        used |= {one if isinstance(one, str) else one["source"] for one in wanted}
        for variable in service.get("environment", {}):
            assert not variable.endswith(("PASSWORD", "AUTH_STRING", "KEY")), variable
    assert used == set(compose["secrets"])
    for name, secret in compose["secrets"].items():
        assert secret["file"] == f"./secrets/{name}"
        assert name in made


def test_prefect_asks_for_a_password_and_listens_on_this_machine(compose: dict[str, Any]) -> None:
    """The server, and all who ask it, take the same secret."""
    with_login = {
        name
        for name, service in compose["services"].items()
        if "prefect_auth" in service.get("secrets", [])
    }
    assert with_login == {"prefect", "serve", "worker", "pareto"}
    published = {name: s["ports"] for name, s in compose["services"].items() if s.get("ports")}
    assert list(published) == ["prefect"]
    assert resolved(published["prefect"], {}) == ["127.0.0.1:4200:4200"]


def test_what_it_mounts_is_there(compose: dict[str, Any]) -> None:
    """Named volumes are declared and used; paths are of the repository."""
    used = set()
    for service in compose["services"].values():
        for volume in service.get("volumes", []):
            source = volume.partition(":")[0]
            if source.startswith("."):
                assert (ROOT / source).exists(), source
            else:
                used.add(source)
    assert used == set(compose["volumes"])


def test_the_image_takes_what_its_build_needs() -> None:
    """Everything that the Dockerfile copies exists, and is let through by .dockerignore."""
    copied = re.findall(
        r"^COPY (?!--from)(.+) \S+$", (ROOT / "Dockerfile").read_text(), re.MULTILINE
    )
    names = [name for line in copied for name in line.split()]
    let_through = (ROOT / ".dockerignore").read_text().split()
    for name in names:
        assert (ROOT / name).exists(), name
        assert f"!{name}" in let_through, name
    assert {"core", "tasks", "flows"} <= set(names)


def test_a_worker_of_its_own_name_among_machines(compose: dict[str, Any]) -> None:
    """A container's name is its host's otherwise, and another one after each restart."""
    named = {s["hostname"] for s in compose["services"].values() if "hostname" in s}
    assert {resolved(compose["services"]["worker"]["hostname"], {}), "serve"} <= {
        resolved(name, {}) for name in named
    }
    assert resolved(compose["services"]["worker"]["command"], {"PARETO_INSTANCE": "h200-8"}) == [
        "pareto",
        "worker",
        "h200-8",
        "--folder",
        "/data",
    ]
    assert Path(ROOT / "deploy" / "entrypoint.sh").stat().st_mode & 0o111


def test_no_command_line_holds_a_password(tmp_path: Path) -> None:
    """Of the script that sets the databases up: every process of the machine sees it."""
    secrets, seen, psql = tmp_path / "secrets", tmp_path / "seen", tmp_path / "bin" / "psql"
    subprocess.run(["sh", str(ROOT / "deploy" / "secrets.sh"), str(secrets)], check=True)
    psql.parent.mkdir()
    psql.write_text(f'#!/bin/sh\necho "$@" >>{seen}\ncat >/dev/null\n')
    psql.chmod(0o755)
    env = {
        "PATH": f"{psql.parent}:{os.environ['PATH']}",
        "PARETO_SECRETS": str(secrets),
        "POSTGRES_USER": "postgres",
    }
    script = ["sh", str(ROOT / "deploy" / "databases.sh")]
    subprocess.run(script, env=env, check=True)
    shown = seen.read_text()
    assert shown.count("--username=postgres") == 2
    assert not any(file.read_text().strip() in shown for file in secrets.glob("*database*"))
    (secrets / "pareto_database_password").unlink()  # no role without a password
    assert subprocess.run(script, env=env, check=False).returncode != 0
