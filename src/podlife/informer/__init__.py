"""List and watch into an indexed cache; says when it has synced, and when it is no longer live.

    informer = Informer(client, PODS, view=Pod, indexers={"node": lambda pod: [pod.spec.node_name]})
    informer.add_handler(handler)
    async with asyncio.TaskGroup() as group:
        group.create_task(informer.run())
        await informer.wait_for_sync(seconds=30)
        pods = informer.cache.by_index("node", "node-1")

What an informer guarantees:

* Its cache is a state that the server was in, in full once `has_synced`, and moves only forward from there.
* Every handler sees every object come, change and go, in order, and agrees with the cache when it is called. A
  handler that comes late is given what there is first. Of changes in quick succession a gap may swallow some; an
  object's end it never does: deletions missed during a gap are delivered, with the last known state.
* Another object under the same name is a deletion and then an addition, never an update.
* What has not changed gives no call, however often it is listed; only a resync repeats it.
* `is_live` tells whether the cache follows the server at this moment, whatever `has_synced` says of the past.
* It ends when it is cancelled, when a handler fails, or when the server refuses it for good. Nothing else ends it.

What is kept of an object is for its view to say; what to do about it, for the handlers and whoever they wake.
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
