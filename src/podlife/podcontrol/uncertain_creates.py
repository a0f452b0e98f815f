"""Pods that may have been made though nobody knows: the request had left, and its answer was lost.

To take that for a failure would make the pod a second time; to wait for it might be to wait for what never was. So the
owner is in doubt until the server was asked which pods it has, and those that the cache does not show yet are expected
from then on. Names that the controller gives itself need none of this: a second one is refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from podlife.api.views import MetadataOnly, controller_of
from podlife.client import PODS, Client, NotSentError
from podlife.errors import ApiError, UnreachableError
from podlife.informer import CacheReader
from podlife.informer.cache import HasMetadata
from podlife.informer.indexes import Key
from podlife.podcontrol.expectations import UidTrackedExpectations
from podlife.podcontrol.owner import Owner

__all__ = ["Doubts", "may_have_happened"]

# How long a server may still be at a request whose connection is gone.
_SETTLE_SECONDS = 1.0
# Said by a server that did not hear from its storage, or by one that stands before it.
_UNKNOWN = frozenset((500, 502, 504))


def may_have_happened(error: Exception) -> bool:
    """Whether what failed so may have been done all the same."""
    if isinstance(error, ApiError):
        return error.code in _UNKNOWN
    return isinstance(error, UnreachableError) and not isinstance(error, NotSentError)


class Doubts:
    """Of one controller, by the keys of its owners. `pods` and `expectations` are what it decides from."""

    def __init__(
        self, client: Client, pods: CacheReader[HasMetadata], expectations: UidTrackedExpectations
    ) -> None:
        self._client = client
        self._pods = pods
        self._expectations = expectations
        self._since: dict[Key, float] = {}

    def note(self, key: Key, errors: Iterable[Exception]) -> None:
        """Creations for this owner have failed so."""
        if any(map(may_have_happened, errors)):
            self._since[key] = asyncio.get_running_loop().time()

    async def settle(self, key: Key, owner: Owner) -> None:
        """Find out what there is, if that is in doubt. Takes a moment where a server may still be at it. Raises what
        keeps the server from saying: the owner stays in doubt."""
        since = self._since.get(key)
        if since is None:
            return
        # Waited for here: to come back later would be a success, and the distance between tries would not grow.
        await asyncio.sleep(since + _SETTLE_SECONDS - asyncio.get_running_loop().time())
        there = await self._client.list_all(PODS, owner.namespace, view=MetadataOnly)
        unseen = sum(1 for pod in there.items if self._is_unseen(pod, owner))
        known = self._expectations.get(key)
        if known is None:
            self._expectations.expect_creations(key, unseen)
        else:
            self._expectations.add(key, creations=unseen - known.creations)
        self._since.pop(key, None)

    def forget(self, key: Key) -> None:
        self._since.pop(key, None)

    def _is_unseen(self, pod: MetadataOnly, owner: Owner) -> bool:
        metadata = pod.metadata
        reference = controller_of(metadata)
        if reference is None or reference.uid != owner.uid or metadata.deletion_timestamp is not None:
            return False
        seen = self._pods.get(metadata.namespace, metadata.name)
        return seen is None or seen.metadata.uid != metadata.uid
