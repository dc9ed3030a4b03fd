"""Asks the system under test what it is: the endpoint's parts of the fingerprint, the identity of
its instance, and the user's own probes. Everything is bounded in time and size.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import httpx

from core.campaign import Campaign
from core.campaign_probes import Probe
from core.errors import SetupError
from core.files import blocks
from core.fingerprint import canonical
from core.identity import START_TIME, Identity, steady
from core.redact import without_values
from tasks.bounded import Bounds, UnreadableError, command_output
from tasks.bounded_http import NotOfferedError, get_body, get_chunks
from tasks.endpoint import auth_headers
from tasks.tls import tls_context

#: For a document that a server describes itself with; SGLang's is about 10 KB.
DOCUMENT = Bounds(timeout_s=10.0, max_bytes=1 << 20)
#: For `/metrics`, which is read line by line and not kept; a busy vLLM's is about 100 KB.
METRICS = Bounds(timeout_s=10.0, max_bytes=64 << 20)
#: Bytes of one line of `/metrics` that is looked at.
_LONGEST_LINE_BYTES = 64 * 1024
#: Looks in a row by which a balancer shows itself: it answers for another server each time.
STEADY_LOOKS = 4
#: Tries at reading an endpoint, and seconds between two: one lost answer is no drift.
TRIES, PAUSE_S = 3, 1.0

#: What `/v1/models` says of a model that a restart doesn't change (vLLM's `created` is the time of
#: the request).
_MODEL_KEYS = ("id", "root", "parent", "owned_by", "max_model_len")
#: Paths that describe the server: vLLM, and SGLang in its older and newer form.
_DESCRIPTIONS = ("/version", "/get_server_info", "/server_info")
#: What SGLang's server info tells of the moment or of free memory at start, and not of the system.
_MOMENTARY = frozenset(
    {
        "internal_states",
        "last_gen_throughput",
        "load",
        "max_req_input_len",
        "max_total_num_tokens",
        "memory_usage",
        "nccl_port",
        "status",
    }
)
#: What a server info tells of the one running instance; SGLang draws its seed when it starts.
_IDS = frozenset({"boot_id", "instance_id", "pid", "random_seed", "server_id", "start_time"})
#: Endings of metrics whose labels state the configuration: vLLM's `cache_config_info`, …
_CONFIG_METRICS = ("config_info", "build_info", "python_info", "version_info")
#: Labels of those that follow from the free memory at start.
_MOMENTARY_LABELS = frozenset({"num_gpu_blocks", "num_cpu_blocks"})
#: What a line that matters has in it.
_WANTED = re.compile("|".join((START_TIME, *_CONFIG_METRICS)).encode())
#: A line of the Prometheus text format: name, labels, value.
_METRIC = re.compile(rb"([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)")
_LABEL = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"')


# --- The endpoint ------------------------------------------------------------------------------


def read_endpoint(campaign: Campaign, env: Mapping[str, str]) -> dict[str, Any]:
    """What every URL says of the server behind it, as far as a restart doesn't change it.

    Raises:
        SetupError: it can't be read.
    """
    return _per_url(campaign, env, _described)


def read_identity(
    campaign: Campaign,
    env: Mapping[str, str],
    looks: int = 1,
    timeout_s: float | None = None,
    tries: int = TRIES,
) -> Identity:
    """What every URL reveals of the one instance; what differs between looks in a row is left out.

    Args:
        campaign: The campaign.
        env: The environment, for the key and for probes.
        looks: Looks in a row.
        timeout_s: For each answer, of a probe too; None: what each may take at other times.
        tries: Tries at each URL.

    Raises:
        SetupError: it can't be read.
    """

    def ask(http: httpx.Client) -> dict[str, Any]:
        return _identified(http, timeout_s or DOCUMENT.timeout_s)

    seen: list[Identity] = [_per_url(campaign, env, ask, tries) for _ in range(looks)]
    probes = [_within(p, timeout_s) for p in campaign.fingerprint.probes if p.identity]
    asked = {f"probe {probe.name}": run_probe(probe, campaign, env) for probe in probes}
    return {url: {**found, **asked} for url, found in steady(seen).items()}


def _per_url(
    campaign: Campaign,
    env: Mapping[str, str],
    ask: Callable[[httpx.Client], dict[str, Any]],
    tries: int = TRIES,
) -> dict[str, Any]:
    found = {}
    for url in sorted(campaign.endpoint.urls):
        with _http(url, campaign, env) as http:
            found[url] = _tried(ask, http, tries)
    return found


def _tried(
    ask: Callable[[httpx.Client], dict[str, Any]], http: httpx.Client, tries: int
) -> dict[str, Any]:
    for left in reversed(range(tries)):
        try:
            return ask(http)
        except UnreadableError as problem:
            if not left:
                raise SetupError(
                    f"endpoint.urls: {http.base_url} can't be asked what it is: {problem}"
                ) from None
            time.sleep(PAUSE_S)
    raise AssertionError("the last try returns or raises")


def _described(http: httpx.Client) -> dict[str, Any]:
    models = _document(http, "/v1/models")
    listed = models.get("data") if isinstance(models, dict) else None
    cards = [card for card in listed or () if isinstance(card, dict)]
    kept = [{key: card[key] for key in _MODEL_KEYS if card.get(key) is not None} for card in cards]
    found: dict[str, Any] = {"models": sorted(kept, key=canonical)}
    for path in _DESCRIPTIONS:
        document = _document(http, path)
        if isinstance(document, dict):
            left_out = _MOMENTARY | _IDS
            document = {key: item for key, item in document.items() if key not in left_out}
        if document is not None:
            found[path] = document
    config = [_config(name, labels) for name, labels, _ in _metrics(http) if _is_config(name)]
    return found | {"/metrics": sorted(config, key=canonical)} if config else found


def _identified(http: httpx.Client, timeout_s: float) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for path in _DESCRIPTIONS:
        document = _document(http, path, timeout_s)
        if isinstance(document, dict):
            found |= {f"{path} {key}": document[key] for key in sorted(_IDS & document.keys())}
    starts = sorted(value for name, _, value in _metrics(http, timeout_s) if name == START_TIME)
    return found | {START_TIME: starts} if starts else found


def _document(http: httpx.Client, path: str, timeout_s: float = DOCUMENT.timeout_s) -> Any:
    """What a path says as JSON, or as text; None: it isn't offered."""
    body = get_body(http, path, replace(DOCUMENT, timeout_s=timeout_s))
    if body is None:
        return None
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return body.decode("utf-8", "backslashreplace")


def _metrics(
    http: httpx.Client, timeout_s: float = METRICS.timeout_s
) -> Iterator[tuple[str, str, float]]:
    """Name, labels and value of the metrics that matter here."""
    chunks = _if_offered(get_chunks(http, "/metrics", replace(METRICS, timeout_s=timeout_s)))
    for line in _lines(chunks):
        if found := _METRIC.match(line):
            labels = (found[2] or b"").decode("utf-8", "backslashreplace")
            try:
                yield found[1].decode(), labels, float(found[3])
            except ValueError:
                continue


def _if_offered(chunks: Iterator[bytes]) -> Iterator[bytes]:
    with suppress(NotOfferedError):
        yield from chunks


def _lines(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The lines that matter of a text in pieces; of a line without end only the beginning."""
    rest = b""
    for chunk in chunks:
        whole, _, rest = (rest + chunk).rpartition(b"\n")
        if _WANTED.search(whole):  # most pieces have none, and are not taken apart
            yield from (line for line in whole.split(b"\n") if _WANTED.search(line))
        rest = rest[:_LONGEST_LINE_BYTES]
    yield rest


def _is_config(name: str) -> bool:
    return name.endswith(_CONFIG_METRICS)


def _config(name: str, labels: str) -> dict[str, Any]:
    found = {key: text for key, text in _LABEL.findall(labels) if key not in _MOMENTARY_LABELS}
    return {"metric": name, "labels": found}


@contextmanager
def _http(url: str, campaign: Campaign, env: Mapping[str, str]) -> Iterator[httpx.Client]:
    """A client that, as the official one, uses no proxy."""
    headers = {**auth_headers(campaign, env), "connection": "close"}
    transport = httpx.HTTPTransport(verify=tls_context())
    with httpx.Client(base_url=url, headers=headers, transport=transport) as http:
        yield http


# --- The user's probes -------------------------------------------------------------------------


def read_probes(campaign: Campaign, env: Mapping[str, str]) -> dict[str, Any]:
    """What the probes of the fingerprint say, by name.

    Raises:
        SetupError: one of them can't be used; it says which and why.
    """
    probes = (probe for probe in campaign.fingerprint.probes if not probe.identity)
    return {probe.name: run_probe(probe, campaign, env) for probe in probes}


def check_probes(campaign: Campaign, env: Mapping[str, str]) -> None:
    """Run every probe twice; one that differs would stop every campaign.

    Raises:
        SetupError: a probe can't be used, or differs at each call.
    """
    for probe in campaign.fingerprint.probes:
        first, second = (run_probe(probe, campaign, env) for _ in range(2))
        if first != second:
            raise SetupError(
                f"{_key(probe)}: differs at each call: {_first_difference(first, second)};"
                " name what differs in volatile, or probe something that stays"
            )


def _within(probe: Probe, timeout_s: float | None) -> Probe:
    """A probe that takes no longer."""
    if timeout_s is None or probe.timeout_s <= timeout_s:
        return probe
    return probe.model_copy(update={"timeout_s": timeout_s})


def run_probe(probe: Probe, campaign: Campaign, env: Mapping[str, str]) -> Any:
    """What one probe says: lines, or a digest, without its volatile parts and without secrets.

    Raises:
        SetupError: it can't be used.
    """
    try:
        if probe.file is not None:
            return {"sha256": _file_digest(probe)}
        if probe.command is not None:
            said = command_output(probe.command, env, Bounds(probe.timeout_s, probe.max_bytes))
            return _told(said, probe, env)
        urls = sorted(campaign.endpoint.urls)
        return {url: _told(_body(probe, url, campaign, env), probe, env) for url in urls}
    except UnreadableError as problem:
        raise SetupError(f"{_key(probe)}: {problem}") from None


def _body(probe: Probe, url: str, campaign: Campaign, env: Mapping[str, str]) -> bytes:
    assert probe.http is not None
    with _http(url, campaign, env) as http:
        body = get_body(http, probe.http, Bounds(probe.timeout_s, probe.max_bytes))
    if body is None:
        raise UnreadableError(f"{url}{probe.http} isn't offered")
    return body


def _file_digest(probe: Probe) -> str:
    assert probe.file is not None
    if not probe.file.is_file():
        raise UnreadableError(f"{probe.file} is no regular file")
    deadline_s = time.monotonic() + probe.timeout_s
    digest = hashlib.sha256()
    try:
        for block in blocks(probe.file):
            digest.update(block)
            if time.monotonic() > deadline_s:
                raise UnreadableError(f"{probe.file} isn't read after {probe.timeout_s:g} s")
    except OSError as problem:
        raise UnreadableError(f"{probe.file} can't be read: {problem.strerror}") from None
    return digest.hexdigest()


def _told(said: bytes, probe: Probe, env: Mapping[str, str]) -> list[str]:
    """The lines that were said, without what is volatile or secret."""
    try:
        text = said.decode()
    except UnicodeDecodeError as problem:
        byte = said[problem.start]
        raise UnreadableError(
            f"byte {byte:#04x} at position {problem.start} is not UTF-8; print text"
        ) from None
    lines = without_values(text, env).splitlines()
    for pattern in probe.volatile:
        lines = [re.sub(pattern, "", line) for line in lines]
    return [line.rstrip() for line in lines]


def _first_difference(first: Any, second: Any) -> str:
    """The first line that is not as it was."""
    if isinstance(first, dict):
        url = next(key for key in first if first[key] != second[key])
        return _first_difference(first[url], second[url])
    if isinstance(first, str):
        return f"{first!r}, then {second!r}"
    longest = max(len(first), len(second))
    padded = [[*lines, *["(no such line)"] * (longest - len(lines))] for lines in (first, second)]
    number, (was, is_now) = next(
        (at, pair) for at, pair in enumerate(zip(*padded, strict=True), 1) if pair[0] != pair[1]
    )
    return f"line {number} is {was!r}, then {is_now!r}"


def _key(probe: Probe) -> str:
    return f"fingerprint.probes: {probe.name}"
