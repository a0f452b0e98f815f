"""Reads owners of any kind, with a short cache.

An owner is identified by its owner reference (apiVersion, kind, name) and verified by UID; discovery maps its kind to a
resource. Many pods of one owner cost one request. An answer is at most a few seconds old, and newer than a given time
if the caller needs that. A read error is reported as such and never taken for a missing owner.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from podlife.api.codec import Object
from podlife.api.views import OwnerReference
from podlife.client import Client, Ref, WithdrawnError
from podlife.client.discovery import kinds_of
from podlife.errors import ApiError, NotFoundError, PodlifeError
from podlife.lru import LruCache
from podlife.podgc.owner_wait.status import Outlook, outlook_of

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")

_OWNER_SECONDS, _MOST_OWNERS = 5.0, 512
_KINDS_SECONDS, _MOST_VERSIONS = 60.0, 64
# After this time the pod stays, and is tried again.
_READ_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class OwnerAnswer:
    """`is_gone` even if another object has the owner's name now. With `trouble` the owner could not be read."""

    outlook: Outlook = field(default_factory=Outlook)
    is_gone: bool = False
    trouble: str = ""


class OwnerReader:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._owners = _Memory[tuple[str, ...], tuple[str, OwnerAnswer]](_OWNER_SECONDS, _MOST_OWNERS)
        self._kinds = _Memory[str, dict[str, Ref]](_KINDS_SECONDS, _MOST_VERSIONS)

    async def ask(self, owner: OwnerReference, namespace: str, *, after: float = -math.inf) -> OwnerAnswer:
        """The owner's state, read after that time (in the event loop's seconds). Raises only WithdrawnError."""
        key = (owner.api_version, owner.kind, namespace, owner.name)

        async def read() -> tuple[str, OwnerAnswer]:
            return await self._read(owner, namespace)

        uid, answer = await self._owners.get(key, read, after)
        return answer if answer.trouble or uid == owner.uid else OwnerAnswer(is_gone=True)

    async def _read(self, owner: OwnerReference, namespace: str) -> tuple[str, OwnerAnswer]:
        """The UID of the object with the owner's name, and its state."""
        try:
            async with asyncio.timeout(_READ_SECONDS):
                ref = await self._ref_of(owner)
                if ref is None:
                    return "", OwnerAnswer(
                        trouble=f"the server does not have kind {owner.kind} in {owner.api_version}"
                    )
                found: Object = await self._client.get(ref, owner.name, namespace if ref.namespaced else "")
        except WithdrawnError:
            raise
        except TimeoutError:
            return "", OwnerAnswer(trouble=f"cannot be read (no answer within {_READ_SECONDS:g} s)")
        except NotFoundError as error:
            if error.is_about(owner.name):
                return "", OwnerAnswer(is_gone=True)
            return "", OwnerAnswer(trouble="cannot be read (404 for another object)")
        except ApiError as error:
            return "", OwnerAnswer(trouble=f"cannot be read ({error.code} {error.reason})")
        except (PodlifeError, ValueError) as error:
            return "", OwnerAnswer(trouble=f"cannot be read ({error})")
        # The object may lack its type; it is the one that was requested.
        named: Object = {**found, "apiVersion": owner.api_version, "kind": owner.kind}
        metadata = found.get("metadata")
        uid = metadata.get("uid") if isinstance(metadata, dict) else None
        return str(uid or ""), OwnerAnswer(outlook_of(named))

    async def _ref_of(self, owner: OwnerReference) -> Ref | None:
        version = owner.api_version

        async def read() -> dict[str, Ref]:
            return await kinds_of(self._client, version)

        return (await self._kinds.get(version, read)).get(owner.kind)


@dataclass(slots=True)
class _Entry(Generic[T]):
    value: T | None = None
    read_at: float = -math.inf
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class _Memory(Generic[K, T]):
    """A cache with a maximum age and size; concurrent callers share one read."""

    def __init__(self, seconds: float, most: int) -> None:
        self._seconds = seconds
        self._entries = LruCache[K, _Entry[T]](most)

    async def get(self, key: K, read: Callable[[], Awaitable[T]], after: float = -math.inf) -> T:
        loop = asyncio.get_running_loop()
        if (entry := self._entries.get(key)) is None:
            self._entries.put(key, entry := _Entry())
        async with entry.lock:
            value = entry.value
            is_old = entry.read_at < loop.time() - self._seconds or entry.read_at <= after
            if value is None or is_old:
                began = loop.time()
                value = await read()
                # The time of the request: later changes may not be in the answer.
                entry.value, entry.read_at = value, began
            return value
