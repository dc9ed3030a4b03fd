"""Input that a run refuses: exit 2, one message with the place and the fix, nothing made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.flows.support import Done, Place, tree

Edit = Callable[[str], str]


def replaced(old: str, new: str) -> Edit:
    """An edit of a good campaign file."""

    def edit(text: str) -> str:
        assert old in text
        return text.replace(old, new, 1)

    return edit


def _anchors(_: str) -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    return "\n".join([*lines, "# " + "x" * 5_000_000]) + "\n"


#: What is wrong → the edit that makes it so, and what the message must have.
MISTAKES: dict[str, tuple[Edit, list[str]]] = {
    "syntax error": (replaced("curve:\n", "curve: [\n"), ["line"]),
    "tab": (replaced("  c_max", "\tc_max"), ["tab"]),
    "duplicate key": (lambda text: text + "campaign: again\n", ["campaign", "line"]),
    "typo": (
        replaced("campaign:", "campain:"),
        ["yaml:1: campain", "did you mean campaign"],
    ),
    "typo inside": (replaced("  c_max:", "  cmax:"), ["curve.cmax", "c_max"]),
    "wrong type": (replaced("c_max: 33", "c_max: many"), ["curve.c_max", "many"]),
    "yes for a string": (
        replaced("campaign: curve", "campaign: yes"),
        ["campaign.yaml:1: campaign: yes", "quote it"],
    ),
    "empty file": (lambda _: "", ["empty"]),
    "nested anchors": (_anchors, ["bytes"]),
    "anchors alone": (lambda text: _anchors(text).partition("# ")[0], ["more than 10,000 values"]),
    "unknown seed set": (replaced("seeds:\n", "seeds:\n  set: Q\n"), ["seeds.set", "Q"]),
    "cohort outside its window": (
        replaced("2026-12-C0", "2031-12-C0"),
        ["seeds.target_cohort", "2026-12-C0"],
    ),
    "API key": (
        replaced("endpoint:\n", "endpoint:\n  api_key: sk-abcdefgh12345678\n"),
        ["endpoint.api_key", "api_key_env"],
    ),
    "API key for its variable": (
        replaced("endpoint:\n", "endpoint:\n  api_key_env: sk-abcdefgh12345678\n"),
        ["endpoint.api_key_env: (not shown)", "export"],
    ),
    "C_max too low": (replaced("c_max: 33", "c_max: 32"), ["curve.c_max: 32 must be above 32"]),
    "unset variable": (replaced("name: box", "name: ${NO_SUCH_BOX}"), ["NO_SUCH_BOX"]),
}


Refused = Callable[..., str]


@pytest.fixture
def refused(call: Callable[..., Done]) -> Refused:
    """The one message of a call that is refused with exit 2; nothing is created."""

    def message(place: Place, *arguments: Any) -> str:
        before = tree(place.folder)
        done = call(place, *arguments)
        assert done.code == 2, done
        assert "Traceback" not in done.err + done.out
        assert done.err.count("pareto: ") <= 1
        assert tree(place.folder) == before
        return done.err

    return message


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_in_the_campaign_file(bare_place: Place, refused: Refused, mistake: str) -> None:
    """Every mistake ends with one message that names the place; no key is ever shown."""
    edit, wanted = MISTAKES[mistake]
    bare_place.write()
    bare_place.write(edit(bare_place.file.read_text()))
    message = refused(bare_place, "run", bare_place.file)
    assert message.startswith("pareto: "), message
    assert not [part for part in wanted if part not in message], message
    assert "sk-abcdefgh12345678" not in message
    assert len(message) < 2000


def test_all_mistakes_are_told_at_once(bare_place: Place, refused: Refused) -> None:
    """Whoever corrects a file corrects it once."""
    bare_place.write(model={"nam": "x"}, curve={"c_max": "many"}, run={"retries": -1})
    message = refused(bare_place, "run", bare_place.file)
    assert all(part in message for part in ("model.nam", "curve.c_max", "run.retries")), message


def test_a_folder_and_a_missing_file(bare_place: Place, refused: Refused) -> None:
    """Neither is a campaign file, whichever command is given it."""
    bare_place.write()
    for command in ("run", "plan", "check"):
        assert "no such file" in refused(bare_place, command, "none.yaml")
    assert "is a folder" in refused(bare_place, "run", ".")


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["run", "campaign.yaml", "--points", "7"], "--points: no point 7; there are c0033"),
        (["run", "campaign.yaml", "--points", ","], "--points: no point given"),
        (["status", "campaign.yaml"], "there are no records at"),
        (["runs", "campaign.yaml"], "there are no records at"),
        (["retry", "campaign.yaml"], "there are no records at"),
        (["status", "unheard-of"], "no records here"),
        (["status"], "no records here"),
        (["runn"], "runn"),
        (["run"], "--file"),
        (["run", "campaign.yaml", "--pionts", "1"], "--pionts"),
    ],
)
def test_mistakes_on_the_command_line(
    bare_place: Place, refused: Refused, arguments: list[str], wanted: str
) -> None:
    """Exit 2 and what is wrong; nothing is created."""
    bare_place.write()
    assert wanted in refused(bare_place, *arguments)
