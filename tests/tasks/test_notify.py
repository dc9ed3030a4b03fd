"""Messages to a real receiver, and addresses that take none; secrets stay in the environment."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from core.campaign_diff import statement
from core.campaign_yaml import load_campaign
from core.errors import InputError
from tasks.notify import notify
from tests.campaigns import campaign_dict, make_campaign

SECRET = "s3cr3t-word"


class Receiver(HTTPServer):
    """Takes messages over HTTP, as Apprise's json:// sends them."""

    def __init__(self) -> None:
        self.messages: list[tuple[str, dict[str, str]]] = []
        super().__init__(("127.0.0.1", 0), Handler)


class Handler(BaseHTTPRequestHandler):
    """One message."""

    server: Receiver

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.messages.append((self.path, body))
        self.send_response(200 if "refused" not in self.path else 500)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A running receiver."""
    with Receiver() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()


def test_a_message_reaches_every_address(receiver: Receiver) -> None:
    """The secret in the address comes from the environment when the message is sent."""
    host = f"127.0.0.1:{receiver.server_port}"
    addresses = [f"json://{host}/${{TOKEN}}", "${WHOLE}"]
    env = {"TOKEN": SECRET, "WHOLE": f"json://{host}/other"}
    assert notify(addresses, env, "curve @ box: failed", "c0064 is not valid") == []
    assert [path for path, _ in receiver.messages] == [f"/{SECRET}", "/other"]
    assert {body["title"] for _, body in receiver.messages} == {"curve @ box: failed"}
    assert {body["message"] for _, body in receiver.messages} == {"c0064 is not valid"}


def test_addresses_that_take_nothing_are_named_without_their_secrets(receiver: Receiver) -> None:
    """Refused, nobody there, no address, and a variable that is not set."""
    host = f"127.0.0.1:{receiver.server_port}"
    addresses = [
        f"json://{host}/refused/${{TOKEN}}",
        "json://127.0.0.1:9/${TOKEN}",
        "nosuch://${TOKEN}",
        "json://${UNSET}",
        f"json://{host}/good",
    ]
    problems = notify(addresses, {"TOKEN": SECRET}, "title", "text")
    assert [problem.partition(":")[0] for problem in problems] == [
        "notify.addresses[0] (json)",
        "notify.addresses[1] (json)",
        "notify.addresses[2] (nosuch)",
        "notify.addresses[3] (json)",
    ]
    assert "UNSET" in problems[3]
    assert SECRET not in "".join(problems)


def yaml_of(**notify_section: object) -> str:
    """A campaign's text with a section `notify`."""
    return json.dumps(campaign_dict(notify=notify_section))


def test_an_address_keeps_its_variables() -> None:
    """Neither the model nor what goes on record has the secret, nor does the file differ by it."""
    text = yaml_of(addresses=["slack://${TOKEN}"])
    folder = Path("/")
    campaign = load_campaign(text, source="x", folder=folder, env={"TOKEN": SECRET, "HOME": "/"})
    assert campaign.notify.addresses == ("slack://${TOKEN}",)
    without = statement(make_campaign(), folder)
    with_notify = statement(make_campaign(notify={"addresses": ["slack://${TOKEN}"]}), folder)
    assert with_notify == without


@pytest.mark.parametrize(
    "address",
    [
        "mailto://user:hunter2pass@example.org",
        "slack://xoxb-1234567890ab/abcdef",
        "tgram://123456789:AAbbCCddEEffGGhhIIjjKKllMM12345/99",
        "no address at all",
    ],
)
def test_a_secret_in_an_address_is_refused_and_not_shown(address: str) -> None:
    """So is what can't be an address; the message says how to do it."""
    with pytest.raises(InputError) as refused:
        load_campaign(yaml_of(addresses=[address]), source="x", folder=Path("/"), env={})
    assert "${NAME}" in str(refused.value)
    assert address not in str(refused.value)
    assert "hunter2pass" not in str(refused.value)
