"""The documents name only commands, options, keys, targets and files that exist."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import cyclopts
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])

#: A fenced block: its language and its text.
_BLOCK = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)[^)]*\)")
#: A call of the command, however its path is written, up to what the shell makes of the rest.
_CALL = re.compile(r"(?:^|[/ ])pareto ((?:[^|;&#\n])*)")
_TARGET = re.compile(r"\bmake ([a-z]+)")
#: A dotted key; a file's name is none.
_KEY = re.compile(r"[a-z_]+(\.[a-z_\[\]]+)+(?<!\.yaml)(?<!\.py)(?<!\.json)")
_WORDS_THAT_NAME_NOTHING = {"CAMPAIGN", "COMMAND"}

documents = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)


@documents
def test_commands_and_options_exist(document: Path) -> None:
    """Every call of `pareto` in code names a command, and options that this command has."""
    unknown = [problem for call in calls(document) for problem in problems_of(call)]
    assert unknown == []


@documents
def test_campaign_keys_exist(document: Path) -> None:
    """Keys in spans (`run.retries`), fragments and blocks of YAML are keys of a campaign file."""
    dotted = [span.partition(":")[0].strip() for span in code_spans(document)]
    keys = [span for span in dotted if _KEY.fullmatch(span) and top_key(span)]
    unknown = [key for key in keys if not is_known(key.split("."))]
    for fragment in fragments(document):
        unknown += [".".join(path) for path in paths(fragment) if not is_known(path)]
    assert unknown == []


@documents
def test_whole_campaigns_are_campaigns(document: Path) -> None:
    """A block of YAML that begins with a campaign's name is one, without a mistake."""
    from core.campaign_yaml import load_campaign

    env = {"ENDPOINT_API_KEY": "x", "HOME": "/home/user"}
    whole = [text for text in yaml_blocks(document) if text.startswith("campaign:")]
    loaded = [
        load_campaign(
            text, source=document.name, folder=ROOT, env=env, is_folder=lambda _: False
        ).campaign
        for text in whole
    ]
    assert len(loaded) == len(whole)


@documents
def test_make_targets_exist(document: Path) -> None:
    """Every `make TARGET` in code is in the Makefile."""
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {name for text in code(document) for name in _TARGET.findall(text)}
    assert named <= targets


@documents
def test_links_lead_somewhere(document: Path) -> None:
    """Relative links name files of the repository."""
    links = _LINK.findall(document.read_text(encoding="utf-8"))
    assert [link for link in links if not (document.parent / link).exists()] == []


def test_the_documents_are_looked_at() -> None:
    """What the tests above look for is found at all."""
    assert sum(len(calls(document)) for document in DOCUMENTS) > 5
    assert sum(len(list(fragments(document))) for document in DOCUMENTS) > 0
    assert problems_of("rnu FILE") == ["pareto rnu"]
    assert problems_of("run FILE --pionts 1") == ["pareto run --pionts"]
    assert problems_of("db upgrade") == []
    assert not is_known(["run", "retrys"])
    assert is_known(["datasets", "accuracy[]", "targets", "score", "min"])


# --- What is written -------------------------------------------------------------------------


def code(document: Path) -> list[str]:
    """Every block and span of code."""
    blocks = [text for _, text in _BLOCK.findall(document.read_text(encoding="utf-8"))]
    return blocks + code_spans(document)


def code_spans(document: Path) -> list[str]:
    """Every span of code outside the blocks."""
    return [str(s) for s in _SPAN.findall(_BLOCK.sub("", document.read_text(encoding="utf-8")))]


def yaml_blocks(document: Path) -> list[str]:
    """Every block of YAML, its indentation taken away."""
    import textwrap

    found = _BLOCK.findall(document.read_text(encoding="utf-8"))
    return [textwrap.dedent(text) for language, text in found if language == "yaml"]


def calls(document: Path) -> list[str]:
    """The arguments of every call of `pareto`."""
    lines = [line for text in code(document) for line in text.splitlines()]
    return [match[1].strip() for line in lines if (match := _CALL.search(line.strip()))]


def fragments(document: Path) -> Iterator[Any]:
    """Every piece of YAML that begins with a key of the campaign file."""
    for text in yaml_blocks(document):
        yield yaml.safe_load(text)
    for span in code_spans(document):
        if re.fullmatch(r"\w+: [{\[].*[}\]]", span) and top_key(span):
            yield yaml.safe_load(span)


# --- What exists -----------------------------------------------------------------------------


def problems_of(call: str) -> list[str]:
    """Names in a call that the command doesn't have."""
    from flows.cli import app

    command, path = app, "pareto"
    words = shlex.split(call.split("`", maxsplit=1)[0])
    while words and is_group(command):
        word = words.pop(0)
        if word in _WORDS_THAT_NAME_NOTHING or word in ("--help", "--version"):
            return []
        path += f" {word}"
        try:
            command = command[word]
        except KeyError:
            return [path]
    known = {name for argument in command.assemble_argument_collection() for name in argument.names}
    options = [word.partition("=")[0] for word in words if word.startswith("--")]
    return [f"{path} {option}" for option in options if option not in known | {"--help"}]


def is_group(command: cyclopts.App) -> bool:
    """Whether a command has commands of its own."""
    return any(not name.startswith("-") for name in command)


@cache
def schema() -> dict[str, Any]:
    """The campaign file's JSON schema."""
    found: dict[str, Any] = json.loads((ROOT / "campaigns" / "campaign.schema.json").read_bytes())
    return found


def top_key(span: str) -> str | None:
    """The campaign file's section that a span begins with."""
    name = re.split(r"[.:]", span)[0]
    return name if name in schema()["properties"] else None


def paths(tree: Any, prefix: tuple[str, ...] = ()) -> list[list[str]]:
    """Path of every key in nested mappings and lists."""
    if isinstance(tree, list):
        return [path for item in tree for path in paths(item, prefix)]
    if not isinstance(tree, dict):
        return []
    found = []
    for key, value in tree.items():
        found += [[*prefix, str(key)], *paths(value, (*prefix, str(key)))]
    return found


def is_known(path: list[str]) -> bool:
    """Whether the campaign file has such a key."""
    nodes = [schema()]
    for part in path:
        name = part.removesuffix("[]")
        nodes = [below for node in nodes for below in children(node, name)]
    return bool(nodes)


def children(node: Any, name: str) -> list[Any]:
    """The schemas that a key of a schema may have; any key where keys are free."""
    if not isinstance(node, dict):
        return [node]  # true: anything goes
    if "$ref" in node:
        return children(schema()["$defs"][node["$ref"].rpartition("/")[2]], name)
    found = [c for option in node.get("anyOf", []) for c in children(option, name)]
    if "items" in node:
        found += children(node["items"], name)
    if name in node.get("properties", {}):
        found.append(node["properties"][name])
    free = node.get("additionalProperties")
    if free:
        found.append(free)
    return found
