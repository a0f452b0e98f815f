"""Lists a resource and watches it from there, as client-go's ListWatch.

If the server supports streaming lists (`sendInitialEvents`), the initial list arrives as events on the watch
connection and is never held in memory as a whole. Otherwise, or if the caller prefers it, pages are read first. The
caller sees the same in both cases: an ADDED event per object, a synced Bookmark, then changes.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from podlife.client.rest_client import RestClient
from podlife.client.transport import SilenceError
from podlife.client.views import BadAnswerError, Page, T
from podlife.client.watch import Bookmark, EventType, WatchEvent, WatchTarget, connect, watch
from podlife.errors import ApiError, ExpiredError, UnreachableError

ListWatch = AsyncGenerator[WatchEvent[T] | Bookmark, None]

# Responses of servers without streaming lists: rejected by validation, or not understood; and the first event of a
# kube-apiserver whose etcd is too old for them.
_NOT_OFFERED = frozenset((400, 405, 406, 415, 422))
_NOT_OFFERED_BY_STORAGE = "the required storage feature"


class _NotOfferedError(UnreachableError):
    """The server has no streaming lists for this resource; no event was returned yet."""


async def list_watch(
    calls: RestClient,
    target: WatchTarget[T],
    read_pages: Callable[[], AsyncGenerator[Page[T], None]],
    without_streaming: set[str],
) -> ListWatch[T]:
    """See the module. `without_streaming` remembers the resources for which the server has no streaming lists.

    A failure before the synced Bookmark is raised: discard the events so far and start over. It is an ExpiredError if
    the pages of the list have become too old to continue.
    """
    resource_version = ""
    if target.options.streams_list and target.resource not in without_streaming:
        try:
            async with aclosing(_streamed(calls, target)) as events:
                async for event in events:
                    yield event
                    resource_version = event.resource_version or resource_version
        except _NotOfferedError:
            without_streaming.add(target.resource)
        except (ApiError, UnreachableError) as error:
            if not resource_version and isinstance(error, SilenceError):
                # With a server that ignores the parameter, every list would wait until the deadline.
                without_streaming.add(target.resource)
            if not resource_version or isinstance(error, ExpiredError):
                raise
            if target.options.report is not None:
                target.options.report(error)
    if not resource_version:
        # Yielded page by page: the list is never held as a whole.
        async with aclosing(read_pages()) as pages:
            async for page in pages:
                for item in page.items:
                    yield WatchEvent(EventType.ADDED, item, "")
                resource_version = page.resource_version
        yield Bookmark(resource_version, is_synced=True)
    async with aclosing(watch(calls, target, resource_version)) as events:
        async for event in events:
            yield event


async def _streamed(calls: RestClient, target: WatchTarget[T]) -> ListWatch[T]:
    """One connection that begins with the list. Events have revisions from the synced Bookmark on."""
    parameters = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
    is_synced = False
    is_begun = False
    try:
        async with aclosing(connect(calls, target, parameters)) as events:
            async for event in events:
                is_begun = True
                if isinstance(event, BadAnswerError):
                    if target.options.report is None:
                        raise event
                    target.options.report(event)
                elif isinstance(event, Bookmark):
                    is_synced = is_synced or event.is_synced
                    if is_synced:
                        yield event
                elif is_synced:
                    yield event
                else:
                    yield WatchEvent(event.type, event.object, "")
    except ApiError as error:
        if is_begun or not (error.code in _NOT_OFFERED or _NOT_OFFERED_BY_STORAGE in error.message):
            raise
        raise _NotOfferedError(str(error)) from None
    if not is_synced:
        raise UnreachableError("the server ended the list before it was complete")
