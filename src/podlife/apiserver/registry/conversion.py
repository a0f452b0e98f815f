"""Custom resources between the version of a request and the one they are stored in, where only a webhook can convert.

Such objects are stored with their `apiVersion`, which says in which version they are; all others without. The verbs
convert what they read (`in_version`) before they look at it, and what they write (`to_storage`) before they commit it,
without a lock. For other resources both return what they are given.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TypeVar

from podlife.api.codec import Object, decode_object, encode
from podlife.api.fieldpath import TypedValueError
from podlife.apiserver.registry.object_codec import encode_stored, with_type
from podlife.apiserver.registry.worker_threads import offload
from podlife.apiserver.resource import ConversionError, Converter, Resource
from podlife.apiserver.storage import Batch, Event, Record
from podlife.errors import ApiError, PodlifeError

T = TypeVar("T")

# Of one review. A longer list takes several, and upstream's limit for a request holds for all of them.
_MOST_OBJECTS = 500
_MOST_BYTES = 3 * 1024 * 1024
_LIST_SECONDS = 60.0
# Of one request, for managers that used other versions: a few for each version.
_MOST_CONVERSIONS = 100


def converter_of(resource: Resource) -> Converter | None:
    """The webhook that converts the objects of a resource; nearly always None."""
    return None if resource.custom is None else resource.custom.converter


async def in_version(resource: Resource, values: Sequence[bytes]) -> Sequence[bytes]:
    """Stored values as the version of the resource shows them; raises ConversionError."""
    converter = converter_of(resource)
    if converter is None or not values:
        return values
    shown: list[bytes] = []
    try:
        async with asyncio.timeout(_LIST_SECONDS):
            for part in _parts(values):
                shown += await _part_in_version(resource, converter, part)
    except TimeoutError:
        raise ConversionError(f"conversion of {resource.key} failed: context deadline exceeded") from None
    return shown


async def _part_in_version(resource: Resource, converter: Converter, values: list[bytes]) -> list[bytes]:
    is_costly = resource.strategy.is_costly
    stored = await offload(lambda: list(map(converter.read, values)), *values, is_costly=is_costly)
    shown = await converter.convert(stored, resource.api_version)
    return await offload(lambda: [encode_stored(_untyped(obj)) for obj in shown], *values)


def _parts(values: Sequence[bytes]) -> Iterator[list[bytes]]:
    part: list[bytes] = []
    size = 0
    for value in values:
        if part and (len(part) == _MOST_OBJECTS or size + len(value) > _MOST_BYTES):
            yield part
            part, size = [], 0
        part.append(value)
        size += len(value)
    yield part


async def record_in_version(resource: Resource, record: Record) -> Record:
    [found] = await records_in_version(resource, [record])
    return found


async def records_in_version(resource: Resource, records: Sequence[Record]) -> Sequence[Record]:
    if converter_of(resource) is None:
        return records
    values = await in_version(resource, [record.value for record in records])
    return [Record(one.key, one.revision, value) for one, value in zip(records, values, strict=True)]


async def to_storage(resource: Resource, obj: Object) -> Object:
    """An object of the resource's version as it is stored; raises ConversionError."""
    converter = converter_of(resource)
    if converter is None or resource.custom is None:
        return obj
    target = f"{resource.group}/{resource.custom.storage_version}"
    [found] = await converter.convert([with_type(resource, obj)], target)
    return {key: value for key, value in found.items() if key != "kind"}


async def batch_in_version(resource: Resource, batch: Batch, *, has_previous: bool) -> Batch:
    """Events with their objects in the version of the resource, and if asked for with those from before. Watchers
    share a conversion that is under way, and its result; they do not share a failure that is over."""
    if converter_of(resource) is None:
        return batch
    key = (resource, has_previous)
    while (found := batch.views.get(key)) is not None:
        try:
            return await asyncio.shield(found)
        except asyncio.CancelledError:
            if not found.cancelled():
                raise  # this watcher has ended; if the other one has, this one goes on with its work
    future: asyncio.Future[Batch] = asyncio.get_running_loop().create_future()
    batch.views[key] = future
    try:
        future.set_result(await _converted(resource, batch, has_previous=has_previous))
    except ApiError as error:
        future.set_exception(error)
        # There may be no other watcher.
        future.exception()
        del batch.views[key]
    except BaseException:
        future.cancel()
        del batch.views[key]
        raise
    return future.result()


async def _converted(resource: Resource, batch: Batch, *, has_previous: bool) -> Batch:
    records = [event.record for event in batch.events]
    if has_previous:
        records += [event.previous for event in batch.events if event.previous is not None]
    shown = await records_in_version(resource, records)
    before = iter(shown[len(batch.events) :])
    return Batch(
        [
            Event(event.type, record, next(before) if has_previous and event.previous else event.previous)
            for event, record in zip(batch.events, shown, strict=False)
        ]
    )


def _untyped(obj: Object) -> Object:
    return {key: value for key, value in obj.items() if key not in ("kind", "apiVersion")}


class _NeededError(PodlifeError):
    """A conversion that has not been made yet."""

    def __init__(self, key: tuple[bytes, str, str]) -> None:
        super().__init__("not converted yet")
        self.key = key


class Conversions:
    """The conversions that one request needs in the middle of a computation: of managers that used other versions.

    A computation is pure and knows only conversions that have been made. If it needs another it ends, the conversion
    is made, and the computation starts again (`settle`). So it never waits for a webhook, in whichever thread it is.
    """

    def __init__(self, resource: Resource, converter: Converter) -> None:
        self._resource = resource
        self._converter = converter
        self._made: dict[tuple[bytes, str, str], bytes | ConversionError] = {}

    def convert(self, obj: Object, api_version: str, target: str) -> Object:
        """An object without kind and apiVersion in another version, by way of the request's, as upstream. Raises
        TypedValueError if the webhook failed."""
        if api_version == target:
            return obj
        hub = self._resource.api_version
        if hub not in (api_version, target):
            obj, api_version = self._found(obj, api_version, hub), hub
        return self._found(obj, api_version, target)

    def _found(self, obj: Object, api_version: str, target: str) -> Object:
        key = (encode(obj), api_version, target)
        made = self._made.get(key)
        if made is None:
            raise _NeededError(key)
        if isinstance(made, ConversionError):
            raise TypedValueError(str(made))
        return decode_object(made)

    async def _make(self, key: tuple[bytes, str, str]) -> None:
        value, api_version, target = key
        whole = {"kind": self._resource.kind, "apiVersion": api_version, **decode_object(value)}
        try:
            [found] = await self._converter.convert([whole], target, prunes=False)
            self._made[key] = encode(_untyped(found))
        except ConversionError as error:
            self._made[key] = error


async def settle(conversions: Conversions | None, compute: Callable[[], Awaitable[T]]) -> T:
    """The result of a computation that can be repeated, after all conversions that it needs."""
    if conversions is None:
        return await compute()
    for _ in range(_MOST_CONVERSIONS):
        try:
            return await compute()
        except _NeededError as error:
            await conversions._make(error.key)
    raise ConversionError(f"more than {_MOST_CONVERSIONS} conversions are needed")
