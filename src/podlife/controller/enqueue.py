"""An object's event enqueues the object itself, in one line:

    informer.add_handler(Enqueue(queue))

Who keeps something by key (expectations, own writes) gives `forget`: it is called when an object is gone, before its
key is enqueued, so that another one made under its name does not have to wait for what was the first one's.

For the owner of an object see `podlife.podcontrol.EnqueueOwner`.
"""

from __future__ import annotations

from collections.abc import Callable

from podlife.informer.cache import HasMetadata
from podlife.informer.indexes import Key
from podlife.workqueue import Queue

__all__ = ["Enqueue"]


class Enqueue:
    """A handler of an informer. Keys are namespace and name."""

    def __init__(self, queue: Queue[Key], forget: Callable[[Key], None] | None = None) -> None:
        self._queue = queue
        self._forget = forget

    def on_add(self, obj: HasMetadata) -> None:
        self._queue.add((obj.metadata.namespace, obj.metadata.name))

    def on_update(self, old: HasMetadata, new: HasMetadata) -> None:
        if old.metadata.uid != new.metadata.uid:
            # One was deleted and another made under its name, with nothing seen in between.
            self.on_delete(old)
        self._queue.add((new.metadata.namespace, new.metadata.name))

    def on_delete(self, obj: HasMetadata) -> None:
        key = (obj.metadata.namespace, obj.metadata.name)
        if self._forget is not None:
            self._forget(key)
        self._queue.add(key)
