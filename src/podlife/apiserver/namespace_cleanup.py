"""Empties namespaces that are being deleted, and lets them go.

Upstream has this in kube-controller-manager; without it `kubectl delete namespace` would hang on a server that
runs alone. It works on the store's events: a namespace that becomes Terminating is emptied at once, what needs
time (a pod in its grace, an object with finalizers) is looked at again, ever less often. Running beside
upstream's controller does no harm: both only finish what is begun.
"""

from __future__ import annotations

import asyncio
import logging

from podlife.api.codec import Object
from podlife.apiserver.authentication import CONTROLLERS
from podlife.apiserver.deletion import DeleteOptions
from podlife.apiserver.registry.delete import delete_record
from podlife.apiserver.registry.objects import thaw
from podlife.apiserver.registry.scope import Registry, Scope
from podlife.apiserver.registry.update import commit_change
from podlife.apiserver.resource import Resource
from podlife.apiserver.resources import STORED
from podlife.apiserver.storage.store import CompactedError, EventType, Key, StoreError
from podlife.errors import ApiError
from podlife.wire import Request

__all__ = ["NamespaceCleanup"]

log = logging.getLogger(__name__)

_NAMESPACES = "namespaces"
_FINALIZER = "kubernetes"
_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 5.0


class NamespaceCleanup:
    """One `run`, which ends with the store or by cancellation."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._at_work: set[str] = set()

    async def run(self) -> None:
        store = self._registry.store
        async with asyncio.TaskGroup() as group:
            while True:
                subscription = store.subscribe(_NAMESPACES, since=store.revision)
                for record in store.list(_NAMESPACES):
                    self._consider(group, record.key.name)
                try:
                    while True:
                        for event in (await subscription.next()).events:
                            if event.type is not EventType.DELETED:
                                self._consider(group, event.record.key.name)
                except CompactedError:
                    continue  # fell behind: look at all of them again
                except StoreError:
                    return
                finally:
                    subscription.close()

    def _consider(self, group: asyncio.TaskGroup, name: str) -> None:
        if name not in self._at_work and self._find_terminating(name) is not None:
            self._at_work.add(name)
            group.create_task(self._empty(name), name=f"empty namespace {name}")

    def _find_terminating(self, name: str) -> Object | None:
        record = self._registry.store.get(Key(_NAMESPACES, "", name))
        if record is None or b'"Terminating"' not in record.value:
            return None
        obj = thaw(record.value)
        is_ours = _FINALIZER in obj.get("spec", {}).get("finalizers", [])
        return obj if "deletionTimestamp" in obj["metadata"] and is_ours else None

    async def _empty(self, name: str) -> None:
        pause = _FIRST_PAUSE_SECONDS
        try:
            await self._let_arrive()
            while self._find_terminating(name) is not None:
                try:
                    await self._delete_contents(name)
                    if not any(self._registry.store.list(each.storage_key, name) for each in _contents()):
                        await self._finalize(name)
                        return
                except (ApiError, StoreError) as error:
                    log.warning("namespace %s is not empty yet: %s", name, error)
                await asyncio.sleep(pause)
                pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)
        finally:
            self._at_work.discard(name)

    async def _let_arrive(self) -> None:
        """Wait for what was let in before the namespace was seen to be Terminating and is still on its way to the
        disk: it would come to stand in a namespace that is gone."""
        # Who is on its way may have waited for another commit on the same key: then it begins when that one ends.
        for _ in range(2):
            await self._registry.store.commit()

    async def _delete_contents(self, name: str) -> None:
        for resource in _contents():
            for record in self._registry.store.list(resource.storage_key, name):
                scope = Scope(Request("DELETE", ""), CONTROLLERS, resource, "delete", name, record.key.name)
                async with self._registry.store.locked(record.key):
                    current = self._registry.store.get(record.key)
                    if current is not None:
                        await delete_record(self._registry, scope, current, DeleteOptions())

    async def _finalize(self, name: str) -> None:
        key = Key(_NAMESPACES, "", name)
        async with self._registry.store.locked(key):
            record = self._registry.store.get(key)
            if record is None:
                return
            old, new = thaw(record.value), thaw(record.value)
            kept = [each for each in old["spec"].get("finalizers", []) if each != _FINALIZER]
            new["spec"] = {"finalizers": kept} if kept else {}
            await commit_change(self._registry, record, new, old, dry_run=False)


def _contents() -> tuple[Resource, ...]:
    return tuple(resource for resource in STORED if resource.namespaced and not resource.stored_as)
