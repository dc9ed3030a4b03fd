"""YAML text → plain data with the line of every value; what can't be meant is refused.

YAML 1.1 reads `yes` as a boolean, `017` as fifteen and `12:30:45` as seconds. None of that is
ever wanted here, so only values that read the same to everyone are taken, and whatever else was
written becomes a problem at its line. Nothing is constructed from tags, and aliases are counted
before they are expanded.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import yaml

from core.errors import InputError
from core.redact import HIDDEN, is_secret_key, scrubbed, shortened
from core.variables import expand, has_reference

#: Largest campaign file, bytes; a real one has a few thousand.
MAX_BYTES = 1_000_000
#: Most values in a file, aliases counted as what they stand for; a real one has about a hundred.
MAX_VALUES = 10_000
#: Deepest nesting; the campaign's own sections need five.
MAX_DEPTH = 32
#: Items of a list in a message.
_MOST_ITEMS = 10
#: Longest whole number, digits; seeds have twenty.
_MAX_DIGITS = 40

_TAG = "tag:yaml.org,2002:"
_PLAIN_INT = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_PLAIN_FLOAT = re.compile(r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
_UNPRINTABLE = yaml.reader.Reader.NON_PRINTABLE

#: How a mapping and a missing value are shown.
MAPPING, EMPTY = "a mapping", "(empty)"

#: Keys and list positions from the top of the file to a value.
KeyPath = tuple[str | int, ...]


class Problem(NamedTuple):
    """Something wrong at a place in the file."""

    line: int
    path: KeyPath
    text: str  # "value → what is wrong; fix"


@dataclass(frozen=True)
class Place:
    """Where a value stands, and the value as written."""

    line: int
    shown: str
    is_scalar: bool
    quoted: bool


@dataclass
class Document:
    """The data of a file; a value with a problem is kept as its text."""

    data: Any = None
    places: dict[KeyPath, Place] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    #: Places whose value is unclear: nothing more is to be said about them.
    unclear: set[KeyPath] = field(default_factory=set)

    def is_unclear(self, path: KeyPath) -> bool:
        """Whether the place, or one that it is part of, is unclear."""
        return any(path[:end] in self.unclear for end in range(len(path) + 1))

    def holds_unclear(self, path: KeyPath) -> bool:
        """Whether something inside the place is unclear."""
        return any(other[: len(path)] == path for other in self.unclear)

    def value_at(self, path: KeyPath) -> Any:
        """The data at a place."""
        value = self.data
        for part in path:
            value = value[part]
        return value

    def complain(self, path: KeyPath, text: str) -> None:
        """Add the one problem of a value: what is wrong with it; the fix."""
        place = self.places[path]
        self.problems.append(Problem(place.line, path, f"{place.shown} → {text}"))
        self.unclear.add(path)


def dotted(path: KeyPath) -> str:
    """A path as a reader writes it: `datasets.accuracy[0].name`."""
    parts = [f"[{part}]" if isinstance(part, int) else f".{shortened(part)}" for part in path]
    return "".join(parts).removeprefix(".")


def listed(problems: Collection[Problem], source: str) -> str:
    """All problems, one a line, in the order of the file."""
    return "\n".join(
        f"{source}:{line}: {dotted(path)}{': ' if path else ''}{scrubbed(text)}"
        for line, path, text in sorted(problems, key=lambda problem: problem.line)
    )


def refusal(source: str, line: int, text: str) -> InputError:
    """The error of a file that can't be read any further."""
    return InputError(listed([Problem(line, (), text)], source))


def read_document(
    content: str | bytes,
    *,
    source: str,
    env: Mapping[str, str],
    secret_paths: Collection[KeyPath] = (),
    verbatim: Collection[KeyPath] = (),
) -> Document:
    """The document in a text, its variables expanded.

    Args:
        content: The file's content.
        source: Name of the file, for messages.
        env: The environment.
        secret_paths: Places that may take in variables named like secrets.
        verbatim: Places in which variables are left as they are written, and nothing is shown.

    Raises:
        InputError: not text, not YAML, not one document, or too large.
    """
    text = _decoded(content, source)
    root = _composed(text, source)
    if root is None:
        raise refusal(
            source, 1, "the file is empty → write a campaign; campaigns/rehearsal.yaml is one"
        )
    builder = _Builder(env, frozenset(secret_paths), tuple(verbatim))
    builder.document.data = builder.value(root, (), _line(root))
    return builder.document


# --- Text → nodes ------------------------------------------------------------------------------


def _decoded(content: str | bytes, source: str) -> str:
    if len(content) > MAX_BYTES:
        size = f"{len(content):,} bytes"
        raise refusal(source, 1, f"{size} → a campaign file has at most {MAX_BYTES:,}")
    raw = content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        byte = f"byte 0x{raw[error.start]:02x}"
        raise refusal(source, line, f"{byte} is not UTF-8 → save the file as UTF-8") from None
    if found := _UNPRINTABLE.search(text):
        line = text.count("\n", 0, found.start()) + 1
        raise refusal(source, line, f"unprintable character {_code(found[0])} → remove it")
    return text


def _code(char: str) -> str:
    return f"U+{ord(char):04X}"


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


class _Composer(yaml.SafeLoader):
    """Composes nodes under a budget; an alias costs as much as what it stands for."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0  # of the node being composed
        self._deepest = 0  # seen inside the node being composed
        self._values = 0
        self._extents: dict[int, tuple[int, int]] = {}  # id of node → values, levels

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Compose one node and what is below it, and count both."""
        event = self.peek_event()  # type: ignore[no-untyped-call]  # untyped in types-PyYAML
        before, deepest = self._values, self._deepest
        self._depth += 1
        self._values += 1
        self._deepest = self._depth
        self._check_budget(event)
        node = super().compose_node(parent, index)
        if isinstance(event, yaml.AliasEvent):
            self._add_alias(event, node)
        self._extents[id(node)] = self._values - before, self._deepest - self._depth + 1
        self._deepest = max(deepest, self._deepest)
        self._depth -= 1
        return node

    def _add_alias(self, event: yaml.AliasEvent, node: yaml.Node | None) -> None:
        if id(node) not in self._extents:
            raise _refused(event, f"alias *{event.anchor} stands inside its own anchor")
        values, levels = self._extents[id(node)]
        self._values += values - 1
        self._deepest += levels - 1
        self._check_budget(event)

    def _check_budget(self, event: yaml.Event) -> None:
        if self._values > MAX_VALUES:
            raise _refused(event, f"more than {MAX_VALUES:,} values, aliases expanded")
        if self._deepest > MAX_DEPTH:
            raise _refused(event, f"nested more than {MAX_DEPTH} deep")


def _refused(event: yaml.Event, problem: str) -> yaml.MarkedYAMLError:
    mark: Any = event.start_mark  # types-PyYAML knows another class of marks
    return yaml.MarkedYAMLError(problem=problem, problem_mark=mark)


def _composed(text: str, source: str) -> yaml.Node | None:
    loader = _Composer(text)
    try:
        return loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        index, line = (mark.index, mark.line + 1) if mark else (0, 1)
        raise refusal(source, line, _syntax(error, text, index)) from None
    except (yaml.YAMLError, ValueError, OverflowError):
        # An escape or a version number outside its range: PyYAML gives no place for these.
        raise refusal(
            source, loader.line + 1, "not valid YAML: a number or an escape is out of range"
        ) from None
    finally:
        loader.dispose()


def _syntax(error: yaml.MarkedYAMLError, text: str, index: int) -> str:
    """What a syntax error means, without the text around it."""
    problem = error.problem or "not valid YAML"
    if text[index : index + 1] == "\t":
        return "a tab → YAML indents and separates with spaces only"
    if text[max(0, index - 1) : index + 1] == "${":
        return 'not valid YAML: inside [ ] or { } a variable needs quotes → "${NAME}"'
    if "another document" in problem:
        return "a second document starts here → one campaign a file; remove the ---"
    if "cannot start any token" in problem:
        return f"not valid YAML: {problem} → put the value into quotes"
    if problem.startswith("mapping values are not allowed"):
        return "not valid YAML: a colon that can't be here → check indentation, or quote the value"
    if error.context and error.context_mark:
        return (
            f"not valid YAML: {problem} ({error.context} from line {error.context_mark.line + 1})"
        )
    return f"not valid YAML: {problem}" if problem.startswith(("found", "expected")) else problem


# --- Nodes → data ------------------------------------------------------------------------------


@dataclass
class _Builder:
    env: Mapping[str, str]
    secret_paths: frozenset[KeyPath]
    verbatim: tuple[KeyPath, ...]
    document: Document = field(default_factory=Document)

    def value(self, node: yaml.Node, path: KeyPath, line: int) -> Any:
        """The data of a node; its line is that of its key."""
        shown = HIDDEN if self._is_verbatim(path) else _shown(node, path)
        self.document.places[path] = Place(
            line, shown, isinstance(node, yaml.ScalarNode), _is_quoted(node)
        )
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        kind = "map" if isinstance(node, yaml.MappingNode) else "seq"
        if node.tag != _TAG + kind:
            self.document.complain(path, f"tag {_tag_name(node.tag)} is not read here; remove it")
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        return [
            self.value(item, (*path, index), _line(item)) for index, item in enumerate(node.value)
        ]

    def _is_verbatim(self, path: KeyPath) -> bool:
        return any(path[: len(place)] == place for place in self.verbatim)

    def _mapping(self, node: yaml.MappingNode, path: KeyPath) -> dict[Any, Any]:
        data: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            line = _line(key_node)
            key = self._key(key_node, path)
            if key is None:
                continue
            if key in data:
                first = self.document.places[(*path, key)].line
                text = f"given twice, first in line {first} → remove one"
                self.document.problems.append(Problem(line, (*path, key), text))
                continue
            data[key] = self.value(value_node, (*path, key), line)
        return data

    def _key(self, node: yaml.Node, path: KeyPath) -> str | int | None:
        """The key, or None after saying what is wrong with it."""
        if isinstance(node, yaml.ScalarNode):
            if node.tag == _TAG + "str" and not _UNPRINTABLE.search(node.value):
                return str(node.value)
            if node.tag == _TAG + "int" and _is_plain_int(node.value):
                return int(node.value)
        shown = _shown(node, ())
        text = f"key {shown} → {_key_fix(node)}"
        self.document.problems.append(Problem(_line(node), path, text))
        return None

    def _scalar(self, node: yaml.ScalarNode, path: KeyPath) -> Any:
        text, tag = str(node.value), str(node.tag)
        if tag == _TAG + "str" and has_reference(text) and not self._is_verbatim(path):
            secrets_allowed = path in self.secret_paths
            text, wrong = expand(text, self.env, secrets_allowed=secrets_allowed)
            for problem in wrong:
                self.document.complain(path, problem)
            if wrong:
                return text
            if not node.style:
                tag = _plain_tag(text)
        if found := _UNPRINTABLE.search(text):
            self.document.complain(
                path, f"holds the unprintable character {_code(found[0])}; remove it"
            )
            return ""
        return self._typed(text, tag, path)

    def _typed(self, text: str, tag: str, path: KeyPath) -> Any:
        """The value, if there is no doubt about it; else its text."""
        match tag.removeprefix(_TAG):
            case "str":
                return text
            case "null":
                return None
            case "bool" if text.lower() in ("true", "false"):
                return text.lower() == "true"
            case "int" if _is_plain_int(text):
                return int(text)
            case "float" if _PLAIN_FLOAT.fullmatch(text) and math.isfinite(float(text)):
                return float(text)
        self.document.complain(path, _doubt(text, tag))
        return text


def _plain_tag(text: str) -> str:
    """The tag of an unquoted value."""
    loader: Any = yaml.SafeLoader("")  # `resolve` is untyped in types-PyYAML
    return str(loader.resolve(yaml.ScalarNode, text, (True, False)))


def _is_plain_int(text: str) -> bool:
    return _PLAIN_INT.fullmatch(text) is not None and len(text) <= _MAX_DIGITS


def _is_quoted(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and bool(node.style)


def _shown(node: yaml.Node, path: KeyPath) -> str:
    """The value as written, short; hidden where the key announces a secret."""
    if any(map(is_secret_key, path)):
        return HIDDEN
    if isinstance(node, yaml.SequenceNode):
        return shortened(f"[{', '.join(_shown(item, path) for item in node.value[:_MOST_ITEMS])}]")
    if not isinstance(node, yaml.ScalarNode):
        return MAPPING
    if not node.style:
        return shortened(node.value) or EMPTY
    return f'"{shortened(node.value)}"'


def _tag_name(tag: str) -> str:
    """The tag as written."""
    return shortened(tag.replace(_TAG, "!!"))


def _key_fix(node: yaml.Node) -> str:
    if not isinstance(node, yaml.ScalarNode):
        return "a key must be text"
    if node.tag == _TAG + "merge":
        return "merge keys are not read here; write the keys out"
    if node.tag == _TAG + "null":
        return "a key must be text; this one is empty"
    return f'a key must be text; quote it: "{shortened(node.value)}"'


def _doubt(text: str, tag: str) -> str:
    """What YAML takes a plain value for, and how to write what is meant."""
    quoted = f'"{shortened(text)}"'
    match tag.removeprefix(_TAG):
        case "bool":
            plain = "true" if text.lower() in ("yes", "on") else "false"
            return f"is read as a boolean; quote it ({quoted}) if text is meant, or write {plain}"
        case "int" | "float":
            return (
                f"is read as {_number_form(text)}; quote it ({quoted}) if text is meant, or write"
                " a plain decimal number"
            )
        case "timestamp":
            return f"is read as a date; quote it: {quoted}"
        case "merge" | "value":
            return f"has a meaning of its own in YAML; quote it: {quoted}"
    return f"tag {_tag_name(tag)} is not read here; remove it"


def _number_form(text: str) -> str:
    digits = text.lstrip("+-").lower()
    forms = (
        (":" in digits, "a base-60 number"),
        (digits.startswith("0x"), "a hexadecimal number"),
        (digits.startswith("0b"), "a binary number"),
        ("_" in digits, "a number with its _ left out"),
        (digits in (".inf", ".nan"), "no finite number"),
        (re.fullmatch("0[0-7]+", digits) is not None, "an octal number"),
    )
    return next((form for applies, form in forms if applies), "a number, but is none of use here")
