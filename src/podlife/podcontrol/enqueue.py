"""A pod's event enqueues its owner, in one line:

    informer.add_handler(EnqueueOwner(queue, REPLICA_SETS))

Keys are namespace and name of the owner. A pod that changes hands enqueues both owners.
"""

from __future__ import annotations

from podlife.api.views import controller_of
from podlife.client import Ref
from podlife.informer.indexes import Key
from podlife.podcontrol.views import Pod
from podlife.workqueue import Queue

__all__ = ["EnqueueOwner"]


class EnqueueOwner:
    """A handler of an informer. Owners of another kind or group than `ref` are left to others."""

    def __init__(self, queue: Queue[Key], ref: Ref) -> None:
        self._queue = queue
        self._ref = ref

    def on_add(self, obj: Pod) -> None:
        self._enqueue(obj)

    def on_update(self, old: Pod, new: Pod) -> None:
        self._enqueue(old)
        self._enqueue(new)

    def on_delete(self, obj: Pod) -> None:
        self._enqueue(obj)

    def _enqueue(self, pod: Pod) -> None:
        owner = controller_of(pod.metadata)
        if owner is None or owner.kind != self._ref.kind:
            return
        group, _, _ = owner.api_version.rpartition("/")
        if group == self._ref.group:
            self._queue.add((pod.metadata.namespace if self._ref.namespaced else "", owner.name))
