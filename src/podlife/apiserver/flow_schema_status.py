"""The condition `Dangling` of FlowSchemas: whether the priority level that one refers to is missing.

kube-apiserver sets it where it applies flow control. This server bounds its work in other ways and does not queue by
these objects, but who writes them waits for the condition. It follows the store's events: that of a FlowSchema is about
itself, that of a priority level about those that name it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime

from podlife.api.codec import Object, decode_object, encode, format_time
from podlife.apiserver.registry import Registry
from podlife.apiserver.registry.apply import apply_status
from podlife.apiserver.resource_table import STORED
from podlife.apiserver.storage import CompactedError, EventType, Key, StoreError
from podlife.errors import ApiError

log = logging.getLogger(__name__)

_SCHEMAS = "flowschemas.flowcontrol.apiserver.k8s.io"
_LEVELS = "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io"
_DANGLING = "Dangling"
_ROW = next(row for row in STORED if row.key == _SCHEMAS)
# Upstream's name for who applies the condition.
_MANAGER = "api-priority-and-fairness-config-consumer-v1"


def dangling_condition(level: str, *, is_found: bool, now: datetime) -> Object:
    """The condition, in upstream's words."""
    found = "and it exists" if is_found else "but there is no such object"
    return {
        "type": _DANGLING,
        "status": "False" if is_found else "True",
        "lastTransitionTime": format_time(now),
        "reason": "Found" if is_found else "NotFound",
        "message": "This FlowSchema references the PriorityLevelConfiguration object named "
        f"{encode(level).decode()} {found}",
    }


class FlowSchemaStatusController:
    """`run` ends when the store closes or the task is cancelled."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow(_SCHEMAS, self._update), name="flow schemas")
            group.create_task(self._follow(_LEVELS, self._update_those_of), name="priority levels")

    async def _follow(self, key: str, act: Callable[[str], Awaitable[None]]) -> None:
        store = self._registry.store
        while True:
            subscription = store.subscribe(key, since=store.revision)
            try:
                for record in store.list(_SCHEMAS):
                    await self._update(record.key.name)
                while True:
                    for event in (await subscription.next()).events:
                        # Of a level only its beginning and its end matter; of a schema, its end does not.
                        is_level = key == _LEVELS
                        if event.type is not (EventType.MODIFIED if is_level else EventType.DELETED):
                            await act(event.record.key.name)
            except CompactedError:
                continue  # fell behind: check all again
            except StoreError:
                return
            finally:
                subscription.close()

    async def _update_those_of(self, level: str) -> None:
        mark = encode({"name": level})
        for record in self._registry.store.list(_SCHEMAS):
            if mark in record.value:
                await self._update(record.key.name)

    async def _update(self, name: str) -> None:
        record = self._registry.store.get(Key(_SCHEMAS, "", name))
        if record is None:
            return
        schema = decode_object(record.value)
        level = schema["spec"]["priorityLevelConfiguration"]["name"]
        is_found = self._registry.store.get(Key(_LEVELS, "", level)) is not None
        wanted = dangling_condition(level, is_found=is_found, now=self._registry.clock.now())
        conditions = schema.get("status", {}).get("conditions") or []
        known: Object = next((each for each in conditions if each.get("type") == _DANGLING), {})
        if all(known.get(field) == wanted[field] for field in ("status", "reason", "message")):
            return
        try:
            await apply_status(self._registry, _ROW, name, _MANAGER, {"conditions": [wanted]})
        except ApiError as error:
            log.warning("status of FlowSchema %s not written: %s", name, error)
