"""Files on disk: atomic writes, SHA-256 and the manifest of a run folder.

A recorded run folder is never touched again; its manifest (every file's relative name, size and
SHA-256) is what proves it later. Names are part of the manifest, links are recorded as links and
never followed, and nothing but regular files is opened.
"""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

#: Bytes read at a time: large enough for the disk, small enough for the cache.
BLOCK_BYTES = 1 << 20
#: How a file system says that it has no rename.
_NO_RENAME = frozenset({errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.EXDEV})
#: Every write permission.
_WRITE_BITS = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


def write_atomic(path: Path, content: bytes) -> None:
    """Write a file so that a reader sees the old content or the new one, even after a crash."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        _replace(temporary, path, content)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_directory(path.parent)


def _replace(temporary: Path, path: Path, content: bytes) -> None:
    """Rename, or write again where the file system refuses that."""
    try:
        temporary.replace(path)
    except OSError as problem:
        if problem.errno not in _NO_RENAME:
            raise
        with path.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.unlink()


def _sync_directory(folder: Path) -> None:
    """Make a rename in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def blocks(path: Path) -> Iterator[bytes]:
    """The content of a file in blocks of `BLOCK_BYTES`."""
    with path.open("rb", buffering=0) as file:
        while block := file.read(BLOCK_BYTES):
            yield block


def sha256(path: Path) -> str:
    """SHA-256 of a file's content, in hex."""
    digest = hashlib.sha256()
    for block in blocks(path):
        digest.update(block)
    return digest.hexdigest()


@dataclass(frozen=True)
class ManifestEntry:
    """One file of a run folder."""

    name: str  # relative to the folder, with forward slashes
    size_bytes: int
    sha256: str  # hex; of a link or special file: of what it is (`_special_entry`)


#: Every file of a run folder, by name.
Manifest = tuple[ManifestEntry, ...]


class Change(StrEnum):
    """How a folder can differ from its manifest."""

    MISSING = "missing"
    EXTRA = "extra"
    SIZE = "size differs"
    CONTENT = "content differs"


@dataclass(frozen=True)
class Difference:
    """One file that is not as its manifest says."""

    name: str
    change: Change


def _refuse(error: OSError) -> None:
    """Stop a walk at a directory that can't be read: a manifest with gaps proves nothing."""
    raise error


def names(folder: Path) -> list[str]:
    """Names of everything in a folder but directories, sorted; links are not followed."""
    found: list[str] = []
    for parent, directories, files in os.walk(folder, onerror=_refuse):
        links = [name for name in directories if Path(parent, name).is_symlink()]
        found += (Path(parent, name).relative_to(folder).as_posix() for name in files + links)
    return sorted(found)


def entry(
    folder: Path, name: str, on_block: Callable[[bytes], object] | None = None
) -> ManifestEntry:
    """Hash one file of a folder, passing each block on, so that it is read only once.

    A block is hashed while `on_block` has it in another thread: hashing needs no interpreter.

    Args:
        folder: The run folder.
        name: The file's name in it.
        on_block: Called with each block of a regular file, one after the other.
    """
    path = folder / name
    if not stat.S_ISREG(path.lstat().st_mode):
        return _special_entry(path, name)
    digest, size_bytes = hashlib.sha256(), 0
    with ThreadPoolExecutor(max_workers=1) as other:  # starts a thread only if it is used
        for block in blocks(path):
            taken = other.submit(on_block, block) if on_block else None
            digest.update(block)
            size_bytes += len(block)
            if taken:
                taken.result()
    return ManifestEntry(name, size_bytes, digest.hexdigest())


def _special_entry(path: Path, name: str) -> ManifestEntry:
    """Entry of a link or special file: it is not opened, and no regular file has its digest."""
    kind = stat.filemode(path.lstat().st_mode)[0]
    target = os.fsencode(path.readlink()) if path.is_symlink() else b""
    digest = hashlib.sha256(b"not a regular file\0" + kind.encode() + b"\0" + target)
    return ManifestEntry(name, len(target), digest.hexdigest())


def manifest(folder: Path) -> Manifest:
    """The manifest of a folder as it is now."""
    return tuple(entry(folder, name) for name in names(folder))


def glance(folder: Path, recorded: Manifest) -> Manifest:
    """The manifest of a folder by names and sizes alone: a file of its old size is not read."""
    then = {known.name: known for known in recorded}
    return tuple(_glanced(folder, name, then.get(name)) for name in names(folder))


def _glanced(folder: Path, name: str, then: ManifestEntry | None) -> ManifestEntry:
    status = (folder / name).lstat()
    is_as_it_was = then is not None and status.st_size == then.size_bytes
    if then is not None and stat.S_ISREG(status.st_mode):
        return ManifestEntry(name, status.st_size, then.sha256 if is_as_it_was else "")
    return entry(folder, name)


def verify(folder: Path, recorded: Manifest) -> list[Difference]:
    """What differs between a folder and its recorded manifest, by name; empty: nothing."""
    return compare(recorded, manifest(folder))


def told(recorded: Manifest, found: Manifest) -> list[str]:
    """What differs between two manifests of a folder, one line each; a renamed file is one."""
    then = {(known.size_bytes, known.sha256): known.name for known in reversed(recorded)}
    now = {known.name: (known.size_bytes, known.sha256) for known in found}
    differences = {d.name: d.change for d in compare(recorded, found)}
    lines = []
    for name, change in list(differences.items()):
        before = then.get(now[name]) if change is Change.EXTRA else None
        if before is not None and differences.get(before) is Change.MISSING:
            lines.append(f"{before}: renamed to {name}")
            del differences[before], differences[name]
    sizes = {known.name: known.size_bytes for known in recorded}
    for name, change in differences.items():
        shown = f" ({sizes[name]:,} → {now[name][0]:,} bytes)" if change is Change.SIZE else ""
        lines.append(f"{name}: {change}{shown}")
    return sorted(lines)


def compare(recorded: Manifest, found: Manifest) -> list[Difference]:
    """What differs between two manifests of a folder, by name; empty: nothing."""
    now = {known.name: known for known in found}
    then = {known.name: known for known in recorded}
    return [
        Difference(name, change)
        for name in sorted(now.keys() | then.keys())
        if (change := _change(then.get(name), now.get(name)))
    ]


def _change(then: ManifestEntry | None, now: ManifestEntry | None) -> Change | None:
    """How one file changed; None: it did not."""
    if now is None:
        return Change.MISSING
    if then is None:
        return Change.EXTRA
    if then.size_bytes != now.size_bytes:
        return Change.SIZE
    return None if then.sha256 == now.sha256 else Change.CONTENT


def make_read_only(folder: Path) -> None:
    """Take the write permission from every file of a recorded run folder.

    Directories stay writable: disclosures are added beside the client's files later.
    """
    for name in names(folder):
        path = folder / name
        mode = path.lstat().st_mode
        if stat.S_ISREG(mode):
            path.chmod(stat.S_IMODE(mode) & ~_WRITE_BITS)
