"""What a scenario of volumes acts with, and what the controllers have made of it, in a form that servers share."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from podlife.api.codec import Object
from podlife.client import (
    EVENTS,
    NAMESPACES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    STORAGE_CLASSES,
    Client,
    DeleteOptions,
    Ref,
)
from podlife.errors import NotFoundError

# How long nothing may change before a state counts as final: upstream binds pending claims every 15 s.
QUIET_SECONDS = 2.0
_HIDDEN: tuple[str, ...] = (
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "managedFields",
    "selfLink",
)
_HIDDEN += ("lastPhaseTransitionTime", "namespace", "generation", "deletionGracePeriodSeconds")
# Told again and again while something is waited for; which of them was told first is chance.
_WAITING = ("WaitForFirstConsumer", "WaitForPodScheduled")


@dataclass
class Stage:
    """One namespace of one server, and the cluster-wide objects whose names begin with its name."""

    client: Client
    namespace: str

    async def open(self) -> None:
        await self.client.create(NAMESPACES, {"metadata": {"name": self.namespace}})

    def own(self, name: str) -> str:
        return f"{self.namespace}-{name}" if name else name

    # What a scenario does

    async def volume(self, name: str, size: str = "1Gi", metadata: Object | None = None, **spec: Any) -> None:
        given: Object = {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": f"/data/{name}"},
            "storageClassName": "slow",
        } | spec
        given["storageClassName"] = self.own(given["storageClassName"])
        if "claimRef" in given:
            given["claimRef"] = {"namespace": self.namespace} | given["claimRef"]
        meta = {"name": self.own(name)} | (metadata or {})
        await self.client.create(PERSISTENT_VOLUMES, {"metadata": meta, "spec": given})

    async def claim(self, name: str, size: str = "1Gi", metadata: Object | None = None, **spec: Any) -> None:
        given: Object = {
            "resources": {"requests": {"storage": size}},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "slow",
        } | spec
        for field in ("storageClassName", "volumeName"):
            if given.get(field) is not None:
                given[field] = self.own(given[field])
        body = {"metadata": {"name": name} | (metadata or {}), "spec": given}
        await self.client.create(PERSISTENT_VOLUME_CLAIMS, body, self.namespace)

    async def storage_class(self, name: str, provisioner: str = "example.com/disk", **content: Any) -> None:
        body = {"metadata": {"name": self.own(name)}, "provisioner": provisioner} | content
        await self.client.create(STORAGE_CLASSES, body)

    async def pod(self, name: str, claim: str = "", *, node: str = "", **volume: Any) -> None:
        source = volume or {"persistentVolumeClaim": {"claimName": claim}}
        spec: Object = {
            "containers": [{"name": "main", "image": "image"}],
            "volumes": [{"name": "data"} | source],
            "terminationGracePeriodSeconds": 0,
            # No scheduler takes it.
            "schedulerName": "none",
        }
        if node:
            spec["nodeName"] = node
        await self.client.create(PODS, {"metadata": {"name": name}, "spec": spec}, self.namespace)

    async def patch(self, ref: Ref, name: str, body: Object, *, subresource: str = "") -> None:
        name, namespace = self._place(ref, name)
        await self.client.patch(ref, name, body, namespace, subresource=subresource)

    async def delete(self, ref: Ref, name: str) -> None:
        name, namespace = self._place(ref, name)
        options = DeleteOptions(grace_period_seconds=0)
        await self.client.delete(ref, name, namespace, options=options)

    async def get(self, ref: Ref, name: str) -> Object | None:
        name, namespace = self._place(ref, name)
        with suppress(NotFoundError):
            found: Object = await self.client.get(ref, name, namespace)
            return found
        return None

    async def until(self, ref: Ref, name: str, phase: str, *, seconds: float = 90.0) -> None:
        """Wait for a phase; an empty one is that of an object that is gone."""
        async with asyncio.timeout(seconds):
            while True:
                found = await self.get(ref, name)
                if (found or {}).get("status", {}).get("phase", "") == phase:
                    return
                await asyncio.sleep(0.2)

    async def until_told(self, reason: str, *, seconds: float = 90.0) -> None:
        async with asyncio.timeout(seconds):
            while not any(each["reason"] == reason for each in await self._events()):
                await asyncio.sleep(0.2)

    def _place(self, ref: Ref, name: str) -> tuple[str, str]:
        return (name, self.namespace) if ref.namespaced else (self.own(name), "")

    # What is compared

    async def seen(self) -> Object:
        claims = (await self.client.list(PERSISTENT_VOLUME_CLAIMS, self.namespace)).items
        volumes = [
            each
            for each in (await self.client.list(PERSISTENT_VOLUMES)).items
            if each["metadata"]["name"].startswith(f"{self.namespace}-")
        ]
        uids = {each["metadata"]["uid"]: each["metadata"]["name"] for each in claims}
        pods = (await self.client.list(PODS, self.namespace)).items
        uids |= {each["metadata"]["uid"]: each["metadata"]["name"] for each in pods}
        # Events of what has no namespace are in `default`.
        told = [each for each in await self._events() if each["reason"] not in _WAITING]
        return {
            "claims": {each["metadata"]["name"]: _shown(each, uids) for each in claims},
            "volumes": {each["metadata"]["name"]: _shown(each, uids) for each in volumes},
            "events": sorted(
                {
                    f"{each['involvedObject']['kind']} {each['involvedObject']['name']}: "
                    f"{each['type']} {each['reason']}: {each['message']}"
                    for each in told
                }
            ),
        }

    async def _events(self) -> list[Object]:
        own = (await self.client.list(EVENTS, self.namespace)).items
        others = (await self.client.list(EVENTS, "default")).items
        prefix = f"{self.namespace}-"
        return own + [each for each in others if each["involvedObject"]["name"].startswith(prefix)]


def _shown(value: Any, uids: dict[str, str], *, in_reference: bool = False) -> Any:
    if isinstance(value, list):
        return [_shown(each, uids, in_reference=in_reference) for each in value]
    if not isinstance(value, dict):
        return value
    shown: Object = {}
    for key, each in value.items():
        if key == "uid" and in_reference:
            # Of an object that is gone it is only known that it was one.
            shown[key] = uids.get(each, "<gone>") if each else ""
        elif key == "namespace" and in_reference:
            shown[key] = each
        elif key not in _HIDDEN:
            shown[key] = _shown(each, uids, in_reference=key in ("claimRef", "ownerReferences"))
    is_deleted = "deletionTimestamp" in value
    return shown | {"is being deleted": True} if is_deleted else shown
