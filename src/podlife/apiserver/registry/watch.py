"""GET with watch: the current objects (if requested), then every change, in order, each once.

A watcher is a cursor in the store's history. Watchers that want the same objects in the same format share the bytes:
a batch of events is encoded once for all of them. A watcher that falls out of history gets an ERROR event with 410
and can start again from a list.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Sequence

from podlife.api import status
from podlife.api.codec import decode_object
from podlife.apiserver.catalog import ResourceCatalog
from podlife.apiserver.registry import response
from podlife.apiserver.registry.conversion import batch_in_version, records_in_version
from podlife.apiserver.registry.get import expired, reach
from podlife.apiserver.registry.list_options import ListOptions
from podlife.apiserver.registry.object_codec import encode_stored
from podlife.apiserver.registry.request_scope import RequestScope
from podlife.apiserver.registry.response import WatchEncoder
from podlife.apiserver.registry.selection_predicate import SelectionPredicate, select
from podlife.apiserver.resource import ConversionError, Resource
from podlife.apiserver.storage import Batch, CompactedError, Event, EventType, StoreError, Subscription
from podlife.wire import Response

_BOOKMARK_SECONDS = 60.0
# Default timeout of a watch: half an hour to an hour, so that clients spread over time.
_DEFAULT_SECONDS = 1800.0
_INITIAL_EVENTS_END = "k8s.io/initial-events-end"
# Number of bytes of initial events per write.
_CHUNK_BYTES = 1 << 18


async def watch(scope: RequestScope) -> Response:
    options = ListOptions.from_query(scope.request.query, watch=True)
    selection = await SelectionPredicate.asked_for(scope)
    encoding = response.watch_encoding(scope)
    if options.send_initial_events:
        await reach(scope.registry, options.revision)
    stream = _stream(scope, options, selection, encoding)
    return Response(body=stream, headers=response.headers(scope))


async def _stream(
    scope: RequestScope, options: ListOptions, selection: SelectionPredicate, encoding: WatchEncoder
) -> AsyncIterator[bytes]:
    store = scope.registry.store
    revision = options.revision or 0
    # Without a revision, and with "0" ("any"), a watch begins with the current objects unless disabled.
    has_initial = options.send_initial_events or (options.send_initial_events is None and revision == 0)
    since = store.revision if has_initial or revision == 0 else min(revision, store.revision)
    try:
        subscription = store.subscribe(scope.resource.storage_key, since=since)
    except CompactedError as error:
        yield encoding.error(status.failure(expired(error)))
        return
    catalog = scope.registry.catalog

    def end_if_outdated() -> None:
        if not is_current(catalog, scope.resource):
            subscription.end()

    if scope.resource.custom is not None:
        catalog.listeners[end_if_outdated] = None
        end_if_outdated()
    try:
        # Nothing has happened since the subscription began: it continues from the current state.
        records = await select(scope, selection) if has_initial else []
        if selection.is_everything:
            records = await records_in_version(scope.resource, records)
        chunk: list[bytes] = []
        size = 0
        for record in records:
            chunk.append(encoding.frame(EventType.ADDED, record.value))
            size += len(chunk[-1])
            if size > _CHUNK_BYTES:
                yield b"".join(chunk)
                chunk, size = [], 0
                # Yield to other requests even if the reader is as fast as the writer.
                await asyncio.sleep(0)
        if options.send_initial_events and options.bookmarks:
            chunk.append(encoding.bookmark(since, {_INITIAL_EVENTS_END: "true"}))
        if chunk:
            yield b"".join(chunk)
        async for data in _follow(subscription, options, selection, encoding, max(since, revision)):
            yield data
    except ConversionError as error:
        yield encoding.error(status.failure(error))
    finally:
        catalog.listeners.pop(end_if_outdated, None)
        subscription.close()


def is_current(catalog: ResourceCatalog, resource: Resource) -> bool:
    """Whether the resource is still served, and by the same spec. Built-in ones always are."""
    if resource.custom is None:
        return True
    found = catalog.find(resource.group, resource.version, resource.plural)
    return found is not None and found.custom is not None and found.custom.digest == resource.custom.digest


async def _follow(
    subscription: Subscription,
    options: ListOptions,
    selection: SelectionPredicate,
    encoding: WatchEncoder,
    since: int,
) -> AsyncIterator[bytes]:
    loop = asyncio.get_running_loop()
    lifetime = options.timeout_seconds or _DEFAULT_SECONDS * (1 + random.random())  # noqa: S311 - no secret
    end = loop.time() + lifetime
    bookmark_at = loop.time() + _BOOKMARK_SECONDS if options.bookmarks else end
    while True:
        try:
            async with asyncio.timeout_at(min(end, bookmark_at)):
                batch = await subscription.next()
        except TimeoutError:
            if loop.time() >= end:
                return
            # Sent even without changes: it shows the client that the connection is alive.
            bookmark_at = loop.time() + _BOOKMARK_SECONDS
            yield encoding.bookmark(max(since, subscription.revision))
            continue
        except CompactedError as error:
            yield encoding.error(status.failure(expired(error)))
            return
        except StoreError:
            return  # the server is shutting down, or the resource was removed: end the stream
        has_previous = not selection.is_everything
        batch = await batch_in_version(selection.resource, batch, has_previous=has_previous)
        if data := _frames(batch, selection, encoding, since):
            yield data


def _frames(batch: Batch, selection: SelectionPredicate, encoding: WatchEncoder, since: int) -> bytes:
    """The batch on the wire, encoded by the first of its watchers."""
    if batch.events[0].revision <= since:
        # A watch from a future revision: skip earlier events.
        return b"".join(
            _frame(event, selection, encoding) for event in batch.events if event.revision > since
        )
    shared = (encoding.key, selection)
    data = batch.frames.get(shared)
    if data is None:
        events = _events_for(batch, selection)
        data = batch.frames[shared] = b"".join(_frame(event, selection, encoding) for event in events)
    return data


def _events_for(batch: Batch, selection: SelectionPredicate) -> Sequence[Event]:
    """Events of the batch that may match the selection. If a thousand nodes each watch their own pods, the batch is
    sorted by node once for all of them."""
    wanted = selection.exact_field
    if wanted is None:
        return batch.events
    path, value = wanted
    groups = batch.groups.get((selection.resource.key, path))
    if groups is None:
        groups = batch.groups[selection.resource.key, path] = {}
        for event in batch.events:
            records = (event.record,) if event.previous is None else (event.record, event.previous)
            for found in {selection.field_of(record, path) for record in records}:
                groups.setdefault(found, []).append(event)
    return groups.get(value, ())


def _frame(event: Event, selection: SelectionPredicate, encoding: WatchEncoder) -> bytes:
    if selection.is_everything and not selection.namespace:
        data = event.frames.get(encoding.key)
        if data is None:
            data = event.frames[encoding.key] = encoding.frame(event.type, event.record.value)
        return data
    is_in = event.type is not EventType.DELETED and selection.matches(event.record)
    was_in = event.previous is not None and selection.matches(event.previous)
    if is_in:
        return encoding.frame(EventType.MODIFIED if was_in else EventType.ADDED, event.record.value)
    if not was_in or event.previous is None:
        return b""
    if event.type is EventType.DELETED:
        return encoding.frame(EventType.DELETED, event.record.value)
    # It left the selection: its watchers see a deletion with the last matching state.
    left = decode_object(event.previous.value)
    left["metadata"]["resourceVersion"] = str(event.revision)
    return encoding.frame(EventType.DELETED, encode_stored(left))
