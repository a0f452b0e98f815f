"""Watches a cluster into `Lives`: pods, nodes, their leases, events, Jobs, and ReplicaSets by metadata.

What may not be read is listed in `missing` and tried again; the rest is shown without it. Where the user may not read
the pods of all namespaces, those of one namespace are watched.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from podlife.api.views import MetadataOnly
from podlife.client import (
    EVENTS,
    JOBS,
    LEASES,
    NODES,
    PODS,
    REPLICA_SETS,
    BadAnswerError,
    Client,
    ListOptions,
    Ref,
)
from podlife.clock import Clock
from podlife.controller import LivenessCheck
from podlife.errors import ApiError, ConfigError, ForbiddenError, PodlifeError, UnreachableError
from podlife.informer import Informer
from podlife.ui.lives import Lives
from podlife.ui.views import SeenEvent, SeenJob, SeenLease, SeenNode, SeenPod

log = logging.getLogger(__name__)

_LEASE_NAMESPACE = "kube-node-lease"
_RETRY_SECONDS = 30.0
_SYNC_SECONDS = 60.0
# A server that says nothing is probed, with a deadline of 10 s: before nodes that it hides count as silent.
_PROBE_SECONDS = 10.0
_Take = Callable[[Any, datetime], None]


@dataclass(frozen=True, slots=True)
class _Source:
    """What is watched, and the handler of its informer."""

    clock: Clock
    ref: Ref
    view: type[Any]
    put: _Take
    drop: _Take
    namespace: str = ""

    def on_add(self, obj: Any) -> None:
        self.put(obj, self.clock.now())

    def on_update(self, old: Any, new: Any) -> None:
        self.put(new, self.clock.now())

    def on_delete(self, obj: Any) -> None:
        self.drop(obj, self.clock.now())


def _keep(obj: Any, now: datetime) -> None:
    """Nothing ends with this object."""


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
        # A server that hangs with its connections open is noticed long before the read deadline of a watch.
        self._liveness = LivenessCheck(client, silent_seconds=_PROBE_SECONDS)

    @property
    def missing(self) -> list[str]:
        return [f"{what} ({why})" for what, why in sorted(self._missing.items())]

    @property
    def has_synced(self) -> bool:
        """Whether everything that can be read has been."""
        return {str(each.ref) for each in self._sources()} <= self._informers.keys() | self._missing.keys()

    @property
    def is_live(self) -> bool:
        is_followed = bool(self._informers) and all(each.is_live for each in self._informers.values())
        return is_followed and not self._liveness.complaint

    @property
    def hears_leases(self) -> bool:
        """Whether a lease that is renewed would be seen."""
        leases = self._informers.get(str(LEASES))
        return leases is not None and leases.is_live and not self._liveness.complaint

    async def run(self) -> None:
        await self._choose_namespace()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._liveness.run(), name="liveness")
            for source in self._sources():
                group.create_task(self._follow(source), name=f"observe {source.ref}")

    async def _choose_namespace(self) -> None:
        if self.namespace:
            return
        try:
            await self._client.list(PODS, options=ListOptions(limit=1, metadata_only=True))
        except ForbiddenError:
            self._missing["pods of other namespaces"] = "403 Forbidden"
            self.namespace = self._fallback
        except (ApiError, UnreachableError) as error:
            log.debug("cannot list pods: %s", error)

    def _sources(self) -> list[_Source]:
        lives, clock, here = self._lives, self._clock, self.namespace
        return [
            _Source(clock, PODS, SeenPod, lives.put_pod, lives.drop_pod, here),
            _Source(clock, NODES, SeenNode, lives.put_node, lives.drop_node),
            _Source(clock, LEASES, SeenLease, lives.put_lease, _keep, _LEASE_NAMESPACE),
            _Source(clock, EVENTS, SeenEvent, lives.put_event, _keep, here),
            _Source(clock, JOBS, SeenJob, lives.put_job, lives.drop_job, here),
            _Source(clock, REPLICA_SETS, MetadataOnly, lives.put_replica_set, lives.drop_replica_set, here),
        ]

    async def _follow(self, source: _Source) -> None:
        while True:
            informer: Informer[Any] = Informer(
                self._client,
                source.ref,
                view=source.view,
                namespace=source.namespace,
                metadata_only=source.view is MetadataOnly,
                skips_handler_failures=True,
            )
            informer.add_handler(source)
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(self._note_sync(source, informer), name=f"sync {source.ref}")
                    await informer.run()
            except* (ApiError, UnreachableError, BadAnswerError, ConfigError) as failures:
                self._note_missing(source.ref, failures.exceptions[0])
            await asyncio.sleep(_RETRY_SECONDS)

    async def _note_sync(self, source: _Source, informer: Informer[Any]) -> None:
        name = str(source.ref)
        while not await informer.wait_for_sync(seconds=_SYNC_SECONDS):
            if informer.trouble is not None:
                self._missing[name] = _why(informer.trouble)
        self._informers[name] = informer
        self._missing.pop(name, None)
        self._lives.can_see_nodes |= source.ref is NODES
        if source.ref in (PODS, NODES):
            known = {each.metadata.uid for each in informer.cache.list()}
            self._lives.drop_others(source.view, known, self._clock.now())

    def _note_missing(self, ref: Ref, error: Exception) -> None:
        log.info("%s cannot be read: %s", ref, error)
        self._informers.pop(str(ref), None)
        self._missing[str(ref)] = _why(error)
        self._lives.can_see_nodes &= ref is not NODES


def _why(error: Exception) -> str:
    if isinstance(error, ExceptionGroup):
        return _why(error.exceptions[0])
    assert isinstance(error, PodlifeError)
    return f"{error.code} {error.reason}" if isinstance(error, ApiError) else str(error)
