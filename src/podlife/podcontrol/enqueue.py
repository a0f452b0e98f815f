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
from podlife.podcontrol.expectations import UidTrackedExpectations
from podlife.podcontrol.views import OwnedPod
from podlife.workqueue import Queue


class EnqueueOwner:
    """A handler of an informer. Owners of another kind or group than `ref` are left to others; with `owners` so are
    the pods of an owner that is not there any more, also when another one has its name by now."""

    def __init__(
        self,
        queue: Queue[Key],
        ref: Ref,
        owners: CacheReader[HasMetadata] | None = None,
        expectations: UidTrackedExpectations | None = None,
    ) -> None:
        """Raises ValueError for expectations without owners: the pods of one would count for another of its name."""
        if expectations is not None and owners is None:
            raise ValueError(
                "expectations are met by the pods of one owner: say in which cache the owners are"
            )
        self._queue = queue
        self._ref = ref
        self._owners = owners
        self._expectations = expectations

    def on_add(self, obj: OwnedPod) -> None:
        if obj.metadata.deletion_timestamp is not None:
            # It may be seen for the first time when it is already on its way out.
            self.on_delete(obj)
            return
        key = self._key(obj)
        if key is not None and self._expectations is not None:
            self._expectations.observe_creation(key)
        self._enqueue(key)

    def on_update(self, old: OwnedPod, new: OwnedPod) -> None:
        if old.metadata.uid != new.metadata.uid:
            # Deleted and recreated under its name, with no event in between.
            self.on_delete(old)
            self.on_add(new)
            return
        if new.metadata.deletion_timestamp is not None:
            self.on_delete(new)
        self._enqueue(self._key(old))
        self._enqueue(self._key(new))

    def on_delete(self, obj: OwnedPod) -> None:
        key = self._key(obj)
        if key is not None and self._expectations is not None:
            self._expectations.observe_deletion(key, obj.metadata.uid)
        self._enqueue(key)

    def _enqueue(self, key: Key | None) -> None:
        if key is not None:
            self._queue.add(key)

    def _key(self, pod: OwnedPod) -> Key | None:
        """The owner's, if it is one of those that are meant here."""
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
