"""An object's event enqueues the object itself, in one line:

    informer.add_handler(Enqueue(queue))

For the owner of an object see `podlife.podcontrol.EnqueueOwner`.
"""

from __future__ import annotations

from podlife.informer.cache import HasMetadata
from podlife.informer.indexes import Key
from podlife.workqueue import Queue

__all__ = ["Enqueue"]


class Enqueue:
    """A handler of an informer. Keys are namespace and name."""

    def __init__(self, queue: Queue[Key]) -> None:
        self._queue = queue

    def on_add(self, obj: HasMetadata) -> None:
        self._queue.add((obj.metadata.namespace, obj.metadata.name))

    def on_update(self, old: HasMetadata, new: HasMetadata) -> None:
        self._queue.add((new.metadata.namespace, new.metadata.name))

    def on_delete(self, obj: HasMetadata) -> None:
        self._queue.add((obj.metadata.namespace, obj.metadata.name))
