"""Controller of custom resource definitions: their conditions, their rows in the catalog, and their end.

It follows the store's events, as the namespace controller does. A definition whose names are free is served, and after
that becomes Established. A deleted one stays, Terminating, until all its instances are gone; instances that wait for
their finalizers are checked again with backoff. A definition that fails delays no other.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator

from podlife.api.codec import Object, decode_object, encode, format_time
from podlife.api.structural import RULES
from podlife.apiserver.apiextensions.conditions import settle
from podlife.apiserver.apiextensions.rows import rows_of
from podlife.apiserver.authn import CONTROLLERS
from podlife.apiserver.registry import Registry
from podlife.apiserver.registry.delete import delete_in_background
from podlife.apiserver.registry.field_managers import track_own
from podlife.apiserver.registry.update import commit_change
from podlife.apiserver.registry.worker_threads import is_large, run_in_thread
from podlife.apiserver.resource_table import STORED
from podlife.apiserver.storage import CompactedError, Event, EventType, Key, Record, StoreError
from podlife.apiserver.strategies.apiextensions.definitions import FINALIZER, set_condition
from podlife.apiserver.strategies.apiextensions.validation import has_condition
from podlife.errors import ApiError

log = logging.getLogger(__name__)

_DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"
_ROW = next(row for row in STORED if row.key == _DEFINITIONS)
_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 5.0


def serve_definitions(registry: Registry) -> None:
    """Serve every stored definition: for a server that starts."""
    for record in registry.store.list(_DEFINITIONS):
        try:
            rows = rows_of(decode_object(record.value), registry.call_webhook)
            registry.catalog.set_rows(record.key.name, rows)
        except Exception:  # one definition must not keep the server from starting
            log.exception("custom resource definition %s cannot be served", record.key.name)


class CustomResourceDefinitionController:
    """`run` ends when the store closes or the task is cancelled."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._terminating: set[str] = set()
        # What the rows of each definition were made from.
        self._served: dict[str, object] = {}

    async def run(self) -> None:
        store = self._registry.store
        async with asyncio.TaskGroup() as group:
            while True:
                subscription = store.subscribe(_DEFINITIONS, since=store.revision)
                for record in store.list(_DEFINITIONS):
                    await self._sync(group, record.key.name)
                try:
                    while True:
                        for event in (await subscription.next()).events:
                            await self._follow(group, event)
                except CompactedError:
                    continue  # fell behind: look at all definitions again
                except StoreError:
                    return
                finally:
                    subscription.close()

    async def _follow(self, group: asyncio.TaskGroup, event: Event) -> None:
        name = event.record.key.name
        await self._sync(group, name)
        if event.type is EventType.DELETED:
            # Its names are free for others now.
            for record in self._registry.store.list(_DEFINITIONS):
                if b'"False"' in record.value:
                    await self._sync(group, record.key.name)

    async def _sync(self, group: asyncio.TaskGroup, name: str) -> None:
        try:
            await self._settle(name)
        except (ApiError, StoreError) as error:
            log.warning("custom resource definition %s is not up to date: %s", name, error)
        except Exception:  # a failure of one definition must affect neither the server nor other definitions
            log.exception("custom resource definition %s failed", name)
        record = self._registry.store.get(_key(name))
        if record is not None and name not in self._terminating and _is_to_be_removed(record):
            self._terminating.add(name)
            group.create_task(self._terminate(name), name=f"remove definition {name}")

    async def _settle(self, name: str) -> None:
        """Serve the definition as it will be, then say so in its status."""
        registry = self._registry
        async with registry.store.locked(_key(name)):
            record = registry.store.get(_key(name))
            if record is None:
                self._served.pop(name, None)
                registry.catalog.set_rows(name, ())
                return
            old, new = decode_object(record.value), decode_object(record.value)
            settle(new, self._others(new), registry.clock.now())
            if self._served.get(name) != (content := _content(new)):
                # Compiling a rule takes about a millisecond.
                if is_large(record.value) or RULES.encode() in record.value:
                    rows = await run_in_thread(lambda: rows_of(new, registry.call_webhook))
                else:
                    rows = rows_of(new, registry.call_webhook)
                registry.catalog.set_rows(name, rows)
                self._served[name] = content
            await self._commit(record, new, old)

    async def _commit(self, record: Record, new: Object, old: Object) -> None:
        if new != old:
            track_own(_ROW, "status", new, old, format_time(self._registry.clock.now()))
        await commit_change(self._registry, record, new, old, dry_run=False)

    def _others(self, crd: Object) -> Iterator[Object]:
        group = f".{crd['spec']['group']}"
        name = crd["metadata"]["name"]
        return (
            decode_object(record.value)
            for record in self._registry.store.list(_DEFINITIONS)
            if record.key.name.endswith(group) and record.key.name != name
        )

    async def _terminate(self, name: str) -> None:
        pause = _FIRST_PAUSE_SECONDS
        try:
            # Writes that were admitted before the definition was Terminating end first.
            for _ in range(2):
                await self._registry.store.commit()
            while not await self._is_removed(name):
                await asyncio.sleep(pause)
                pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)
        finally:
            self._terminating.discard(name)

    async def _is_removed(self, name: str) -> bool:
        """Delete the instances, and the definition if there are none; returns whether nothing is left to do."""
        try:
            record = self._registry.store.get(_key(name))
            if record is None or not _is_to_be_removed(record):
                return True
            if not has_condition(decode_object(record.value), "Established"):
                await self._change(
                    name, _finish("NeverEstablished", "resource was never established", self._registry)
                )
                return True
            await self._change(name, _progress(self._registry))
            await self._delete_instances(name)
            if self._registry.store.count(name):
                return False
            await self._change(
                name, _finish("InstanceDeletionCompleted", "removed all instances", self._registry)
            )
        except (ApiError, StoreError) as error:
            log.warning("custom resource definition %s is not removed yet: %s", name, error)
            return False
        except Exception:  # tried again, and other definitions go on
            log.exception("removal of custom resource definition %s failed, will retry", name)
            return False
        return True

    async def _delete_instances(self, name: str) -> None:
        row = next((row for row in self._registry.catalog.rows if row.custom and row.key == name), None)
        if row is None:
            return
        for record in self._registry.store.list(row.storage_key):
            await delete_in_background(self._registry, row, record.key, CONTROLLERS)

    async def _change(self, name: str, change: Callable[[Object], None]) -> None:
        async with self._registry.store.locked(_key(name)):
            record = self._registry.store.get(_key(name))
            if record is not None:
                old, new = decode_object(record.value), decode_object(record.value)
                change(new)
                await self._commit(record, new, old)


def _content(crd: Object) -> object:
    """What the rows of a definition depend on."""
    meta, names = crd["metadata"], crd["status"].get("acceptedNames")
    conditions = [has_condition(crd, kind) for kind in ("NamesAccepted", "Established", "Terminating")]
    return meta["uid"], meta.get("generation"), encode(names), *conditions


def _progress(registry: Registry) -> Callable[[Object], None]:
    now = registry.clock.now()
    reason, message = "InstanceDeletionInProgress", "CustomResource deletion is in progress"
    return lambda crd: set_condition(crd["status"], "Terminating", "True", reason, message, now)


def _finish(reason: str, message: str, registry: Registry) -> Callable[[Object], None]:
    now = registry.clock.now()

    def change(crd: Object) -> None:
        set_condition(crd["status"], "Terminating", "False", reason, message, now)
        left = [each for each in crd["metadata"].get("finalizers", ()) if each != FINALIZER]
        crd["metadata"]["finalizers"] = left
        if not left:
            del crd["metadata"]["finalizers"]

    return change


def _key(name: str) -> Key:
    return Key(_DEFINITIONS, "", name)


def _is_to_be_removed(record: Record) -> bool:
    if b'"deletionTimestamp"' not in record.value:
        return False
    meta = decode_object(record.value)["metadata"]
    return "deletionTimestamp" in meta and FINALIZER in meta.get("finalizers", ())
