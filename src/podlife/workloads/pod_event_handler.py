"""Pod event handler of the workload controllers.

An event of a pod lowers the expectations of its owner and enqueues the owner; a reference with another UID than the
owner of that name is ignored. A pod without an owner enqueues all objects that select it, because one of them may
adopt it. A pod that is being deleted counts as deleted (EX rules): it is observed twice and counted once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, Protocol, TypeVar

from podlife.api.codec import Object
from podlife.api.views import OwnerReference, controller_of
from podlife.client import PODS, Ref
from podlife.controller import OwnWrites
from podlife.informer import CacheReader
from podlife.informer.cache import HasMetadata
from podlife.informer.indexes import Indexer, Key
from podlife.podcontrol import BY_NAMESPACE, ControllerRef, Ownable, UidTrackedExpectations, WriteHook
from podlife.workloads.views import Workload

W = TypeVar("W", bound=Workload)

OWNER_INDEXERS: Mapping[str, Indexer[HasMetadata]] = {BY_NAMESPACE: lambda obj: (obj.metadata.namespace,)}
"""For the informer of the owners: an orphan is matched against the owners of its namespace."""


def key_of(obj: HasMetadata) -> Key:
    return (obj.metadata.namespace, obj.metadata.name)


def note_pods(own_writes: OwnWrites, ref: Ref) -> WriteHook:
    """For `PodControl`: records pods that were written for an owner of this kind."""

    def note(pod: Object, owner: ControllerRef | None) -> None:
        if owner is not None and owner.kind == ref.kind:
            own_writes.note((pod["metadata"]["namespace"], owner.name), PODS, pod)

    return note


class OwnerKeys(Protocol):
    """A work queue, or an adapter that adds keys to one later."""

    def add(self, key: Key, /) -> None: ...


class PodEventHandler(Generic[W]):
    """`matters` filters updates of pods that keep owner and labels; by default all enqueue the owner. An owner with an
    invalid selector selects no pods."""

    def __init__(
        self,
        ref: Ref,
        owners: CacheReader[W],
        queue: OwnerKeys,
        expectations: UidTrackedExpectations | None = None,
        *,
        matters: Callable[[Any, Any], bool] | None = None,
    ) -> None:
        self._ref = ref
        self._owners = owners
        self._queue = queue
        self._expectations = expectations
        self._matters = matters

    def on_add(self, pod: Ownable) -> None:
        if pod.metadata.deletion_timestamp is not None:
            # After a restart a pod may first be observed while it is being deleted.
            self.on_delete(pod)
            return
        if (reference := controller_of(pod.metadata)) is None:
            self._enqueue_selecting(pod)
        elif (owner := self.owner(pod.metadata.namespace, reference)) is not None:
            if self._expectations is not None:
                self._expectations.observe_creation(key_of(owner))
            self._queue.add(key_of(owner))

    def on_update(self, old: Ownable, new: Ownable) -> None:
        if old.metadata.uid != new.metadata.uid:
            # Recreated under the same name, without a delete event in between.
            self.on_delete(old)
            self.on_add(new)
            return
        if new.metadata.deletion_timestamp is not None:
            self.on_delete(new)
            if old.metadata.labels != new.metadata.labels:
                self.on_delete(old)
            return
        before, after = controller_of(old.metadata), controller_of(new.metadata)
        has_changed_hands = (before and before.uid) != (after and after.uid)
        is_other = has_changed_hands or old.metadata.labels != new.metadata.labels
        if has_changed_hands and before is not None:
            self._enqueue_owner(old, before)
        if after is not None:
            if is_other or self._matters is None or self._matters(old, new):
                self._enqueue_owner(new, after)
        elif is_other:
            self._enqueue_selecting(new)

    def on_delete(self, pod: Ownable) -> None:
        reference = controller_of(pod.metadata)
        if reference is None or (owner := self.owner(pod.metadata.namespace, reference)) is None:
            return
        if self._expectations is not None:
            self._expectations.observe_deletion(key_of(owner), pod.metadata.uid)
        self._queue.add(key_of(owner))

    def owner(self, namespace: str, reference: OwnerReference) -> W | None:
        """The owner with the kind, name and UID of the reference."""
        if reference.kind != self._ref.kind or reference.api_version.rpartition("/")[0] != self._ref.group:
            return None
        owner = self._owners.get(namespace, reference.name)
        return owner if owner is not None and owner.metadata.uid == reference.uid else None

    def _enqueue_owner(self, pod: Ownable, reference: OwnerReference) -> None:
        if (owner := self.owner(pod.metadata.namespace, reference)) is not None:
            self._queue.add(key_of(owner))

    def _enqueue_selecting(self, pod: Ownable) -> None:
        labels = pod.metadata.labels
        if not labels:
            return
        for owner in self._owners.by_index(BY_NAMESPACE, pod.metadata.namespace):
            try:
                selector = owner.selector
            except ValueError:
                continue
            # The API allows no workload with an empty selector.
            if not selector.is_empty and selector.matches(labels):
                self._queue.add(key_of(owner))
