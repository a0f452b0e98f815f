"""Static pods from a directory of manifest files: reports them whenever they change.

The kernel reports changes of the directory; a slow poll beside it serves file systems that do not, and a directory that
is created later.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from podlife.aio import wait_until_set
from podlife.api.codec import Object, format_micro_time
from podlife.clock import Clock
from podlife.kubelet.config.manifest_directory import ManifestDirectory
from podlife.linux.inotify import CHANGED, CloseWatch

log = logging.getLogger(__name__)

_LOOK_SECONDS = 20.0


def _no_check(pod: Object) -> Sequence[str]:
    return ()


class FileSource:
    """`check` is for those who know more of what can be wrong with a pod than the shape of its file: it says what, one
    text each. `report` is told of every file that cannot be used; without it, it is logged."""

    def __init__(
        self,
        folder: Path,
        node_name: str,
        clock: Clock,
        *,
        check: Callable[[Object], Sequence[str]] = _no_check,
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
