"""Reading what others wrote: exact where it can be, a problem with its place where it can't."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.reading import Fields, FolderProblem, load_json, load_yaml, shown


@pytest.mark.parametrize("value", [0, 2**53 + 1, 2**63, 10487924139932647040, 2**64])
def test_whole_numbers_stay_exact(value: int) -> None:
    """Seeds up to 2**64 are read as they are written, in JSON and in YAML."""
    assert load_json(str(value).encode(), "f") == (value, ())
    assert load_yaml(f"seed: {value}".encode(), "f") == ({"seed": value}, ())


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b'{"a": 1',
        b"NaN",
        b"-Infinity",
        b"1e400",
        b"18446744073709551617",
        b"-18446744073709551617",
        b"9" * 5000,
        b'"\xff"',
        b"\xef\xbb\xbf{}",
        b"[" * 100_000,
    ],
)
def test_what_is_no_json_is_one_problem(text: bytes) -> None:
    """Truncated, too large, not a number, other encodings, bottomless: one problem each."""
    value, problems = load_json(text, "summary.json")
    assert value is None
    assert [problem.where for problem in problems] == ["summary.json"]


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"a: [1",
        b"a:\t- b: c: d",
        b"\xff\xfe\xff",
        b"a: \x00",
        b"!!int ''",
        b"!!float x",
        b"!!bool maybe",
        b"!!timestamp x",
        b"a: 2026-13-45",
        b"{[a]: b}",
        b"!!binary ab",
        b"!!python/object:os.system {}",
        b"*nowhere",
        b"[" * 1000,
    ],
)
def test_what_is_no_yaml_is_one_problem(text: bytes) -> None:
    """Bad syntax, bad tags, bad encodings, bottomless: one problem each."""
    value, problems = load_yaml(text, "config.yaml")
    assert value is None
    assert [problem.where for problem in problems] == ["config.yaml"]


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(text: bytes) -> None:
    """Nothing that a file can hold raises."""
    for load in (load_json, load_yaml):
        _, problems = load(text, "f")
        assert all(isinstance(problem, FolderProblem) for problem in problems)


def test_a_problem_reads_as_a_line() -> None:
    """A problem says where and what; long values are cut."""
    assert str(FolderProblem("a: b", "wrong")) == "a: b: wrong"
    assert len(shown("x" * 1000)) == 60


WANTED: dict[str, list[Any]] = {
    "count": ["1", 1.0, -1, True, None, [], {}],
    "text": [1, None, True, []],
    "flag": ["true", 1, 0, None],
    "section": [[], "x", 1, None],
    "optional_count": ["1", 1.0, -1, True, []],
    "optional_number": ["1.5", -0.1, True, []],
    "optional_text": [1, True],
    "optional_flag": ["yes", 1],
    "optional_section": [[], 1],
}


@pytest.mark.parametrize(("reader", "wrong"), [(r, w) for r, all_ in WANTED.items() for w in all_])
def test_a_wrong_value_is_noted_with_its_key(reader: str, wrong: Any) -> None:
    """A value of the wrong type is one problem that names file and key, and reads as nothing."""
    problems: list[FolderProblem] = []
    value = getattr(Fields({"key": wrong}, "file", problems), reader)("key")
    assert [problem.where for problem in problems] == ["file: key"]
    assert "wanted" in problems[0].what
    assert not (value.values if isinstance(value, Fields) else value)


@pytest.mark.parametrize("reader", WANTED)
def test_a_missing_key_is_a_problem_where_it_is_required(reader: str) -> None:
    """Optional values may be missing or null; required ones may not."""
    problems: list[FolderProblem] = []
    getattr(Fields({}, "file", problems), reader)("key")
    assert len(problems) == (not reader.startswith("optional"))


@pytest.mark.parametrize("value", [None, 3, "x", []])
def test_what_is_no_object_reads_as_an_empty_one(value: Any) -> None:
    """A document of another type is noted once, before its keys are missing."""
    problems: list[FolderProblem] = []
    Fields(value, "file", problems).optional_text("key")
    assert [problem.where for problem in problems] == ["file"]


@settings(deadline=None)
@given(st.integers(0, 2**64), st.floats(0, allow_infinity=False), st.text(), st.booleans())
def test_right_values_are_returned_as_they_are(
    count: int, number: float, text: str, flag: bool
) -> None:
    """What is written is what is read."""
    document = json.dumps({"c": count, "n": number, "t": text, "f": flag, "s": {"c": count}})
    value, _ = load_json(document.encode(), "f")
    problems: list[FolderProblem] = []
    fields = Fields(value, "f", problems)
    assert (fields.count("c"), fields.optional_number("n")) == (count, number)
    assert (fields.text("t"), fields.flag("f")) == (text, flag)
    assert fields.section("s").count("c") == count
    assert problems == []
