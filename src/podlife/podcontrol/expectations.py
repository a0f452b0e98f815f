"""What a controller has requested and not yet observed: a key is not reconciled until its expectations are met.

A cache lags behind. A controller that counts pods right after it created some would create them again, so it records
what it expects before it sends requests; every observed event and every failed request lowers the count. An
expectation whose event never arrives expires.

Keys are namespace and name of the owner; owners of different kinds need separate stores (EX-11). `observe` methods
are thread-safe. Counts below zero are met as well.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace

from podlife.controller.reconcile import show_key

log = logging.getLogger(__name__)

_TIMEOUT_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Expectation:
    """Creations and deletions still to be observed, and when they were set."""

    creations: int
    deletions: int
    set_at: float

    @property
    def is_fulfilled(self) -> bool:
        return self.creations <= 0 and self.deletions <= 0


def _loop_time() -> float:
    return asyncio.get_running_loop().time()


class Expectations:
    """`seconds` returns the time; by default the event loop's."""

    def __init__(
        self, *, timeout_seconds: float = _TIMEOUT_SECONDS, seconds: Callable[[], float] = _loop_time
    ) -> None:
        self._timeout_seconds = timeout_seconds
        self._seconds = seconds
        self._expected: dict[Hashable, Expectation] = {}
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> Expectation | None:
        return self._expected.get(key)

    def expect(self, key: Hashable, *, creations: int = 0, deletions: int = 0) -> None:
        """Replace the expectations of the key and restart its timeout."""
        expectation = Expectation(creations, deletions, self._seconds())
        with self._lock:
            self._expected[key] = expectation

    def expect_creations(self, key: Hashable, count: int) -> None:
        """Expect `count` creations and no deletions."""
        self.expect(key, creations=count)

    def expect_deletions(self, key: Hashable, count: int) -> None:
        """Expect `count` deletions and no creations."""
        self.expect(key, deletions=count)

    def add(self, key: Hashable, *, creations: int = 0, deletions: int = 0) -> None:
        """Expect more or, with negative numbers, fewer; no effect on a key without expectations, nor on its timeout."""
        with self._lock:
            known = self._expected.get(key)
            if known is not None:
                self._expected[key] = replace(
                    known, creations=known.creations + creations, deletions=known.deletions + deletions
                )

    def observe_creation(self, key: Hashable) -> None:
        """A creation was observed, or its request failed."""
        self.add(key, creations=-1)

    def observe_deletion(self, key: Hashable) -> None:
        self.add(key, deletions=-1)

    def is_satisfied(self, key: Hashable) -> bool:
        """Whether the controller may act: expectations are met or have expired."""
        known = self._expected.get(key)
        if known is None or known.is_fulfilled:
            return True
        if self._seconds() - known.set_at > self._timeout_seconds:
            log.warning(
                "%s: expectations not met within %g s: %s", show_key(key), self._timeout_seconds, known
            )
            return True
        return False

    def forget(self, key: Hashable) -> None:
        """Drop the expectations of a deleted owner."""
        with self._lock:
            self._expected.pop(key, None)


class UidTrackedExpectations:
    """Expectations that track deletions by UID: each counts once, however often it is observed.

    A graceful deletion is observed twice: when the pod becomes Terminating and when it is gone. By UID, because a pod
    recreated under the same name is another one."""

    def __init__(
        self, *, timeout_seconds: float = _TIMEOUT_SECONDS, seconds: Callable[[], float] = _loop_time
    ) -> None:
        self._counts = Expectations(timeout_seconds=timeout_seconds, seconds=seconds)
        self._uids: dict[Hashable, set[str]] = {}
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> Expectation | None:
        return self._counts.get(key)

    def uids(self, key: Hashable) -> frozenset[str] | None:
        """The pods whose deletion is expected; None if none was ever expected."""
        with self._lock:
            pending = self._uids.get(key)
            return None if pending is None else frozenset(pending)

    def expect_creations(self, key: Hashable, count: int) -> None:
        self._counts.expect_creations(key, count)

    def expect_deletions(self, key: Hashable, uids: Iterable[str]) -> None:
        """Expect the deletion of these pods and no creations, replacing earlier expectations."""
        self.expect(key, deletions=uids)

    def expect(self, key: Hashable, *, creations: int = 0, deletions: Iterable[str] = ()) -> None:
        """Expect exactly these creations and deletions."""
        wanted = set(deletions)
        with self._lock:
            if pending := self._uids.get(key):
                log.error("%s: dropping expected deletions of %s", key, sorted(pending))
            self._uids[key] = wanted
            self._counts.expect(key, creations=creations, deletions=len(wanted))

    def add(self, key: Hashable, *, creations: int = 0) -> None:
        """Expect more creations or, with a negative number, fewer."""
        self._counts.add(key, creations=creations)

    def observe_creation(self, key: Hashable) -> None:
        self._counts.observe_creation(key)

    def observe_deletion(self, key: Hashable, uid: str) -> None:
        """The pod is deleted, or its deletion failed. No effect if it is not expected."""
        with self._lock:
            pending = self._uids.get(key)
            if pending is not None and uid in pending:
                pending.remove(uid)
                self._counts.observe_deletion(key)

    def is_satisfied(self, key: Hashable) -> bool:
        return self._counts.is_satisfied(key)

    def forget(self, key: Hashable) -> None:
        with self._lock:
            self._uids.pop(key, None)
            self._counts.forget(key)
