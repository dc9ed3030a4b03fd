"""What a service and a submission are refused for, before anything is started or queued."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.flows.support import Done, Place

#: What a Prefect server of another major version says.
OTHER_VERSION = "2.19.9"


class OtherServer(BaseHTTPRequestHandler):
    """A Prefect server of another major version, as far as it is asked."""

    def do_GET(self) -> None:
        answer = json.dumps(OTHER_VERSION if self.path.endswith("version") else True).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def other_server() -> Iterator[int]:
    """Its port, while it runs."""
    with ThreadingHTTPServer(("127.0.0.1", 0), OtherServer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def test_a_port_that_is_taken_is_named_with_its_holder(bare_place: Place) -> None:
    """By some program, or by a Prefect server that could be joined."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        done = bare_place.pareto("serve", "data", "--port", str(port), PREFECT_API_URL="")
    refused(done, f"port {port} of 127.0.0.1", "--port")
    with other_server() as port:
        done = bare_place.pareto("serve", "data", "--port", str(port), PREFECT_API_URL="")
    refused(done, f"PREFECT_API_URL=http://127.0.0.1:{port}/api", "--port")


def test_a_server_of_another_major_version_is_refused(bare_place: Place) -> None:
    """By the service, and by a submission; both versions are named."""
    with bare_place.endpoint():
        bare_place.write()
    with other_server() as port:
        url = f"http://127.0.0.1:{port}/api"
        for command in (("serve", "data"), ("submit", bare_place.file)):
            done = bare_place.pareto(*command, PREFECT_API_URL=url)
            refused(done, OTHER_VERSION, "another major version")


def test_without_a_service_nothing_is_recorded(bare_place: Place) -> None:
    """No server answers, and the message says how to start one."""
    bare_place.write()
    done = bare_place.pareto("submit", bare_place.file)
    refused(done, "pareto serve", bare_place.prefect_api_url)
    assert not (bare_place.data / "pareto.db").exists()


@pytest.mark.parametrize("points", ["7", "c0001,c9999"])
def test_points_that_the_plan_does_not_have_are_refused(bare_place: Place, points: str) -> None:
    """Before the service is asked for."""
    bare_place.write()
    done = bare_place.pareto("submit", bare_place.file, "--points", points)
    assert (done.code, "there are c0033" in done.err) == (2, True), done


def refused(done: Done, *parts: str) -> None:
    """The set-up is wrong, and the message names these."""
    assert done.code == 3, done
    assert [part for part in parts if part not in done.err] == [], done.err
    assert "Traceback" not in done.err
