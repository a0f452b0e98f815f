"""Lists and watches a resource into an indexed cache that reports whether it has synced and whether it is live.

    informer = Informer(client, PODS, view=Pod, indexers={"node": lambda pod: [pod.spec.node_name]})
    informer.add_handler(handler)
    async with asyncio.TaskGroup() as group:
        group.create_task(informer.run())
        await informer.wait_for_sync(seconds=30)
        pods = informer.cache.by_index("node", "node-1")

Guarantees:

* The cache is a state that the server was in, complete once `has_synced`, and only moves forward.
* Every handler is notified of every addition, update and deletion in order, and the cache agrees with it at that time.
  A handler added later first receives the existing objects. A gap may merge updates but never loses a deletion: it is
  delivered with the last known state.
* Another object of the same name is a deletion and an addition, never an update.
* Unchanged objects cause no notification, however often they are listed, except at a resync.
* `is_live` says whether the cache currently follows the server, independently of `has_synced`.
* It ends when it is cancelled, when a handler fails, or when the server refuses it permanently.
"""

from podlife.informer.cache import Added, Cache, CacheReader, Deleted, HasMetadata, Updated
from podlife.informer.indexes import Key
from podlife.informer.informer import Handler, Informer, Stats

__all__ = [
    "Added",
    "Cache",
    "CacheReader",
    "Deleted",
    "Handler",
    "HasMetadata",
    "Informer",
    "Key",
    "Stats",
    "Updated",
]
