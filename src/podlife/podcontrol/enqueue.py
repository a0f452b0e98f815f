"""Event handler that enqueues the owner of a pod:

    informer.add_handler(EnqueueOwner(queue, REPLICA_SETS))

Keys are namespace and name of the owner. A pod that changes owners enqueues both. With the cache of the owners and
the controller's expectations, it also lowers the expectations before the owner is enqueued:

    informer.add_handler(EnqueueOwner(queue, REPLICA_SETS, replica_sets.cache, expectations))
"""

from __future__ import annotations

from podlife.api.views import controller_of
from podlife.client import Ref
from podlife.informer import CacheReader
from podlife.informer.cache import HasMetadata
from podlife.informer.indexes import Key
from podlife.podcontrol.controller_ref_manager import Ownable
from podlife.podcontrol.expectations import UidTrackedExpectations
from podlife.workqueue import Queue


class EnqueueOwner:
    """An informer handler. Ignores owners of another kind or group than `ref` and, with `owners`, pods whose owner is
    gone or was replaced by another of the same name."""

    def __init__(
        self,
        queue: Queue[Key],
        ref: Ref,
        owners: CacheReader[HasMetadata] | None = None,
        expectations: UidTrackedExpectations | None = None,
    ) -> None:
        """Raises ValueError for expectations without owners: pods of a deleted owner would count for its successor."""
        if expectations is not None and owners is None:
            raise ValueError("expectations require `owners`, the cache of the owners")
        self._queue = queue
        self._ref = ref
        self._owners = owners
        self._expectations = expectations

    def on_add(self, obj: Ownable) -> None:
        if obj.metadata.deletion_timestamp is not None:
            # A pod may first be observed while it is being deleted.
            self.on_delete(obj)
            return
        key = self._key(obj)
        if key is not None and self._expectations is not None:
            self._expectations.observe_creation(key)
        self._enqueue(key)

    def on_update(self, old: Ownable, new: Ownable) -> None:
        if old.metadata.uid != new.metadata.uid:
            # Recreated under the same name, without a delete event in between.
            self.on_delete(old)
            self.on_add(new)
            return
        if new.metadata.deletion_timestamp is not None:
            self.on_delete(new)
        self._enqueue(self._key(old))
        self._enqueue(self._key(new))

    def on_delete(self, obj: Ownable) -> None:
        key = self._key(obj)
        if key is not None and self._expectations is not None:
            self._expectations.observe_deletion(key, obj.metadata.uid)
        self._enqueue(key)

    def _enqueue(self, key: Key | None) -> None:
        if key is not None:
            self._queue.add(key)

    def _key(self, pod: Ownable) -> Key | None:
        """The key of the owner, if it is handled here."""
        reference = controller_of(pod.metadata)
        if reference is None or reference.kind != self._ref.kind:
            return None
        group, _, _ = reference.api_version.rpartition("/")
        if group != self._ref.group:
            return None
        key = (pod.metadata.namespace if self._ref.namespaced else "", reference.name)
        if self._owners is not None:
            owner = self._owners.get(*key)
            if owner is None or owner.metadata.uid != reference.uid:
                return None
        return key
