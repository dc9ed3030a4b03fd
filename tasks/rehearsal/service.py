"""The rehearsal endpoint as an ASGI application: routes, answers, faults, request log.

Routes: `GET /health`, `/version`, `/metrics`, `/v1/models`; `POST /v1/chat/completions` and
`/v1/completions`; `GET` and `POST /rehearsal/faults`. Only `/v1/…` asks for the key.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import asdict, dataclass, field
from typing import IO, Any

import orjson

from core.errors import InputError
from tasks.rehearsal.answers import answer
from tasks.rehearsal.batch import Sequence
from tasks.rehearsal.decoder import Decoder, Ticket
from tasks.rehearsal.faults import SLOWNESS, Fate, FaultLedger, Faults, faults_from_json
from tasks.rehearsal.speed import SpeedModel
from tasks.rehearsal.wire import Ask, RefusedError, Reply, read_ask

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

#: What the endpoint calls itself in the `server` header of every response and as model owner.
SERVER_NAME = "pareto-rehearsal"
#: Exit code of a process that a `die_after` fault ends.
DIED = 1

_JSON = (b"content-type", b"application/json")
_EVENTS = (b"content-type", b"text/event-stream")
_TEXT = (b"content-type", b"text/plain; version=0.0.4")


@dataclass
class LogEntry:
    """One line of the request log, written when the request ends."""

    received_at: float
    path: str
    model: str | None = None
    prompt_sha256: str | None = None
    status: int = 200
    #: Requests under way when this one arrived, itself included.
    in_flight: int = 0
    output_tokens: int = 0
    #: `stop`, `length`, `cut`, `refused`, `error`, `gone` (the client left) or null.
    finish: str | None = None


@dataclass
class Exchange:
    """One HTTP request under way."""

    method: str
    path: str
    headers: dict[bytes, bytes]
    receive: Receive
    send: Send

    async def body(self) -> bytes:
        """Return the whole request body."""
        parts = []
        while True:
            message = await self.receive()
            parts.append(message.get("body", b""))
            if not message.get("more_body"):
                return b"".join(parts)

    async def start(self, status: int, *headers: tuple[bytes, bytes]) -> None:
        """Send the response head."""
        message = {"type": "http.response.start", "status": status, "headers": list(headers)}
        await self.send(message)

    async def write(self, body: bytes, *, more: bool = False) -> None:
        """Send a part of the response body."""
        await self.send({"type": "http.response.body", "body": body, "more_body": more})

    async def respond(self, status: int, body: bytes, kind: tuple[bytes, bytes] = _JSON) -> None:
        """Send a whole response."""
        await self.start(status, kind, (b"content-length", str(len(body)).encode()))
        await self.write(body)

    async def gone(self) -> None:
        """Wait until the client has left."""
        while (await self.receive())["type"] != "http.disconnect":
            pass


@dataclass
class Service:
    """The application's state; call it as ASGI wants it."""

    model: str
    speed: SpeedModel
    faults: Faults
    api_key: str | None = None
    request_log: IO[bytes] | None = None
    version: str = SERVER_NAME
    started_at: float = field(default_factory=time.time)
    in_flight: int = 0
    stalled: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    ledger: FaultLedger = field(init=False)
    decoder: Decoder = field(init=False)

    def __post_init__(self) -> None:
        self.ledger = FaultLedger(self.faults)
        self.decoder = Decoder(self.speed)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one HTTP request."""
        headers = dict(scope["headers"])
        exchange = Exchange(scope["method"], scope["path"], headers, receive, send)
        try:
            await self._route(exchange)
        except RefusedError as refusal:
            await exchange.respond(refusal.status, refusal.body())

    async def _route(self, exchange: Exchange) -> None:
        match exchange.method, exchange.path:
            case "GET", "/health":
                await exchange.respond(200, b'{"status":"ok"}')
            case "GET", "/version":
                await exchange.respond(200, orjson.dumps({"version": self.version}))
            case "GET", "/metrics":
                await exchange.respond(200, self._metrics().encode(), _TEXT)
            case "GET", "/v1/models":
                self._authorize(exchange)
                await exchange.respond(200, self._models())
            case "GET", "/rehearsal/faults":
                await exchange.respond(200, orjson.dumps(self.faults.as_json()))
            case "POST", "/rehearsal/faults":
                await self._replace_faults(exchange)
            case "POST", "/v1/chat/completions" | "/v1/completions":
                await self._infer(exchange)
            case _:
                raise RefusedError(404, "NotFoundError", f"no {exchange.method} {exchange.path}")

    def _authorize(self, exchange: Exchange) -> None:
        if self.api_key is None:
            return
        if exchange.headers.get(b"authorization") != f"Bearer {self.api_key}".encode():
            raise RefusedError(401, "AuthenticationError", "missing or wrong API key")

    def _models(self) -> bytes:
        card = {
            "id": self.model,
            "object": "model",
            "created": int(self.started_at),
            "owned_by": SERVER_NAME,
        }
        return orjson.dumps({"object": "list", "data": [card]})

    def _metrics(self) -> str:
        batch = self.decoder.batch
        lines = [
            f"process_start_time_seconds {self.started_at}",
            f"rehearsal_requests_running {batch.running}",
            f"rehearsal_requests_waiting {batch.waiting}",
            f"rehearsal_requests_in_flight {self.in_flight}",
            f"rehearsal_requests_stalled {self.stalled}",
        ]
        for status, count in sorted(self.statuses.items()):
            lines.append(f'rehearsal_requests_total{{status="{status}"}} {count}')
        return "\n".join([*lines, ""])

    async def _replace_faults(self, exchange: Exchange) -> None:
        try:
            self.faults = faults_from_json(orjson.loads(await exchange.body()))
        except (InputError, orjson.JSONDecodeError) as error:
            raise RefusedError(400, "BadRequestError", str(error)) from error
        self.ledger = FaultLedger(self.faults)
        await exchange.respond(200, orjson.dumps(self.faults.as_json()))

    async def _infer(self, exchange: Exchange) -> None:
        self.in_flight += 1
        entry = LogEntry(time.time(), exchange.path, in_flight=self.in_flight)
        try:
            await self._serve(exchange, entry)
        except RefusedError as refusal:
            entry.status, entry.finish = refusal.status, entry.finish or "refused"
            raise
        except asyncio.CancelledError:
            entry.finish = "gone"
            raise
        finally:
            self.in_flight -= 1
            self._log(entry)

    def _log(self, entry: LogEntry) -> None:
        self.statuses[entry.status] += 1
        if self.request_log is not None:
            self.request_log.write(orjson.dumps(asdict(entry)) + b"\n")

    async def _serve(self, exchange: Exchange, entry: LogEntry) -> None:
        self._authorize(exchange)
        chat = exchange.path == "/v1/chat/completions"
        ask = read_ask(await exchange.body(), chat=chat)
        entry.model, entry.prompt_sha256 = ask.model, ask.prompt_sha256
        if ask.model != self.model:
            raise RefusedError(404, "NotFoundError", f"the model {ask.model!r} does not exist")
        fate = Fate.ANSWER if ask.max_tokens == 1 else self.ledger.fate()
        if self.ledger.is_slow:
            await asyncio.sleep((SLOWNESS - 1) * self.speed.request_s(ask.prompt_tokens, 1))
        match fate:
            case Fate.DIE:
                os._exit(DIED)
            case Fate.ERROR:
                entry.finish = "error"
                raise RefusedError(500, "InternalServerError", "rehearsal fault: error")
            case Fate.BUSY:
                entry.finish = "error"
                raise RefusedError(429, "RateLimitError", "rehearsal fault: busy")
            case Fate.DROP:
                entry.finish = "cut"
                await exchange.start(200, _EVENTS if ask.stream else _JSON)
            case Fate.STALL:
                await self._stall(exchange, entry)
            case Fate.ANSWER | Fate.CUT | Fate.EMPTY | Fate.STALL_MIDWAY:
                await self._answer(exchange, entry, Reply(ask, chat), fate)

    async def _stall(self, exchange: Exchange, entry: LogEntry) -> None:
        entry.finish = "gone"
        self.stalled += 1
        try:
            await exchange.gone()
        finally:
            self.stalled -= 1

    async def _answer(self, exchange: Exchange, entry: LogEntry, reply: Reply, fate: Fate) -> None:
        tokens = self._tokens(reply.ask, entry)
        chunks = answer(reply.ask.prompt, tokens, self.ledger.wrong)
        if fate in (Fate.CUT, Fate.STALL_MIDWAY):
            chunks, entry.finish = chunks[: tokens // 2], "cut"
        ticket = self.decoder.submit(Sequence(reply.ask.prompt_tokens, max(1, len(chunks))))
        watch = asyncio.ensure_future(exchange.gone())
        watch.add_done_callback(lambda _: self.decoder.drop(ticket))
        if fate is Fate.EMPTY:
            chunks = []
        try:
            write = _stream if reply.ask.stream else _whole
            await write(exchange, entry, reply, (ticket, chunks))
            if fate is Fate.STALL_MIDWAY:
                await watch
        finally:
            watch.cancel()

    def _tokens(self, ask: Ask, entry: LogEntry) -> int:
        if ask.max_tokens is not None and ask.max_tokens < self.speed.output_tokens:
            entry.finish = "length"
            return ask.max_tokens
        entry.finish = "stop"
        return self.speed.output_tokens


async def _stream(
    exchange: Exchange, entry: LogEntry, reply: Reply, work: tuple[Ticket, list[str]]
) -> None:
    """Write an answer as server-sent events, a token each; leave it unfinished if it is cut."""
    ticket, chunks = work
    await exchange.start(200, _EVENTS)
    while fresh := await ticket.more():
        said = chunks[entry.output_tokens : entry.output_tokens + fresh]
        entry.output_tokens += len(said)
        if said:
            await exchange.write(b"".join(map(reply.chunk, said)), more=True)
    if ticket.sequence.dropped:
        entry.finish = "gone"
    elif entry.finish in ("stop", "length"):
        await exchange.write(reply.end(entry.finish, entry.output_tokens))


async def _whole(
    exchange: Exchange, entry: LogEntry, reply: Reply, work: tuple[Ticket, list[str]]
) -> None:
    """Write an answer in one body once its last token is there; a cut one breaks off inside."""
    ticket, chunks = work
    while await ticket.more():
        pass
    if ticket.sequence.dropped:
        entry.finish = "gone"
        return
    entry.output_tokens = len(chunks)
    body = reply.whole("".join(chunks), entry.finish or "stop", len(chunks))
    if entry.finish == "cut":
        await exchange.start(200, _JSON, (b"content-length", str(len(body)).encode()))
        await exchange.write(body[: len(body) // 2], more=True)
    else:
        await exchange.respond(200, body)
