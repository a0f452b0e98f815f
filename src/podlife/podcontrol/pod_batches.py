"""Creates or deletes several pods for one owner and expects exactly those that were requested.

    await create_expected(expectations, key, missing, lambda: control.create_pods(…))
    await delete_expected(expectations, key, surplus, lambda pod: control.delete_pod(…))

A failed request lowers the expectation, so that the next reconcile does not wait for it. Creation uses slow start, as
upstream's slowStartBatch: batches begin with one call and double. If every call fails for the same reason (quota
exceeded, invalid template), the server sees a few failures instead of thousands.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from podlife.errors import NotFoundError
from podlife.informer.indexes import Key
from podlife.podcontrol.errors import NamespaceTerminatingError
from podlife.podcontrol.expectations import UidTrackedExpectations
from podlife.podcontrol.uncertain_creates import UncertainCreates
from podlife.podcontrol.views import OwnedPod

P = TypeVar("P", bound=OwnedPod)
INITIAL_BATCH = 1
# Concurrency within a batch: more requests would only queue at the limiter.
_AT_ONCE = 32


class CreateUntilTerminating:
    """A creation that is skipped once the namespace is terminating: no event is needed and retries cannot succeed. It
    counts as done: the unmet expectation prevents another attempt for every pod that ends."""

    def __init__(self, create: Callable[[], Awaitable[object]]) -> None:
        self._create = create
        self.is_terminating = False

    async def __call__(self) -> None:
        if self.is_terminating:
            return
        try:
            await self._create()
        except NamespaceTerminatingError:
            self.is_terminating = True


async def create_expected(
    expectations: UidTrackedExpectations,
    key: Key,
    count: int,
    create: Callable[[], Awaitable[object]],
    *,
    uncertain: UncertainCreates | None = None,
    initial_batch: int = INITIAL_BATCH,
) -> None:
    """Create `count` with slow start, beginning with `initial_batch` at once. Raises the first failure; the rest is
    skipped. `uncertain` records failures that may have succeeded."""
    expectations.expect_creations(key, count)
    made = await slow_start(count, create, initial_batch=initial_batch)
    expectations.add(key, creations=made.succeeded - count)
    if uncertain is not None:
        uncertain.note(key, made.errors)
    made.raise_error()


async def delete_expected(
    expectations: UidTrackedExpectations,
    key: Key,
    pods: Iterable[P],
    delete: Callable[[P], Awaitable[object]],
) -> None:
    """Delete these concurrently. Raises the first failure after all were tried; a missing pod is not a failure."""
    pods = tuple(pods)
    expectations.expect_deletions(key, [pod.metadata.uid for pod in pods])

    async def attempt(pod: P) -> Exception | None:
        try:
            await delete(pod)
        except Exception as error:  # noqa: BLE001 - the others are tried first; then the first failure is raised
            expectations.observe_deletion(key, pod.metadata.uid)
            return None if isinstance(error, NotFoundError) else error
        return None

    for error in await asyncio.gather(*map(attempt, pods)):
        if error is not None:
            raise error


@dataclass(frozen=True, slots=True)
class SlowStart:
    """The result: `skipped` calls were not tried, since an earlier one failed."""

    succeeded: int
    skipped: int
    errors: tuple[Exception, ...] = ()

    def raise_error(self) -> None:
        """Raises the first error, if any."""
        if self.errors:
            raise self.errors[0]


async def slow_start(
    count: int, act: Callable[[], Awaitable[object]], *, initial_batch: int = INITIAL_BATCH
) -> SlowStart:
    """Call `act` `count` times: after a failure neither the rest of the batch nor another batch starts. Errors of `act`
    are returned; the caller lowers its expectation by `count - succeeded`."""
    succeeded, remaining = 0, count
    batch = min(remaining, initial_batch)
    while batch > 0:
        tried, errors = await _act(batch, act)
        succeeded += tried - len(errors)
        remaining -= tried
        if errors:
            return SlowStart(succeeded, remaining, errors)
        batch = min(2 * batch, remaining)
    return SlowStart(succeeded, 0)


async def _act(count: int, act: Callable[[], Awaitable[object]]) -> tuple[int, tuple[Exception, ...]]:
    """The number of calls, and the errors in order of occurrence."""
    # The first `width` calls start together; each of the others starts when one of them has ended.
    tried = width = min(count, _AT_ONCE)
    errors: list[Exception] = []

    async def work() -> None:
        nonlocal tried
        while True:
            try:
                await act()
            except Exception as error:  # noqa: BLE001 - the caller needs the number of successes in any case
                errors.append(error)
            if errors or tried == count:
                return
            tried += 1

    await asyncio.gather(*(work() for _ in range(width)))
    return tried, tuple(errors)
