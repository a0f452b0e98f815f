"""Data folder of a store: private to its owner, and used by one process at a time.

The claim is an advisory lock of the operating system on a separate file: it ends with the process that holds it, so
no stale lock is ever left behind.

A folder that a cluster has used is never treated as new. To kubelets, an empty cluster means that all of their pods
were deleted, so a missing store is an error and not a reason to create one.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import re
import secrets
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from podlife.apiserver.storage.database import Database
from podlife.apiserver.storage.records import StoreError
from podlife.errors import ConfigError

# Files of a data folder that hold secrets: objects, tokens, keys.
SECRETS = ("store.*", "tokens.csv", "*.kubeconfig", "pki/**/*.pem", "pki/**/.*.pem.*")
# Files that identify a data folder.
_LOCKS = ("store.lock", "up.lock")
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
# Errors of file systems without hard links.
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS)

# Names of a store that is being written, and of SQLite's files beside it.
_PARTIAL = re.compile(r"\.store\.db\.[0-9a-f]{16}(-journal|-wal|-shm)?")

log = logging.getLogger(__name__)


class DataDir:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.database = path / "store.db"
        self.mark = path / "store.mark"
        self.reserve = path / "store.reserve"
        self._wal = path / "store.db-wal"
        self._lock_path = path / "store.lock"
        self._lock: int | None = None

    def claim(self) -> None:
        """Create the folder if needed and lock it. Raises ConfigError if it is locked, or writable by other users."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            make_private(self.path)
            lock = os.open(self._lock_path, os.O_RDWR | os.O_CREAT, 0o600)
        except FileExistsError as error:
            raise ConfigError(f"the data folder {self.path} cannot be used: it is a file") from error
        except OSError as error:
            raise ConfigError(f"the data folder {self.path} cannot be used: {error.strerror}") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(lock, 32).decode(errors="replace").strip()
            os.close(lock)
            raise ConfigError(
                f"the data folder {self.path} is in use by process {holder if holder.isdecimal() else 'unknown'}: "
                "stop it, or take another folder"
            ) from None
        except OSError as error:
            os.close(lock)
            raise ConfigError(f"the data folder {self.path} cannot be locked: {error.strerror}") from error
        self._lock = lock
        self._sign(lock)
        self._remove_partial_files()

    def release(self) -> None:
        if self._lock is not None:
            # The file stays: removing it would let two processes hold locks on two files of one name.
            os.ftruncate(self._lock, 0)
            os.close(self._lock)
            self._lock = None

    @property
    def has_store(self) -> bool:
        """Whether a file that may be a store exists: an empty one, which SQLite would treat as new, is a lost store."""
        return self.database.is_file() and self.database.stat().st_size > 0

    def prepare(self, *, in_memory: bool) -> None:
        """Create a store if one is needed, before anything else is written here. Raises ConfigError if objects are to
        be kept in memory beside a store, StoreError if the store was lost."""
        if not in_memory:
            self.ensure_database()
        elif self.database.exists():
            raise ConfigError(
                f"{self.path} holds the store of a cluster, and one in memory would be empty to its nodes: leave out "
                "--memory, or take another folder"
            )

    def ensure_database(self) -> None:
        """Create an empty store in a folder that no cluster has used; raises StoreError if its store was lost."""
        self.refuse_lost_store()
        if not self.has_store:
            self.database.unlink(missing_ok=True)
            with whole_file(self.database) as partial:
                Database.create(partial)

    def refuse_lost_store(self) -> None:
        """Raise StoreError if a cluster has used the folder and its store is missing."""
        if self.has_store or not (traces := self.traces()):
            return
        state = "empty" if self.database.exists() else "missing"
        raise StoreError(
            f"{self.database} is {state}, but a cluster has used this folder ({', '.join(traces)}): restore a backup "
            f"with `podlife apiserver restore FILE --data {self.path}`; to start an empty cluster instead, stop its "
            f"nodes and remove {self.path}"
        )

    def traces(self) -> list[str]:
        """Files that a cluster has left in the folder besides its store."""
        traces = [
            self.mark,
            self.path / "pki" / "ca.pem",
            self.path / "pki" / "ca.crt",
            self.path / "tokens.csv",
        ]
        found = [str(each.relative_to(self.path)) for each in traces if each.exists()]
        if self._wal.exists() and self._wal.stat().st_size:
            found.append(self._wal.name)
        nodes = self.path / "nodes"
        if nodes.is_dir() and next(nodes.iterdir(), None) is not None:
            found.append("nodes")
        return found

    def set_aside(self) -> Path | None:
        """Move the remains of a damaged store into a folder beside it, and return that; None if nothing is left."""
        remains = [each for each in self.path.glob("store.*") if each not in (self._lock_path, self.reserve)]
        if not remains:
            return None
        number = 1
        while (aside := self.path / f"damaged-{number}").exists():
            number += 1
        aside.mkdir(mode=0o700)
        for each in remains:
            each.rename(aside / each.name)
        sync_folder(self.path)
        return aside

    def _remove_partial_files(self) -> None:
        """Partial files that `whole_file` left when its process was killed; call it while holding the lock."""
        for each in self.path.glob(".store.db.*"):
            if _PARTIAL.fullmatch(each.name):
                with suppress(OSError):
                    each.unlink()

    @staticmethod
    def _sign(lock: int) -> None:
        try:
            os.ftruncate(lock, 0)
            os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
        except OSError:
            # A full disk does not prevent locking: the process ID only makes an error clearer.
            return


def make_private(folder: Path) -> None:
    """Remove other users' access to a data folder and its secrets, and log it. Raises ConfigError if that fails."""
    mode = stat.S_IMODE(folder.stat().st_mode)
    # Other users may list the folder: secret files are private themselves.
    if mode & _OTHERS_WRITE:
        is_ours = any((folder / name).exists() for name in _LOCKS) or next(folder.iterdir(), None) is None
        if not is_ours:
            # Changing its mode could break its other users.
            raise ConfigError(
                f"the data folder {folder} can be written to by other users (mode {mode:04o}): take a folder of its own"
            )
        _tighten(folder, mode)
    for pattern in SECRETS:
        for file in folder.glob(pattern):
            mode = stat.S_IMODE(file.lstat().st_mode)
            if mode & _OTHERS and not file.is_symlink() and file.is_file():
                _tighten(file, mode)


def _tighten(path: Path, mode: int) -> None:
    try:
        path.chmod(mode & ~_OTHERS)
    except OSError as error:
        raise ConfigError(
            f"{path} is open to other users (mode {mode:04o}) and cannot be made private: {error.strerror}; "
            f"run `chmod go= {path}` as its owner"
        ) from error
    log.warning("%s was open to other users (mode %04o): now %04o", path, mode, mode & ~_OTHERS)


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable: a synced file is lost if its name was not synced."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def whole_file(target: Path) -> Iterator[Path]:
    """A file that takes the target's name once it is complete and durable, and is removed otherwise.

    It holds secrets, possibly in a folder where others may write: so its name is unpredictable, it is created for its
    owner only, and it never replaces another file. Raises ConfigError if the target exists, StoreError if it cannot
    be written.
    """
    partial = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    try:
        descriptor = os.open(partial, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            yield partial
            os.fsync(descriptor)
            _publish(partial, target)
            sync_folder(target.parent)
        finally:
            os.close(descriptor)
    except FileExistsError:
        raise ConfigError(f"{target} exists already: it is never overwritten") from None
    except (OSError, sqlite3.Error) as error:
        raise StoreError(f"{target} could not be written: {error}") from error
    finally:
        partial.unlink(missing_ok=True)


def _publish(partial: Path, target: Path) -> None:
    try:
        # Unlike a rename it fails if the target has been created meanwhile.
        os.link(partial, target)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        partial.rename(target)
