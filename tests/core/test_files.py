"""Atomic writes, hashes and the manifest's promise: no change goes unseen."""

from __future__ import annotations

import hashlib
import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from core import files
from core.files import Change, Difference, glance, manifest, told, verify, write_atomic


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small folder with a file of a few blocks, an empty one and one in a directory."""
    root = tmp_path / "run"
    (root / "metrics").mkdir(parents=True)
    (root / "events.jsonl").write_bytes(os.urandom(files.BLOCK_BYTES * 2 + 17))
    (root / "config.yaml").write_bytes(b"name: a\n")
    (root / "report.txt").write_bytes(b"name: b\n")
    (root / "metrics" / ".ready").write_bytes(b"")
    return root


def test_written_content_is_read_back(tmp_path: Path) -> None:
    """A write replaces the whole content and leaves nothing else in the directory."""
    path = tmp_path / "status.json"
    write_atomic(path, b"old and longer")
    write_atomic(path, b"new")
    assert path.read_bytes() == b"new"
    assert [p.name for p in tmp_path.iterdir()] == ["status.json"]


def test_written_files_have_the_usual_permissions(tmp_path: Path) -> None:
    """An atomic write leaves the permissions of an ordinary one: others may read the records."""
    write_atomic(tmp_path / "a", b"")
    (tmp_path / "b").write_bytes(b"")
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "b").stat().st_mode


def test_a_reader_never_sees_a_half_written_file(tmp_path: Path) -> None:
    """Whatever a reader sees while a file is rewritten is one of the contents in full."""
    path = tmp_path / "status.json"
    contents = {bytes([letter]) * 200_000 for letter in b"ab"}
    write_atomic(path, next(iter(contents)))
    seen, done = set(), threading.Event()

    def read() -> None:
        while not done.is_set():
            seen.add(path.read_bytes())

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(20):
        for content in contents:
            write_atomic(path, content)
    done.set()
    reader.join()
    assert seen <= contents


def test_a_failed_write_leaves_the_old_file_alone(tmp_path: Path) -> None:
    """A write that can't be finished keeps what was there and cleans up after itself."""
    target = tmp_path / "status.json"
    target.mkdir()
    with pytest.raises(OSError, match=r"status\.json"):
        write_atomic(target, b"new")
    assert [p.name for p in tmp_path.iterdir()] == ["status.json"]


def test_hash_is_the_sha256_of_the_content(folder: Path) -> None:
    """The hash of a file of several blocks is that of its bytes."""
    path = folder / "events.jsonl"
    assert files.sha256(path) == hashlib.sha256(path.read_bytes()).hexdigest()


def test_manifest_names_every_file_with_size_and_hash(folder: Path) -> None:
    """The manifest is sorted by name and holds hidden files and files in directories."""
    recorded = manifest(folder)
    assert [e.name for e in recorded] == [
        "config.yaml",
        "events.jsonl",
        "metrics/.ready",
        "report.txt",
    ]
    assert [e.size_bytes for e in recorded] == [8, files.BLOCK_BYTES * 2 + 17, 0, 8]
    assert recorded[2].sha256 == hashlib.sha256(b"").hexdigest()
    assert verify(folder, recorded) == []


def test_hashing_hands_on_every_byte_once(folder: Path) -> None:
    """What a reader beside the hash is given is the file's content in order."""
    given = bytearray()
    files.entry(folder, "events.jsonl", given.extend)
    assert given == (folder / "events.jsonl").read_bytes()


def _flip(at: int) -> Callable[[Path], None]:
    def flip(folder: Path) -> None:
        path = folder / "events.jsonl"
        content = bytearray(path.read_bytes())
        content[at] ^= 1
        path.write_bytes(content)

    return flip


def _truncate(folder: Path) -> None:
    os.truncate(folder / "events.jsonl", files.BLOCK_BYTES * 2)


def _append(folder: Path) -> None:
    with (folder / "events.jsonl").open("ab") as file:
        file.write(b"\0")


def _empty(folder: Path) -> None:
    os.truncate(folder / "config.yaml", 0)


def _rename(folder: Path) -> None:
    (folder / "config.yaml").rename(folder / "config.yml")


def _swap(folder: Path) -> None:
    (folder / "config.yaml").rename(folder / "t")
    (folder / "report.txt").rename(folder / "config.yaml")
    (folder / "t").rename(folder / "report.txt")


def _move(folder: Path) -> None:
    (folder / "metrics" / ".ready").rename(folder / ".ready")


def _delete(folder: Path) -> None:
    (folder / "metrics" / ".ready").unlink()


def _add(folder: Path) -> None:
    (folder / "accuracy").mkdir()
    (folder / "accuracy" / "late.json").write_bytes(b"{}")


def _link(folder: Path) -> None:
    (folder / "config.yaml").rename(folder.parent / "elsewhere")
    (folder / "config.yaml").symlink_to(folder.parent / "elsewhere")


def _replace_by_directory(folder: Path) -> None:
    (folder / "config.yaml").unlink()
    (folder / "config.yaml").mkdir()


def _link_directory(folder: Path) -> None:
    (folder / "metrics").rename(folder.parent / "metrics")
    (folder / "metrics").symlink_to(folder.parent / "metrics")


CORRUPTIONS: dict[str, tuple[Callable[[Path], None], list[tuple[str, Change]]]] = {
    "first bit flipped": (_flip(0), [("events.jsonl", Change.CONTENT)]),
    "bit flipped in the second block": (
        _flip(files.BLOCK_BYTES + 5),
        [("events.jsonl", Change.CONTENT)],
    ),
    "last bit flipped": (_flip(-1), [("events.jsonl", Change.CONTENT)]),
    "truncated": (_truncate, [("events.jsonl", Change.SIZE)]),
    "appended to": (_append, [("events.jsonl", Change.SIZE)]),
    "emptied": (_empty, [("config.yaml", Change.SIZE)]),
    "renamed": (_rename, [("config.yaml", Change.MISSING), ("config.yml", Change.EXTRA)]),
    "names swapped": (_swap, [("config.yaml", Change.CONTENT), ("report.txt", Change.CONTENT)]),
    "moved": (_move, [(".ready", Change.EXTRA), ("metrics/.ready", Change.MISSING)]),
    "deleted": (_delete, [("metrics/.ready", Change.MISSING)]),
    "added": (_add, [("accuracy/late.json", Change.EXTRA)]),
    "replaced by a directory": (_replace_by_directory, [("config.yaml", Change.MISSING)]),
    "directory replaced by a link to it": (
        _link_directory,
        [("metrics", Change.EXTRA), ("metrics/.ready", Change.MISSING)],
    ),
}


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_every_corruption_is_found_and_named(folder: Path, name: str) -> None:
    """Each change to a folder is a difference with the file's name, and nothing else is."""
    corrupt, expected = CORRUPTIONS[name]
    recorded = manifest(folder)
    corrupt(folder)
    assert verify(folder, recorded) == [Difference(*change) for change in expected]


def test_a_file_replaced_by_a_link_to_itself_is_found(folder: Path) -> None:
    """A link is not the file that it leads to, even with the same content behind it."""
    recorded = manifest(folder)
    _link(folder)
    assert [d.name for d in verify(folder, recorded)] == ["config.yaml"]


def test_links_and_pipes_are_recorded_and_not_opened(folder: Path) -> None:
    """A link that leads nowhere and a pipe without a writer neither fail nor block."""
    (folder / "link").symlink_to("nowhere")
    os.mkfifo(folder / "pipe")
    recorded = manifest(folder)
    assert verify(folder, recorded) == []
    (folder / "link").unlink()
    (folder / "link").symlink_to("elsewhere")
    assert [d.name for d in verify(folder, recorded)] == ["link"]


def test_a_missing_folder_has_no_manifest(tmp_path: Path) -> None:
    """A folder that can't be walked is an error and not an empty manifest."""
    with pytest.raises(FileNotFoundError):
        manifest(tmp_path / "gone")


def test_read_only_folders_keep_their_content(folder: Path) -> None:
    """No file can be written any more; directories can, and the manifest still holds."""
    (folder / "link").symlink_to(folder.parent)
    recorded = manifest(folder)
    before = folder.parent.stat().st_mode
    files.make_read_only(folder)
    modes = [
        (folder / e.name).lstat().st_mode for e in recorded if not (folder / e.name).is_symlink()
    ]
    assert all(not mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH) for mode in modes)
    assert folder.stat().st_mode & stat.S_IWUSR
    assert folder.parent.stat().st_mode == before
    assert verify(folder, recorded) == []


def renamed(folder: Path) -> None:
    """One file has another name."""
    (folder / "events.jsonl").rename(folder / "metrics" / "e")


def linked(folder: Path) -> None:
    """A link takes the place of a file."""
    (folder / "report.txt").unlink()
    (folder / "report.txt").symlink_to("config.yaml")


@pytest.mark.parametrize(
    ("change", "glanced", "read"),
    [
        (lambda _folder: None, [], []),
        (renamed, ["events.jsonl: renamed to metrics/e"], ["events.jsonl: renamed to metrics/e"]),
        (linked, ["report.txt: size differs (8 → 11 bytes)"], None),
        (
            lambda f: (f / "report.txt").write_bytes(b"name: c\n"),
            [],
            ["report.txt: content differs"],
        ),
        (lambda f: (f / "new").write_bytes(b"x"), ["new: extra"], None),
        (lambda f: (f / "report.txt").unlink(), ["report.txt: missing"], None),
        (
            lambda f: (f / "report.txt").write_bytes(b""),
            ["report.txt: size differs (8 → 0 bytes)"],
            None,
        ),
    ],
)
def test_changes_are_told_by_name_and_size_alone_or_read_whole(
    folder: Path, change: Callable[[Path], object], glanced: list[str], read: list[str] | None
) -> None:
    recorded = manifest(folder)
    change(folder)
    assert told(recorded, glance(folder, recorded)) == glanced
    assert told(recorded, manifest(folder)) == (glanced if read is None else read)
