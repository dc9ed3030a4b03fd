"""Growth: records of 10 to 10,000 campaigns in SQLite and PostgreSQL, and many points at once.

Databases are filled with copies of one rehearsed campaign, by SQL. The commands are timed inside
one process, so that imports count once and not at each size.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from statistics import median

from sqlalchemy import Connection, Engine, func, select, text

from bench.dead_time import replayable
from bench.figures import Figure, median_of
from bench.place import Place, new_endpoint, stamps_of
from core.records import open_records, upgrade
from core.records.campaigns import PAGE_SIZE
from core.records.engine import make_engine, parsed_url
from core.records.tables import Base

#: Campaigns in a database.
SIZES, QUICK_SIZES = (10, 100, 1_000, 10_000), (10, 100, 1_000)
#: How much longer than in the smallest database a question may take.
FLAT = 2.0
#: Times that a question is asked.
TIMES = 7
#: Campaigns side by side.
SIDE_BY_SIDE, QUICK_SIDE_BY_SIDE = 8, 2
#: Columns that refer to another table.
_REFERS = {
    "campaign_id": "campaign",
    "point_id": "point",
    "attempt_id": "attempt",
    "run_folder_id": "run_folder",
}


def measure(place: Place) -> list[Figure]:
    """Records of all sizes on both databases, then points and campaigns as fast as they go."""
    replayable(place)
    figures = _of_database(place, "SQLite", f"sqlite:///{place.folder / 'growth.db'}")
    with _postgres() as url:
        figures += _of_database(place, "PostgreSQL", url)
    return figures + _turnover(place)


# --- Records -----------------------------------------------------------------------------------


def _of_database(place: Place, kind: str, url: str) -> list[Figure]:
    """Each question at each size, over the same question at the smallest one."""
    sizes = QUICK_SIZES if place.quick else SIZES
    upgrade(url)
    engine = make_engine(parsed_url(url))
    took_s: dict[str, list[float]] = {}
    with engine.begin() as connection:
        _begin(connection, place)
        steps = _steps(connection)
    present = 1
    for size in sizes:
        with engine.begin() as connection:
            _copy(connection, steps, present, size)
        present = size
        _settle(engine)
        for what, seconds in _asked(place, url).items():
            took_s.setdefault(what, []).append(seconds)
    return [_growth(kind, what, sizes, took) for what, took in took_s.items()]


def _growth(kind: str, what: str, sizes: Sequence[int], took_s: Sequence[float]) -> Figure:
    """Time in the largest database over that in the smallest; a page is full from fifty on."""
    first = next(at for at, size in enumerate(sizes) if what != "list" or size >= PAGE_SIZE)
    return Figure(
        f"{what}, {kind}: {sizes[-1]:,} campaigns over {sizes[first]}",
        took_s[-1] / took_s[first],
        "×",
        FLAT if what in ("status", "list") else None,
        samples=TIMES,
        note=" · ".join(f"{n:,}: {s * 1000:.0f} ms" for n, s in zip(sizes, took_s, strict=True)),
    )


def _begin(connection: Connection, place: Place) -> None:
    """Take over the one campaign that was rehearsed."""
    source = make_engine(parsed_url(f"sqlite:///{place.folder / 'data-template' / 'pareto.db'}"))
    with source.begin() as rehearsed:
        for table in Base.metadata.sorted_tables:
            if rows := [dict(row._mapping) for row in rehearsed.execute(select(table))]:
                connection.execute(table.insert(), rows)


def _steps(connection: Connection) -> dict[str, int]:
    """The largest id of each table, while there is one campaign."""
    tables = (table for table in Base.metadata.sorted_tables if "id" in table.c)
    return {t.name: connection.scalar(select(func.max(t.c.id))) or 0 for t in tables}


def _copy(connection: Connection, steps: dict[str, int], present: int, wanted: int) -> None:
    """Copy the first campaign until there are as many; each copy's ids lie one step further."""
    for table in Base.metadata.sorted_tables:
        if table.name in ("seed_set", "lease"):
            continue
        key = next(name for name in ("id", *_REFERS) if name in table.c)
        columns = ", ".join(f'"{column.name}"' for column in table.columns)
        values = ", ".join(_copied(table.name, column.name, steps) for column in table.columns)
        copied = f"SELECT {values} FROM n, {table.name} AS old"  # noqa: S608 - our own names
        counted = "SELECT CAST(:present AS INTEGER) UNION ALL SELECT k + 1 FROM n"
        connection.execute(
            text(
                f"WITH RECURSIVE n(k) AS ({counted} WHERE k + 1 < :wanted)"
                f" INSERT INTO {table.name} ({columns}) {copied}"
                f" WHERE old.{key} <= {steps[_REFERS.get(key, table.name)]}"
            ),
            {"present": present, "wanted": wanted},
        )
        if connection.dialect.name == "postgresql" and "id" in table.c:
            sequence = f"pg_get_serial_sequence('{table.name}', 'id')"
            connection.execute(select(text(f"setval({sequence}, max(id)) FROM {table.name}")))


def _copied(table: str, column: str, steps: dict[str, int]) -> str:
    """A column of a copy, as SQL."""
    refers = _REFERS.get(column, table if column == "id" else None)
    if refers:
        return f'old."{column}" + n.k * {steps[refers]}'
    if (table, column) == ("campaign", "name"):
        return "old.name || '-' || n.k"
    return f'old."{column}"'


def _settle(engine: Engine) -> None:
    """Let the database learn of its new size, as its own upkeep does in time."""
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("ANALYZE"))


def _asked(place: Place, url: str) -> dict[str, float]:
    """Median seconds of each question about one campaign, and of a page of the list."""
    code = "import sys; from bench.growth import ask; ask(*sys.argv[1:])"
    file = place.folder / "template.yaml"
    done = subprocess.run(
        [sys.executable, "-c", code, url, str(file)],
        env=place.env(),
        cwd=place.folder,
        check=True,
        capture_output=True,
        text=True,
    )
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def ask(url: str, file: str) -> None:
    """Ask each question some times and print the medians; runs in a process of its own."""
    from flows.cli.campaigns import list_campaigns  # noqa: PLC0415 - asked once a process
    from flows.cli.plan import plan  # noqa: PLC0415 - only this process asks
    from flows.cli.status import status  # noqa: PLC0415 - as above

    newest = open_records(url).campaigns()[0].name
    questions: dict[str, Callable[[], object]] = {
        "plan": lambda: plan(Path(file)),
        "status": lambda: status(newest, database=url),
        "list": lambda: list_campaigns(database=url),
        "record (as submit and run do)": lambda: _enter(url, file),
    }
    took_s = {name: _median_s(question) for name, question in questions.items()}
    print(json.dumps(took_s))


def _median_s(question: Callable[[], object]) -> float:
    """Median seconds of an answer, after a first one; what it prints goes nowhere."""
    took_s = []
    with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):
        for _ in range(TIMES + 1):
            began_s = time.perf_counter()
            question()
            took_s.append(time.perf_counter() - began_s)
    return median(took_s[1:])


def _enter(url: str, file: str) -> None:
    """Join a campaign on record, which is what a submission asks of the records."""
    from flows.prepare import prepare  # noqa: PLC0415 - asked once a process
    from flows.session import recorded_in  # noqa: PLC0415 - as above

    recorded_in(open_records(url), prepare(Path(file), os.environ))


@contextmanager
def _postgres() -> Iterator[str]:
    """A PostgreSQL server of our own, as the tests start one."""
    if given := os.environ.get("PARETO_TEST_POSTGRES_URL"):
        yield given
        return
    running = importlib.import_module("tests.postgres").running_postgres
    with running() as server:
        yield server.url


# --- Points ------------------------------------------------------------------------------------


def _turnover(place: Place) -> list[Figure]:
    """Points a minute with a client that does nothing, of one campaign and of several at once."""
    count = QUICK_SIDE_BY_SIDE if place.quick else SIDE_BY_SIDE
    alone, gaps_alone = _side_by_side(place, "alone", 1)
    together, gaps = _side_by_side(place, "together", count)
    return [
        Figure("points a minute, one campaign, no-op client", alone, "/min"),
        Figure(f"points a minute, {count} campaigns side by side", together, "/min"),
        median_of("dead time, one campaign", gaps_alone, "s"),
        median_of(f"dead time, {count} campaigns side by side", gaps, "s"),
        Figure(
            f"throughput of {count} campaigns over one",
            together / alone,
            "×",
            note=f"{os.cpu_count()} cores; {count} instances",
        ),
    ]


def _side_by_side(place: Place, name: str, count: int) -> tuple[float, list[float]]:
    """Points a minute and the gaps of campaigns that replay folders at the same time."""
    template = str(replayable(place))
    with ExitStack() as stack:
        started = []
        for number in range(count):
            own = f"{name}-{number}"
            file = place.write(
                own,
                2.0,
                url=stack.enter_context(new_endpoint()),
                instance={"name": own},
            )
            variables = {
                "PREFECT_API_URL": place.prefect,
                "PARETO_BENCH_REPLAY": template,
                "PARETO_BENCH_STAMPS": str(place.folder / f"{own}.stamps"),
            }
            started.append((own, place.start("run", file, **variables)))
        for _, process in started:
            place.finish(process)
    stamps = [stamps_of(place.folder / f"{own}.stamps") for own, _ in started]
    began_s = min(clients[0]["began_s"] for clients in stamps)
    ended_s = max(clients[-1]["ended_s"] for clients in stamps)
    gaps = [b["began_s"] - a["ended_s"] for clients in stamps for a, b in pairwise(clients)]
    return 60 * sum(map(len, stamps)) / (ended_s - began_s), gaps
