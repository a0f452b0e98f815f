"""Garbage collector controller: deletes objects without owners, unblocks owners, orphans dependents on request.

`monitors` updates the graph, the graph returns the objects to examine, two queues carry their UIDs, and `decision`
decides. A watched object is judged by its last known state and deleted with its UID and resourceVersion as
preconditions; owners that were not observed, or are not watched at the moment, are read from the server. So nothing
is deleted that changed meanwhile, or whose owner was merely not observed.

Dependents are orphaned, and finalizers removed, only while all resources are watched: a dependent that was missed
would not be orphaned, and would be deleted as garbage once its owner is gone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection

from podlife.controller import Again, Controller, ControlPlane
from podlife.errors import ConflictError, PodlifeError
from podlife.lru import LruCache
from podlife.ownergc.decision import Action, DeleteObject, DropReferences, Family, Leave, OwnerState, decide
from podlife.ownergc.graph import Graph, GraphChanges, GraphNode
from podlife.ownergc.monitors import PATIENCE_SECONDS, Monitors
from podlife.ownergc.operations import ObjectOperations
from podlife.ownergc.views import FOREGROUND, ORPHAN, ObjectIdentity, PartialMetadata, PartialOwnerReference
from podlife.workqueue import ExponentialLimiter, RateLimitedQueue

log = logging.getLogger(__name__)

IGNORED: frozenset[tuple[str, str]] = frozenset((("", "events"), ("events.k8s.io", "events")))
"""Group and plural name of the resources that are not collected: events expire."""

# Poll interval while a resource is not watched.
_CATCH_UP_SECONDS = 1.0
# Attempts for an object that changes meanwhile.
_TRIES = 3
_MOST_ABSENT = 500


class OwnerGarbageCollector:
    """`plane.add(OwnerGarbageCollector(plane))`.

    It has its own informers, for the metadata of every resource; they follow the resources that the server has."""

    name = "garbage-collector-controller"

    def __init__(
        self,
        plane: ControlPlane,
        *,
        workers: int = 20,
        ignored: Collection[tuple[str, str]] = IGNORED,
        discovery_seconds: float = 30.0,
    ) -> None:
        self.graph = Graph()
        self.monitors = Monitors(plane.client, self, ignored=ignored, period_seconds=discovery_seconds)
        self._objects = ObjectOperations(plane.client, lambda: self.monitors.catalogue.kinds)
        self._recorder = plane.recorder(self.name)
        self._action_log = plane.action_log
        self._absent = AbsentOwnerCache()
        # Backoff for owners that exist but were not observed yet.
        self._unobserved_backoff: ExponentialLimiter[str] = ExponentialLimiter()
        # Since when an owner has been waiting for resources to be watched again.
        self._held_since: dict[str, float] = {}
        self.queue: RateLimitedQueue[str] = RateLimitedQueue("garbage_collector_attempt_to_delete")
        self.orphan_queue: RateLimitedQueue[str] = RateLimitedQueue("garbage_collector_attempt_to_orphan")
        self.controller = Controller(self.name, self.queue, self.attempt_to_delete, workers=workers)
        self.orphan_controller = Controller(
            f"{self.name} (orphans)", self.orphan_queue, self.attempt_to_orphan, workers=workers
        )

    @property
    def complaint(self) -> str:
        """Why it is not fully working; empty if it is."""
        return self.monitors.complaint

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.monitors.run(), name="monitors of the owner collector")
            await self.monitors.wait_for_sync(seconds=PATIENCE_SECONDS)
            if why := self.complaint:
                log.warning("garbage collector starting although %s", why)
            group.create_task(self.controller.run(), name=self.controller.name)
            group.create_task(self.orphan_controller.run(), name=self.orphan_controller.name)

    def take(self, changes: GraphChanges) -> None:
        """Enqueue the objects to examine after a change of the graph."""
        for identity in changes.absent:
            self._absent.add(identity)
        for uid in changes.delete:
            self.queue.add(uid)
        for uid in changes.orphan:
            self.orphan_queue.add(uid)
        for dependent, reference in changes.invalid:
            self._report_invalid(dependent, reference)

    # Events of the monitors

    def observe(self, identity: ObjectIdentity, seen: PartialMetadata) -> None:
        self._absent.discard(identity)
        self.take(self.graph.observe(identity, seen))

    def lose(self, identity: ObjectIdentity) -> None:
        self.take(self.graph.lose(identity))

    def drop(self, uid: str) -> None:
        self.take(self.graph.drop(uid))

    def _report_invalid(self, dependent: ObjectIdentity, reference: PartialOwnerReference) -> None:
        regarding = {
            "kind": dependent.kind,
            "apiVersion": dependent.api_version,
            "namespace": dependent.namespace,
            "name": dependent.name,
            "uid": dependent.uid,
        }
        meant = reference.identity(dependent.namespace)
        message = f'ownerRef {meant} does not exist in namespace "{dependent.namespace}"'
        self._recorder.event(regarding, "Warning", "OwnerRefInvalidNamespace", message)

    # Deleting

    async def attempt_to_delete(self, uid: str) -> Again | None:
        node = self.graph.get(uid)
        if node is not None and node.is_virtual:
            return await self._verify(node)
        self._unobserved_backoff.forget(uid)
        if node is None or node.seen is None:
            self._held_since.pop(uid, None)
        elif node.is_deleting_dependents:
            return await self._finish_foreground(node)
        elif not node.seen.is_being_deleted:
            await self._judge(node, node.seen)
        return None

    async def _verify(self, node: GraphNode) -> Again | None:
        """Ask the server whether an unobserved owner exists."""
        identity = self._objects.located(node.identity)
        latest = await self._objects.get(identity)
        if not node.is_virtual:
            return None
        node.identity = identity
        if latest is None:
            self.take(self.graph.disprove(identity))
        if self.graph.get(identity.uid) is not node:
            self._unobserved_backoff.forget(identity.uid)
            return None
        # It may be created and deleted unobserved, so its event alone is not enough.
        return Again(self._unobserved_backoff.delay_seconds(identity.uid))

    async def _judge(self, node: GraphNode, item: PartialMetadata | None) -> None:
        identity = node.identity
        if not self.monitors.is_live(identity):
            item = await self._objects.get(identity)
        owners: tuple[PartialOwnerReference, ...] = ()
        for tries_left in reversed(range(_TRIES)):
            if item is None:
                self.take(self.graph.disprove(identity))
                return
            standings = await self._standings(identity, item)
            dependents = self.graph.dependents(node)
            family = Family(bool(dependents), any(each.is_deleting_dependents for each in dependents))
            action = decide(item, standings, family)
            # Unrelated changes must not keep an object alive forever.
            is_the_same = tries_left == 0 and item.owner_references == owners
            version = "" if is_the_same else item.resource_version
            owners = item.owner_references
            try:
                await self._act(identity, item, action, version)
                return
            except ConflictError:
                item = await self._objects.get(identity)
        raise ConflictError(f"{identity} was overtaken {_TRIES} times")

    async def _act(
        self, identity: ObjectIdentity, item: PartialMetadata, action: Action, version: str
    ) -> None:
        is_there = True
        if isinstance(action, DropReferences):
            is_there = await self._objects.drop_references(identity, action.uids, version)
        elif isinstance(action, DeleteObject):
            if action.unblocks:
                blocking = [owner.uid for owner in item.owner_references if owner.block_owner_deletion]
                await self._objects.unblock_owners(identity, tuple(blocking))
                # The own patch has changed its version.
                version = ""
            is_there = await self._objects.delete(identity, action.policy, version)
            if is_there:
                place = f"{identity.namespace}/{identity.name}".removeprefix("/")
                self._action_log.note(
                    self.name, f"{identity.kind} {place} deleted", f"objects of kind {identity.kind} deleted"
                )
        else:
            assert isinstance(action, Leave)
        if not is_there:
            self.take(self.graph.disprove(identity))

    async def _standings(self, identity: ObjectIdentity, item: PartialMetadata) -> list[OwnerState]:
        if item.is_being_deleted:
            return []
        return [await self._standing(identity, owner) for owner in item.owner_references]

    async def _standing(self, dependent: ObjectIdentity, reference: PartialOwnerReference) -> OwnerState:
        namespace = dependent.namespace
        if self._absent.has(reference, namespace):
            return OwnerState.ABSENT
        owner = self._followed_owner(reference, namespace)
        if owner is None:
            meant = self._objects.located(reference.identity(namespace))
            owner = await self._objects.get(meant)
            if owner is None:
                self._absent.add(meant)
                return OwnerState.ABSENT
        return OwnerState.WAITING if owner.is_deleting_dependents else OwnerState.SOLID

    def _followed_owner(self, reference: PartialOwnerReference, namespace: str) -> PartialMetadata | None:
        """The owner's state, if it is exactly the referenced object and currently watched."""
        owner = self.graph.get(reference.uid)
        if owner is None or not reference.names(owner.identity):
            return None
        is_there = owner.identity.namespace in ("", namespace) and self.monitors.is_live(owner.identity)
        return owner.seen if is_there else None

    async def _finish_foreground(self, node: GraphNode) -> Again | None:
        """Release an owner whose dependents are gone; enqueue the others."""
        blocking = self.graph.blocking_dependents(node)
        for dependent in blocking:
            if not dependent.is_deleting_dependents:
                self.queue.add(dependent.identity.uid)
        if blocking:
            return None
        if self._must_wait(node):
            return Again(_CATCH_UP_SECONDS)
        await self._objects.remove_finalizer(node.identity, FOREGROUND, node.seen)
        return None

    # Orphaning

    async def attempt_to_orphan(self, uid: str) -> Again | None:
        node = self.graph.get(uid)
        if node is None or node.seen is None or not node.seen.is_orphaning_dependents:
            self._held_since.pop(uid, None)
            return None
        if self._must_wait(node):
            return Again(_CATCH_UP_SECONDS)
        dependents = [each.identity for each in self.graph.dependents(node)]
        failures = await asyncio.gather(*(self._orphan(dependent, uid) for dependent in dependents))
        failed = [failure for failure in failures if failure is not None]
        if failed:
            # After all were tried: the owner stays while a dependent is left.
            raise failed[0]
        await self._objects.remove_finalizer(node.identity, ORPHAN, node.seen)
        return None

    async def _orphan(self, dependent: ObjectIdentity, owner_uid: str) -> PodlifeError | None:
        try:
            await self._objects.drop_references(dependent, (owner_uid,))
        except PodlifeError as error:
            return error
        return None

    def _must_wait(self, node: GraphNode) -> bool:
        """Whether dependents may be missing, because their resource is currently not watched. The wait is bounded: a
        resource may be broken permanently."""
        uid, now = node.identity.uid, asyncio.get_running_loop().time()
        monitor = self.monitors.awaited()
        if monitor is not None and now - self._held_since.setdefault(uid, now) < PATIENCE_SECONDS:
            return True
        if monitor is not None:
            log.warning("deleting %s although dependents among %s may be missing", node.identity, monitor.ref)
        self._held_since.pop(uid, None)
        return False


class AbsentOwnerCache:
    """Owners that are known not to exist, so that the server is asked once per owner and not once per dependent.

    UIDs are not reused, so an absent owner stays absent; but a cluster may be restored from a backup, and an owner that
    is observed again is removed. The cache is bounded: an owner that was evicted is looked up again."""

    def __init__(self, most: int = _MOST_ABSENT) -> None:
        self._identities = LruCache[ObjectIdentity, bool](most)

    def __len__(self) -> int:
        return len(self._identities)

    def add(self, identity: ObjectIdentity) -> None:
        self._identities.put(identity, True)

    def has(self, reference: PartialOwnerReference, namespace: str) -> bool:
        """Whether the owner that a dependent in this namespace refers to is absent, namespaced or not."""
        identities = {reference.identity(""), reference.identity(namespace)}
        return any(self._identities.get(identity) for identity in identities)

    def discard(self, identity: ObjectIdentity) -> None:
        self._identities.pop(identity)
