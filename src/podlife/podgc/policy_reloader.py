"""Reloads the policy file of a running collector.

The file is checked every few seconds by inode, size and time (a ConfigMap swaps whole directories), and reloaded if its
content differs. An unreadable or invalid file changes nothing and is reported once, with all errors. The content must
be the same in two checks: a file that is still being written may be a valid policy, but lack guards and protections.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from dataclasses import replace
from pathlib import Path

from podlife.events import Recorder
from podlife.podgc.collector import Collector
from podlife.podgc.namespace_annotations import EVERYWHERE
from podlife.podgc.policy.model import Policy
from podlife.podgc.policy.parse import PolicyError, read_policy_bytes, read_policy_file
from podlife.podgc.removal import owner_or_namespace
from podlife.podgc.settings import Settings

log = logging.getLogger(__name__)

_POLL_SECONDS = 2.0
# Maximum length of an event message.
_MOST_MESSAGE = 1000

_Mark = tuple[int, int, int, int]


class PolicyFile:
    """A policy file and what is known of its content."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._mark: _Mark | None = None
        # Digests of the content that was accepted or refused, and of the content at the last check.
        self._digest = b""
        self._seen = b""
        # The errors of the current content, and those reported last.
        self._mistakes = ""
        self._reported = ""

    @property
    def is_refused(self) -> bool:
        return bool(self._reported)

    def poll(self) -> Policy | None:
        """The policy, if the file has changed. Raises PolicyError if it is invalid, once."""
        mark = _mark_of(self.path)
        if mark is not None and mark == self._mark:
            return None
        try:
            data = read_policy_file(self.path)
        except PolicyError as error:
            self._mark, self._seen = None, b""
            self._raise_once(error)
            return None
        digest = hashlib.sha256(data).digest()
        if digest == self._digest:
            # Unchanged, after it could not be read for a while.
            self._mark, self._seen, self._reported = mark, b"", self._mistakes
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
            self._raise_once(error)
            return None
        self._mistakes = self._reported = ""
        return policy

    def _raise_once(self, error: PolicyError) -> None:
        if str(error) != self._reported:
            self._reported = str(error)
            raise error


def _mark_of(path: Path) -> _Mark | None:
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


class PolicyReloader:
    """`flags` are the settings without a policy: defaults for what a new policy does not set."""

    def __init__(
        self, collector: Collector, path: Path, flags: Settings, recorder: Recorder | None = None
    ) -> None:
        self._collector = collector
        self._file = PolicyFile(path)
        self._flags = flags
        self._recorder = recorder

    async def run(self) -> None:
        """Run until cancelled."""
        while True:
            self._reload()
            await asyncio.sleep(_POLL_SECONDS)

    def _reload(self) -> None:
        metrics = self._collector.metrics
        try:
            policy = self._file.poll()
        except PolicyError as error:
            metrics.policy_reloads["refused"] += 1
            self._refuse(error)
        else:
            if policy is not None and policy != self._collector.settings.policy:
                metrics.policy_reloads["taken"] += 1
                self._collector.put_in_force(replace(self._flags, policy=policy))
                log.info("policy %s loaded: %d rules", self._file.path, len(policy.rules))
        metrics.is_policy_refused = self._file.is_refused

    def _refuse(self, error: PolicyError) -> None:
        for line in str(error).splitlines():
            log.error("policy not reloaded: %s", line)
        if self._recorder is not None:
            message = f"podlife-gc: policy not reloaded: {error}"[:_MOST_MESSAGE]
            regarding = owner_or_namespace(None, EVERYWHERE)
            self._recorder.event(regarding, "Warning", "PolicyRefused", message)
