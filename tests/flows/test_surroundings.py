"""Surroundings that a run refuses: exit 3, the cause named, nothing created and no load sent."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.flows.support import Done, Place, tree, write_datasets

#: The stand-in client as a command.
STAND_IN = [sys.executable, "-m", "tasks.rehearsal.client"]


class Stub(BaseHTTPRequestHandler):
    """An endpoint that is no rehearsal: it lists the model, and answers chats with `status`."""

    status: ClassVar[int] = 200

    def do_GET(self) -> None:
        """List the model."""
        self._answer(200, {"data": [{"id": "rehearsal-model"}]})

    def do_POST(self) -> None:
        """Answer a chat."""
        self.rfile.read(int(self.headers["content-length"]))
        self._answer(self.status, {"error": {"message": "stub"}})

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def _answer(self, status: int, document: Mapping[str, Any]) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def stub() -> Iterator[str]:
    """URL of the stub."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Stub)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A place with an endpoint that answers, for all tests of this module."""
    place = Place(tmp_path_factory.mktemp("healthy"), "http://127.0.0.1:9/api")
    with place.endpoint():
        yield place


@pytest.fixture
def served(bare_place: Place, healthy: Place) -> Place:
    """A place of its own beside an endpoint that answers."""
    bare_place.url = healthy.url
    return bare_place


Refused = Callable[..., Done]


@pytest.fixture
def refused(call: Callable[..., Done]) -> Refused:
    """`pareto run`, refused with exit 3 and one message; nothing is created."""

    def run(place: Place, **variables: str) -> Done:
        before = tree(place.folder)
        done = call(place, "run", place.file, **variables)
        assert done.code == 3, done
        assert done.err.startswith("pareto: "), done
        assert done.err.count("pareto: ") == 1, done
        assert "Traceback" not in done.err
        assert tree(place.folder) == before
        return done

    return run


def test_endpoint_down(bare_place: Place, refused: Refused) -> None:
    """Nobody listens there."""
    bare_place.write()
    done = refused(bare_place)
    assert "endpoint.urls: http://127.0.0.1:9: no connection" in done.err
    assert "is the endpoint up and the address right?" in done.err


def test_all_that_is_wrong_is_told_at_once(bare_place: Place, refused: Refused) -> None:
    """A dataset, the client and the endpoint: one call tells of all three."""
    bare_place.write(client={"command": ["no-such-client"]})
    (bare_place.folder / "accuracy.jsonl").write_text('{"prompt": "1"}\n' * 36)
    done = refused(bare_place)
    assert "has no 'ground_truth'; it has prompt" in done.err
    assert "no-such-client" in done.err
    assert "http://127.0.0.1:9: no connection" in done.err


def test_endpoint_without_tls(served: Place, refused: Refused) -> None:
    """https:// to a plain port is a TLS error, not a dead endpoint."""
    served.write(endpoint={"urls": [served.url.replace("http:", "https:")]})
    assert "TLS error" in refused(served).err


def test_another_model(served: Place, refused: Refused) -> None:
    """The models served are listed."""
    served.write(model={"name": "another-model"})
    assert "serves rehearsal-model, not 'another-model'" in refused(served).err


@pytest.mark.parametrize(
    ("status", "cause"), [(404, "404: no such path or model"), (500, "status 500")]
)
def test_model_listed_but_not_answering(
    bare_place: Place,
    refused: Refused,
    stub: str,
    monkeypatch: pytest.MonkeyPatch,
    status: int,
    cause: str,
) -> None:
    """The one short chat fails although the model is listed."""
    monkeypatch.setattr(Stub, "status", status)
    bare_place.url = stub
    bare_place.write()
    assert cause in refused(bare_place).err


def test_key_refused(bare_place: Place, refused: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    """401 says where the key's variable is named, with a wrong key and without one."""
    monkeypatch.setenv("TEST_KEY_OF_ENDPOINT", "right")
    with bare_place.endpoint(api_key_env="TEST_KEY_OF_ENDPOINT"):
        bare_place.log.unlink(missing_ok=True)
        bare_place.write()
        assert "401: the endpoint refuses the key" in refused(bare_place).err
        bare_place.write(endpoint={"api_key_env": "TEST_KEY"})
        done = refused(bare_place, TEST_KEY="wrong-key-value")
        assert "endpoint.api_key_env" in done.err
        assert "wrong-key-value" not in done.err


def not_executable(folder: Path) -> list[str]:
    """A client's file without the right to run it."""
    path = folder / "client-no-x"
    path.write_text("#!/bin/sh\n")
    return [str(path)]


def no_program(folder: Path) -> list[str]:
    """A client's file that is no program."""
    path = folder / "client-no-program"
    path.write_text("echo no interpreter is named\n")
    path.chmod(0o755)
    return [str(path)]


def script(folder: Path, name: str, init: str) -> list[str]:
    """A client of another kind: a version, and a template that is printed."""
    path = folder / name
    path.write_text(f"#!/bin/sh\ncase $1 in --version) echo 0.0.1;; init) {init};; esac\n")
    path.chmod(0o755)
    return [str(path)]


def too_old(folder: Path) -> list[str]:
    """A client whose template lacks what a point needs."""
    return script(folder, "client-old", "printf 'model_params: {}\\nsettings: {runtime: {}}\\n'")


def failing(folder: Path) -> list[str]:
    """A client that fails with a message of its own."""
    return script(folder, "client-failing", "echo 'the disk is on fire' >&2; exit 1")


def chatty(folder: Path) -> list[str]:
    """A client whose template is no YAML."""
    return script(folder, "client-chatty", "echo '{['")


@pytest.mark.parametrize(
    ("client", "cause"),
    [
        (lambda _: ["no-such-client"], "'no-such-client' was not found; install the official"),
        (not_executable, "client-no-x' is not executable"),
        (no_program, "client-no-program' can't be run: "),
        (too_old, "settings.load_pattern, settings.client, endpoint_config; it is too old or"),
        (failing, "  | the disk is on fire"),
        (chatty, "init concurrency gave no YAML"),
    ],
)
def test_client_unusable(
    served: Place, refused: Refused, client: Callable[[Path], list[str]], cause: str
) -> None:
    """Missing, not executable, no program, too old, failing: the cause and the client's words."""
    served.write(client={"command": client(served.folder)})
    done = refused(served)
    assert "client.command" in done.err
    assert cause in done.err


def test_configuration_that_the_client_refuses(served: Place, refused: Refused) -> None:
    """`validate-yaml` decides, and its own message is shown."""
    served.write(client={"overrides": {"settings": {"nonsense": 1}}})
    done = refused(served)
    assert "validate-yaml" in done.err
    assert "  | " in done.err
    assert "nonsense" in done.err


def empty(path: Path) -> None:
    """An empty dataset."""
    path.write_text("")


def no_json(path: Path) -> None:
    """Another format under the name of this one."""
    path.write_text("prompt,answer\none,two\n")


def short(path: Path) -> None:
    """Half of the rows, as of a copy that broke off."""
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:4]))


@pytest.mark.parametrize("name", ["performance", "accuracy"])
@pytest.mark.parametrize(
    ("spoil", "cause"),
    [
        (Path.unlink, "does not exist"),
        (empty, "has no rows"),
        (no_json, "can't be read as jsonl: line 1"),
        (short, "expected, but"),
    ],
)
def test_dataset_unusable(
    bare_place: Place, refused: Refused, name: str, spoil: Callable[[Path], None], cause: str
) -> None:
    """Missing, empty, of another format, fewer rows than declared: before any load."""
    bare_place.write(datasets={"performance": {"rows": 8}})
    spoil(bare_place.folder / f"{name}.jsonl")
    done = refused(bare_place)
    assert f"datasets.{name}" in done.err
    assert cause in done.err


def test_stand_in_client_without_a_rehearsal(
    bare_place: Place, refused: Refused, stub: str
) -> None:
    """The stand-in measures nothing that is not marked a rehearsal."""
    bare_place.url = stub
    bare_place.write()
    text = bare_place.file.read_text()
    bare_place.write(text[: text.index("rehearsal:\n")])
    assert "stand-in client, but the campaign is no rehearsal" in refused(bare_place).err


def test_rehearsal_endpoint_without_a_rehearsal(served: Place, refused: Refused) -> None:
    """Nor is the rehearsal's endpoint measured."""
    served.write()
    text = served.file.read_text()
    served.write(text[: text.index("rehearsal:\n")])
    assert "is the rehearsal endpoint, but the campaign is no rehearsal" in refused(served).err


def test_check_tells_what_it_found(served: Place, healthy: Place) -> None:
    """`pareto check` on good surroundings: exit 0, one short request and no load, nothing made.

    The official client uses no proxy, so the environment's proxy is not asked.
    """
    served.write()
    before = tree(served.folder)
    done = served.pareto("check", served.file, HTTP_PROXY="http://127.0.0.1:9")
    assert done.code == 0, done
    assert "serves rehearsal-model" in done.out
    assert "every configuration accepted" in done.out
    assert "8 performance rows; accuracy 36 rows" in done.out
    assert tree(served.folder) == before
    assert healthy.requests() == []
    assert {request.kind for request in healthy.all_requests()} == {"other"}


def test_datasets_are_checked_before_the_endpoint_is_asked(
    bare_place: Place, refused: Refused
) -> None:
    """With both wrong, the dataset is named."""
    bare_place.write()
    (bare_place.folder / "accuracy.jsonl").unlink()
    assert "datasets.accuracy" in refused(bare_place).err
    write_datasets(bare_place.folder)
    assert "endpoint.urls" in refused(bare_place).err
