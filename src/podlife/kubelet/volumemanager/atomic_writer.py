"""Files that change atomically for their readers.

    key      -> ..data/key
    ..data   -> ..2030_01_01_12_00_00.1a2b3c4d
    ..2030_01_01_12_00_00.1a2b3c4d/key

A new version is written completely, including permissions, into a new folder; then one rename replaces `..data`. A
reader that opened the folder behind `..data` sees one version or the other, never a mixture. The next write cleans up
after a crash. One writer at a time.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath

from podlife.kubelet.volumemanager.layout import SetUpError
from podlife.kubelet.volumemanager.ownership import give_to_user
from podlife.linux.removal import remove_tree

_DATA = "..data"
_NEW_DATA = "..data_tmp"


@dataclass(frozen=True, slots=True)
class File:
    data: bytes
    mode: int
    user: int | None = None


Payload = Mapping[str, File]


def write(folder: Path, payload: Payload, now: datetime, finish: Callable[[], None]) -> bool:
    """Bring a folder up to date; returns whether anything changed. `finish` is called before readers see the new
    version. Raises `SetUpError` for invalid paths, and OSError."""
    files = {_checked(path): payload[path] for path in payload}
    current = _current(folder)
    is_written = current is None or _read_version(folder / current) != {
        path: each.data for path, each in files.items()
    }
    if is_written:
        current = _publish(folder, files, now, finish)
    _link_files(folder, files)
    _clean_up(folder, {str(current), _DATA})
    return is_written


def _checked(path: str) -> str:
    steps = path.split("/")
    if not path:
        raise SetUpError('invalid path: must not be empty: ""')
    if path.startswith("/"):
        raise SetUpError(f"invalid path: must be relative path: {path}")
    if len(os.fsencode(path)) > 4096 or "\0" in path:
        raise SetUpError("invalid path: must be less than or equal to 4096 characters")
    if ".." in steps:
        raise SetUpError(f"invalid path: must not contain '..': {path}")
    if any(len(os.fsencode(step)) > 255 for step in steps):
        raise SetUpError("invalid path: filenames must be less than or equal to 255 characters")
    if path.startswith(".."):
        raise SetUpError(f"invalid path: must not start with '..': {path}")
    cleaned = str(PurePosixPath(path))
    if cleaned == ".":
        raise SetUpError(f"invalid path: must name a file: {path}")
    return cleaned


def _current(folder: Path) -> str | None:
    try:
        name = str((folder / _DATA).readlink())
    except FileNotFoundError:
        return None
    # Anything else was not written by this module.
    return name if name.startswith("..") and "/" not in name and (folder / name).is_dir() else None


def _read_version(version: Path) -> dict[str, bytes | None]:
    """None for a file that may not be read because of its mode: it is written again."""
    found: dict[str, bytes | None] = {}
    for top, _, names in os.walk(version, followlinks=False):
        for name in names:
            path = Path(top, name)
            try:
                data: bytes | None = path.read_bytes()
            except PermissionError:
                data = None
            found[str(path.relative_to(version))] = data
    return found


def _publish(folder: Path, files: Payload, now: datetime, finish: Callable[[], None]) -> str:
    name = f"..{now:%Y_%m_%d_%H_%M_%S}.{secrets.token_hex(4)}"
    version = folder / name
    version.mkdir(mode=0o700)
    try:
        for path in sorted(files):
            _write_file(version, path, files[path])
        version.chmod(0o755)
        finish()
        link = folder / _NEW_DATA
        link.unlink(missing_ok=True)
        link.symlink_to(name)
        link.rename(folder / _DATA)
    except BaseException:
        remove_tree(version)
        raise
    return name


def _write_file(version: Path, path: str, file: File) -> None:
    target = version / path
    for above in reversed(PurePosixPath(path).parents):
        if not (made := version / above).is_dir():
            made.mkdir()
            made.chmod(0o755)
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as opened:
        opened.write(file.data)
        # Permissions last and independent of the umask; the version is not visible yet.
        os.fchmod(descriptor, file.mode & 0o777)
        if file.user is not None:
            give_to_user(descriptor, file.user)


def _link_files(folder: Path, files: Payload) -> None:
    names = {path.split("/", 1)[0] for path in files}
    for name in sorted(names):
        # A folder may be in its place, as mount point of another volume.
        with suppress(FileExistsError):
            (folder / name).symlink_to(f"{_DATA}/{name}")
    for entry in folder.iterdir():
        is_ours = entry.is_symlink() and str(entry.readlink()) == f"{_DATA}/{entry.name}"
        if is_ours and entry.name not in names:
            entry.unlink()


def _clean_up(folder: Path, wanted: set[str]) -> None:
    for entry in folder.iterdir():
        if entry.name.startswith("..") and entry.name not in wanted:
            remove_tree(entry)
