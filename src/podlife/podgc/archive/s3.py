"""An archive in a bucket: one object per entry, named as in a folder, below a prefix.

Objects are replaced atomically, so archiving a pod again overwrites its object. The lifecycle rule of the bucket
decides how long entries stay: nothing is removed here.
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass
from datetime import datetime

from podlife.api.codec import Object
from podlife.podgc.archive.archive import ArchiveError, EntryPath, place_of, place_of_file
from podlife.podgc.archive.entry import DamagedError, Entry, decode_entry, encode_entry, read_header
from podlife.podgc.archive.reader import ArchivedEntry, DamagedEntry
from podlife.podgc.archive.s3_client import MissingError, S3Client

# Enough for the header of any entry.
_HEADER_BYTES = 64 << 10
_AT_ONCE = 16
_MAX_PAGES = 10_000


class S3Archive:
    def __init__(self, client: S3Client, prefix: str) -> None:
        self._client = client
        self._prefix = prefix

    async def check(self) -> None:
        """Credentials may be missing; a bucket is never full."""
        await self._client.check()

    async def get(self, namespace: str, name: str, uid: str) -> Entry | None:
        try:
            data = await self._client.get(_key(self._prefix, str(place_of(namespace, name, uid))))
            return await asyncio.to_thread(decode_entry, data)
        except (MissingError, DamagedError):
            return None

    async def put(self, entry: Entry) -> None:
        header = entry.header
        place = place_of(header.namespace, header.name, header.uid)
        data = await asyncio.to_thread(encode_entry, entry)
        await self._client.put(_key(self._prefix, str(place)), data)

    async def close(self) -> None:
        await self._client.close()


@dataclass(frozen=True, slots=True)
class _Object:
    place: EntryPath
    bytes: int
    modified_at: datetime


class S3Reader:
    def __init__(self, client: S3Client, prefix: str) -> None:
        self._client = client
        self._prefix = prefix

    async def items(
        self, namespace: str = "", *, since: datetime | None = None, stem: str = "", uid: str = ""
    ) -> AsyncGenerator[ArchivedEntry | DamagedEntry, None]:
        objects = [
            each
            async for each in self._objects(namespace, stem)
            if each.place.is_of(stem, uid) and (since is None or each.modified_at >= since)
        ]
        for start in range(0, len(objects), _AT_ONCE):
            for item in await asyncio.gather(*map(self._item, objects[start : start + _AT_ONCE])):
                yield item

    async def read(self, place: EntryPath) -> Entry:
        return decode_entry(await self._client.get(_key(self._prefix, str(place))))

    async def close(self) -> None:
        await self._client.close()

    async def _item(self, each: _Object) -> ArchivedEntry | DamagedEntry:
        try:
            begin = await self._client.get(_key(self._prefix, str(each.place)), most_bytes=_HEADER_BYTES)
            return ArchivedEntry(each.place, each.bytes, each.modified_at, read_header(io.BytesIO(begin)))
        except (DamagedError, ArchiveError) as error:
            return DamagedEntry(each.place, str(error))

    async def _objects(self, namespace: str, stem: str) -> AsyncGenerator[_Object, None]:
        prefix, token = _key(self._prefix, f"{namespace}/{stem}" if namespace else ""), ""
        for _ in range(_MAX_PAGES):
            page = await self._client.list_page(prefix, token)
            for each in _objects_of(page, self._prefix):
                yield each
            token = page.get("NextContinuationToken", "")
            if not page["IsTruncated"] or not token:
                return


def _key(prefix: str, rest: str) -> str:
    return f"{prefix}/{rest}" if prefix else rest


def _objects_of(page: Object, prefix: str) -> Iterator[_Object]:
    for each in page.get("Contents", ()):
        key = each["Key"].removeprefix(f"{prefix}/" if prefix else "")
        place = place_of_file(*key.split("/")) if key.count("/") == 1 else None
        if place is not None:
            yield _Object(place, each["Size"], each["LastModified"])
