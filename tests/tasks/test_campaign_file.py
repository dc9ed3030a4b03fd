"""Campaign files on disk: whatever stands in the way is named, nothing is created."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from core.errors import InputError
from core.yaml_tree import MAX_BYTES
from tasks.campaign_file import load_recorded, read_campaign

REHEARSAL = Path(__file__).parents[2] / "campaigns" / "rehearsal.yaml"


def test_a_campaign_comes_with_its_exact_text_and_absolute_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Line ends included: the text is what is recorded."""
    text = REHEARSAL.read_text(encoding="utf-8").replace("\n", "\r\n")
    (tmp_path / "c.yaml").write_bytes(text.encode("utf-8-sig"))
    monkeypatch.chdir(tmp_path)
    loaded = read_campaign(Path("c.yaml"), {})
    assert loaded.text == text
    assert loaded.path == tmp_path / "c.yaml"
    assert loaded.campaign.records.folder == tmp_path / "pareto-data"


def test_a_tokenizer_folder_beside_the_file_is_found(tmp_path: Path) -> None:
    text = REHEARSAL.read_text(encoding="utf-8").replace(
        "  name: rehearsal-model", "  name: rehearsal-model\n  tokenizer: words"
    )
    path = tmp_path / "c.yaml"
    path.write_text(text, encoding="utf-8")
    assert read_campaign(path, {}).campaign.model.tokenizer == "words"
    (tmp_path / "words").mkdir()
    assert read_campaign(path, {}).campaign.model.tokenizer == str(tmp_path / "words")


def _missing(folder: Path) -> Path:
    return folder / "missing.yaml"


def _below_a_file(folder: Path) -> Path:
    (folder / "plain").write_text("x")
    return folder / "plain" / "c.yaml"


def _pipe(folder: Path) -> Path:
    os.mkfifo(folder / "pipe")
    return folder / "pipe"


def _too_large(folder: Path) -> Path:
    with (folder / "large.yaml").open("wb") as stream:
        stream.truncate(MAX_BYTES + 1)
    return folder / "large.yaml"


def _loop(folder: Path) -> Path:
    (folder / "loop").symlink_to(folder / "loop")
    return folder / "loop"


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (_missing, "no such file"),
        (lambda folder: folder, "is a folder"),
        (_below_a_file, "can't be read: Not a directory"),
        (_pipe, "is not a regular file"),
        (_too_large, "more than 1,000,000 bytes"),
        (_loop, "can't be read: Too many levels of symbolic links"),
        (lambda folder: folder / ("x" * 300), "can't be read: File name too long"),
        (lambda folder: folder / "a\0b", "can't be read: embedded null byte"),
    ],
)
def test_what_can_not_be_read_is_named(
    tmp_path: Path, make: Callable[[Path], Path], reason: str
) -> None:
    path = make(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InputError) as caught:
        read_campaign(path, {})
    assert str(caught.value).startswith(f"{path}: {reason}")
    assert caught.value.exit_code == 2
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("name", [".", "missing.yaml"])
def test_a_campaign_of_the_folder_is_suggested(tmp_path: Path, name: str) -> None:
    (tmp_path / "curve.yaml").touch()
    with pytest.raises(InputError, match=r"e\.g\. .*curve\.yaml"):
        read_campaign(tmp_path / name, {})


def test_a_mistake_is_told_under_the_name_that_was_given(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("campaign: yes\n")
    with pytest.raises(InputError) as caught:
        read_campaign(path, {})
    assert all(line.startswith(f"{path}:1: ") for line in str(caught.value).split("\n"))
    assert list(tmp_path.iterdir()) == [path]


def test_a_recorded_text_is_read_as_if_it_still_lay_in_its_file(tmp_path: Path) -> None:
    """`pareto retry NAME` needs no file."""
    loaded = read_campaign(REHEARSAL, {})
    again = load_recorded(loaded.text, loaded.path, {})
    assert again == loaded
    broken = tmp_path / "gone.yaml"
    with pytest.raises(InputError, match=r"gone\.yaml as recorded:1"):
        load_recorded("nonsense: 1\n", broken, {})
