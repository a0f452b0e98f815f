"""Static pods from a directory of manifest files: reports them whenever they change.

A file is read when it is new or has changed. An unusable file is reported once, with its name and the reason, and does
not affect others; the pod it held before keeps running until the file is fixed or removed.

inotify reports changes of the directory; a slow poll covers file systems without inotify, and a directory that is
created later.
"""

from __future__ import annotations

import asyncio
import logging
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from podlife.aio import wait_until_set
from podlife.api.codec import Object, format_micro_time
from podlife.clock import Clock
from podlife.kubelet.config.manifest import SEEN, ManifestError, read_manifest
from podlife.linux.inotify import CHANGED, CloseWatch

log = logging.getLogger(__name__)

_POLL_SECONDS = 20.0
_ENDINGS = (".yaml", ".yml", ".json")
# More than an API server would store of a pod.
_MAX_BYTES = 1024 * 1024

# Modification times, size and inode of a file.
Signature = tuple[int, int, int, int]


class FileSource:
    """`check` returns the problems of a pod; `report` gets each problem, by default as a log line."""

    def __init__(
        self,
        folder: Path,
        node_name: str,
        clock: Clock,
        *,
        check: Callable[[Object], Sequence[str]],
        report: Callable[[str], None] | None = None,
    ) -> None:
        # The file name is part of the pod's identity, so it must not depend on the working directory.
        self._folder = folder.absolute()
        self._clock = clock
        self._manifests = ManifestDirectory(
            self._folder, node_name, check=check, report=report or _log_problem
        )
        self._changed = asyncio.Event()
        self._watch: CloseWatch | None = None
        # Device and inode of the watched directory, which may be replaced.
        self._watched: tuple[int, int] | None = None

    async def run(self, on_change: Callable[[list[Object]], None]) -> None:
        """Report all pods at the start, even if there are none, and after each change."""
        reported: list[Object] | None = None
        try:
            while True:
                self._changed.clear()
                self._ensure_watch()
                pods = self._manifests.read(format_micro_time(self._clock.now()))
                if pods != reported:
                    on_change(list(pods))
                    reported = pods
                await wait_until_set(self._changed, seconds=_POLL_SECONDS)
        finally:
            self._end_watch()

    def _ensure_watch(self) -> None:
        """Called before each read, so that no change in between is missed."""
        try:
            found = self._folder.stat()
        except OSError:
            self._end_watch()
            return
        if self._watched == (found.st_dev, found.st_ino):
            return
        self._end_watch()
        watch = CloseWatch(self._folder, lambda _: self._changed.set(), kinds=CHANGED)
        try:
            watch.open()
        except OSError as error:
            log.warning("%s; polling every %g s instead", error, _POLL_SECONDS)
        else:
            self._watch = watch
        self._watched = (found.st_dev, found.st_ino)

    def _end_watch(self) -> None:
        if self._watch is not None:
            self._watch.close()
        self._watch = self._watched = None


def _log_problem(line: str) -> None:
    log.warning("static pods: %s", line)


@dataclass(frozen=True, slots=True)
class _File:
    signature: Signature
    # None for a file that has never been usable.
    pod: Object | None


class ManifestDirectory:
    """`check` and `report` as for `FileSource`; a report is one line."""

    def __init__(
        self,
        folder: Path,
        node_name: str,
        *,
        check: Callable[[Object], Sequence[str]],
        report: Callable[[str], None],
    ) -> None:
        self._folder = folder
        self._node_name = node_name
        self._check = check
        self._report = report
        self._files: dict[str, _File] = {}
        self._is_missing = False
        self._duplicates: frozenset[str] = frozenset()

    def read(self, seen: str) -> list[Object]:
        """All pods, by file name. `seen` is the time stamped on new ones."""
        names = self._names()
        # If the directory cannot be read, running pods are kept.
        if names is not None:
            self._files = {name: file for name in names if (file := self._load(name, seen)) is not None}
        return list(self._distinct())

    def _names(self) -> list[str] | None:
        try:
            names = sorted(each.name for each in self._folder.iterdir() if not each.name.startswith("."))
        except OSError as error:
            if not self._is_missing:
                self._report(f"{self._folder} cannot be read: {error.strerror}")
            self._is_missing = True
            return [] if isinstance(error, FileNotFoundError) else None
        self._is_missing = False
        return names

    def _load(self, name: str, seen: str) -> _File | None:
        known = self._files.get(name)
        path = self._folder / name
        try:
            found = path.stat()
            signature = (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)
            if known is not None and known.signature == signature:
                return known
            pod = self._read_file(path, found.st_mode)
        except FileNotFoundError:
            # Removed in the meantime, or a dangling symlink.
            return None
        except Exception as error:  # noqa: BLE001 - a bad file must not affect other pods
            reason = error.strerror if isinstance(error, OSError) else error
            if not isinstance(error, (OSError, ManifestError)):
                reason = f"cannot be read: {error!r}"
            kept = "; the previous pod keeps running" if known is not None and known.pod is not None else ""
            self._report(f"{path}: {reason}{kept}")
            return _File(signature, known.pod if known is not None else None)
        before = known.pod if known is not None else None
        pod["metadata"]["annotations"][SEEN] = _first_seen(pod, before) or seen
        return _File(signature, pod)

    def _read_file(self, path: Path, mode: int) -> Object:
        if not stat.S_ISREG(mode):
            raise ManifestError("not a regular file; subdirectories are not read")
        if path.suffix not in _ENDINGS:
            raise ManifestError(f"ignored: file name must end with {', '.join(_ENDINGS)}")
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
        if len(data) > _MAX_BYTES:
            raise ManifestError(f"is larger than {_MAX_BYTES} bytes")
        manifest = read_manifest(data, str(path), self._node_name)
        if problems := self._check(manifest.pod):
            raise ManifestError(" ".join("; ".join(problems).split()))
        for warning in manifest.warnings:
            self._report(f"{path}: ignored {warning}")
        return manifest.pod

    def _distinct(self) -> Iterator[Object]:
        """Of several files with the same pod name or UID, the first wins."""
        taken: dict[str, str] = {}
        duplicates: set[str] = set()
        for name, file in self._files.items():
            if file.pod is None:
                continue
            metadata = file.pod["metadata"]
            key = f"{metadata['namespace']}/{metadata['name']}"
            holder = taken.get(key) or taken.get(metadata["uid"])
            if holder is None:
                taken[key] = taken[metadata["uid"]] = name
                yield file.pod
                continue
            line = (
                f"{self._folder / name}: pod {key} has the name or UID of the pod in {holder} and is ignored"
            )
            duplicates.add(line)
            if line not in self._duplicates:
                self._report(line)
        self._duplicates = frozenset(duplicates)


def _first_seen(pod: Object, before: Object | None) -> str:
    """Keep the time of an unchanged pod: reformatting the file is not a change."""
    if before is None or before["metadata"]["uid"] != pod["metadata"]["uid"]:
        return ""
    return str(before["metadata"]["annotations"][SEEN])
