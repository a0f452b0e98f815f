"""APIServices of this server's own: one for every group and version that it serves, as upstream registers them.

They say what is served and decide nothing. Those of built-in groups are created when the server starts: one that is
deleted comes back with the next start. Those of custom resource definitions follow the definitions at all times. What
users have created under such a name is left alone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import replace

from podlife.api.codec import Object, decode_object
from podlife.apiserver.authn import CONTROLLERS
from podlife.apiserver.bootstrap import ensure_object
from podlife.apiserver.registry import Registry
from podlife.apiserver.registry.delete import delete_in_background
from podlife.apiserver.storage import CompactedError, Event, EventType, Key, Record, StoreError
from podlife.errors import ApiError

log = logging.getLogger(__name__)

_GROUP, _PLURAL = "apiregistration.k8s.io", "apiservices"
_API_SERVICES = f"{_PLURAL}.{_GROUP}"
_DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"
_MANAGED = "kube-aggregator.kubernetes.io/automanaged"
_ON_START, _ALWAYS = "onstart", "true"
_PAUSE_SECONDS = 1.0
# Upstream's; a group that is not here has no APIService.
_GROUP_PRIORITIES = {
    "": 18000,
    "apps": 17800,
    "events.k8s.io": 17750,
    "authentication.k8s.io": 17700,
    "authorization.k8s.io": 17600,
    "autoscaling": 17500,
    "batch": 17400,
    "certificates.k8s.io": 17300,
    "networking.k8s.io": 17200,
    "policy": 17100,
    "rbac.authorization.k8s.io": 17000,
    "storage.k8s.io": 16800,
    "apiextensions.k8s.io": 16700,
    "admissionregistration.k8s.io": 16700,
    "scheduling.k8s.io": 16600,
    "coordination.k8s.io": 16500,
    "node.k8s.io": 16300,
    "discovery.k8s.io": 16200,
    "resource.k8s.io": 16200,
    "flowcontrol.apiserver.k8s.io": 16100,
}
_VERSION_PRIORITIES = {
    "v1.": 1,
    "v2.autoscaling": 30,
    "v1.flowcontrol.apiserver.k8s.io": 21,
    "v1.resource.k8s.io": 21,
}
_VERSION_PRIORITY = 15
_CUSTOM_PRIORITIES = (1000, 100)

GroupVersion = tuple[str, str]


async def register_built_in(registry: Registry) -> None:
    """Create what is missing, and remove what an earlier release registered and this one does not serve."""
    wanted: dict[str, Object] = {}
    for group, version in {(row.group, row.version) for row in registry.catalog.rows if not row.custom}:
        name = f"{version}.{group}"
        if group in _GROUP_PRIORITIES:
            priorities = (_GROUP_PRIORITIES[group], _VERSION_PRIORITIES.get(name, _VERSION_PRIORITY))
            wanted[name] = _api_service((group, version), priorities, _ON_START)
    await asyncio.gather(*(ensure_object(registry, _GROUP, _PLURAL, obj) for obj in wanted.values()))
    await _remove_others(registry, wanted, _ON_START)


class LocalApiServiceController:
    """The APIServices of definitions. `run` ends when the store closes or the task is cancelled."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._served: dict[str, frozenset[GroupVersion]] = {}
        self._changed = asyncio.Event()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            followers = [
                group.create_task(self._follow(_DEFINITIONS, self._note_definition)),
                group.create_task(self._follow(_API_SERVICES, self._note_api_service)),
            ]
            writer = group.create_task(self._keep_registering())
            await asyncio.wait(followers)
            writer.cancel()

    async def _follow(self, resource: str, note: Callable[[Event], None]) -> None:
        store = self._registry.store
        while True:
            subscription = store.subscribe(resource, since=store.revision)
            if resource == _DEFINITIONS:
                self._served = {each.key.name: _served_by(each) for each in store.list(_DEFINITIONS)}
            self._changed.set()
            try:
                while True:
                    for event in (await subscription.next()).events:
                        note(event)
            except CompactedError:
                continue  # fell behind: look at all of them again
            except StoreError:
                return
            finally:
                subscription.close()

    def _note_definition(self, event: Event) -> None:
        name = event.record.key.name
        before = self._served.pop(name, frozenset())
        if event.type is not EventType.DELETED:
            self._served[name] = _served_by(event.record)
        if self._served.get(name, frozenset()) != before:
            self._changed.set()

    def _note_api_service(self, event: Event) -> None:
        if event.type is EventType.DELETED:
            self._changed.set()

    async def _keep_registering(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                await self._register()
                continue
            except (ApiError, StoreError) as error:
                log.warning("APIServices of definitions not up to date, will retry: %s", error)
            except Exception:  # it must not affect the server
                log.exception("registration of definitions failed, will retry")
            await asyncio.sleep(_PAUSE_SECONDS)
            self._changed.set()

    async def _register(self) -> None:
        versions = {each for some in self._served.values() for each in some}
        wanted = {f"{version}.{group}": (group, version) for group, version in versions}
        for each in wanted.values():
            obj = _api_service(each, _CUSTOM_PRIORITIES, _ALWAYS)
            await ensure_object(self._registry, _GROUP, _PLURAL, obj)
        await _remove_others(self._registry, wanted, _ALWAYS)


def _served_by(record: Record) -> frozenset[GroupVersion]:
    spec = decode_object(record.value)["spec"]
    return frozenset((spec["group"], each["name"]) for each in spec.get("versions") or () if each["served"])


def _api_service(group_version: GroupVersion, priorities: tuple[int, int], managed: str) -> Object:
    group, version = group_version
    spec = {"version": version, "groupPriorityMinimum": priorities[0], "versionPriority": priorities[1]}
    return {
        "metadata": {"name": f"{version}.{group}", "labels": {_MANAGED: managed}},
        "spec": ({"group": group} if group else {}) | spec,
        "status": {},
    }


async def _remove_others(registry: Registry, wanted: Iterable[str], managed: str) -> None:
    kept = frozenset(wanted)
    row = registry.catalog.find(_GROUP, "v1", _PLURAL)
    assert row is not None
    # No webhook is asked, as for their creation.
    registry = replace(registry, dynamic_admission=None)
    for record in registry.store.list(_API_SERVICES):
        name = record.key.name
        if name not in kept and _MANAGED.encode() in record.value:
            labels = decode_object(record.value)["metadata"].get("labels") or {}
            if labels.get(_MANAGED) == managed:
                await delete_in_background(registry, row, Key(_API_SERVICES, "", name), CONTROLLERS)
