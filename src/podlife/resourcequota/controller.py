"""The resource quota controller. Keys are those of quotas.

Guarantees:
- What is counted was listed after the quota was read, and is written only if the quota is still the one that was read.
  A server that charges a quota together with what it creates is therefore never counted short.
- Amounts of kinds that cannot be listed stay as they were.
- Only kinds that some quota limits are watched, most of them by their metadata alone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from podlife.api.codec import Object
from podlife.api.quota import Usage, evaluator_of, parse_usage, usage_of
from podlife.api.views import Metadata, MetadataOnly
from podlife.client import Ref
from podlife.client.discovery import discover
from podlife.client.options import ListOptions
from podlife.client.retry import backoff_seconds
from podlife.controller import Again, Controller, ControlPlane
from podlife.errors import ConflictError, NotFoundError, PodlifeError
from podlife.informer import Informer
from podlife.informer.indexes import Key
from podlife.resourcequota.views import Consumer
from podlife.workqueue import RateLimitedQueue

log = logging.getLogger(__name__)

RESOURCE_QUOTAS = Ref("", "v1", "resourcequotas", kind="ResourceQuota")
_BY_NAMESPACE = "namespace"
# Upstream's.
_RESYNC_SECONDS = 300.0
_DISCOVERY_SECONDS = 30.0
# How long the first list of a kind may take before a quota is written without it.
_PATIENCE_SECONDS = 30.0
# The quota has changed since it was read, or began to limit something.
_AGAIN_SECONDS = 0.5


class _Quota(msgspec.Struct, gc=False):
    metadata: Metadata
    spec: dict[str, Any] = {}
    status: dict[str, Any] = {}

    @property
    def hard(self) -> Mapping[str, str]:
        return self.spec.get("hard") or {}


def _namespace_of(quota: _Quota) -> Iterable[str]:
    return (quota.metadata.namespace,)


class _Replenish:
    """A handler of the informer of one kind: enqueues the quotas that limit it when an object uses less."""

    def __init__(self, controller: ResourceQuotaController, kind: str) -> None:
        self._controller = controller
        self._kind = kind

    def on_add(self, obj: Consumer | MetadataOnly) -> None:
        """Admission has charged it."""

    def on_update(self, old: Consumer | MetadataOnly, new: Consumer | MetadataOnly) -> None:
        before, after = old.metadata, new.metadata
        is_changed = isinstance(old, Consumer) and isinstance(new, Consumer) and old.uses != new.uses
        if is_changed or before.uid != after.uid:
            self.on_delete(new)
        elif before.deletion_timestamp is None and after.deletion_timestamp is not None:
            # A pod is charged until it should have ended.
            wait = after.deletion_timestamp - self._controller.clock.now()
            grace_seconds = (after.deletion_grace_period_seconds or 0) + 1
            seconds = max(0.0, wait.total_seconds()) + grace_seconds
            self._controller.replenish(self._kind, after.namespace, seconds=seconds)

    def on_delete(self, obj: Consumer | MetadataOnly) -> None:
        self._controller.replenish(self._kind, obj.metadata.namespace)


class ResourceQuotaController:
    """Upstream's resourcequota-controller."""

    name = "resourcequota-controller"

    def __init__(
        self,
        plane: ControlPlane,
        *,
        resync_seconds: float = _RESYNC_SECONDS,
        discovery_seconds: float = _DISCOVERY_SECONDS,
        workers: int = 5,
    ) -> None:
        self._client = plane.client
        self.clock = plane.clock
        self._resync_seconds = resync_seconds
        self._discovery_seconds = discovery_seconds
        # What the server has, by `deployments.apps`; None before the first discovery.
        self._kinds: Mapping[str, Ref] | None = None
        self._is_known = asyncio.Event()
        self._followed: dict[str, tuple[Informer[Any], asyncio.Task[None]]] = {}
        self._group: asyncio.TaskGroup | None = None
        self._quotas = plane.informer(RESOURCE_QUOTAS, view=_Quota, indexers={_BY_NAMESPACE: _namespace_of})
        self.queue: RateLimitedQueue[Key] = RateLimitedQueue("resourcequota_primary")
        self.controller = Controller(self.name, self.queue, self.reconcile, workers=workers)
        self._quotas.add_handler(self)

    @property
    def complaint(self) -> str:
        """Why it is not fully working; empty if it is."""
        return "API discovery has not completed" if self._kinds is None else ""

    async def run(self) -> None:
        """Run until cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            group.create_task(self._discover_forever(), name=f"{self.name} discovery")
            await self._is_known.wait()
            group.create_task(self._resync_forever(), name=f"{self.name} resync")
            group.create_task(self.controller.run(), name=self.controller.name)

    # The handler of the informer of quotas

    def on_add(self, quota: _Quota) -> None:
        self.queue.add((quota.metadata.namespace, quota.metadata.name))

    def on_update(self, old: _Quota, new: _Quota) -> None:
        # Not when admission charges it.
        if old.spec != new.spec or old.metadata.uid != new.metadata.uid:
            self.on_add(new)

    def on_delete(self, quota: _Quota) -> None:
        """What is not wanted any more is no longer watched after the next resync."""

    def replenish(self, kind: str, namespace: str, *, seconds: float = 0.0) -> None:
        """Count again what the quotas of this kind limit, now or later."""
        evaluator = evaluator_of(kind)
        for quota in self._quotas.cache.by_index(_BY_NAMESPACE, namespace):
            if evaluator is not None and evaluator.names(quota.hard):
                self.queue.add_after((namespace, quota.metadata.name), seconds)

    # What the server has

    async def _discover_forever(self) -> None:
        failures = 0
        while True:
            delay = self._discovery_seconds
            try:
                found = await discover(self._client)
            except PodlifeError as error:
                failures += 1
                delay = min(delay, backoff_seconds(failures))
                log.log(
                    logging.WARNING if failures == 1 else logging.DEBUG, "API discovery failed: %s", error
                )
            else:
                failures = 0
                self._adopt(found.followed, found.unknown)
            await asyncio.sleep(delay)

    def _adopt(self, refs: Iterable[Ref], unknown: frozenset[str]) -> None:
        kinds = {str(ref): ref for ref in refs if ref.namespaced and evaluator_of(str(ref)) is not None}
        before = self._kinds or {}
        kept = {kind: ref for kind, ref in before.items() if ref.api_version in unknown}
        self._kinds = kept | kinds
        if self._is_known.is_set() and self._kinds.keys() - before.keys():
            self._enqueue_all()
        self._is_known.set()

    async def _resync_forever(self) -> None:
        while True:
            await asyncio.sleep(self._resync_seconds)
            self._enqueue_all()
            wanted = {kind for quota in self._quotas.cache.list() for kind in self._kinds_of(quota)}
            for kind in self._followed.keys() - wanted:
                self._followed.pop(kind)[1].cancel()

    def _enqueue_all(self) -> None:
        for quota in self._quotas.cache.list():
            self.on_add(quota)

    def _kinds_of(self, quota: _Quota) -> list[str]:
        """The kinds that the quota limits, of those that the server has."""
        evaluators = ((kind, evaluator_of(kind)) for kind in self._kinds or {})
        return [kind for kind, each in evaluators if each is not None and each.names(quota.hard)]

    async def _is_followed(self, kind: str, ref: Ref) -> bool:
        """Whether deletions of this kind will be noticed from now on."""
        informer, task = self._followed.get(kind, (None, None))
        if informer is None or task is None or task.done():
            view = Consumer if not _is_counted(kind) else MetadataOnly
            informer = Informer(
                self._client,
                ref,
                view=view,
                metadata_only=view is MetadataOnly,
                skips_handler_failures=True,
            )
            informer.add_handler(_Replenish(self, kind))
            assert self._group is not None
            task = self._group.create_task(self._watch(informer, ref), name=f"{ref} of {self.name}")
            self._followed[kind] = informer, task
        return await informer.wait_for_sync(seconds=_PATIENCE_SECONDS)

    async def _watch(self, informer: Informer[Any], ref: Ref) -> None:
        try:
            await informer.run()
        except PodlifeError as error:
            log.warning("quotas of %s are not replenished, cannot watch: %s", ref, error)

    # One quota

    async def reconcile(self, key: Key) -> Again | None:
        quota = self._quotas.cache.get(*key)
        if quota is None:
            return None
        limits, status = parse_usage(quota.hard), quota.status
        before = parse_usage(status.get("used"))
        try:
            counted = await self._count(quota)
            used = {name: amount for name, amount in (before | counted).items() if name in limits}
            is_limited = _equal(limits, parse_usage(status.get("hard")))
            if is_limited and _equal(used, before):
                return None
            await self._write(quota, used)
        except (ConflictError, NotFoundError):
            # Charged, changed or deleted since it was read.
            return Again(_AGAIN_SECONDS)
        # Until now creates were not charged for what the quota had not limited before.
        return None if is_limited else Again(_AGAIN_SECONDS)

    async def _count(self, quota: _Quota) -> Usage:
        total: Usage = {}
        for kind in self._kinds_of(quota):
            evaluator, ref = evaluator_of(kind), (self._kinds or {})[kind]
            if evaluator is None or not await self._is_followed(kind, ref):
                continue
            namespace = quota.metadata.namespace
            if _is_counted(kind):
                options = ListOptions(metadata_only=True)
                listed = await self._client.list_all(ref, namespace, options=options, view=MetadataOnly)
                objects: list[Object] = [{}] * len(listed.items)
            else:
                objects = (await self._client.list_all(ref, namespace)).items
            total |= usage_of({"spec": quota.spec}, evaluator, objects, self.clock.now())
        return total

    async def _write(self, quota: _Quota, used: Usage) -> None:
        meta = quota.metadata
        amounts = {"hard": dict(quota.hard), "used": {name: str(used[name]) for name in sorted(used)}}
        removed = {field: dict.fromkeys(quota.status.get(field) or ()) for field in amounts}
        patch = {
            "metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version},
            "status": {field: {**removed[field], **amounts[field]} for field in amounts},
        }
        await self._client.patch(RESOURCE_QUOTAS, meta.name, patch, meta.namespace, subresource="status")


def _is_counted(kind: str) -> bool:
    """Whether its objects all use the same."""
    evaluator = evaluator_of(kind)
    return evaluator is not None and evaluator.counts_only


def _equal(one: Usage, other: Usage) -> bool:
    return {name: each.nanos for name, each in one.items()} == {
        name: each.nanos for name, each in other.items()
    }
