"""The stand-in client's `probe`: a few requests, without a key; half of them must be answered."""

from __future__ import annotations

import asyncio
import logging
import time

from tasks.rehearsal.failures import ClientExecutionError
from tasks.rehearsal.schema import Client, EndpointConfig
from tasks.rehearsal.transport import Answer, Asker

_LOG = logging.getLogger("inference_endpoint.commands.probe")

#: What is asked (the reference client's default).
PROMPT = "Please write me a joke in 30 words."
#: Requests sent (the reference client's default).
REQUESTS = 10
#: Time that all answers together may take (the reference client's own).
TIMEOUT_S = 60.0
#: Characters of an answer that are shown.
_SHOWN = 100
#: Errors that are shown.
_ERRORS_SHOWN = 3


def probe(endpoints: str, model: str, requests: int, prompt: str) -> None:
    """Ask the endpoint a few times.

    Raises:
        ClientExecutionError: If fewer than half of the requests are answered.
    """
    _LOG.info("Probing: %s", endpoints)
    _LOG.info("Sending %d requests...", requests)
    answers = asyncio.run(_ask(endpoints, model, requests, prompt))
    good = [(number, answer) for number, (answer, _) in answers.items() if answer.error is None]
    _LOG.info("Completed: %d/%d successful", len(good), requests)
    _log_latencies([spent_ms for answer, spent_ms in answers.values() if answer.error is None])
    for number, answer in good:
        _LOG.info("  [probe-%d] %s", number, answer.text[:_SHOWN] or "<EMPTY>")
    _log_errors(requests, {number: answer.error for number, (answer, _) in answers.items()})
    if len(good) < requests * 0.5:
        _LOG.error("Probe failed: Too many errors")
        raise ClientExecutionError(f"Probe failed: only {len(good)}/{requests} requests successful")
    _LOG.info("Probe successful")


async def _ask(
    endpoints: str, model: str, requests: int, prompt: str
) -> dict[int, tuple[Answer, float]]:
    """Return answer and latency in milliseconds of every request that ended in time."""
    asker = Asker(EndpointConfig(endpoints=endpoints.split(",")), Client())
    body = {"model": model, "messages": [{"role": "user", "content": prompt}]}
    answers: dict[int, tuple[Answer, float]] = {}

    async def one(number: int) -> None:
        start_s = time.monotonic()
        answer = await asker.ask(body, lambda: None)
        answers[number] = answer, (time.monotonic() - start_s) * 1000
        _LOG.info("  Processed %d/%d responses : probe-%d", len(answers), requests, number)

    _LOG.info("Waiting for %d responses...", requests)
    asked = [asyncio.create_task(one(number)) for number in range(requests)]
    await asyncio.wait(asked, timeout=TIMEOUT_S)
    for task in asked:
        task.cancel()
    await asker.close()
    return answers


def _log_latencies(spent_ms: list[float]) -> None:
    if spent_ms:
        _LOG.info("Avg latency: %.0fms", sum(spent_ms) / len(spent_ms))
        _LOG.info("Range: %.0fms - %.0fms", min(spent_ms), max(spent_ms))


def _log_errors(requests: int, errors: dict[int, tuple[str, str] | None]) -> None:
    texts = []
    for number in range(requests):
        error = errors.get(number, ("Timeout", f">{TIMEOUT_S}s"))
        if error is not None:
            texts.append(f"  probe-{number}: {': '.join(error)}")
    if texts:
        _LOG.warning("Errors: %d", len(texts))
    for text in texts[:_ERRORS_SHOWN]:
        _LOG.warning("%s", text)
