"""The OpenAI wire format as the rehearsal endpoint speaks it: requests in, bodies out."""

from __future__ import annotations

import hashlib
import time
import uuid
from dataclasses import dataclass, field
from typing import Any

import orjson

#: The end of a server-sent event stream.
DONE = b"data: [DONE]\n\n"


class RefusedError(Exception):
    """A request that gets an error body instead of an answer."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind

    def body(self) -> bytes:
        """Return the OpenAI-style error body."""
        error = {"message": str(self), "type": self.kind, "param": None, "code": self.status}
        return orjson.dumps({"error": error})


@dataclass(frozen=True)
class Ask:
    """What a request asks for."""

    model: str
    prompt: str
    stream: bool
    max_tokens: int | None

    @property
    def prompt_tokens(self) -> int:
        """Whitespace-separated words of the prompt."""
        return len(self.prompt.split())

    @property
    def prompt_sha256(self) -> str:
        """The prompt's digest, so that a log need not hold the text."""
        return hashlib.sha256(self.prompt.encode()).hexdigest()


def read_ask(body: bytes, *, chat: bool) -> Ask:
    """Return what a request body asks for, or refuse it with 400."""
    try:
        document = orjson.loads(body)
        prompt = _chat_prompt(document["messages"]) if chat else _plain_prompt(document["prompt"])
        limit = document.get("max_completion_tokens") or document.get("max_tokens")
        max_tokens = None if limit is None else int(limit)
        return Ask(str(document["model"]), prompt, bool(document.get("stream")), max_tokens)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RefusedError(400, "BadRequestError", f"malformed request: {error!r}") from error


def _chat_prompt(messages: list[dict[str, Any]]) -> str:
    return "\n".join(_text(message["content"]) for message in messages)


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content or [])


def _plain_prompt(prompt: Any) -> str:
    return prompt if isinstance(prompt, str) else " ".join(str(part) for part in prompt)


@dataclass(frozen=True)
class Reply:
    """The parts of one answer's bodies; the fixed parts of a chunk are encoded once."""

    ask: Ask
    chat: bool
    identity: str = field(default_factory=lambda: uuid.uuid4().hex)
    created: int = field(default_factory=lambda: int(time.time()))

    def chunk(self, text: str) -> bytes:
        """Return the stream event for one token."""
        return self._event(self._choice(text, None))

    def end(self, finish: str, tokens: int) -> bytes:
        """Return the last events of a stream: finish reason, usage, done."""
        usage = self._event(None, usage=self.usage(tokens))
        return self._event(self._choice("", finish)) + usage + DONE

    def whole(self, text: str, finish: str, tokens: int) -> bytes:
        """Return the body of an answer that is not streamed."""
        message = {"message": {"role": "assistant", "content": text}}
        choice = {"index": 0, **(message if self.chat else {"text": text}), "finish_reason": finish}
        kind = "chat.completion" if self.chat else "text_completion"
        return orjson.dumps(self._head(kind) | {"choices": [choice], "usage": self.usage(tokens)})

    def usage(self, tokens: int) -> dict[str, int]:
        """Return the token counts of the whole answer."""
        prompt = self.ask.prompt_tokens
        return {
            "prompt_tokens": prompt,
            "completion_tokens": tokens,
            "total_tokens": prompt + tokens,
        }

    def _choice(self, text: str, finish: str | None) -> dict[str, Any]:
        said = {"delta": {"content": text} if text else {}} if self.chat else {"text": text}
        return {"index": 0, **said, "finish_reason": finish}

    def _event(self, choice: dict[str, Any] | None, **more: Any) -> bytes:
        kind = "chat.completion.chunk" if self.chat else "text_completion"
        choices = [] if choice is None else [choice]
        return b"data: " + orjson.dumps(self._head(kind) | {"choices": choices} | more) + b"\n\n"

    def _head(self, kind: str) -> dict[str, Any]:
        prefix = "chatcmpl" if self.chat else "cmpl"
        return {
            "id": f"{prefix}-{self.identity}",
            "object": kind,
            "created": self.created,
            "model": self.ask.model,
        }
