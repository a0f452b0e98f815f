"""What a scenario acts with, and what the controllers have made of it, in a form that two servers share."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field
from typing import Any

from podlife.api.codec import Object, encode
from podlife.client import (
    ENDPOINT_SLICES,
    ENDPOINTS,
    NAMESPACES,
    NODES,
    PODS,
    SERVICES,
    Client,
    DeleteOptions,
    ListOptions,
    Ref,
)

LABELS = {"app": "web"}
PORT: Object = {"port": 80, "targetPort": 8080}
TRIGGER_TIME = "endpoints.kubernetes.io/last-change-trigger-time"
NODE_LABELS = {
    "node-a": {"topology.kubernetes.io/zone": "a"},
    "node-b": {"topology.kubernetes.io/zone": "b"},
    "node-c": {},
}
METADATA = ListOptions(metadata_only=True)
# A change of upstream's may wait for a second (endpointSliceChangeMinSyncDelay).
QUIET_SECONDS = 2.0
# How many pods are created at the same time.
_AT_ONCE = 20


async def create_nodes(client: Client) -> None:
    for name, labels in NODE_LABELS.items():
        await client.create(NODES, {"metadata": {"name": name, "labels": labels}})


@dataclass
class Stage:
    """One namespace of one server."""

    client: Client
    namespace: str
    _seconds: int = field(default=0, init=False)

    async def open(self) -> None:
        await self.client.create(NAMESPACES, {"metadata": {"name": self.namespace}})

    # What a scenario does

    async def create(self, ref: Ref, name: str, **content: Any) -> None:
        meta = {"name": name} | content.pop("metadata", {})
        await self.client.create(ref, {"metadata": meta} | content, self.namespace)

    async def patch(self, ref: Ref, name: str, **content: Any) -> None:
        await self.client.patch(ref, name, content, self.namespace)

    async def delete(self, ref: Ref, name: str, *, grace_seconds: int | None = None) -> None:
        options = DeleteOptions(grace_period_seconds=grace_seconds)
        await self.client.delete(ref, name, self.namespace, options=options)

    async def service(self, name: str = "web", metadata: Object | None = None, **spec: Any) -> None:
        given: Object = {"selector": LABELS, "ports": [PORT]} | spec
        await self.create(SERVICES, name, metadata=metadata or {}, spec=given)

    async def pod(
        self,
        name: str,
        *ips: str,
        is_ready: bool = True,
        ports: tuple[Object, ...] = ({"name": "http", "containerPort": 8080},),
        labels: dict[str, str] | None = None,
        **spec: Any,
    ) -> None:
        containers = [{"name": "main", "image": "image", "ports": list(ports)}]
        given: Object = {"nodeName": "node-a", "containers": containers} | spec
        await self.create(PODS, name, metadata={"labels": labels or LABELS}, spec=given)
        if ips:
            await self.status(name, *ips, is_ready=is_ready)

    async def status(self, name: str, *ips: str, is_ready: bool = True, phase: str = "Running") -> None:
        # Each change has a time of its own, as it would from a kubelet.
        self._seconds += 1
        minutes, seconds = divmod(self._seconds, 60)
        time = f"2030-06-01T{minutes // 60:02}:{minutes % 60:02}:{seconds:02}Z"
        condition = {"type": "Ready", "status": str(is_ready), "lastTransitionTime": time}
        status = {"phase": phase, "podIP": ips[0], "podIPs": [{"ip": ip} for ip in ips]}
        body = {"status": status | {"conditions": [condition]}}
        await self.client.patch(PODS, name, body, self.namespace, subresource="status")

    async def pods(self, count: int, **kwargs: Any) -> None:
        """The first third is not ready; the second half has its port `http` at another number."""
        turns = asyncio.Semaphore(_AT_ONCE)

        async def one(number: int) -> None:
            async with turns:
                ports = ({"name": "http", "containerPort": 8081 if number < count // 2 else 8082},)
                ip = f"10.{number // 250 + 1}.0.{number % 250 + 1}"
                await self.pod(f"pod-{number:04}", ip, ports=ports, is_ready=number >= count // 3, **kwargs)

        await asyncio.gather(*map(one, range(count)))

    async def slices_of(self, service: str = "web") -> list[Object]:
        selector = f"kubernetes.io/service-name={service}"
        options = ListOptions(label_selector=selector)
        return (await self.client.list(ENDPOINT_SLICES, self.namespace, options=options)).items

    async def is_quiet(self) -> bool:
        """Whether nothing changes for a while."""
        before = await self.seen()
        await asyncio.sleep(QUIET_SECONDS)
        return before == await self.seen()

    # What is compared

    async def seen(self) -> Object:
        """All Endpoints and EndpointSlices; which endpoint is in which slice is chance, how many are in each is not."""
        uids: dict[str, str] = {}
        for ref in (SERVICES, ENDPOINTS, PODS):
            for each in (await self.client.list(ref, self.namespace, options=METADATA)).items:
                uids[each["metadata"]["uid"]] = f"<uid of {ref.kind} {each['metadata']['name']}>"
        slices: dict[bytes, Object] = {}
        for each in (await self.client.list(ENDPOINT_SLICES, self.namespace)).items:
            shown = {
                "metadata": _metadata(each, uids),
                "addressType": each["addressType"],
                "ports": _sorted(each.get("ports") or []),
            }
            group = slices.setdefault(encode(_ordered(shown)), shown | {"sizes": [], "endpoints": []})
            endpoints = _with_symbols(each.get("endpoints") or [], uids)
            group["sizes"] = sorted([*group["sizes"], len(endpoints)])
            group["endpoints"] = _sorted([*group["endpoints"], *endpoints])
        return {
            "slices": [slices[key] for key in sorted(slices)],
            "endpoints": {
                each["metadata"]["name"]: {
                    "metadata": _metadata(each, uids),
                    "subsets": _sorted([_subset(one, uids) for one in each.get("subsets") or []]),
                }
                for each in (await self.client.list(ENDPOINTS, self.namespace)).items
            },
        }


def _metadata(obj: Object, uids: dict[str, str]) -> Object:
    meta = obj["metadata"]
    annotations = dict(meta.get("annotations") or {})
    # Whether there is one depends on which changes the last write saw together.
    annotations.pop(TRIGGER_TIME, None)
    # An update by theirs takes generateName off.
    name = re.sub(r"-[a-z0-9]{5}$", "-*", meta["name"]) if "addressType" in obj else meta["name"]
    return {
        "name": name,
        "labels": meta.get("labels") or {},
        "annotations": annotations,
        "ownerReferences": _with_symbols(meta.get("ownerReferences") or [], uids),
    }


def _subset(subset: Object, uids: dict[str, str]) -> Object:
    """Addresses in their order, for the same address that of chance; ports and subsets are in the order of a hash."""
    shown: Object = _with_symbols(subset, uids)
    for name, values in shown.items():
        order = {each.get("ip"): place for place, each in enumerate(values)}
        shown[name] = sorted(_sorted(values), key=lambda each: order[each.get("ip")])
    return shown


def _with_symbols(value: Any, uids: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {
            key: uids.get(each, "<unknown uid>") if key == "uid" else _with_symbols(each, uids)
            for key, each in value.items()
        }
    return [_with_symbols(each, uids) for each in value] if isinstance(value, list) else value


def _sorted(values: list[Any]) -> list[Any]:
    return sorted(values, key=lambda each: encode(_ordered(each)))


def _ordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _ordered(value[key]) for key in sorted(value)}
    return [_ordered(each) for each in value] if isinstance(value, list) else value
