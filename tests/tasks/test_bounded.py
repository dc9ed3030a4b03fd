"""Commands that are run to their end, bounded in time and size."""

from __future__ import annotations

import pytest

from tasks.bounded import Bounds, UnreadableError, run_bounded

#: More than a pipe takes at once.
LARGE = b"x" * (1 << 20)


@pytest.mark.parametrize("told", [b"", b"a line\n", LARGE], ids=["nothing", "little", "much"])
def test_a_command_reads_what_it_is_told(told: bytes) -> None:
    ended = run_bounded(["cat"], {}, Bounds(30.0, 2 << 20), told=told)
    assert (ended.code, ended.printed == told) == (0, True)


def test_a_command_that_does_not_read_ends_all_the_same() -> None:
    assert run_bounded(["true"], {}, Bounds(30.0, 100), told=LARGE).code == 0


def test_too_much_and_too_slow_are_told() -> None:
    with pytest.raises(UnreadableError, match="more than 100 bytes"):
        run_bounded(["cat"], {}, Bounds(30.0, 100), told=LARGE)
    with pytest.raises(UnreadableError, match=r"no end after 0\.2 s"):
        run_bounded(["sleep", "30"], {}, Bounds(0.2, 100))
