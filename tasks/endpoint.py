"""Asks the endpoint: does it answer, serve the model, take the key; and is it there during a run?

The client's own `probe` has no API-key option, so this is an authenticated check of our own.
"""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Mapping

import httpx
from tenacity import (
    RetryError,
    Retrying,
    retry_if_exception_type,
    sleep_using_event,
    stop_after_delay,
    stop_when_event_set,
    wait_exponential,
)

from core.campaign import Campaign
from core.errors import InputError, SetupError
from tasks.tls import tls_context

#: Seconds for one preflight request; the first token of a cold server may take long.
REQUEST_TIMEOUT_S = 30.0
#: What the rehearsal's endpoint says in its `server` header and as the owner of its model.
REHEARSAL_MARK = "pareto-rehearsal"
#: Seconds between two looks at the health path during a run, and for one look.
HEALTH_EVERY_S, HEALTH_TIMEOUT_S = 5.0, 2.0
#: Longest pause between two looks at a lost endpoint, seconds.
_LONGEST_PAUSE_S = 10.0
#: Characters of an error body that are shown.
_SHOWN_CHARACTERS = 200


def check_endpoint(campaign: Campaign, env: Mapping[str, str]) -> None:
    """Every URL answers, serves the model, accepts the key and completes one short chat.

    Raises:
        SetupError: with the cause named; nothing was run.
    """
    headers = auth_headers(campaign, env)
    for url in campaign.endpoint.urls:
        with _client(url, headers) as http:
            models = _ask(http, url, "GET", "/v1/models")
            _check_rehearsal(campaign, models, url)
            _check_served(models, campaign.model.name, url)
            _ask(http, url, *_short_request(campaign))


def wait_until_healthy(
    campaign: Campaign, env: Mapping[str, str], timeout_s: float, given_up: threading.Event
) -> None:
    """Wait for a lost endpoint to pass the whole check again, or until `given_up` is set.

    Raises:
        SetupError: it didn't within the time-out; the last cause is named.
    """
    attempts = Retrying(
        retry=retry_if_exception_type(SetupError),
        stop=stop_after_delay(timeout_s) | stop_when_event_set(given_up),
        wait=wait_exponential(multiplier=0.5, max=_LONGEST_PAUSE_S),
        sleep=sleep_using_event(given_up),
    )
    try:
        attempts(check_endpoint, campaign, env)
    except RetryError as ended:
        if given_up.is_set():
            return
        cause = ended.last_attempt.exception()
        raise SetupError(f"{cause}\n(waited run.recovery_timeout_s = {timeout_s:g} s)") from None


class EndpointWatch:
    """Looks at the health path while a client runs, lightly: one small request a URL each 5 s.

    An endpoint that is slow to answer is under load, not lost: the watchdog knows about silence.
    """

    def __init__(self, campaign: Campaign, env: Mapping[str, str]) -> None:
        self._path = campaign.endpoint.health_path
        self._patience_s = campaign.run.endpoint_lost_after_s
        self._clients = [
            _client(url, auth_headers(campaign, env)) for url in campaign.endpoint.urls
        ]
        self._due_s = 0.0
        self._well_s = time.monotonic()

    def lost(self) -> str | None:
        """Why the endpoint counts as lost; None while it doesn't."""
        now_s = time.monotonic()
        if now_s < self._due_s:
            return None
        self._due_s = now_s + HEALTH_EVERY_S
        cause = next(filter(None, map(self._cause, self._clients)), None)
        if cause is None:
            self._well_s = now_s
            return None
        away_s = now_s - self._well_s
        return f"{cause} for {away_s:.0f} s" if away_s > self._patience_s else None

    def _cause(self, http: httpx.Client) -> str | None:
        where = f"{str(http.base_url).rstrip('/')}{self._path}"
        try:
            response = http.get(self._path, timeout=HEALTH_TIMEOUT_S)
        except (httpx.ReadTimeout, httpx.WriteTimeout, httpx.PoolTimeout):
            return None
        except httpx.TransportError as problem:
            return f"{where}: {_transport_cause(problem)}"
        return f"{where}: status {response.status_code}" if response.is_server_error else None


def auth_headers(campaign: Campaign, env: Mapping[str, str]) -> dict[str, str]:
    """Request headers with the key from its variable.

    Raises:
        InputError: the variable named in the campaign is not set.
    """
    name = campaign.endpoint.api_key_env
    if name is None:
        return {}
    if not env.get(name):
        raise InputError(
            f"endpoint.api_key_env: the environment variable {name} is not set;"
            f" export {name}=… before you start"
        )
    return {"Authorization": f"Bearer {env[name]}"}


def _client(url: str, headers: Mapping[str, str]) -> httpx.Client:
    """A client that, as the official one, uses no proxy: the way measured is the way checked."""
    # httpx leaves out the environment's proxies if a transport is given.
    transport = httpx.HTTPTransport(verify=tls_context())
    return httpx.Client(
        base_url=url, headers=headers, timeout=REQUEST_TIMEOUT_S, transport=transport
    )


def _short_request(campaign: Campaign) -> tuple[str, str, dict[str, object]]:
    """Method, path and body of a one-token request in the campaign's request form."""
    body: dict[str, object] = {"model": campaign.model.name, "stream": False}
    if campaign.endpoint.api_type == "openai":
        chat = [{"role": "user", "content": "Reply with one word."}]
        return "POST", "/v1/chat/completions", body | {"messages": chat, "max_tokens": 1}
    if campaign.endpoint.api_type == "openai_completions":
        return "POST", "/v1/completions", body | {"prompt": "One word:", "max_tokens": 1}
    generate: dict[str, object] = {"text": "One word:", "sampling_params": {"max_new_tokens": 1}}
    return "POST", "/generate", generate


def _ask(
    http: httpx.Client, url: str, method: str, path: str, body: object = None
) -> httpx.Response:
    """One request, its failure put into words."""
    try:
        response = http.get(path) if method == "GET" else http.post(path, json=body)
    except httpx.TimeoutException:
        raise SetupError(
            f"endpoint.urls: {url}{path} did not answer within {REQUEST_TIMEOUT_S:.0f} s"
        ) from None
    except httpx.TransportError as problem:
        raise SetupError(f"endpoint.urls: {url}: {_transport_cause(problem)}") from None
    if response.is_success:
        return response
    raise SetupError(f"endpoint.urls: {url}{path}: {_status_cause(response)}")


def _transport_cause(problem: httpx.TransportError) -> str:
    below: BaseException | None = problem
    while below is not None:
        if isinstance(below, ssl.SSLError):
            return (
                f"TLS error: {problem}; check the certificate, or use http:// if the endpoint"
                " speaks no TLS"
            )
        below = below.__cause__ or below.__context__
    if isinstance(problem, httpx.ConnectError):
        return f"no connection ({problem}); is the endpoint up and the address right?"
    return f"{type(problem).__name__}: {problem}"


def _status_cause(response: httpx.Response) -> str:
    said = " ".join(response.text.split())[:_SHOWN_CHARACTERS]
    if response.status_code in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
        return (
            f"{response.status_code}: the endpoint refuses the key; name the variable that holds"
            f" it in endpoint.api_key_env ({said})"
        )
    if response.status_code == httpx.codes.NOT_FOUND:
        return f"404: no such path or model; check endpoint.urls and model.name ({said})"
    return f"status {response.status_code} ({said})"


def _check_served(models: httpx.Response, wanted: str, url: str) -> None:
    try:
        served = [str(entry["id"]) for entry in models.json()["data"]]
    except (ValueError, KeyError, TypeError):
        raise SetupError(
            f"endpoint.urls: {url}/v1/models gave no list of models; is this an OpenAI-compatible"
            " endpoint?"
        ) from None
    if wanted not in served:
        raise SetupError(
            f"model.name: {url} serves {', '.join(served) or 'nothing'}, not {wanted!r}"
        )


def _check_rehearsal(campaign: Campaign, models: httpx.Response, url: str) -> None:
    if campaign.rehearsal is None and models.headers.get("server") == REHEARSAL_MARK:
        raise SetupError(
            f"endpoint.urls: {url} is the rehearsal endpoint, but the campaign is no rehearsal;"
            " add rehearsal: {time_scale: …} or name the real endpoint"
        )
