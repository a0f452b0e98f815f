"""Creations whose outcome is unknown: the request was sent and the response was lost.

Treating that as a failure would create the pod twice; waiting for the pod might wait forever. The owner therefore
stays uncertain until its pods have been read from the server, and pods that the cache does not show yet are expected
from then on. Pods whose names the controller chooses do not need this: a second one is refused.
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

# Time in which a server may still execute a request after its connection broke.
_SETTLE_SECONDS = 1.0
# Returned by a proxy, or if the storage did not respond.
_UNKNOWN = frozenset((500, 502, 504))


def may_have_happened(error: Exception) -> bool:
    """Whether a request with this error may have been executed."""
    if isinstance(error, ApiError):
        return error.code in _UNKNOWN
    return isinstance(error, UnreachableError) and not isinstance(error, NotSentError)


class UncertainCreates:
    """For one controller, by owner key. `pods` and `expectations` are the ones it decides from."""

    def __init__(
        self, client: Client, pods: CacheReader[HasMetadata], expectations: UidTrackedExpectations
    ) -> None:
        self._client = client
        self._pods = pods
        self._expectations = expectations
        self._since: dict[Key, float] = {}

    def note(self, key: Key, errors: Iterable[Exception]) -> None:
        """Record the errors of creations for this owner."""
        if any(map(may_have_happened, errors)):
            self._since[key] = asyncio.get_running_loop().time()

    async def settle(self, key: Key, owner: Owner) -> None:
        """If the owner is uncertain, list its pods and expect those that the cache lacks. Waits a moment for a server
        that may still execute a request. Raises if the list fails: the owner stays uncertain."""
        since = self._since.get(key)
        if since is None:
            return
        # Sleep here: returning `Again` would count as success and reset the backoff.
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
