"""The Prefect server: named and answering, or our own, shared by its users and ended by the last.

One server is started for all of these tests; what starts and ends it are processes of their own,
as in use.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from core.errors import SetupError
from tasks.prefect_server import answers, find_or_start, prefect_server, stop_server

ROOT = Path(__file__).parents[2]
#: Uses the server of a folder until its standard input ends; says which server that is.
USER = """
import os, sys
from pathlib import Path
from tasks.prefect_server import prefect_server
with prefect_server(Path(sys.argv[1])) as server:
    assert os.environ["PREFECT_API_URL"] == server.api_url
    print(server.api_url, flush=True)
    sys.stdin.read()
assert "PREFECT_API_URL" not in os.environ
"""


class User:
    """A process that uses the server of a folder."""

    def __init__(self, folder: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", USER, str(folder)],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def url(self) -> str:
        """The server's address, once it answers."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def leave(self) -> None:
        """Let the process end."""
        self.process.communicate()
        assert self.process.returncode == 0


@contextmanager
def using(folder: Path) -> Iterator[User]:
    """A user while the block lasts, killed if the test fails."""
    user = User(folder)
    try:
        yield user
    finally:
        user.process.kill()
        user.process.communicate()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder for a server, which is ended for certain."""
    yield tmp_path / "prefect"
    stop_server(tmp_path / "prefect")


def test_the_server_is_shared_and_the_last_user_ends_it(folder: Path) -> None:
    """Two at once get the same server; it outlives the first of them and not the last.

    A user that is killed leaves it behind, and the next one takes it over.
    """
    with using(folder) as killed, using(folder) as other:
        url = killed.url()
        assert other.url() == url
        process = psutil.Process(json.loads((folder / "server.json").read_bytes())["pid"])
        family = [process, *process.children(recursive=True)]
        killed.process.kill()
        other.process.kill()
        killed.process.wait()
        other.process.wait()
    assert answers(url)
    with using(folder) as first, using(folder) as last:
        assert first.url() == last.url() == url
        first.leave()
        assert answers(url)
        last.leave()
    assert not answers(url)
    assert not any(member.is_running() for member in family)
    assert not (folder / "server.json").exists()


def test_a_named_server_must_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that doesn't is a matter of the surroundings; none is started in its place."""
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")
    with pytest.raises(SetupError, match="no Prefect server answers at"), prefect_server(tmp_path):
        pass
    monkeypatch.setenv("PREFECT_API_URL", "not an address")
    with pytest.raises(SetupError, match="not an address"), prefect_server(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_named_server_is_used_and_left_alone(
    tmp_path: Path, prefect_api_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was there before and is there afterwards; settings of the user's own are kept."""
    monkeypatch.setenv("PREFECT_API_URL", prefect_api_url)
    monkeypatch.setenv("PREFECT_CLIENT_MAX_RETRIES", "3")
    with prefect_server(tmp_path) as server:
        assert server.api_url == prefect_api_url
        assert server.ui_url == prefect_api_url.removesuffix("/api")
        assert os.environ["PREFECT_SERVER_ANALYTICS_ENABLED"] == "false"
        assert os.environ["PREFECT_CLIENT_MAX_RETRIES"] == "3"
    assert answers(prefect_api_url)
    assert os.environ["PREFECT_API_URL"] == prefect_api_url
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "address",
    [
        "",
        "[]",
        '{"pid": 1}',
        '{"api_url": "http://127.0.0.1:9/api", "pid": 1, "created": 0}',
        '{"api_url": "http://127.0.0.1:9/api", "pid": 99999999, "created": 0}',
    ],
)
def test_an_address_that_is_no_servers_is_left_alone(tmp_path: Path, address: str) -> None:
    """Torn, of another form, of a process that got the pid later: nothing is ended."""
    (tmp_path / "server.json").write_text(address)
    stop_server(tmp_path)
    assert not (tmp_path / "server.json").exists()
    assert psutil.pid_exists(1)


def test_a_server_that_does_not_start_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the log to look into; it is not waited for, and its address is not left behind."""
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(SetupError, match=r"did not start; see .*server\.log"):
        find_or_start(tmp_path)
    assert not (tmp_path / "server.json").exists()
