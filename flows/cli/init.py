"""`pareto init`: a new campaign file from flags, or from questions at a terminal."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from core.errors import InputError

if TYPE_CHECKING:
    from core.campaign_draft import Draft

#: Paths after one flag, or the flag several times.
_Paths = Annotated[
    tuple[Path, ...], Parameter(consume_multiple=True, negative="", show_default=False)
]


def init(
    *,
    benchmark: str | None = None,
    url: str | None = None,
    model: str | None = None,
    c_max: int | None = None,
    performance: Path | None = None,
    accuracy: _Paths = (),
    output: Path | None = None,
) -> int:
    """Write a commented campaign file; at a terminal, ask for what the flags leave out.

    Example: `pareto init --benchmark llama3_1-8b --url http://host:8000 --c-max 256`

    Args:
        benchmark: An official benchmark, or custom.
        url: Base URL of the endpoint, without /v1.
        model: Model name as the endpoint serves it; default: the benchmark's on the hub.
        c_max: Highest concurrency that you declare as supported; above 32.
        performance: Dataset of the timed phase; default: a place to fill in.
        accuracy: Datasets of the accuracy run; default: those of the benchmark's preset.
        output: The new file; default: the benchmark's name, here. An existing one is kept.
    """
    from core.campaign_draft import draft_text

    draft, file = _draft(benchmark, url, model, c_max, performance, accuracy, output)
    text = draft_text(draft)
    _check(text, file)
    _write(text, file)
    print(f"wrote {file}; look through it, then: pareto plan {file}")
    return 0


def _draft(
    benchmark: str | None,
    url: str | None,
    model: str | None,
    c_max: int | None,
    performance: Path | None,
    accuracy: tuple[Path, ...],
    output: Path | None,
) -> tuple[Draft, Path]:
    """What the flags and the answers say, and the file it goes to.

    Raises:
        InputError: something without a default is missing, or the file exists.
    """
    from core.campaign_draft import DEFAULT_URL, Draft, default_model, default_performance

    benchmark = _benchmark(benchmark)
    file = output or Path(f"{benchmark}.yaml")
    if file.exists():
        raise InputError(f"--output: {file} exists and is kept; name another file")
    url = url or _asked("URL of the endpoint, without /v1", "--url", DEFAULT_URL)
    model = model or _asked("Model, as it serves it", "--model", default_model(benchmark))
    level = c_max if c_max is not None else _whole(_asked("Highest concurrency", "--c-max"))
    usual = file.parent / default_performance(benchmark)
    path = performance or Path(_asked("Performance dataset", "--performance", str(usual)))
    draft = Draft(
        campaign=_name(file.stem) or benchmark,
        benchmark=benchmark,
        url=url,
        model=model,
        c_max=level,
        performance=_seen_from(file, path),
        accuracy=tuple(_seen_from(file, each) for each in accuracy),
    )
    return draft, file


def _asked(
    question: str, flag: str, default: str | None = None, choices: list[str] | None = None
) -> str:
    """An answer; without a terminal the default.

    Raises:
        InputError: nobody answers, and there is no default.
    """
    from rich.prompt import Prompt

    if not sys.stdin.isatty():
        if default is None:
            raise InputError(f"{flag} is needed; at a terminal `pareto init` asks for it")
        return default
    try:
        answer = Prompt.ask(question, default=default, choices=choices)
    except EOFError:
        answer = None
    if not answer:
        raise InputError(f"{flag}: no answer")
    return answer


def _benchmark(stated: str | None) -> str:
    """A benchmark's name, stated or asked for.

    Raises:
        InputError: there is none of that name.
    """
    from core.campaign import BENCHMARKS, CUSTOM

    names = [*BENCHMARKS, CUSTOM]
    name = stated or _asked("Benchmark", "--benchmark", choices=names)
    if name not in names:
        raise InputError(f"--benchmark: {name!r} is none; there are {', '.join(names)}")
    return name


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InputError(f"--c-max: {text!r} is not a whole number") from None


def _name(stem: str) -> str:
    """A campaign's name from a file's; empty if nothing of it can be one."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", stem).lstrip("-_")[:64]


def _seen_from(file: Path, path: Path) -> str:
    """A path as the file has to state it: relative ones start there, not here."""
    if path.is_absolute() or str(path).startswith("~"):
        return str(path)
    return os.path.relpath(path, file.parent)


def _check(text: str, file: Path) -> None:
    """Load and plan the text before it becomes a file; datasets need not exist yet.

    Raises:
        InputError: what is wrong with the flags or answers.
    """
    from core.campaign_yaml import load_campaign
    from core.plan import make_plan

    folder = Path(os.path.abspath(file)).parent
    try:
        campaign = load_campaign(text, source=str(file), folder=folder, env=os.environ)
        make_plan(campaign, campaign.datasets.performance.rows)
    except InputError as problem:
        raise InputError(f"nothing was written, because it would be refused:\n{problem}") from None


def _write(text: str, file: Path) -> None:
    """Make the file, and only make it.

    Raises:
        InputError: it exists, or can't be made.
    """
    try:
        with file.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        raise InputError(f"--output: {file} exists and is kept; name another file") from None
    except OSError as problem:
        raise InputError(f"--output: {file} can't be written: {problem.strerror}") from None
