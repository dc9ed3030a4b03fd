"""Questions to the system under test, against real servers and commands, well-behaved or not."""

from __future__ import annotations

import itertools
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from core.campaign import Campaign
from core.campaign_probes import Probe
from core.errors import SetupError
from core.identity import START_TIME
from tasks import probe as module
from tasks.probe import check_probes, read_endpoint, read_identity, read_probes, run_probe
from tests.campaigns import make_campaign

#: The environment of commands.
ENV = {"PATH": os.environ["PATH"]}


class Server(ThreadingHTTPServer):
    """A server that answers paths as the test states."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.pages: dict[str, Callable[[], Any]] = {}

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.server_port}"

    def campaign(self, *probes: dict[str, Any]) -> Campaign:
        """A campaign on this server."""
        return make_campaign(endpoint={"urls": [self.url]}, fingerprint={"probes": list(probes)})


class Handler(BaseHTTPRequestHandler):
    """Answers one request: a page is JSON, bytes, pieces of bytes, or a status."""

    server: Server

    def do_GET(self) -> None:
        page = self.server.pages.get(self.path, lambda: 404)()
        status = page if isinstance(page, int) else 200
        self.send_response(status)
        self.end_headers()
        if isinstance(page, int):
            return
        pieces = page if isinstance(page, Iterator) else [page]
        for piece in pieces:
            self.wfile.write(piece if isinstance(piece, bytes) else json.dumps(piece).encode())

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    """A running server."""
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAUSE_S", 0.01)


VLLM = (
    b"# HELP process_start_time_seconds Start time\n"
    b"process_start_time_seconds 1.76e9\n"
    b'vllm:cache_config_info{block_size="16",engine="0",num_gpu_blocks="123"} 1.0\n'
    b'vllm:lora_requests_info{running_lora_adapters=""} 1.7e9\n'
    b"vllm:num_requests_running 3.0\n"
)


def test_what_a_vllm_server_says_of_itself(server: Server) -> None:
    """Models, version and configuration; nothing that a request or a restart changes."""
    count = itertools.count(1)
    server.pages = {
        "/v1/models": lambda: {
            "data": [{"id": "m", "max_model_len": 8192, "created": next(count), "root": "/m"}]
        },
        "/version": lambda: {"version": "0.11.0"},
        "/metrics": lambda: VLLM,
    }
    campaign = server.campaign()
    found = read_endpoint(campaign, {})[server.url]
    assert found == {
        "models": [{"id": "m", "max_model_len": 8192, "root": "/m"}],
        "/version": {"version": "0.11.0"},
        "/metrics": [
            {"metric": "vllm:cache_config_info", "labels": {"block_size": "16", "engine": "0"}}
        ],
    }
    assert read_endpoint(campaign, {})[server.url] == found
    assert read_identity(campaign, {}, looks=3) == {server.url: {START_TIME: [1.76e9]}}


def test_what_a_sglang_server_says_of_itself(server: Server) -> None:
    """Its arguments; the seed that it draws at its start tells instances apart."""
    info = {"tp_size": 8, "random_seed": 42, "internal_states": [{"load": 3}], "version": "0.5"}
    server.pages = {"/get_server_info": lambda: info}
    campaign = server.campaign()
    assert read_endpoint(campaign, {})[server.url] == {
        "models": [],
        "/get_server_info": {"tp_size": 8, "version": "0.5"},
    }
    assert read_identity(campaign, {}) == {server.url: {"/get_server_info random_seed": 42}}


def test_an_endpoint_that_reveals_nothing(server: Server) -> None:
    """No path but the models: no identity, and no failure."""
    server.pages = {"/version": lambda: 401, "/metrics": lambda: 403}
    assert read_identity(server.campaign(), {}) == {server.url: {}}


def test_several_urls_have_one_identity_each(server: Server) -> None:
    with Server() as other:
        threading.Thread(target=other.serve_forever, args=(0.01,), daemon=True).start()
        server.pages["/metrics"] = lambda: b"process_start_time_seconds 1\n"
        other.pages["/metrics"] = lambda: b"process_start_time_seconds 2\n"
        urls = [server.url, other.url]
        both = [make_campaign(endpoint={"urls": order}) for order in (urls, urls[::-1])]
        found = [read_identity(campaign, {}) for campaign in both]
        other.shutdown()
    assert found[0] == {server.url: {START_TIME: [1.0]}, other.url: {START_TIME: [2.0]}}
    assert list(found[0]) == list(found[1]) == sorted(urls)


def test_a_balancer_is_no_instance(server: Server) -> None:
    """Each request is answered by another server: nothing is taken for an identity."""
    starts = itertools.cycle([1, 500])
    server.pages["/metrics"] = lambda: b"process_start_time_seconds %d\n" % next(starts)
    assert read_identity(server.campaign(), {}, looks=4) == {server.url: {}}


def test_metrics_of_50_mb_are_read_without_being_kept(server: Server) -> None:
    """In constant memory; also one line without end."""
    import tracemalloc

    line = b'vllm:request_seconds_bucket{le="0.5",model="m"} 17.0\n'
    server.pages["/metrics"] = lambda: itertools.chain(
        itertools.repeat(line * 2000, 500), [VLLM], itertools.repeat(b"x" * 50_000, 40)
    )
    tracemalloc.start()
    found = read_identity(server.campaign(), {})
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found[server.url][START_TIME] == [1.76e9]
    assert peak_bytes < 8 << 20


def test_a_server_that_fails_once_is_asked_again(server: Server) -> None:
    """One lost answer is no drift; a server that goes on failing can't be asked."""
    statuses = iter([500])
    server.pages["/version"] = lambda: next(statuses, {"version": "1"})
    assert read_endpoint(server.campaign(), {})[server.url]["/version"] == {"version": "1"}
    server.pages["/version"] = lambda: 503
    with pytest.raises(SetupError, match=r"can't be asked what it is: status 503"):
        read_endpoint(server.campaign(), {})


def test_an_endless_answer_is_cut(server: Server) -> None:
    server.pages["/version"] = lambda: itertools.repeat(b"x" * 65536)
    with pytest.raises(SetupError, match="more than 1,048,576 bytes"):
        read_endpoint(server.campaign(), {})


def test_a_secret_of_the_server_never_enters(server: Server) -> None:
    from core.fingerprint import fingerprint

    server.pages["/get_server_info"] = lambda: {"api_key": "sk-of-the-server", "tp_size": 1}
    found = fingerprint({"endpoint": read_endpoint(server.campaign(), {})})
    assert "sk-of-the-server" not in str(found.as_json())


# --- The user's probes -------------------------------------------------------------------------


def script(text: str, **further: Any) -> dict[str, Any]:
    """A probe that runs Python."""
    return {"name": "driver", "command": [sys.executable, "-S", "-c", text], **further}


def test_a_command_is_its_lines(server: Server) -> None:
    """Without what is volatile, without the values of secret variables, never through a shell."""
    campaign = server.campaign(
        {"name": "shell", "command": ["echo", "$HOME; `id`"]},
        script("import os; print('a 12:30'); print(os.environ['A_KEY'])", volatile=[r"\d\d:\d\d"]),
    )
    found = read_probes(campaign, {**ENV, "A_KEY": "very-secret"})
    assert found == {"shell": ["$HOME; `id`"], "driver": ["a", "(not shown)"]}


def test_a_path_is_asked_at_every_url_and_a_file_is_its_digest(
    server: Server, tmp_path: Path
) -> None:
    (tmp_path / "launch.sh").write_text("serve --tp 8\n")
    server.pages["/info"] = lambda: b"tp 8\n"
    campaign = server.campaign(
        {"name": "info", "http": "/info"}, {"name": "launch", "file": str(tmp_path / "launch.sh")}
    )
    before = read_probes(campaign, ENV)
    assert before["info"] == {server.url: ["tp 8"]}
    (tmp_path / "launch.sh").write_text("serve --tp 4\n")
    assert read_probes(campaign, ENV)["launch"] != before["launch"]
    check_probes(campaign, ENV)


def test_a_probe_of_the_instance_is_not_in_the_fingerprint(server: Server) -> None:
    campaign = server.campaign(script("print('boot 7')", identity=True))
    assert read_probes(campaign, ENV) == {}
    assert read_identity(campaign, ENV) == {server.url: {"probe driver": ["boot 7"]}}


def test_a_short_look_bounds_probes_too(server: Server) -> None:
    """While a client runs nobody waits as long as a probe may take at other times."""
    campaign = server.campaign(script("import time; time.sleep(60)", identity=True))
    with pytest.raises(SetupError, match=r"driver: no end after 0\.2 s"):
        read_identity(campaign, ENV, timeout_s=0.2, tries=1)


BAD = [
    (script("import time; time.sleep(60)", timeout_s=0.3), "no end after 0.3 s"),
    (
        script("import os\nif os.fork(): os._exit(0)\nimport time; time.sleep(60)", timeout_s=0.3),
        "no end after 0.3 s",
    ),
    (script("import os\nwhile True: os.write(1, b'x' * 65536)"), "more than 65,536 bytes"),
    (script("import sys; sys.stdout.buffer.write(b'ab\\xff')"), "byte 0xff at position 2"),
    (script("import sys; sys.exit('no driver here')"), "exit code 1, saying 'no driver here'"),
    ({"name": "driver", "command": ["no-such-probe"]}, "'no-such-probe' can't be run: No such"),
    ({"name": "driver", "command": ["/"]}, "can't be run: Permission denied"),
    ({"name": "driver", "http": "/nothing"}, "/nothing isn't offered"),
    ({"name": "driver", "file": "/no/such/file"}, "/no/such/file is no regular file"),
    ({"name": "driver", "file": "/dev/zero"}, "/dev/zero is no regular file"),
]


@pytest.mark.parametrize(("bad", "cause"), BAD)
def test_a_bad_probe_is_refused_with_its_cause(
    server: Server, bad: dict[str, Any], cause: str
) -> None:
    """Soon, and nothing of it is left."""
    began_s = time.monotonic()
    with pytest.raises(SetupError, match=r"^fingerprint\.probes: driver: ") as refusal:
        check_probes(server.campaign(bad), ENV)
    assert cause in str(refusal.value)
    assert time.monotonic() - began_s < 30


def test_100_mb_are_not_taken_in(server: Server) -> None:
    """The command is ended when it has printed too much."""
    endless = Probe(**script("import os\nwhile True: os.write(1, b'x' * 65536)"))
    with pytest.raises(SetupError, match="more than"):
        run_probe(endless, server.campaign(), ENV)


def test_a_probe_that_differs_at_each_call_is_refused_with_the_line(server: Server) -> None:
    differing = script("import time; print('driver 1'); print(time.monotonic_ns())")
    with pytest.raises(SetupError, match=r"differs at each call: line 2 is '\d+', then '\d+'"):
        check_probes(server.campaign(differing), ENV)
    check_probes(server.campaign(differing | {"volatile": [r"\d{4,}"]}), ENV)


def test_a_path_that_differs_at_each_call_is_refused(server: Server) -> None:
    count = itertools.count()
    server.pages["/info"] = lambda: b"x\n" * next(count)
    with pytest.raises(SetupError, match=r"line 1 is '\(no such line\)', then 'x'"):
        check_probes(server.campaign({"name": "info", "http": "/info"}), ENV)
