"""Static pods from a directory of manifest files: reports them whenever they change.

A file is read when it is new or has changed. One that cannot be used is reported once, with its name and the reason,
and does not affect others; the pod that it held before keeps running until the file is fixed or removed.

The kernel reports changes of the directory; a slow poll beside it serves file systems that do not, and a directory that
is created later.
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

_LOOK_SECONDS = 20.0
_ENDINGS = (".yaml", ".yml", ".json")
# More than an API server would store of a pod.
_MOST_BYTES = 1024 * 1024

# When a file was last changed, and which one it is.
Signature = tuple[int, int, int, int]


class FileSource:
    """`check` returns what is wrong with a pod, one text each; `report` gets each problem, by default a log line."""

    def __init__(
        self,
        folder: Path,
        node_name: str,
        clock: Clock,
        *,
        check: Callable[[Object], Sequence[str]],
        report: Callable[[str], None] | None = None,
    ) -> None:
        # The name of the file is part of what a pod is: it must not depend on where the kubelet was started.
        self._folder = folder.absolute()
        self._clock = clock
        self._manifests = ManifestDirectory(
            self._folder, node_name, check=check, report=report or _log_problem
        )
        self._changed = asyncio.Event()
        self._watch: CloseWatch | None = None
        # Which folder is being watched: another may come in its place.
        self._watched: tuple[int, int] | None = None

    async def run(self, on_change: Callable[[list[Object]], None]) -> None:
        """Tell of all pods, once at the start, also where there are none, and again when they have changed."""
        told: list[Object] | None = None
        try:
            while True:
                self._changed.clear()
                self._keep_watch()
                pods = self._manifests.read(format_micro_time(self._clock.now()))
                if pods != told:
                    on_change(list(pods))
                    told = pods
                await wait_until_set(self._changed, seconds=_LOOK_SECONDS)
        finally:
            self._end_watch()

    def _keep_watch(self) -> None:
        """Begun before each look, so that nothing happens between the two."""
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
            log.warning("%s; polling every %g s instead", error, _LOOK_SECONDS)
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
    # None is a file that has never been of use.
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
        self._doubles: frozenset[str] = frozenset()

    def read(self, seen: str) -> list[Object]:
        """All pods there are, by the names of their files. `seen` is the time that new ones get."""
        names = self._names()
        # Where the folder itself cannot be read nothing is known, and nothing that runs is ended for it.
        if names is not None:
            self._files = {name: file for name in names if (file := self._look_at(name, seen)) is not None}
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

    def _look_at(self, name: str, seen: str) -> _File | None:
        known = self._files.get(name)
        path = self._folder / name
        try:
            found = path.stat()
            signature = (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)
            if known is not None and known.signature == signature:
                return known
            pod = self._read_file(path, found.st_mode)
        except FileNotFoundError:
            # Gone between two looks, or a link to nowhere.
            return None
        except Exception as error:  # noqa: BLE001 - a file that nobody has thought of concerns no other pod
            reason = error.strerror if isinstance(error, OSError) else error
            if not isinstance(error, (OSError, ManifestError)):
                reason = f"cannot be read: {error!r}"
            still = (
                "; the pod that it was before goes on" if known is not None and known.pod is not None else ""
            )
            self._report(f"{path}: {reason}{still}")
            return _File(signature, known.pod if known is not None else None)
        before = known.pod if known is not None else None
        pod["metadata"]["annotations"][SEEN] = _first_seen(pod, before) or seen
        return _File(signature, pod)

    def _read_file(self, path: Path, mode: int) -> Object:
        if not stat.S_ISREG(mode):
            raise ManifestError("is no file: only files are read, not folders in the folder")
        if path.suffix not in _ENDINGS:
            raise ManifestError(f"is not read: its name does not end with {', '.join(_ENDINGS)}")
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise ManifestError(f"is larger than {_MOST_BYTES} bytes")
        manifest = read_manifest(data, str(path), self._node_name)
        if problems := self._check(manifest.pod):
            raise ManifestError(" ".join("; ".join(problems).split()))
        for warning in manifest.warnings:
            self._report(f"{path}: {warning} is left out")
        return manifest.pod

    def _distinct(self) -> Iterator[Object]:
        """Of two files with a pod of one name, or of one UID, the first counts."""
        taken: dict[str, str] = {}
        doubles: set[str] = set()
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
                f"{self._folder / name}: the pod {key} has a name or UID of one in {holder}, and does not run"
            )
            doubles.add(line)
            if line not in self._doubles:
                self._report(line)
        self._doubles = frozenset(doubles)


def _first_seen(pod: Object, before: Object | None) -> str:
    """That of the same pod before: a file that was only written in another way is no news."""
    if before is None or before["metadata"]["uid"] != pod["metadata"]["uid"]:
        return ""
    return str(before["metadata"]["annotations"][SEEN])
