"""The files of an archive folder: find entries, write one atomically, remove them.

All paths are relative to an open directory and never follow a symbolic link; only files named like an entry are
touched. An entry is written to `.partial` first, locked by its writer; an unlocked file there was left by a writer that
died.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import BinaryIO

from podlife.podgc.archive.archive import EntryPath, is_namespace, place_of_file

PARTIAL = ".partial"
# Missing, a file, or a symbolic link.
_NO_FOLDER = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


@dataclass(frozen=True, slots=True)
class EntryFile:
    """A file of an entry. `modified_at` is when the pod was archived."""

    place: EntryPath
    bytes: int
    modified_at: float


def found_in(root: int, namespace: str = "", *, unread: list[str] | None = None) -> Iterator[EntryFile]:
    """All entries, or those of a namespace; entries removed meanwhile are skipped. Directories without read permission
    are added to `unread`. Raises OSError for other failures."""
    for name in [namespace] if namespace else sorted(filter(is_namespace, _names(root))):
        try:
            with _opened(root, name) as folder:
                yield from _found_in_namespace(folder, name)
        except PermissionError:
            if unread is not None:
                unread.append(name)
        except OSError as error:
            if error.errno not in _NO_FOLDER:
                raise


def _found_in_namespace(folder: int, name: str) -> Iterator[EntryFile]:
    for file in _names(folder):
        place = place_of_file(name, file)
        if place is not None and (known := _stat_file(folder, file)) is not None:
            yield EntryFile(place, known.st_size, known.st_mtime)


def _open_folder(root: int, name: str) -> int:
    # A symbolic link could lead out of the archive.
    return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=root)


@contextmanager
def _opened(root: int, name: str) -> Iterator[int]:
    folder = _open_folder(root, name)
    try:
        yield folder
    finally:
        os.close(folder)


def make_namespace_folder(root: int, name: str) -> None:
    try:
        os.mkdir(name, 0o700, dir_fd=root)
    except FileExistsError:
        return
    os.fsync(root)


def sync_namespace_folder(root: int, name: str) -> None:
    """Make its file names durable."""
    with _opened(root, name) as folder:
        os.fsync(folder)


def rename(root: int, partial: str, place: EntryPath) -> None:
    with _opened(root, place.namespace) as folder:
        os.rename(partial, place.file, src_dir_fd=root, dst_dir_fd=folder)


def stat_of(root: int, place: EntryPath) -> os.stat_result | None:
    try:
        with _opened(root, place.namespace) as folder:
            return _stat_file(folder, place.file)
    except FileNotFoundError:
        return None


def open_entry(root: int, place: EntryPath) -> BinaryIO:
    with _opened(root, place.namespace) as folder:
        file = os.open(place.file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    return os.fdopen(file, "rb")


def _stat_file(folder: int, name: str) -> os.stat_result | None:
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    return status if stat.S_ISREG(status.st_mode) else None


def remove(root: int, place: EntryPath) -> None:
    with _opened(root, place.namespace) as folder, suppress(FileNotFoundError):
        os.unlink(place.file, dir_fd=folder)


def remove_empty_folders(root: int, names: Iterable[str]) -> None:
    for name in names:
        with suppress(OSError):
            os.rmdir(name, dir_fd=root)


@contextmanager
def written_aside(root: int, data: bytes, now: datetime) -> Iterator[str]:
    """A durable file with the data, as a path relative to the root; removed on exit unless it was renamed."""
    path, file = _new_partial(root)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(file, rest) :]
        os.utime(file, (now.timestamp(), now.timestamp()))
        os.fsync(file)
        yield path
    finally:
        with suppress(OSError):
            os.unlink(path, dir_fd=root)
        os.close(file)


def _new_partial(root: int) -> tuple[str, int]:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    while True:
        path = f"{PARTIAL}/{secrets.token_hex(8)}"
        try:
            file = os.open(path, flags, 0o600, dir_fd=root)
        except FileNotFoundError:
            # The archive was emptied.
            _make_partial(root)
            continue
        # The lock tells `clear_partial` that the file is in use; before it was locked, it may have been removed.
        fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(file).st_nlink:
            return path, file
        os.close(file)


def clear_partial(root: int) -> None:
    """Create the directory of partial files if necessary, and remove leftovers."""
    _make_partial(root)
    with _opened(root, PARTIAL) as folder:
        for name in _names(folder):
            with suppress(OSError):
                _clear(folder, name)


def _make_partial(root: int) -> None:
    with suppress(FileExistsError):
        os.mkdir(PARTIAL, 0o700, dir_fd=root)


def _clear(folder: int, name: str) -> None:
    file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(name, dir_fd=folder)
    finally:
        os.close(file)


def _names(folder: int) -> list[str]:
    with os.scandir(folder) as files:
        return [file.name for file in files]
