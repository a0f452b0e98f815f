"""Creates or deletes several pods for one owner and expects exactly those that were requested.

    await create_expected(expectations, key, missing, lambda: control.create_pods(…))
    await delete_expected(expectations, key, surplus, lambda pod: control.delete_pod(…))

A failed request lowers the expectation, so that the next reconcile does not wait for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from podlife.errors import NotFoundError
from podlife.informer.indexes import Key
from podlife.podcontrol.expectations import UidTrackedExpectations
from podlife.podcontrol.slow_start import INITIAL_BATCH, slow_start
from podlife.podcontrol.uncertain_creates import UncertainCreates
from podlife.podcontrol.views import OwnedPod

P = TypeVar("P", bound=OwnedPod)


async def create_expected(
    expectations: UidTrackedExpectations,
    key: Key,
    count: int,
    create: Callable[[], Awaitable[object]],
    *,
    uncertain: UncertainCreates | None = None,
    initial_batch: int = INITIAL_BATCH,
) -> None:
    """Create so many, beginning slowly: with `initial_batch` at once. Raises the first failure, after which no
    further ones are tried. `uncertain` records failures that may have succeeded."""
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
    """Delete these concurrently. Raises the first failure after all were tried; a missing pod is no failure."""
    pods = tuple(pods)
    expectations.expect_deletions(key, [pod.metadata.uid for pod in pods])

    async def attempt(pod: P) -> Exception | None:
        try:
            await delete(pod)
        except Exception as error:  # noqa: BLE001 - the others are tried all the same; the first failure is raised
            expectations.observe_deletion(key, pod.metadata.uid)
            return None if isinstance(error, NotFoundError) else error
        return None

    for error in await asyncio.gather(*map(attempt, pods)):
        if error is not None:
            raise error
