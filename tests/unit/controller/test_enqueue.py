"""An object's event enqueues the object, and what was kept of one that is gone is forgotten first."""

from __future__ import annotations

from podlife.api.views import Metadata, MetadataOnly
from podlife.controller import Enqueue
from podlife.informer.indexes import Key
from podlife.testing import virtual_time
from podlife.workqueue import Queue

KEY = ("default", "web")


def web(uid: str = "u-1") -> MetadataOnly:
    namespace, name = KEY
    return MetadataOnly(Metadata(namespace=namespace, name=name, uid=uid))


@virtual_time
async def test_every_event_enqueues_the_object() -> None:
    for tell in (
        lambda handler: handler.on_add(web()),
        lambda handler: handler.on_update(web(), web()),
        lambda handler: handler.on_delete(web()),
    ):
        queue: Queue[Key] = Queue()
        tell(Enqueue(queue))
        assert await queue.get() == KEY


@virtual_time
async def test_what_was_kept_is_forgotten_when_the_object_is_gone_and_not_before() -> None:
    forgotten: list[Key] = []
    handler = Enqueue(Queue[Key](), forgotten.append)
    handler.on_add(web())
    handler.on_update(web(), web())
    assert forgotten == []
    handler.on_delete(web())
    assert forgotten == [KEY]


@virtual_time
async def test_an_object_made_again_with_nothing_seen_in_between_is_another_one() -> None:
    forgotten: list[Key] = []
    queue: Queue[Key] = Queue()
    Enqueue(queue, forgotten.append).on_update(web("u-1"), web("u-2"))
    assert forgotten == [KEY]
    assert await queue.get() == KEY
