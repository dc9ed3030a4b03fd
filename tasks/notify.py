"""Tells people through Apprise: secrets are filled into an address here, and nowhere else.

An address is never shown: it is called by its number and its scheme.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from core.variables import expand

#: Longest scheme that is believed to be one, characters.
_LONGEST_SCHEME = 20


def notify(addresses: Sequence[str], env: Mapping[str, str], title: str, text: str) -> list[str]:
    """Send a message to every address; one line for each that did not take it.

    Args:
        addresses: Apprise addresses with `${NAME}` for what the environment knows.
        env: The environment.
        title: Its title.
        text: The message.
    """
    told = (_send(address, env, title, text) for address in addresses)
    return [
        f"{_called(number, address)}: {problem}"
        for number, (address, problem) in enumerate(zip(addresses, told, strict=True), start=1)
        if problem
    ]


def _send(address: str, env: Mapping[str, str], title: str, text: str) -> str | None:
    """Send to one address; what is wrong if it did not take the message."""
    import logging  # noqa: PLC0415 - as Apprise, only where a message is sent

    import apprise  # noqa: PLC0415 - slow, and few campaigns need it

    logging.getLogger("apprise").setLevel(logging.CRITICAL)  # its lines may hold the address
    filled, wrong = expand(address, env, secrets_allowed=True)
    if wrong:
        return "; ".join(wrong)
    sender = apprise.Apprise()
    if not sender.add(filled):
        return "is no Apprise address"
    return None if sender.notify(body=text, title=title) else "was not delivered"


def _called(number: int, address: str) -> str:
    scheme, found, _ = address.partition("://")
    is_scheme = bool(found) and scheme.isalnum() and len(scheme) <= _LONGEST_SCHEME
    return (
        f"notify.addresses[{number - 1}] ({scheme})"
        if is_scheme
        else (f"notify.addresses[{number - 1}]")
    )
