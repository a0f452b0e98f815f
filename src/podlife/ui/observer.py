"""Watches a cluster into `Lives`: pods, nodes, their leases, events, and ReplicaSets by metadata.

What may not be read is listed in `missing` and tried again; the rest is shown without it. Where the user may not read
the pods of all namespaces, those of one namespace are watched.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from podlife.api.views import MetadataOnly
from podlife.client import EVENTS, LEASES, NODES, PODS, REPLICA_SETS, BadAnswerError, Client, Ref
from podlife.clock import Clock
from podlife.errors import ApiError, ConfigError, ForbiddenError, PodlifeError, UnreachableError
from podlife.informer import Informer
from podlife.ui.lives import Lives
from podlife.ui.views import SeenEvent, SeenLease, SeenNode, SeenPod

log = logging.getLogger(__name__)

_LEASE_NAMESPACE = "kube-node-lease"
_RETRY_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class _Calls:
    """A handler from two functions: put and drop."""

    put: Callable[[Any], None]
    drop: Callable[[Any], None]

    def on_add(self, obj: Any) -> None:
        self.put(obj)

    def on_update(self, old: Any, new: Any) -> None:
        self.put(new)

    def on_delete(self, obj: Any) -> None:
        self.drop(obj)


@dataclass(frozen=True, slots=True)
class _Source:
    ref: Ref
    view: type[Any]
    calls: _Calls
    namespace: str = ""
    metadata_only: bool = False
    # The kind of lives that end with the objects.
    lives: str = ""


class Observer:
    """`namespace` limits what is watched to one; `fallback` is the one to use if all may not be read."""

    def __init__(
        self, client: Client, clock: Clock, lives: Lives, *, namespace: str = "", fallback: str = ""
    ) -> None:
        self._client = client
        self._clock = clock
        self._lives = lives
        self.namespace = namespace
        self._fallback = fallback
        self._informers: dict[str, Informer[Any]] = {}
        self._missing: dict[str, str] = {}

    @property
    def missing(self) -> list[str]:
        return [f"{what} ({why})" for what, why in sorted(self._missing.items())]

    @property
    def has_synced(self) -> bool:
        """Whether everything that can be read has been."""
        known = {name for name, each in self._informers.items() if each.has_synced}
        return len(known | self._missing.keys()) >= len(self._sources())

    @property
    def is_live(self) -> bool:
        return bool(self._informers) and all(each.is_live for each in self._informers.values())

    async def run(self) -> None:
        await self._choose_namespace()
        async with asyncio.TaskGroup() as group:
            for source in self._sources():
                group.create_task(self._follow(source), name=f"observe {source.ref}")

    async def _choose_namespace(self) -> None:
        if self.namespace:
            return
        try:
            from podlife.client import ListOptions

            await self._client.list(PODS, options=ListOptions(limit=1, metadata_only=True))
        except ForbiddenError:
            log.info("pods of all namespaces may not be read, watching namespace %s", self._fallback)
            self._missing["pods of other namespaces"] = "403 Forbidden"
            self.namespace = self._fallback
        except (ApiError, UnreachableError) as error:
            log.debug("cannot list pods: %s", error)

    def _sources(self) -> list[_Source]:
        lives, now, here = self._lives, self._clock.now, self.namespace
        return [
            _Source(
                PODS,
                SeenPod,
                _Calls(lambda pod: lives.put_pod(pod, now()), lambda pod: lives.drop_pod(pod, now())),
                here,
                lives="pod",
            ),
            _Source(
                NODES,
                SeenNode,
                _Calls(
                    lambda node: lives.put_node(node, now()),
                    lambda node: lives.drop_node(node.metadata.name, node.metadata.uid, now()),
                ),
                lives="node",
            ),
            _Source(
                LEASES,
                SeenLease,
                _Calls(
                    lambda lease: lives.put_lease(lease.metadata.name, lease.spec.renew_time, now()),
                    lambda lease: None,
                ),
                _LEASE_NAMESPACE,
            ),
            _Source(
                EVENTS,
                SeenEvent,
                _Calls(lambda event: lives.put_event(event.take()), lambda event: None),
                here,
            ),
            _Source(
                REPLICA_SETS,
                MetadataOnly,
                _Calls(
                    lambda found: lives.put_replica_set(
                        found.metadata.uid, msgspec.to_builtins(found.metadata.owner_references)
                    ),
                    lambda found: lives.drop_replica_set(found.metadata.uid),
                ),
                here,
                metadata_only=True,
            ),
        ]

    async def _follow(self, source: _Source) -> None:
        name = str(source.ref)
        while True:
            informer: Informer[Any] = Informer(
                self._client,
                source.ref,
                view=source.view,
                namespace=source.namespace,
                metadata_only=source.metadata_only,
                skips_handler_failures=True,
            )
            informer.add_handler(source.calls)
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(self._note_sync(name, source, informer), name=f"sync {name}")
                    await informer.run()
            except* (ApiError, UnreachableError, BadAnswerError, ConfigError) as group_:
                self._note_missing(name, _first(group_))
            await asyncio.sleep(_RETRY_SECONDS)

    async def _note_sync(self, name: str, source: _Source, informer: Informer[Any]) -> None:
        while not await informer.wait_for_sync(seconds=60.0):
            if informer.trouble is not None:
                self._missing[name] = _why(informer.trouble)
        self._informers[name] = informer
        self._missing.pop(name, None)
        if source.ref is NODES:
            self._lives.can_see_nodes = True
        if source.lives:
            known = [each.metadata.uid for each in informer.cache.list()]
            self._lives.drop_others(source.lives, known, self._clock.now())

    def _note_missing(self, name: str, error: PodlifeError) -> None:
        log.info("%s cannot be read: %s", name, error)
        self._informers.pop(name, None)
        self._missing[name] = _why(error)
        if name == str(NODES):
            self._lives.can_see_nodes = False


def _first(group: BaseExceptionGroup[Any]) -> PodlifeError:
    error = group.exceptions[0]
    if isinstance(error, BaseExceptionGroup):
        return _first(error)
    assert isinstance(error, PodlifeError)
    return error


def _why(error: PodlifeError) -> str:
    return f"{error.code} {error.reason}" if isinstance(error, ApiError) else str(error)
