"""The folder a store keeps its files in: for its owner only, and for one process at a time.

The claim is an advisory lock of the operating system on a file of its own: it ends with the process that
holds it, however that ends, so nothing stale is ever left behind.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from podlife.errors import ConfigError

__all__ = ["DataFolder"]


class DataFolder:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.database = path / "store.db"
        self._lock_path = path / "store.lock"
        self._lock: int | None = None

    def claim(self) -> None:
        """Make the folder if need be and take it; raises ConfigError when another process has it."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(self._lock_path, os.O_RDWR | os.O_CREAT, 0o600)
        except FileExistsError as error:
            raise ConfigError(f"the data folder {self.path} cannot be used: it is a file") from error
        except OSError as error:
            raise ConfigError(f"the data folder {self.path} cannot be used: {error.strerror}") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(lock, 32).decode(errors="replace").strip() or "unknown"
            os.close(lock)
            raise ConfigError(
                f"the data folder {self.path} is in use by process {holder}: stop it, or take another folder"
            ) from None
        except OSError as error:
            os.close(lock)
            raise ConfigError(f"the data folder {self.path} cannot be locked: {error.strerror}") from error
        self._lock = lock
        self._sign(lock)

    def release(self) -> None:
        if self._lock is not None:
            # The file stays: removing it would let two processes hold locks on two files of one name.
            os.ftruncate(self._lock, 0)
            os.close(self._lock)
            self._lock = None

    def create_database(self) -> None:
        """An empty file that only its owner reads; SQLite gives the files beside it the same mode."""
        os.close(os.open(self.database, os.O_RDWR | os.O_CREAT, 0o600))
        sync_folder(self.path)

    @staticmethod
    def _sign(lock: int) -> None:
        try:
            os.ftruncate(lock, 0)
            os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
        except OSError:
            # A full disk keeps nobody from the lock: the number only makes a refusal clearer.
            return


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable: a file that was synced is lost if its name was not."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
