"""Expansion of `${NAME}` as in a shell, with nothing guessed."""

from __future__ import annotations

import pytest

from core.variables import expand, has_reference

ENV = {"A": "a", "EMPTY": "", "NESTED": "${A}", "HF_TOKEN": "t"}


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("plain $A $ {A}", "plain $A $ {A}"),
        ("${A}", "a"),
        ("x${A}y${A}", "xaya"),
        ("${EMPTY}", ""),
        ("${EMPTY:-b}", "b"),
        ("${A:-b}", "a"),
        ("${NO:-b c:-d}", "b c:-d"),
        ("${NO:-}", ""),
        ("${NESTED}", "${A}"),
        ("$${A}", "${A}"),
        ("$${A}${A}", "${A}a"),
    ],
)
def test_references_are_replaced_once(text: str, expanded: str) -> None:
    assert expand(text, ENV) == (expanded, [])


@pytest.mark.parametrize(
    "text", ["${}", "${", "${A", "${1A}", "${A-b}", "${A:b}", "${ A }", "${NO:-${A}}", "${Ä}"]
)
def test_what_only_looks_like_a_reference_is_told(text: str) -> None:
    _, problems = expand(text, ENV)
    assert problems == ["not a variable; write ${NAME} or ${NAME:-default}, $${ for plain ${"]


def test_every_unset_variable_is_told() -> None:
    _, problems = expand("${NO}${A}${NEITHER}", ENV)
    assert [problem.split(";")[0] for problem in problems] == [
        "variable NO is not set",
        "variable NEITHER is not set",
    ]


def test_a_secret_is_taken_in_only_where_allowed() -> None:
    text, (problem,) = expand("x${HF_TOKEN}", ENV)
    assert text == "x"
    assert "looks like a secret" in problem
    assert expand("x${HF_TOKEN}", ENV, secrets_allowed=True) == ("xt", [])


def test_only_the_braced_form_is_a_reference() -> None:
    assert has_reference("a ${B}")
    assert not has_reference("a $B {C}")
