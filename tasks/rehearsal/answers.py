r"""What the rehearsal endpoint says: plain words, and the right `\boxed{}` for the sums it knows.

An answer is a list of chunks, one whitespace-separated word each, so that a whitespace
tokenizer counts exactly as many tokens as chunks arrived.
"""

from __future__ import annotations

import re
from collections.abc import Callable

#: The words of an answer, repeated as often as it is long.
WORDS = (
    *("here", "is", "a", "rehearsal", "answer", "made", "of", "plain", "words", "that"),
    *("arrive", "one", "at", "a", "time", "at", "a", "stated", "pace", "so", "a"),
    *("whitespace", "tokenizer", "counts", "every", "chunk", "as", "one", "token"),
)
#: The problems of the rehearsal's accuracy datasets.
_PROBLEM = re.compile(r"(?:Problem (\d+): )?What is (\d+) \+ (\d+)\?.*\\boxed", re.DOTALL)


def answer(prompt: str, tokens: int, wrong: Callable[[int], bool]) -> list[str]:
    """Return the chunks of an answer of exactly this many words.

    Args:
        prompt: The text asked.
        tokens: Number of words wanted, at least 1.
        wrong: Whether the problem with this number is to be answered wrongly.
    """
    words = _words(len(prompt), tokens)
    if problem := _PROBLEM.search(prompt):
        total = int(problem[2]) + int(problem[3])
        if problem[1] is not None and wrong(int(problem[1])):
            total += 1
        solution = ["The", "answer", "is", f"\\boxed{{x{total}}}"][-tokens:]
        words[-len(solution) :] = solution
    return [f"{word} " for word in words[:-1]] + words[-1:]


def _words(start: int, tokens: int) -> list[str]:
    return [WORDS[(start + offset) % len(WORDS)] for offset in range(tokens)]
