"""`${NAME}` and `${NAME:-default}` in the values of a campaign file; `$${` is a literal `${`.

The environment is handed in. A default also stands in for an empty variable, as in a shell.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from core.redact import is_secret_variable

#: An escape, or a reference with its closing brace if it has one.
_REFERENCE = re.compile(r"\$\$\{|\$\{([^}]*)(\}?)")
#: Inside of a well-formed reference.
_BODY = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)


def has_reference(text: str) -> bool:
    """Whether there is something to expand."""
    return "${" in text


def expand(
    text: str, env: Mapping[str, str], *, secrets_allowed: bool = False
) -> tuple[str, list[str]]:
    """The text with its references replaced, and what is wrong with them.

    Args:
        text: A value as written.
        env: The environment.
        secrets_allowed: Whether the value may take in variables named like secrets.
    """
    problems: list[str] = []

    def replaced(match: re.Match[str]) -> str:
        if match[0] == "$${":
            return "${"
        body = _BODY.fullmatch(match[1])
        if body is None or not match[2] or "${" in (body[2] or ""):
            problems.append("not a variable; write ${NAME} or ${NAME:-default}, $${ for plain ${")
            return ""
        if is_secret_variable(body[1]) and not secrets_allowed:
            problems.append(_secret(body[1]))
            return ""
        value = env.get(body[1]) or body[2]
        if value is None and body[1] not in env:
            problems.append(_unset(body[1]))
        return value or ""

    return _REFERENCE.sub(replaced, text), problems


def _unset(name: str) -> str:
    return f"variable {name} is not set; export it or give a default: ${{{name}:-…}}"


def _secret(name: str) -> str:
    return (
        f"variable {name} looks like a secret, which never becomes part of a campaign; name the"
        f" key's variable in endpoint.api_key_env, or write $${{{name}}} where the client itself"
        " is to expand it"
    )
