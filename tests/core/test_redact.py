"""Secrets are known by their form and never shown; everything else stays readable."""

from __future__ import annotations

import pytest

from core.redact import (
    HIDDEN,
    all_hidden,
    hidden,
    is_secret_key,
    is_secret_variable,
    looks_secret,
    scrubbed,
    shortened,
    without_values,
)

SECRETS = [
    "sk-abc",
    "sk-proj-0123456789",
    "hf_abcdefghij",
    "ghp_0123456789",
    "xoxb-123456",
    "nvapi-abc",
    "AKIAABCDEFGH1234",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIi.abc",
    "Bearer x",
    "0123456789abcdef01234567",
    "Zm9vYmFy/Zm9v+mFyZm9vYmFyZm9vYmFyZm9vYmFyA1==",
]
PLAIN = [
    "meta-llama/Llama-3.1-8B-Instruct",
    "OPENAI_API_KEY",
    "https://host.example.com:8000/v1",
    "data/rehearsal-performance.jsonl",
    "risk-free",
    "a_rather_long_word_of_nothing_but_letters_and_underscores",
    "boundaries-first",
]


@pytest.mark.parametrize("secret", SECRETS)
def test_a_secret_is_hidden_in_any_text(secret: str) -> None:
    assert looks_secret(secret)
    assert scrubbed(f"value {secret} here") == f"value {HIDDEN} here"


@pytest.mark.parametrize("text", PLAIN)
def test_plain_text_stays(text: str) -> None:
    assert not looks_secret(text)
    assert scrubbed(text) == text


@pytest.mark.parametrize("password", ["p", "p@ss", "p/w", "p:w"])
def test_the_password_of_a_url_is_hidden_whole(password: str) -> None:
    assert scrubbed(f"postgresql://me:{password}@db/x") == f"postgresql://{HIDDEN}@db/x"


def test_messages_are_one_printable_short_line() -> None:
    assert scrubbed("a\nb\x00\ud800\u2028é") == "a\\nb\\x00\\ud800\\u2028é"
    assert len(shortened("word " * 100)) == 60
    assert shortened("word") == "word"


@pytest.mark.parametrize(
    ("key", "secret"),
    [
        ("api_key", True),
        ("apikey", True),
        ("auth_token", True),
        ("Authorization", True),
        ("max_new_tokens", False),
        ("tokenizer", False),
        (5, False),
    ],
)
def test_keys_of_secrets(key: object, secret: bool) -> None:
    assert is_secret_key(key) is secret


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("OPENAI_API_KEY", True),
        ("API_KEY_2", True),
        ("API_KEYS", True),
        ("HF_TOKEN", True),
        ("PGPASSWORD", True),
        ("AWS_SECRET_ACCESS", True),
        ("TOKENIZER", False),
        ("MAX_TOKENS", False),
        ("KEYBOARD", False),
        ("PARETO_REHEARSAL_URL", False),
    ],
)
def test_variables_of_secrets(name: str, secret: bool) -> None:
    assert is_secret_variable(name) is secret


def test_values_of_secret_variables_are_hidden_and_lines_stay() -> None:
    """Whatever they look like; short ones only if they are named as a key."""
    env = {"DB_PASSWORD": "correct horse", "HOME": "/home/me", "MY_TOKEN": "short", "MINE": "xyz"}
    text = "correct horse\n/home/me short xyz sk-abc"
    assert without_values(text, env) == f"{HIDDEN}\n/home/me short xyz sk-abc"
    assert hidden(text, env, "MINE") == f"{HIDDEN}\n/home/me short {HIDDEN} {HIDDEN}"


def test_secrets_are_hidden_at_any_depth() -> None:
    """In an event's payload; what is no text stays."""
    payload = {"reason": "sk-abc", "found": [{"seen": "hunter2value", "at": 1}], "none": None}
    assert all_hidden(payload, {"API_KEY": "hunter2value"}) == {
        "reason": HIDDEN,
        "found": [{"seen": HIDDEN, "at": 1}],
        "none": None,
    }
