"""What must never be shown: how secrets look, and short texts of values without them.

A campaign file names the variable of a key and never the key. Whoever writes a key into it all
the same must not find it again in a message, a log or a record.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

#: What stands where a secret was.
HIDDEN = "(not shown)"
#: Longest value in a message, characters.
_SHOWN_CHARS = 60

#: Shortest value of a variable that is looked for in a text, characters: shorter ones are words.
_SHORTEST_SECRET = 8

#: A mapping key that holds a secret.
SECRET_KEY = re.compile(r"(?i)(api_?key|token$|password|passwd|secret|bearer|authorization|cookie)")
#: A variable that holds a secret: the word KEY or TOKEN (TOKENIZER and TOKENS are none), or worse.
_SECRET_VARIABLE = re.compile(
    r"(?i)(keys?|token)(?![a-z])|password|passwd|secret|bearer|authorization|credential|cookie"
)
#: The forms of keys: known prefixes, web tokens, user:password in a URL, long random runs.
_SECRET_VALUE = re.compile(
    r"""(?x)
    \b(?:sk|pk|rk)-[A-Za-z0-9][\w-]*          # OpenAI and its kin, Stripe
    | \b(?:hf|gsk|gh[pousr]|glpat|xox[a-z])[_-][A-Za-z0-9][\w-]{5,}  # hubs, forges, chat
    | \bnvapi-[\w-]+ | \bAKIA[0-9A-Z]{8,}     # NVIDIA, AWS
    | \beyJ[\w-]{8,}[\w.-]*                   # JSON web tokens
    | (?i:\bbearer)\s+\S+
    | (?<=://)[^/\s:@]*:\S+(?=@)              # user:password@ in a URL
    | (?<![A-Za-z0-9])(?=[A-Za-z]*[0-9])(?=[0-9]*[A-Za-z])[A-Za-z0-9]{24,}=*
    | (?<![^\s"'])(?=\S*[a-z])(?=\S*[A-Z])(?=\S*[0-9])[A-Za-z0-9+/_-]{40,}={0,2}(?![^\s"'])
    """
)


def is_secret_key(key: object) -> bool:
    """Whether a mapping key announces a secret."""
    return SECRET_KEY.search(str(key)) is not None


def is_secret_variable(name: str) -> bool:
    """Whether an environment variable announces a secret."""
    return _SECRET_VARIABLE.search(name) is not None


def looks_secret(text: str) -> bool:
    """Whether a text holds something of the form of a key or password."""
    return _SECRET_VALUE.search(text) is not None


def scrubbed(text: str) -> str:
    """The text on one printable line, everything of the form of a secret replaced."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape", "replace").decode("ascii")
        for char in _SECRET_VALUE.sub(HIDDEN, text)
    )


def shortened(text: str) -> str:
    """The scrubbed text, cut to what a message has room for."""
    safe = scrubbed(text)
    return safe if len(safe) <= _SHOWN_CHARS else safe[: _SHOWN_CHARS - 1] + "…"


def without_values(text: str, env: Mapping[str, str], key: str | None = None) -> str:
    """The text without the values of variables that hold secrets.

    Args:
        text: Any text.
        env: The environment.
        key: A variable that holds a secret whatever it is called, and however short that is.
    """
    names = (name for name in env if is_secret_variable(name))
    values = {env[name] for name in names if len(env[name]) >= _SHORTEST_SECRET}
    if key and env.get(key):
        values.add(env[key])
    for value in sorted(values, key=len, reverse=True):
        text = text.replace(value, HIDDEN)
    return text


def hidden(text: str, env: Mapping[str, str], key: str | None = None) -> str:
    """A text for others to read: without values of secrets, and without what looks like one.

    Its lines stay lines.
    """
    return "\n".join(scrubbed(line) for line in without_values(text, env, key).split("\n"))


def all_hidden(value: Any, env: Mapping[str, str], key: str | None = None) -> Any:
    """Plain values, every text in them hidden."""
    if isinstance(value, str):
        return hidden(value, env, key)
    if isinstance(value, Mapping):
        return {name: all_hidden(item, env, key) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [all_hidden(item, env, key) for item in value]
    return value
