"""The policy file of a collector that runs: looked at every few seconds, and put in force when it says something else.

It guarantees that a file which cannot be read or is no policy changes nothing, and is told of once, with every mistake
and its line. A file is known by its place, size and time, since a ConfigMap swaps whole folders; whether it says
something else, by its content. One that is still being written is none yet: the beginning of a policy is often a policy
too, without the guards and protections that come after it. So what a file says has to stand for a look.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from dataclasses import replace
from pathlib import Path

from podlife.events import Recorder
from podlife.podgc.collector import Collector
from podlife.podgc.policy.model import Policy
from podlife.podgc.policy.parse.document import PolicyError, read_policy_bytes, read_policy_file
from podlife.podgc.settings import Settings

__all__ = ["PolicyFile", "Reloading"]

log = logging.getLogger(__name__)

_LOOK_SECONDS = 2.0
# The API takes no longer messages in an event.
_MOST_TOLD = 1000

_Mark = tuple[int, int, int, int]


class PolicyFile:
    """The file that the policy in force was read from, or is about to be."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._mark: _Mark | None = None
        # Of what was taken or refused, and of what stood there at the last look.
        self._digest = b""
        self._seen = b""
        # What is wrong with what stands in it, and what was told last.
        self._mistakes = ""
        self._told = ""

    @property
    def is_refused(self) -> bool:
        return bool(self._told)

    def look(self) -> Policy | None:
        """What stands in the file, if that is news; raises PolicyError if it is no policy, once."""
        mark = _mark_of(self.path)
        if mark is not None and mark == self._mark:
            return None
        try:
            data = read_policy_file(self.path)
        except PolicyError as error:
            self._mark, self._seen = None, b""
            self._tell(error)
            return None
        digest = hashlib.sha256(data).digest()
        if digest == self._digest:
            # As it was, after it could not be read for a while.
            self._mark, self._seen, self._told = mark, b"", self._mistakes
            return None
        if digest != self._seen:
            self._seen = digest
            return None
        self._mark = mark
        self._digest = digest
        try:
            policy = read_policy_bytes(data, str(self.path))
        except PolicyError as error:
            self._mistakes = str(error)
            self._tell(error)
            return None
        self._mistakes = self._told = ""
        return policy

    def _tell(self, error: PolicyError) -> None:
        if str(error) != self._told:
            self._told = str(error)
            raise error


def _mark_of(path: Path) -> _Mark | None:
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


class Reloading:
    """`flags` are the settings without any policy: what a new one does not say falls back to them."""

    def __init__(
        self, collector: Collector, path: Path, flags: Settings, recorder: Recorder | None = None
    ) -> None:
        self._collector = collector
        self._file = PolicyFile(path)
        self._flags = flags
        self._recorder = recorder

    async def run(self) -> None:
        """Look at the file until cancelled."""
        while True:
            self._look()
            await asyncio.sleep(_LOOK_SECONDS)

    def _look(self) -> None:
        metrics = self._collector.metrics
        try:
            policy = self._file.look()
        except PolicyError as error:
            metrics.policy_reloads["refused"] += 1
            self._refuse(error)
        else:
            if policy is not None and policy != self._collector.settings.policy:
                metrics.policy_reloads["taken"] += 1
                self._collector.put_in_force(replace(self._flags, policy=policy))
                log.info("%s is in force: %d rules", self._file.path, len(policy.rules))
        metrics.is_policy_refused = self._file.is_refused

    def _refuse(self, error: PolicyError) -> None:
        for line in str(error).splitlines():
            log.error("the policy stays as it was: %s", line)
        if self._recorder is not None:
            message = f"podlife-gc: the policy stays as it was: {error}"[:_MOST_TOLD]
            self._recorder.event(_CLUSTER, "Warning", "PolicyRefused", message)


# Nothing else stands for all that the collector looks after.
_CLUSTER = {"apiVersion": "v1", "kind": "Namespace", "name": "kube-system", "namespace": "kube-system"}
