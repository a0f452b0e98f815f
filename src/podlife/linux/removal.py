"""Removes directories that containers have written to.

Safe against anything a container left there: symlinks are not followed, mounts not entered, a directory without
permissions is made removable, and deep nesting exhausts neither stack nor descriptors (deep directories are moved to
the top first). Containers that could write have ended by then; if one has not, removal fails and can be repeated.
"""

from __future__ import annotations

import errno
import itertools
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_BATCH = 1000
_MAX_DEPTH = 50
_FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove_tree(path: Path) -> None:
    """Remove a tree; a missing one counts as removed. Raises OSError."""
    with suppress(FileNotFoundError), _opened(path.parent, None) as parent:
        if _is_removed(path.name, parent):
            return
        with _opened(path.name, parent) as top:
            _Removal(top).run()
        path.rmdir()


def remove_empty(path: Path) -> None:
    """Remove a file or an empty folder, never contents."""
    with suppress(FileNotFoundError):
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        else:
            path.unlink()


class _Removal:
    def __init__(self, top: int) -> None:
        self._top = top
        token = secrets.token_hex(8)
        self._names = (f".removed-{token}-{number}" for number in itertools.count())

    def run(self) -> None:
        while names := _some_names(self._top):
            for name in names:
                self._remove(name, self._top, depth=1)

    def _remove(self, name: str, parent: int, depth: int) -> None:
        # Another process may have removed it.
        with suppress(FileNotFoundError):
            if not _is_removed(name, parent):
                self._remove_folder(name, parent, depth)

    def _remove_folder(self, name: str, parent: int, depth: int) -> None:
        with _opened(name, parent) as folder:
            if depth == _MAX_DEPTH:
                os.rename(name, next(self._names), src_dir_fd=parent, dst_dir_fd=self._top)
                return
            while names := _some_names(folder):
                for each in names:
                    self._remove(each, folder, depth + 1)
        os.rmdir(name, dir_fd=parent)


def _is_removed(name: str, parent: int) -> bool:
    """False for a folder that is not empty. The kernel rejects a mount point before it checks for contents, so a mount
    is never entered."""
    if not stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
        os.unlink(name, dir_fd=parent)
        return True
    try:
        os.rmdir(name, dir_fd=parent)
    except OSError as error:
        if error.errno != errno.ENOTEMPTY:
            raise
        return False
    return True


def _some_names(folder: int) -> list[str]:
    with os.scandir(folder) as entries:
        return [entry.name for entry in itertools.islice(entries, _BATCH)]


@contextmanager
def _opened(name: str | Path, parent: int | None) -> Iterator[int]:
    descriptor = os.open(name, os.O_PATH | _FOLDER, dir_fd=parent)
    try:
        if parent is not None and os.geteuid() != 0:
            # Root needs no permission; other users grant it to themselves.
            with suppress(PermissionError):
                os.chmod(f"/proc/self/fd/{descriptor}", 0o700)  # noqa: PTH101 - by descriptor
        folder = os.open(".", os.O_RDONLY | _FOLDER, dir_fd=descriptor)
        try:
            yield folder
        finally:
            os.close(folder)
    finally:
        os.close(descriptor)
