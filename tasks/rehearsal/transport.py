"""Asks the endpoint: one HTTP request a sample, streamed or not, without retry or time-out."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import AsyncIterator, Callable
from typing import Any, NamedTuple
from urllib.parse import urljoin, urlsplit

import httpx
import orjson

from tasks.rehearsal.schema import Client, EndpointConfig, ModelParams

#: Where chat completions are asked for, below the endpoint's URL.
ROUTE = "v1/chat/completions"
#: Sockets at most when the configuration sets no limit.
DEFAULT_SOCKETS = 512
#: Parameters that go into the request as they are, if set.
_PASSED = (
    "temperature",
    "seed",
    "top_p",
    "top_k",
    "repetition_penalty",
    "presence_penalty",
    "frequency_penalty",
    "chat_template_kwargs",
)
_OK = 200


class Answer(NamedTuple):
    """What came back for one sample."""

    #: Text, or first chunk and rest if it was streamed; None if it failed.
    output: str | list[str] | None = None
    finish_reason: str | None = None
    #: Kind and message of a failure.
    error: tuple[str, str] | None = None

    @property
    def text(self) -> str:
        """The whole text; empty if it failed."""
        return "".join(self.output or "")


def request_body(params: ModelParams, override: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return what every request of a dataset has in common."""
    chosen = params.model_dump() | (override or {})
    body: dict[str, Any] = {"model": params.name}
    if params.streaming == "on":
        body["stream"] = True
    body["max_completion_tokens"] = chosen["max_new_tokens"]
    return body | {key: chosen[key] for key in _PASSED if chosen[key] is not None}


class Asker:
    """The connections to the endpoint; each has a pool of its own.

    A shared pool looks at all its connections for every request, which at 64 of them costs more
    than the requests themselves.
    """

    def __init__(self, endpoint: EndpointConfig, client: Client) -> None:
        urls = [urljoin(url.rstrip("/") + "/", ROUTE) for url in endpoint.endpoints]
        self._urls = itertools.cycle([httpx.URL(url) for url in urls])
        self._headers = [("Content-Type", "application/json")]
        if endpoint.api_key is not None:
            self._headers.append(("Authorization", f"Bearer {endpoint.api_key}"))
        sockets = client.max_connections if client.max_connections > 0 else DEFAULT_SOCKETS
        self._places = asyncio.Semaphore(sockets)
        self._idle: list[_Line] = []
        self._max_idle_s = client.max_idle_time
        # Without TLS there is nothing to verify, and loading certificates takes a while.
        encrypted = any(url.startswith("https") for url in urls)
        self._tls = httpx.create_ssl_context(verify=encrypted and not client.insecure)

    async def ask(self, body: dict[str, Any], on_chunk: Callable[[], None]) -> Answer:
        """Ask once and return the answer, also if it is a failure.

        Args:
            body: The request.
            on_chunk: Called for each piece of text that a stream brings.
        """
        async with self._places:
            line = self._idle.pop() if self._idle else self._open()
            try:
                return await self._ask(line, body, on_chunk)
            finally:
                self._idle.append(line)

    async def close(self) -> None:
        """Close all connections."""
        for line in self._idle:
            await line.transport.aclose()

    def _open(self) -> _Line:
        limits = httpx.Limits(max_connections=1, keepalive_expiry=self._max_idle_s)
        return _Line(next(self._urls), httpx.AsyncHTTPTransport(verify=self._tls, limits=limits))

    async def _ask(self, line: _Line, body: dict[str, Any], on_chunk: Callable[[], None]) -> Answer:
        content = orjson.dumps(body)
        request = httpx.Request("POST", line.url, headers=self._headers, content=content)
        try:
            response = await line.transport.handle_async_request(request)
        except (httpx.RemoteProtocolError, httpx.ReadError):
            reset = ConnectionResetError("Connection closed before headers received")
            return Answer(error=("ConnectionResetError", repr(reset)))
        except httpx.HTTPError as error:
            return Answer(error=_cause(error))
        try:
            return await _read(response, on_chunk, stream=bool(body.get("stream")))
        except (ValueError, LookupError, TypeError) as error:
            return Answer(error=("DecodeError", repr(error)))
        finally:
            await response.aclose()


class _Line(NamedTuple):
    """One connection, and where it leads."""

    url: httpx.URL
    transport: httpx.AsyncHTTPTransport


async def _read(response: httpx.Response, on_chunk: Callable[[], None], *, stream: bool) -> Answer:
    if response.status_code != _OK:
        body = b"".join([part async for part in _parts(response)])
        text = body.decode("utf-8", errors="replace")
        return Answer(error=("error", f"HTTP {response.status_code}: {text}"))
    if stream:
        return await _read_stream(response, on_chunk)
    choice = orjson.loads(b"".join([part async for part in _parts(response)]))["choices"][0]
    return Answer(choice["message"]["content"] or "", choice.get("finish_reason"))


async def _parts(response: httpx.Response) -> AsyncIterator[bytes]:
    """Yield the body as it comes; a connection that breaks ends it."""
    stream = response.stream
    assert isinstance(stream, httpx.AsyncByteStream)
    try:
        async for part in stream:
            yield part
    except (httpx.RemoteProtocolError, httpx.ReadError):
        return


async def _read_stream(response: httpx.Response, on_chunk: Callable[[], None]) -> Answer:
    chunks: list[str] = []
    finish_reason: str | None = None
    buffer = b""
    async for part in _parts(response):
        *lines, buffer = (buffer + part).split(b"\n\n")
        for choice in filter(None, map(_choice, lines)):
            finish_reason = choice.get("finish_reason") or finish_reason
            if content := (choice.get("delta") or {}).get("content"):
                chunks.append(content)
                on_chunk()
    output = [chunks[0], "".join(chunks[1:])] if len(chunks) > 1 else chunks
    return Answer(output, finish_reason)


def _choice(line: bytes) -> dict[str, Any] | None:
    """Return the choice in a server-sent event, if there is one."""
    data = line.removeprefix(b"data:").strip()
    if not data.startswith(b"{"):
        return None
    choices = orjson.loads(data).get("choices")
    return choices[0] if choices else None


def _cause(error: BaseException) -> tuple[str, str]:
    """Return the failure of the system call behind an error, or the error itself."""
    found: BaseException | None = error
    while found is not None:
        if isinstance(found, OSError) and found.errno is not None:
            kind = type(found).__name__
            return kind, f"{kind}({found.errno}, {os.strerror(found.errno)!r})"
        found = found.__cause__ or found.__context__
    return type(error).__name__, repr(error)


async def unreachable(endpoint: EndpointConfig) -> str | None:
    """Return the first of the endpoint's addresses that takes no connection, as `host:port`."""
    for url in endpoint.endpoints:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        try:
            _, writer = await asyncio.open_connection(parts.hostname, port)
        except OSError:
            return f"{parts.hostname}:{port}"
        writer.close()
    return None
