"""Reads owners of any kind, live, and remembers for a moment what they said.

An owner is asked for by what its pod says of it (apiVersion, kind, name) and known by its UID; which resource a kind is
the server's discovery tells. Many pods of one owner cost one read. An answer is never older than a few seconds, and who
needs one from after a moment of his own gets it. What cannot be read is told as such and never taken for "gone".
"""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from podlife.api.codec import Object
from podlife.api.views import OwnerReference
from podlife.client import Client, Ref, WithdrawnError
from podlife.client.discovery import kinds_of
from podlife.errors import ApiError, NotFoundError, PodlifeError
from podlife.podgc.owner_wait.status import Outlook, outlook_of

__all__ = ["Answer", "OwnerReader"]

T = TypeVar("T")

_OWNER_SECONDS, _MOST_OWNERS = 5.0, 512
_KINDS_SECONDS, _MOST_VERSIONS = 60.0, 64
# What takes longer keeps nobody waiting: the pod stays, and is asked about again.
_READ_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Answer:
    """`is_gone` also where another object has the owner's name by now. With `trouble` nothing is known of it."""

    outlook: Outlook = field(default_factory=Outlook)
    is_gone: bool = False
    trouble: str = ""


class OwnerReader:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._owners = _Memory[tuple[str, ...], tuple[str, Answer]](_OWNER_SECONDS, _MOST_OWNERS)
        self._kinds = _Memory[str, dict[str, Ref]](_KINDS_SECONDS, _MOST_VERSIONS)

    async def ask(self, owner: OwnerReference, namespace: str, *, after: float = -math.inf) -> Answer:
        """What the owner says, read after that moment (the loop's seconds). Raises WithdrawnError, and nothing else."""
        key = (owner.api_version, owner.kind, namespace, owner.name)

        async def read() -> tuple[str, Answer]:
            return await self._read(owner, namespace)

        uid, answer = await self._owners.get(key, read, after)
        return answer if answer.trouble or uid == owner.uid else Answer(is_gone=True)

    async def _read(self, owner: OwnerReference, namespace: str) -> tuple[str, Answer]:
        """With the UID of what has the owner's name."""
        try:
            async with asyncio.timeout(_READ_SECONDS):
                ref = await self._ref_of(owner)
                if ref is None:
                    return "", Answer(trouble=f"the server has no kind {owner.kind} in {owner.api_version}")
                found: Object = await self._client.get(ref, owner.name, namespace if ref.namespaced else "")
        except WithdrawnError:
            raise
        except TimeoutError:
            return "", Answer(trouble=f"it cannot be read (no answer within {_READ_SECONDS:g} s)")
        except NotFoundError as error:
            if error.is_about(owner.name):
                return "", Answer(is_gone=True)
            return "", Answer(trouble="it cannot be read (404, which does not name it)")
        except ApiError as error:
            return "", Answer(trouble=f"it cannot be read ({error.code} {error.reason})")
        except (PodlifeError, ValueError) as error:
            return "", Answer(trouble=f"it cannot be read ({error})")
        # A list's item may lack them, an object from an old server too: they are what was asked for.
        named: Object = {**found, "apiVersion": owner.api_version, "kind": owner.kind}
        metadata = found.get("metadata")
        uid = metadata.get("uid") if isinstance(metadata, dict) else None
        return str(uid or ""), Answer(outlook_of(named))

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


K = TypeVar("K", bound=tuple[str, ...] | str)


class _Memory(Generic[K, T]):
    """What was read, for so many seconds and so many keys; who asks while it is being read waits for that."""

    def __init__(self, seconds: float, most: int) -> None:
        self._seconds = seconds
        self._most = most
        self._entries: OrderedDict[K, _Entry[T]] = OrderedDict()

    async def get(self, key: K, read: Callable[[], Awaitable[T]], after: float = -math.inf) -> T:
        loop = asyncio.get_running_loop()
        entry = self._entries.setdefault(key, _Entry())
        self._entries.move_to_end(key)
        if len(self._entries) > self._most:
            self._entries.popitem(last=False)
        async with entry.lock:
            value = entry.value
            is_old = entry.read_at < loop.time() - self._seconds or entry.read_at <= after
            if value is None or is_old:
                began = loop.time()
                value = await read()
                # Of the moment at which it was asked for: what came about after that may not be in the answer.
                entry.value, entry.read_at = value, began
            return value
