"""The rehearsal endpoint as a program: an OpenAI-compatible server of stated speed.

`python -m tasks.rehearsal.endpoint` serves on a free loopback port, prints one line with its URL
and ends at once on SIGTERM or SIGINT, open streams or not. Its speed follows the model that
`tasks/rehearsal/speed.py` states: prefill time = prefill_ms + prefill_ms_per_token x prompt
tokens; a decode step lasts decode_ms + decode_ms_per_sequence x sequences and yields one token
for each; at most max_batch requests are admitted, others wait. The faults are those of
`tasks/rehearsal/faults.py`, by flag or by `POST /rehearsal/faults`.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import IO

import uvicorn

from core.errors import InputError, ParetoError, SetupError
from core.files import write_atomic
from tasks.rehearsal.faults import Faults
from tasks.rehearsal.service import SERVER_NAME, Service
from tasks.rehearsal.speed import SpeedModel

#: Seconds an idle connection stays open: longer than any client keeps one.
KEEP_ALIVE_S = 75


class _Server(uvicorn.Server):
    """A server that tells when it listens and leaves open streams behind when it is told to end."""

    def __init__(self, config: uvicorn.Config, ready: _Ready) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._end)
        self._ready.announce()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals alone: `startup` has its own handlers for them."""
        yield

    def _end(self) -> None:
        self.should_exit = self.force_exit = True


class _Ready:
    """Where the URL is announced."""

    def __init__(self, url: str, model: str, address_file: Path | None) -> None:
        self._url = url
        self._model = model
        self._address_file = address_file

    def announce(self) -> None:
        print(f"{SERVER_NAME}: {self._url} serves {self._model}", flush=True)
        if self._address_file is not None:
            write_atomic(self._address_file, f"{self._url}\n".encode())


def _is_news(record: logging.LogRecord) -> bool:
    """Whether a server message tells of more than an answer that was cut or given up on purpose."""
    given_up = record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError)
    return not given_up and "without completing response" not in record.getMessage()


def parser() -> argparse.ArgumentParser:
    """Return the command line; every part of speed model and faults has a flag."""
    command = argparse.ArgumentParser(
        prog="python -m tasks.rehearsal.endpoint",
        description="OpenAI-compatible endpoint of stated speed, for rehearsals.",
    )
    command.add_argument("--host", default="127.0.0.1")
    command.add_argument("--port", type=int, default=0, help="0 takes a free port")
    command.add_argument("--address-file", type=Path, help="gets the URL once it listens")
    command.add_argument("--model", default="rehearsal-model", help="the only model served")
    command.add_argument("--server-version", default=SERVER_NAME, help="what /version says")
    command.add_argument("--request-log", type=Path, help="JSON lines, one a request")
    command.add_argument("--api-key-env", help="name of the variable that holds the key wanted")
    for part in fields(SpeedModel):
        kind = int if isinstance(part.default, int) else float
        command.add_argument(_flag(part.name), type=kind, default=part.default)
    for part in fields(Faults):
        command.add_argument(_flag(part.name), type=int, default=part.default)
    return command


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _api_key(variable: str | None) -> str | None:
    if variable is None:
        return None
    if key := os.environ.get(variable):
        return key
    raise InputError(f"--api-key-env {variable}: that variable is not set; export it first")


def _service(arguments: argparse.Namespace, log: IO[bytes] | None) -> Service:
    given = vars(arguments)
    return Service(
        model=arguments.model,
        speed=SpeedModel(**{part.name: given[part.name] for part in fields(SpeedModel)}),
        faults=Faults(**{part.name: given[part.name] for part in fields(Faults)}),
        api_key=_api_key(arguments.api_key_env),
        request_log=log,
        version=arguments.server_version,
    )


def _listen(host: str, port: int) -> socket.socket:
    # The protocol is named because asyncio sends small packets at once only where it sees TCP.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise SetupError(f"cannot listen on {host}:{port}: {error}") from error
    return listener


def _open_log(path: Path | None) -> contextlib.AbstractContextManager[IO[bytes] | None]:
    if path is None:
        return contextlib.nullcontext()
    return path.open("ab", buffering=0)


def serve(arguments: argparse.Namespace) -> None:
    """Serve until a signal ends it."""
    logging.getLogger("uvicorn.error").addFilter(_is_news)
    with _open_log(arguments.request_log) as log:
        service = _service(arguments, log)
        listener = _listen(arguments.host, arguments.port)
        url = f"http://{arguments.host}:{listener.getsockname()[1]}"
        config = uvicorn.Config(
            service,
            loop="asyncio",
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            headers=[("server", SERVER_NAME)],
            timeout_keep_alive=KEEP_ALIVE_S,
        )
        ready = _Ready(url, arguments.model, arguments.address_file)
        asyncio.run(_Server(config, ready).serve(sockets=[listener]))


def main(argv: list[str] | None = None) -> int:
    """Run the endpoint; return its exit code."""
    try:
        serve(parser().parse_args(argv))
    except ParetoError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
