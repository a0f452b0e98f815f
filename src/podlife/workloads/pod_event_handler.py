"""Pod event handler of the workload controllers.

An event of a pod lowers the expectations of its owner and enqueues the owner; a reference with another UID than the
owner of that name is ignored. A pod without an owner enqueues all objects that select it, because one of them may
adopt it. A pod that is being deleted counts as deleted (EX rules): it is observed twice and counted once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, Protocol, TypeVar

from podlife.api.selectors import LabelSelector
from podlife.api.views import OwnerReference, controller_of
from podlife.client import Ref
from podlife.informer import CacheReader
from podlife.informer.cache import HasMetadata
from podlife.informer.indexes import Indexer, Key
from podlife.podcontrol import BY_NAMESPACE, UidTrackedExpectations
from podlife.workloads.views import PodMetadata, WorkloadMetadata

W = TypeVar("W", bound=HasMetadata)

OWNER_INDEXERS: Mapping[str, Indexer[HasMetadata]] = {BY_NAMESPACE: lambda obj: (obj.metadata.namespace,)}
"""For the informer of the owners: those of a namespace are looked through for who selects an orphan."""


def key_of(obj: HasMetadata) -> Key:
    return (obj.metadata.namespace, obj.metadata.name)


class Owned(Protocol):
    """A pod; or whatever else a workload owns and adopts by its labels: ControllerRevisions, ReplicaSets."""

    @property
    def metadata(self) -> PodMetadata | WorkloadMetadata: ...


class ExpectationObserver(Protocol):
    """What is told of pods that came and went, before their owner is enqueued; see `podcontrol.expectations`."""

    def observe_creation(self, key: Key, /) -> None: ...
    def observe_deletion(self, key: Key, uid: str, /) -> None: ...


class OwnerKeys(Protocol):
    """Where owners are enqueued: a work queue, or what passes keys on to one a little later."""

    def add(self, key: Key, /) -> None: ...


class PodEventHandler(Generic[W]):
    """`selector_of` says which pods an owner selects; one that raises ValueError selects none. `matters` says of a pod
    that stays its owner's, with the labels it has, whether a change is anything to the owner: every one is, unless
    it is given."""

    def __init__(
        self,
        ref: Ref,
        owners: CacheReader[W],
        queue: OwnerKeys,
        selector_of: Callable[[W], LabelSelector],
        expectations: ExpectationObserver | UidTrackedExpectations | None = None,
        *,
        matters: Callable[[Any, Any], bool] | None = None,
    ) -> None:
        self._ref = ref
        self._owners = owners
        self._queue = queue
        self._selector_of = selector_of
        self._expectations = expectations
        self._matters = matters

    def on_add(self, pod: Owned) -> None:
        if pod.metadata.deletion_timestamp is not None:
            # A restart may see it first when it is already on its way out.
            self.on_delete(pod)
            return
        if (reference := controller_of(pod.metadata)) is None:
            self._enqueue_who_selects(pod)
        elif (owner := self.owner(pod.metadata.namespace, reference)) is not None:
            if self._expectations is not None:
                self._expectations.observe_creation(key_of(owner))
            self._queue.add(key_of(owner))

    def on_update(self, old: Owned, new: Owned) -> None:
        if old.metadata.uid != new.metadata.uid:
            # Deleted and recreated under its name, with no event in between.
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
            self._enqueue_who_selects(new)

    def on_delete(self, pod: Owned) -> None:
        reference = controller_of(pod.metadata)
        if reference is None or (owner := self.owner(pod.metadata.namespace, reference)) is None:
            return
        if self._expectations is not None:
            self._expectations.observe_deletion(key_of(owner), pod.metadata.uid)
        self._queue.add(key_of(owner))

    def owner(self, namespace: str, reference: OwnerReference) -> W | None:
        """Whom the reference means, by kind, name and UID."""
        if reference.kind != self._ref.kind or reference.api_version.rpartition("/")[0] != self._ref.group:
            return None
        owner = self._owners.get(namespace, reference.name)
        return owner if owner is not None and owner.metadata.uid == reference.uid else None

    def _enqueue_owner(self, pod: Owned, reference: OwnerReference) -> None:
        if (owner := self.owner(pod.metadata.namespace, reference)) is not None:
            self._queue.add(key_of(owner))

    def _enqueue_who_selects(self, pod: Owned) -> None:
        labels = pod.metadata.labels
        if not labels:
            return
        for owner in self._owners.by_index(BY_NAMESPACE, pod.metadata.namespace):
            try:
                selector = self._selector_of(owner)
            except ValueError:
                continue
            # One that selects everything was not meant so: no workload may have an empty selector.
            if not selector.is_empty and selector.matches(labels):
                self._queue.add(key_of(owner))
