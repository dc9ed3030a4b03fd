"""Reads what a URL sends, bounded in time and size."""

from __future__ import annotations

import time
from collections.abc import Iterator

import httpx

from tasks.bounded import CHUNK_BYTES, Bounds, UnreadableError, too_much, too_slow


class NotOfferedError(Exception):
    """The server has no such path, or not for us."""


def get_body(http: httpx.Client, path: str, bounds: Bounds) -> bytes | None:
    """The body that a path answers with; None: the server doesn't offer it to us.

    Raises:
        UnreadableError: no connection, a server error, or it took or sent too much.
    """
    try:
        return b"".join(get_chunks(http, path, bounds))
    except NotOfferedError:
        return None


def get_chunks(http: httpx.Client, path: str, bounds: Bounds) -> Iterator[bytes]:
    """The body in pieces as they come.

    Raises:
        NotOfferedError: the server doesn't have the path, or not for us.
        UnreadableError: as `get_body` does.
    """
    deadline_s = time.monotonic() + bounds.timeout_s
    size_bytes = 0
    try:
        with http.stream("GET", path, timeout=bounds.timeout_s) as response:
            _check_status(response)
            for chunk in response.iter_bytes(CHUNK_BYTES):
                size_bytes += len(chunk)
                if size_bytes > bounds.max_bytes:
                    raise UnreadableError(too_much(bounds))
                if time.monotonic() > deadline_s:
                    raise UnreadableError(too_slow(bounds))
                yield chunk
    except httpx.TimeoutException:
        raise UnreadableError(too_slow(bounds)) from None
    except httpx.HTTPError as problem:
        raise UnreadableError(f"{type(problem).__name__}: {problem}") from None


def _check_status(response: httpx.Response) -> None:
    if response.is_server_error and response.status_code != httpx.codes.NOT_IMPLEMENTED:
        raise UnreadableError(f"status {response.status_code}")
    if not response.is_success:
        raise NotOfferedError
