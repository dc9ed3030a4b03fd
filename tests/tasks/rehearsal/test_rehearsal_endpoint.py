"""The endpoint as a real process: wire format, faults, key, log, and that it ends."""

from __future__ import annotations

import asyncio
import hashlib
import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from core.errors import SetupError
from tasks.rehearsal.process import running_endpoint

MODEL = "sim-model"
SUM = "Problem 7: What is 3 + 4? Put the answer in \\boxed{}."


def chat(prompt: str = "Hello there", **more: Any) -> dict[str, Any]:
    return {"model": MODEL, "messages": [{"role": "user", "content": prompt}], **more}


def ask(url: str, prompt: str = "Hello there", **more: Any) -> httpx.Response:
    return httpx.post(f"{url}/v1/chat/completions", json=chat(prompt, **more))


def stream_events(response: httpx.Response) -> list[dict[str, Any]]:
    """The events of a finished stream, `[DONE]` checked and left out."""
    lines = [line for line in response.text.split("\n\n") if line]
    assert lines[-1] == "data: [DONE]"
    return [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]


def wait_for(found: Callable[[], Any]) -> Any:
    """Wait until something is there."""
    deadline = time.monotonic() + 10
    while not (value := found()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return value


def test_a_stream_has_a_chunk_a_word_then_finish_reason_usage_and_done(endpoint: str) -> None:
    response = ask(endpoint, SUM, stream=True)
    assert response.headers["content-type"] == "text/event-stream"
    *chunks, finish, usage = stream_events(response)
    words = [chunk["choices"][0]["delta"]["content"] for chunk in chunks]
    assert len(words) == 12
    assert "".join(words).endswith("\\boxed{x7}")
    assert finish["choices"] == [{"index": 0, "delta": {}, "finish_reason": "stop"}]
    assert usage["usage"] == {"prompt_tokens": 12, "completion_tokens": 12, "total_tokens": 24}
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}


def test_an_answer_in_one_body_says_the_same(endpoint: str) -> None:
    document = ask(endpoint, SUM).json()
    assert document["object"] == "chat.completion"
    assert document["choices"][0]["message"]["content"].endswith("\\boxed{x7}")
    assert document["choices"][0]["finish_reason"] == "stop"
    assert document["usage"]["completion_tokens"] == 12


@pytest.mark.parametrize("stream", [True, False])
def test_plain_completions_answer_too(endpoint: str, stream: bool) -> None:
    body = {"model": MODEL, "prompt": SUM, "stream": stream}
    response = httpx.post(f"{endpoint}/v1/completions", json=body)
    if stream:
        choices = [event["choices"][0] for event in stream_events(response)[:-1]]
    else:
        choices = response.json()["choices"]
    assert "".join(choice["text"] for choice in choices).endswith("\\boxed{x7}")
    assert choices[-1]["finish_reason"] == "stop"


def test_a_smaller_limit_cuts_the_answer_and_says_length(endpoint: str) -> None:
    document = ask(endpoint, max_completion_tokens=5).json()
    assert len(document["choices"][0]["message"]["content"].split()) == 5
    assert document["choices"][0]["finish_reason"] == "length"


def test_every_response_names_the_rehearsal(endpoint: str) -> None:
    responses = [
        httpx.get(f"{endpoint}{path}")
        for path in ("/health", "/version", "/metrics", "/v1/models", "/rehearsal/faults", "/x")
    ]
    responses += [ask(endpoint), ask(endpoint, stream=True)]
    assert {response.headers["server"] for response in responses} == {"pareto-rehearsal"}
    assert [response.status_code for response in responses] == [200] * 5 + [404, 200, 200]
    assert responses[3].json()["data"][0]["owned_by"] == "pareto-rehearsal"
    assert responses[3].json()["data"][0]["id"] == MODEL


def test_metrics_tell_start_time_and_load(endpoint: str) -> None:
    lines = dict(line.rsplit(" ", 1) for line in httpx.get(f"{endpoint}/metrics").text.splitlines())
    assert 0 < time.time() - float(lines["process_start_time_seconds"]) < 600
    assert lines["rehearsal_requests_running"] == lines["rehearsal_requests_waiting"] == "0"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b"[]", 400),
        (b'{"model": "sim-model"}', 400),
        (b'{"model": "sim-model", "messages": [{"role": "user"}]}', 400),
        (b'{"model": "sim-model", "messages": [], "max_tokens": "many"}', 400),
        (b'{"model": "other", "messages": []}', 404),
    ],
)
def test_what_cannot_be_answered_gets_an_error_body(
    endpoint: str, body: bytes, status: int
) -> None:
    response = httpx.post(f"{endpoint}/v1/chat/completions", content=body)
    assert response.status_code == status
    assert response.json()["error"]["code"] == status
    assert set(response.json()["error"]) == {"message", "type", "param", "code"}


def test_error_next_fails_exactly_the_next_requests(
    endpoint: str, set_faults: Callable[..., None]
) -> None:
    set_faults(error_next=2)
    assert [ask(endpoint).status_code for _ in range(4)] == [500, 500, 200, 200]


def test_a_preflight_of_one_token_is_neither_counted_nor_hit(
    endpoint: str, set_faults: Callable[..., None]
) -> None:
    set_faults(error_next=1)
    assert ask(endpoint, max_tokens=1).status_code == 200
    assert ask(endpoint).status_code == 500


@pytest.mark.parametrize("stream", [True, False])
def test_cut_next_breaks_the_connection_half_way(
    endpoint: str, set_faults: Callable[..., None], stream: bool
) -> None:
    """The body has begun, there is no finish reason, and the next request is served."""
    set_faults(cut_next=1)
    received = b"".join(_until_it_breaks(f"{endpoint}/v1/chat/completions", chat(stream=stream)))
    assert received.count(b"data: ") == (6 if stream else 0)
    assert b'finish_reason":"stop' not in received
    assert ask(endpoint).status_code == 200


def _until_it_breaks(url: str, body: dict[str, Any]) -> Iterator[bytes]:
    """Yield what arrives before the connection breaks, which it must."""
    broken = pytest.raises(httpx.RemoteProtocolError)
    with httpx.stream("POST", url, json=body) as response, broken:
        yield from response.iter_raw()


def test_empty_answers_finish_in_good_order(endpoint: str, set_faults: Callable[..., None]) -> None:
    set_faults(empty_rate_percent=100)
    finish, usage = stream_events(ask(endpoint, stream=True))
    assert finish["choices"][0]["finish_reason"] == "stop"
    assert usage["usage"]["completion_tokens"] == 0


def test_faults_are_read_and_replaced_at_run_time(
    endpoint: str, set_faults: Callable[..., None]
) -> None:
    """A document replaces all faults; a wrong one changes nothing."""
    url = f"{endpoint}/rehearsal/faults"
    set_faults(wrong_answer_percent=100)
    assert httpx.post(url, json={"error_rate": 1}).status_code == 400
    assert httpx.post(url, content=b"{").status_code == 400
    assert httpx.get(url).json()["wrong_answer_percent"] == 100
    assert "x8" in ask(endpoint, SUM).json()["choices"][0]["message"]["content"]


def test_a_client_that_leaves_frees_its_place() -> None:
    with running_endpoint(model=MODEL, decode_ms=200, output_tokens=500, max_batch=1) as url:
        running = f"{url}/metrics"
        with httpx.stream("POST", f"{url}/v1/chat/completions", json=chat(stream=True)) as left:
            parts = left.iter_raw()
            next(parts)
            assert "rehearsal_requests_running 1" in httpx.get(running).text
        wait_for(lambda: "rehearsal_requests_running 0" in httpx.get(running).text)
        assert "rehearsal_requests_in_flight 0" in httpx.get(running).text


def test_a_key_is_asked_for_on_v1_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REHEARSAL_KEY", "secret")
    with running_endpoint(model=MODEL, api_key_env="REHEARSAL_KEY", output_tokens=2) as url:
        url_models = f"{url}/v1/models"
        wrong = httpx.get(url_models, headers={"Authorization": "Bearer other"})
        right = httpx.get(url_models, headers={"Authorization": "Bearer secret"})
        assert [httpx.get(url_models).status_code, wrong.status_code] == [401, 401]
        assert ask(url).status_code == 401
        assert right.status_code == 200
        assert httpx.get(f"{url}/health").status_code == 200


def test_the_request_log_has_a_line_for_every_request(tmp_path: Path) -> None:
    """Answered, failed and refused ones alike, with what is needed to count and compare them."""
    path, before = tmp_path / "requests.jsonl", time.time()
    with running_endpoint(
        model=MODEL, output_tokens=3, decode_ms=1, error_next=1, request_log=path
    ) as url:
        ask(url)
        ask(url, stream=True)
        httpx.post(f"{url}/v1/chat/completions", json={"model": "other", "messages": []})
        lines = wait_for(lambda: len(path.read_text().splitlines()) == 3 and path.read_text())
    entries = [json.loads(line) for line in lines.splitlines()]
    assert [entry["status"] for entry in entries] == [500, 200, 404]
    assert [entry["finish"] for entry in entries] == ["error", "stop", "refused"]
    assert [entry["output_tokens"] for entry in entries] == [0, 3, 0]
    assert [entry["model"] for entry in entries] == [MODEL, MODEL, "other"]
    assert entries[0]["prompt_sha256"] == hashlib.sha256(b"Hello there").hexdigest()
    assert {entry["in_flight"] for entry in entries} == {1}
    assert before <= entries[0]["received_at"] <= entries[2]["received_at"] <= time.time()


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """An endpoint that the test may end, with answers that take for ever."""
    address = tmp_path / "address"
    command = [sys.executable, "-m", "tasks.rehearsal.endpoint", "--model", MODEL]
    command += ["--output-tokens", "100000", "--address-file", str(address)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        yield wait_for(lambda: address.exists() and address.read_text().strip()), process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_at_once_with_open_streams(
    slow: tuple[str, subprocess.Popen[bytes]], number: signal.Signals
) -> None:
    url, process = slow
    with httpx.stream("POST", f"{url}/v1/chat/completions", json=chat(stream=True)) as response:
        parts = response.iter_raw()
        next(parts)
        process.send_signal(number)
        assert process.wait(5) == 0
    out, err = process.communicate()
    assert out.decode().splitlines() == [f"pareto-rehearsal: {url} serves {MODEL}"]
    assert err == b""


def test_die_after_ends_the_process_with_the_next_request() -> None:
    with running_endpoint(model=MODEL, output_tokens=2, die_after=1) as url:
        assert ask(url).status_code == 200
        with pytest.raises(httpx.TransportError):
            ask(url)
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{url}/health")


def test_stall_after_answers_no_further_request(
    endpoint: str, set_faults: Callable[..., None]
) -> None:
    set_faults(stall_after=1)
    assert ask(endpoint).status_code == 200
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(f"{endpoint}/v1/chat/completions", json=chat(), timeout=0.5)
    assert httpx.get(f"{endpoint}/health").status_code == 200


def test_an_endpoint_that_cannot_start_is_told_with_its_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(SetupError, match=f"cannot listen on 127.0.0.1:{port}"):
            running_endpoint(port=port).__enter__()
    monkeypatch.delenv("REHEARSAL_NO_KEY", raising=False)
    with pytest.raises(SetupError, match="REHEARSAL_NO_KEY: that variable is not set"):
        running_endpoint(api_key_env="REHEARSAL_NO_KEY").__enter__()
    with pytest.raises(SetupError, match="error_rate_percent: 101"):
        running_endpoint(error_rate_percent=101).__enter__()


def test_nothing_is_left_of_an_endpoint_after_use() -> None:
    """The block's end, also by an error, ends the process: its port is free again."""
    with pytest.raises(RuntimeError, match="mine"), running_endpoint(model=MODEL) as url:
        raise RuntimeError("mine")
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{url}/health")


def test_concurrent_requests_slow_each_other_down_but_finish_sooner_than_in_turn() -> None:
    """The batch is shared: eight at once take less than eight times one, and more than one."""
    with running_endpoint(
        model=MODEL, prefill_ms=1, decode_ms=5, decode_ms_per_sequence=5, output_tokens=20
    ) as url:
        one_s, eight_s = asyncio.run(_at_once(url, 1)), asyncio.run(_at_once(url, 8))
    assert 1.5 * one_s < eight_s < 8 * one_s


async def _at_once(url: str, count: int) -> float:
    """The time that this many requests take together."""
    async with httpx.AsyncClient(timeout=30) as http:
        await http.get(f"{url}/health")
        start_s = time.monotonic()
        path = f"{url}/v1/chat/completions"
        await asyncio.gather(*(http.post(path, json=chat()) for _ in range(count)))
        return time.monotonic() - start_s
