"""Namespaces: their deletion in two steps, the controller that empties them, and those every cluster has.

A deleted namespace first becomes Terminating. It is removed when its `spec.finalizers` are empty, which the namespace
controller (here, or kube-controller-manager's) requests through `finalize`.

Upstream runs the controller in kube-controller-manager; without it `kubectl delete namespace` would hang on a server
that runs alone. It follows the store's events: a namespace that becomes Terminating is emptied at once, its pods first.
Objects that need time (a pod in its grace period, an object with finalizers) are checked again with backoff. Remaining
objects and failed deletes are reported in the namespace's conditions. An object that cannot be deleted delays its own
namespace and no other. Running beside upstream's controller does no harm: both only finish what has begun.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from podlife.api.codec import Object, decode_object, format_time
from podlife.apiserver.admission import Operation
from podlife.apiserver.authn import CONTROLLERS, UserInfo
from podlife.apiserver.registry import Registry, RequestScope, response
from podlife.apiserver.registry.create import create_object
from podlife.apiserver.registry.delete import (
    delete_in_background,
    delete_record,
    read_options,
    review_deletion,
)
from podlife.apiserver.registry.graceful_deletion import FOREGROUND, ORPHAN, DeleteOptions, check_options
from podlife.apiserver.registry.object_codec import encode_stored, encoder
from podlife.apiserver.registry.update import commit_change
from podlife.apiserver.registry.webhook_admission import WebhookAdmission, guaranteed_update
from podlife.apiserver.registry.worker_threads import offload
from podlife.apiserver.resource import Resource
from podlife.apiserver.storage import CompactedError, EventType, Key, Put, Record, StoreError
from podlife.errors import ApiError
from podlife.wire import Request, Response

log = logging.getLogger(__name__)

SYSTEM_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
_NAMESPACES = "namespaces"
_FINALIZER = "kubernetes"
_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 5.0
# A condition lists only the first failed deletes.
_MOST_ERRORS = 10

# Upstream's conditions, with reason and message while nothing is wrong.
_HEALTHY = {
    "NamespaceDeletionDiscoveryFailure": ("ResourcesDiscovered", "All resources successfully discovered"),
    "NamespaceDeletionGroupVersionParsingFailure": (
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    "NamespaceDeletionContentFailure": (
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    "NamespaceContentRemaining": ("ContentRemoved", "All content successfully removed"),
    "NamespaceFinalizersRemaining": ("ContentRemoved", "All content successfully removed"),
}


async def create_system_namespaces(registry: Registry, user: UserInfo) -> None:
    resource = registry.catalog.find("", "v1", "namespaces")
    assert resource is not None
    for name in SYSTEM_NAMESPACES:
        if registry.store.get(Key(resource.storage_key, "", name)) is None:
            request = Request("POST", "/api/v1/namespaces", headers={"User-Agent": "kube-apiserver"})
            scope = RequestScope(registry, request, user, resource, "create", name=name)
            await create_object(scope, {"metadata": {"name": name}}, dry_run=False)


async def delete_namespace(scope: RequestScope) -> Response:
    options = await offload(lambda: read_options(scope.request), scope.request.body)
    check_options(options)
    webhooks = WebhookAdmission.of(scope, Operation.DELETE, dry_run=options.is_dry_run, deletion=options)
    if webhooks is None:
        async with scope.registry.store.locked(scope.key):
            obj = await _delete_locked(scope, scope.find(), options)
    else:

        async def review(record: Record) -> None:
            obj = decode_object(record.value)
            _check_preconditions(scope, obj["metadata"], options)
            # One that waits for its finalizers is not deleted again.
            if "deletionTimestamp" not in obj["metadata"] or not _finalizers(obj):
                meant = {"uid": obj["metadata"]["uid"], **(webhooks.options or {}).get("preconditions", {})}
                shown = {**(webhooks.options or {}), "preconditions": meant}
                await review_deletion(replace(webhooks, options=shown), record, options)

        async def commit(record: Record, _: None) -> Object:
            return await _delete_locked(scope, record, options)

        obj = await guaranteed_update(scope, scope.find, review, commit)
    return await response.one(scope, encode_stored(obj))


async def _delete_locked(scope: RequestScope, record: Record, options: DeleteOptions) -> Object:
    obj = decode_object(record.value)
    _check_preconditions(scope, obj["metadata"], options)
    if "deletionTimestamp" not in obj["metadata"]:
        return await _begin(scope, record, obj, options)
    if not _finalizers(obj):
        obj, _ = await delete_record(scope, record, options)
    return obj


def _check_preconditions(scope: RequestScope, meta: Object, options: DeleteOptions) -> None:
    for what, meant, found in (
        ("UID", options.uid, meta["uid"]),
        ("ResourceVersion", options.resource_version, meta["resourceVersion"]),
    ):
        if meant is not None and meant != found:
            raise scope.precondition_failed(what, meant, found)


async def _begin(scope: RequestScope, record: Record, obj: Object, options: DeleteOptions) -> Object:
    scope.registry.admission.admit(scope.admission(Operation.DELETE, old=decode_object(record.value)))
    meta = obj["metadata"]
    meta["deletionTimestamp"] = format_time(scope.registry.clock.now())
    obj.setdefault("status", {})["phase"] = "Terminating"
    wanted = {"Orphan": ORPHAN, "Foreground": FOREGROUND}.get(options.propagation or "")
    if wanted and wanted not in meta.get("finalizers", []):
        meta["finalizers"] = [*meta.get("finalizers", []), wanted]
    if not options.is_dry_run:
        await scope.registry.store.commit(Put(record.key, encoder(obj), expected=record.revision))
    return obj


@dataclass(slots=True)
class NamespaceContents:
    """What one pass left in a namespace: objects by resource (`pods.`), their finalizers, and failed deletes."""

    objects: Counter[str] = field(default_factory=Counter)
    finalizers: Counter[str] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        return not self.objects and not self.errors


class NamespaceController:
    """`run` ends when the store closes or the task is cancelled."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._at_work: set[str] = set()

    async def run(self) -> None:
        store = self._registry.store
        async with asyncio.TaskGroup() as group:
            while True:
                subscription = store.subscribe(_NAMESPACES, since=store.revision)
                for record in store.list(_NAMESPACES):
                    self._consider(group, record)
                try:
                    while True:
                        for event in (await subscription.next()).events:
                            if event.type is not EventType.DELETED:
                                self._consider(group, event.record)
                except CompactedError:
                    continue  # fell behind: check all namespaces again
                except StoreError:
                    return
                finally:
                    subscription.close()

    def _consider(self, group: asyncio.TaskGroup, record: Record) -> None:
        name = record.key.name
        if name not in self._at_work and b'"Terminating"' in record.value:
            self._at_work.add(name)
            group.create_task(self._empty(name), name=f"empty namespace {name}")

    async def _empty(self, name: str) -> None:
        pause = _FIRST_PAUSE_SECONDS
        try:
            await self._wait_for_pending_writes()
            while not await self._is_done(name):
                await asyncio.sleep(pause)
                pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)
        finally:
            self._at_work.discard(name)

    async def _wait_for_pending_writes(self) -> None:
        """Wait for writes that were admitted before the namespace became Terminating and are still being committed:
        they would otherwise end up in a namespace that no longer exists."""
        # A pending write may wait for another commit on the same key, and starts when that one ends.
        for _ in range(2):
            await self._registry.store.commit()

    async def _is_done(self, name: str) -> bool:
        """Make one pass over the namespace; returns whether nothing is left to do."""
        try:
            if not self._is_terminating(name):
                return True
            contents = await self._delete_contents(name)
            await self._write(name, contents)
        except (ApiError, StoreError) as error:
            log.warning("namespace %s is not empty yet: %s", name, error)
        except Exception:  # a failure in one namespace must affect neither the server nor other namespaces
            log.exception("cleanup of namespace %s failed, will retry", name)
        else:
            return contents.is_empty
        return False

    def _is_terminating(self, name: str) -> bool:
        record = self._registry.store.get(Key(_NAMESPACES, "", name))
        if record is None or b'"Terminating"' not in record.value:
            return False
        obj = decode_object(record.value)
        return "deletionTimestamp" in obj["metadata"] and _FINALIZER in _finalizers(obj)

    async def _delete_contents(self, name: str) -> NamespaceContents:
        """Delete pods first, and the other objects when the pods are gone: they may need them until they end."""
        # Every stored kind once, though a definition serves it in several versions.
        stored = {
            row.key: row for row in self._registry.catalog.stored if row.namespaced and not row.stored_as
        }
        contents = await self._delete_all(name, [stored.pop("pods")])
        return contents if not contents.is_empty else await self._delete_all(name, stored.values())

    async def _delete_all(self, name: str, resources: Iterable[Resource]) -> NamespaceContents:
        contents = NamespaceContents()
        for resource in resources:
            for record in self._registry.store.list(resource.storage_key, name):
                try:
                    await delete_in_background(self._registry, resource, record.key, CONTROLLERS)
                except Exception as error:  # noqa: BLE001 - the namespace's other objects are still deleted
                    _note_failure(contents, resource, record.key, error)
            for record in self._registry.store.list(resource.storage_key, name):
                contents.objects[f"{resource.plural}.{resource.group}"] += 1
                contents.finalizers.update(_finalizers_of(record))
        return contents

    async def _write(self, name: str, contents: NamespaceContents) -> None:
        """Report what is left; if nothing is, finalize the namespace."""
        key = Key(_NAMESPACES, "", name)
        async with self._registry.store.locked(key):
            record = self._registry.store.get(key)
            if record is None:
                return
            old, new = decode_object(record.value), decode_object(record.value)
            status = new.setdefault("status", {})
            known = status.get("conditions") or ()
            status["conditions"] = conditions_of(contents, known, self._registry.clock.now())
            if contents.is_empty:
                kept = [each for each in _finalizers(old) if each != _FINALIZER]
                new["spec"] = {"finalizers": kept} if kept else {}
            await commit_change(self._registry, record, new, old, dry_run=False)


def _finalizers(namespace: Object) -> list[str]:
    return (namespace.get("spec") or {}).get("finalizers") or []


def _finalizers_of(record: Record) -> list[str]:
    if b'"finalizers"' not in record.value:
        return []
    return decode_object(record.value)["metadata"].get("finalizers") or []


def _note_failure(contents: NamespaceContents, resource: Resource, key: Key, error: Exception) -> None:
    message = f"{resource.plural} {key.name}: {error}"
    if len(contents.errors) < _MOST_ERRORS:
        contents.errors.append(message)
    trace = None if isinstance(error, ApiError | StoreError) else error
    log.warning("namespace %s is not empty yet: %s", key.namespace, message, exc_info=trace)


def conditions_of(contents: NamespaceContents, old: Sequence[Object], now: datetime) -> list[Object]:
    """Return the namespace's conditions after a pass. Unchanged conditions keep their transition time; conditions set
    by others are kept."""
    known = {each.get("type"): each for each in old}
    trouble = {type_: (reason, message) for type_, reason, message in _problems(contents)}
    for type_, well in _HEALTHY.items():
        status = "True" if type_ in trouble else "False"
        reason, message = trouble.get(type_, well)
        before = known.get(type_, {})
        since = before.get("lastTransitionTime") if before.get("status") == status else None
        known[type_] = {
            "type": type_,
            "status": status,
            "lastTransitionTime": since or format_time(now),
            "reason": reason,
            "message": message,
        }
    return list(known.values())


def _problems(contents: NamespaceContents) -> Iterator[tuple[str, str, str]]:
    if contents.errors:
        message = f"{len(contents.errors)} remaining: {', '.join(sorted(contents.errors))}"
        yield (
            "NamespaceDeletionContentFailure",
            "ContentDeletionFailed",
            f"Failed to delete all resource types, {message}",
        )
    if contents.objects:
        left = sorted(f"{name} has {count} resource instances" for name, count in contents.objects.items())
        message = f"Some resources are remaining: {', '.join(left)}"
        yield "NamespaceContentRemaining", "SomeResourcesRemain", message
    if contents.finalizers:
        left = sorted(f"{name} in {count} resource instances" for name, count in contents.finalizers.items())
        message = f"Some finalizers are remaining: {', '.join(left)}"
        yield "NamespaceFinalizersRemaining", "SomeFinalizerRemain", message
