"""One TLS context for all requests of this process: each costs 30 ms to load the certificates."""

from __future__ import annotations

import ssl
from functools import cache

import httpx


@cache
def tls_context() -> ssl.SSLContext:
    """The context that httpx makes by default: certificates of the environment, or of certifi."""
    return httpx.create_ssl_context()
