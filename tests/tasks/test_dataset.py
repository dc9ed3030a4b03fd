"""Dataset files: counted, checked for their form, and told apart from what was declared."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from core.campaign import Campaign
from core.errors import SetupError
from tasks.dataset import check_datasets, count_rows, known_rows, rows_for_plan
from tests.campaigns import make_campaign


def parquet(path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet as format_

    format_.write_table(pa.table({"prompt": ["a", "b", "c"]}), path)


GOOD = {
    "rows.jsonl": b'{"prompt": "a"}\n\n{"prompt": "b"}\r\n{"prompt": "c"}',
    "rows.json": b'[{"prompt": "a"}, {"prompt": "b"}, {"prompt": "c"}]',
    "rows.csv": b'prompt,truth\na,1\n"b\nb",2\nc,3\n',
}


@pytest.mark.parametrize("name", GOOD)
def test_rows_are_counted_in_every_form(tmp_path: Path, name: str) -> None:
    """Blank lines, a missing last line break and line breaks in fields are no rows."""
    path = tmp_path / name
    path.write_bytes(GOOD[name])
    assert count_rows(path) == 3


def test_parquet_rows_are_counted(tmp_path: Path) -> None:
    """Of a parquet file its own count is taken."""
    parquet(tmp_path / "rows.parquet")
    assert count_rows(tmp_path / "rows.parquet") == 3


def test_a_long_csv_field_is_read(tmp_path: Path) -> None:
    """A context of a million characters is a row like any other."""
    path = tmp_path / "rows.csv"
    path.write_text("prompt\n" + "x" * 1_000_000 + "\n")
    assert count_rows(path) == 1


BAD = {
    "empty.jsonl": (b"", "has no rows"),
    "blank.jsonl": (b"\n\n", "has no rows"),
    "header.csv": (b"prompt,truth\n", "has no rows"),
    "none.json": (b"[]", "has no rows"),
    "cut.jsonl": (b'{"prompt": "a"}\n{"prompt": ', "can't be read as jsonl: line 2"),
    "list.jsonl": (b"[1]\n", "line 1 is not an object"),
    "latin.jsonl": ('{"prompt": "é"}'.encode("latin-1"), "can't be read as jsonl: line 1"),
    "object.json": (b'{"prompt": "a"}', "not a list of objects"),
    "cut.json": (b'[{"prompt": "a"},', "can't be read as json"),
    "ragged.csv": (b"prompt,truth\na,1\nb\n", "line 3: not as many fields as the header"),
    "latin.csv": ("prompt\né\n".encode("latin-1"), "can't be read as csv"),
    "other.parquet": (b"no parquet at all", "can't be read as parquet"),
    "rows.txt": (b"a\n", "has suffix '.txt'; the client reads .jsonl"),
    "rows": (b"a\n", "has suffix 'none'"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_dataset_is_refused(tmp_path: Path, name: str) -> None:
    """The message has the campaign's key, the file and what is wrong, with the line."""
    content, cause = BAD[name]
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(SetupError) as refused:
        count_rows(path, "datasets.performance.path")
    assert str(refused.value).startswith(f"datasets.performance.path: {path}")
    assert cause in str(refused.value)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    """A folder, and a pipe that nobody writes to, are refused without waiting for either."""
    (tmp_path / "folder.jsonl").mkdir()
    os.mkfifo(tmp_path / "pipe.jsonl")
    for name in ("folder.jsonl", "pipe.jsonl"):
        with pytest.raises(SetupError, match="is not a regular file"):
            count_rows(tmp_path / name)
    with pytest.raises(SetupError, match="does not exist"):
        count_rows(tmp_path / "none.jsonl")


def test_another_count_than_declared_is_refused(tmp_path: Path) -> None:
    """Both numbers are told; without a file the declared one is taken."""
    path = tmp_path / "rows.json"
    path.write_bytes(GOOD["rows.json"])
    assert known_rows(path, 3, "x") == known_rows(path, None, "x") == 3
    assert known_rows(None, 7, "x") == 7
    with pytest.raises(SetupError, match=r"x.rows: 4 expected, but .* has 3"):
        known_rows(path, 4, "x")


def campaign(
    folder: Path, rows: int | None = None, scored: str = "acc.csv", truth: str = "truth"
) -> Campaign:
    scorer = {"eval_method": "pass_at_1", "ground_truth": truth}
    from_file = {"path": folder / scored, "scorer": scorer, "targets": {"score": 0.9}}
    by_name = {"name": "resolved", "rows": 5, "scorer": scorer, "targets": {"score": 0.9}}
    performance = {"path": folder / "perf.jsonl", "rows": rows}
    return make_campaign(datasets={"performance": performance, "accuracy": [from_file, by_name]})


def test_the_plan_takes_what_is_known(tmp_path: Path) -> None:
    """The file's rows where it is there, else the declared ones, else none."""
    assert rows_for_plan(campaign(tmp_path)) is None
    assert rows_for_plan(campaign(tmp_path, rows=3)) == 3
    (tmp_path / "perf.jsonl").write_bytes(GOOD["rows.jsonl"])
    assert rows_for_plan(campaign(tmp_path)) == 3
    with pytest.raises(SetupError, match="4 expected"):
        rows_for_plan(campaign(tmp_path, rows=4))


def test_every_dataset_is_checked(tmp_path: Path) -> None:
    """Rows of all of them by name; the name of the one that is missing is told."""
    (tmp_path / "perf.jsonl").write_bytes(GOOD["rows.jsonl"])
    with pytest.raises(SetupError, match=r"datasets\.accuracy 'accuracy'\.path: .* does not exist"):
        check_datasets(campaign(tmp_path))
    (tmp_path / "acc.csv").write_bytes(GOOD["rows.csv"])
    assert check_datasets(campaign(tmp_path)) == (3, {"accuracy": 3, "resolved": 5})


@pytest.mark.parametrize("name", ["acc.csv", "acc.jsonl", "acc.json", "acc.parquet"])
def test_a_scorer_needs_its_column_of_truths(tmp_path: Path, name: str) -> None:
    """The client would miss it at the end of the run; the columns that there are are told."""
    (tmp_path / "perf.jsonl").write_bytes(GOOD["rows.jsonl"])
    if name == "acc.parquet":
        parquet(tmp_path / name)
    else:
        (tmp_path / name).write_bytes(GOOD[name.replace("acc", "rows")])
    with pytest.raises(SetupError, match=rf"ground_truth: .*{name} has no 'Truth'; it has prompt"):
        check_datasets(campaign(tmp_path, scored=name, truth="Truth"))
