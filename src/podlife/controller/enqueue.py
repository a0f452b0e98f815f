"""Event handler that enqueues the object of the event:

    informer.add_handler(Enqueue(queue))

`forget` is called when an object is deleted, before its key is enqueued: state kept by key (expectations, own writes)
must not delay a new object of the same name.

For an object's owner use `podlife.podcontrol.EnqueueOwner`.
"""

from __future__ import annotations

from collections.abc import Callable

from podlife.informer.cache import HasMetadata
from podlife.informer.indexes import Key
from podlife.workqueue import Queue


class Enqueue:
    """A handler of an informer. Keys are namespace and name."""

    def __init__(self, queue: Queue[Key], forget: Callable[[Key], None] | None = None) -> None:
        self._queue = queue
        self._forget = forget

    def on_add(self, obj: HasMetadata) -> None:
        self._queue.add((obj.metadata.namespace, obj.metadata.name))

    def on_update(self, old: HasMetadata, new: HasMetadata) -> None:
        if old.metadata.uid != new.metadata.uid:
            # Deleted and recreated under its name, with no event in between.
            self.on_delete(old)
        self._queue.add((new.metadata.namespace, new.metadata.name))

    def on_delete(self, obj: HasMetadata) -> None:
        key = (obj.metadata.namespace, obj.metadata.name)
        if self._forget is not None:
            self._forget(key)
        self._queue.add(key)
