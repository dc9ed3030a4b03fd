"""The endpoint's preflight against real servers: each cause has its own words."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from core.campaign import Campaign
from core.errors import InputError, SetupError
from tasks import endpoint
from tasks.endpoint import auth_headers, check_endpoint, wait_until_healthy
from tests.campaigns import make_campaign

#: Seconds after which a test has hung.
PATIENCE_S = 30.0


class Server(ThreadingHTTPServer):
    """A model server that answers with what the test states, and notes what it was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.models: tuple[int, Any] = (200, {"data": [{"id": "sim-model"}, {"id": "other"}]})
        self.chat = 200
        self.name: str | None = None
        self.pause_s = 0.0
        self.asked: list[tuple[str, Any, str | None]] = []

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    server: Server

    def do_GET(self) -> None:
        self._answer(None, *self.server.models)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self._answer(json.loads(body), self.server.chat, {"said": "by the server"})

    def version_string(self) -> str:
        return self.server.name or super().version_string()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def _answer(self, asked: Any, status: int, document: Any) -> None:
        self.server.asked.append((self.path, asked, self.headers["authorization"]))
        time.sleep(self.server.pause_s)
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def serving() -> Iterator[Server]:
    """A server while the block lasts."""
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def server() -> Iterator[Server]:
    """A model server in good order."""
    with serving() as running:
        yield running


def campaign(url: str, **options: Any) -> Campaign:
    return make_campaign(endpoint={"urls": [url], **options})


def refusal(campaign: Campaign, **env: str) -> str:
    """The message of a check that fails."""
    with pytest.raises(SetupError) as refused:
        check_endpoint(campaign, env)
    return str(refused.value)


@pytest.mark.parametrize(
    ("api_type", "path", "limit"),
    [
        ("openai", "/v1/chat/completions", lambda body: body["max_tokens"]),
        ("openai_completions", "/v1/completions", lambda body: body["max_tokens"]),
        ("sglang", "/generate", lambda body: body["sampling_params"]["max_new_tokens"]),
    ],
)
def test_one_short_request_in_the_campaigns_form(
    server: Server, api_type: str, path: str, limit: Any
) -> None:
    """The models are listed and one answer of one token is asked for; that is all."""
    check_endpoint(campaign(server.url, api_type=api_type), {})
    (listing, _, _), (asked, body, key) = server.asked
    assert (listing, asked, key) == ("/v1/models", path, None)
    assert limit(body) == 1


def test_every_url_is_asked(server: Server) -> None:
    """With two, the second one's failure is told with its address."""
    with serving() as second:
        second.chat = 503
        both = make_campaign(endpoint={"urls": [server.url, second.url]})
        assert refusal(both).startswith(f"endpoint.urls: {second.url}/v1/chat/completions: status")
    assert len(server.asked) == 2


def test_the_key_is_sent_and_never_told(server: Server) -> None:
    """From its variable; refused keys are not shown, unset variables are input errors."""
    keyed = campaign(server.url, api_key_env="TEST_KEY")
    check_endpoint(keyed, {"TEST_KEY": "k-e-y"})
    assert {key for _, _, key in server.asked} == {"Bearer k-e-y"}
    server.models = (401, {"error": "who are you"})
    message = refusal(keyed, TEST_KEY="k-e-y")
    assert "401: the endpoint refuses the key" in message
    assert "who are you" in message
    assert "k-e-y" not in message
    for env in ({}, {"TEST_KEY": ""}):
        with pytest.raises(InputError, match=r"endpoint\.api_key_env: .* TEST_KEY is not set"):
            auth_headers(keyed, env)


@pytest.mark.parametrize(
    ("status", "cause"),
    [
        (403, "403: the endpoint refuses the key"),
        (404, "404: no such path or model; check endpoint.urls and model.name"),
        (429, "status 429"),
        (500, "status 500"),
    ],
)
def test_a_refused_request_is_told_with_the_servers_words(
    server: Server, status: int, cause: str
) -> None:
    """Each kind of status has its advice; the body is quoted."""
    server.chat = status
    message = refusal(campaign(server.url))
    assert cause in message
    assert "by the server" in message


def test_another_model_is_told_with_those_served(server: Server) -> None:
    """What is served is listed, also if it is nothing."""
    named = make_campaign(endpoint={"urls": [server.url]}, model={"name": "wanted"})
    assert "serves sim-model, other, not 'wanted'" in refusal(named)
    server.models = (200, {"data": []})
    assert "serves nothing, not 'wanted'" in refusal(named)


@pytest.mark.parametrize("document", [b"<html>", {"data": 3}, {"data": [{}]}, [], {"models": []}])
def test_no_list_of_models_is_no_model_server(server: Server, document: Any) -> None:
    """Any other document under that path is told as what it is not."""
    server.models = (200, document)
    assert "/v1/models gave no list of models" in refusal(campaign(server.url))


def test_the_rehearsals_endpoint_needs_a_rehearsal(server: Server) -> None:
    """It says in its header what it is."""
    server.name = "pareto-rehearsal"
    assert "is the rehearsal endpoint" in refusal(campaign(server.url))
    rehearsal = make_campaign(endpoint={"urls": [server.url]}, rehearsal={"time_scale": 0.5})
    check_endpoint(rehearsal, {})


def test_a_dead_endpoint_and_one_without_tls_are_told_apart(server: Server) -> None:
    """No connection, or a connection that speaks no TLS."""
    assert "TLS error" in refusal(campaign(server.url.replace("http:", "https:")))
    with serving() as gone:
        url = gone.url
    assert f"endpoint.urls: {url}: no connection" in refusal(campaign(url))
    assert "no connection" in refusal(campaign("http://no-such-host.invalid:8000"))


def test_an_endpoint_that_takes_too_long_is_told(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The path that was asked, and the limit."""
    monkeypatch.setattr(endpoint, "REQUEST_TIMEOUT_S", 0.1)
    server.pause_s = 0.5
    assert f"{server.url}/v1/models did not answer within 0 s" in refusal(campaign(server.url))


def test_the_environments_proxy_is_not_asked(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The official client uses none, so what is checked is the way that is measured."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    check_endpoint(campaign(server.url), {})
    assert len(server.asked) == 2


def test_a_lost_endpoint_is_waited_for(server: Server) -> None:
    """Until it passes the whole check."""
    server.chat = 503
    threading.Timer(0.7, lambda: setattr(server, "chat", 200)).start()
    wait_until_healthy(campaign(server.url), {}, PATIENCE_S, threading.Event())
    assert server.asked[-1][0] == "/v1/chat/completions"


def test_waiting_ends_with_the_last_cause(server: Server) -> None:
    """An endpoint that doesn't come back is a matter of the surroundings."""
    server.chat = 503
    with pytest.raises(SetupError) as refused:
        wait_until_healthy(campaign(server.url), {}, 0.1, threading.Event())
    assert "status 503" in str(refused.value)
    assert "(waited run.recovery_timeout_s = 0.1 s)" in str(refused.value)


def test_waiting_ends_when_it_is_given_up(server: Server) -> None:
    """A request to stop need not wait for the endpoint; the caller knows why it ended."""
    server.chat = 503
    given_up = threading.Event()
    threading.Timer(0.3, given_up.set).start()
    began = time.monotonic()
    wait_until_healthy(campaign(server.url), {}, 10 * PATIENCE_S, given_up)
    assert given_up.is_set()
    assert time.monotonic() - began < PATIENCE_S


def test_an_unset_key_is_not_waited_for(server: Server) -> None:
    """It would not come by itself."""
    keyed = campaign(server.url, api_key_env="TEST_KEY")
    with pytest.raises(InputError):
        wait_until_healthy(keyed, {}, PATIENCE_S, threading.Event())
