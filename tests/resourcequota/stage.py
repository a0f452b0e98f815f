"""What a scenario acts with, and what a server and its controller have made of it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from podlife.api.codec import Object
from podlife.client import NAMESPACES, PERSISTENT_VOLUME_CLAIMS, PODS, SERVICES, Client, DeleteOptions, Ref
from podlife.client.options import WriteOptions
from podlife.errors import ApiError, NotFoundError
from podlife.resourcequota.controller import RESOURCE_QUOTAS
from tests.kit.wait import until

LIMIT_RANGES = Ref("", "v1", "limitranges", kind="LimitRange")
PRIORITY_CLASSES = Ref("scheduling.k8s.io", "v1", "priorityclasses", namespaced=False, kind="PriorityClass")
DEFINITIONS = Ref(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    namespaced=False,
    kind="CustomResourceDefinition",
)
WIDGETS = Ref("quota.example.com", "v1", "widgets", kind="Widget")
# Of any step: kube-controller-manager looks for new kinds every 30 seconds.
DEADLINE_SECONDS = 150.0
# Admission of kube-apiserver reads quotas and limit ranges from a cache that nobody can see.
CACHE_SECONDS = 0.5


async def prepare(client: Client) -> None:
    """What all scenarios of a cluster share."""
    for name, value in (("high", 100), ("low", 1)):
        await client.create(PRIORITY_CLASSES, {"metadata": {"name": name}, "value": value})
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget"}
    spec = {"group": WIDGETS.group, "scope": "Namespaced", "names": names, "versions": [version]}
    await client.create(DEFINITIONS, {"metadata": {"name": "widgets.quota.example.com"}, "spec": spec})


@dataclass
class Stage:
    """One namespace of one server."""

    client: Client
    namespace: str
    answers: list[str] = field(default_factory=list)

    async def open(self) -> None:
        await self.client.create(NAMESPACES, {"metadata": {"name": self.namespace}})

    async def create(
        self, ref: Ref, name: str, *, options: WriteOptions | None = None, **content: Any
    ) -> None:
        """Create an object; a refusal is part of what is compared."""
        meta = {"name": name} if not name.endswith("-") else {"generateName": name}
        obj = {"metadata": meta | content.pop("metadata", {})} | content
        await self._try(f"create {ref} {name}", self.client.create(ref, obj, self.namespace, options=options))

    async def patch(self, ref: Ref, name: str, *, subresource: str = "", **content: Any) -> None:
        request = self.client.patch(ref, name, content, self.namespace, subresource=subresource)
        await self._try(f"patch {ref} {name}", request)

    async def delete(self, ref: Ref, name: str, *, grace_seconds: int | None = 0) -> None:
        options = DeleteOptions(grace_period_seconds=grace_seconds, propagation_policy="Background")
        await self.client.delete(ref, name, self.namespace, options=options)
        if ref is PERSISTENT_VOLUME_CLAIMS:
            # Nobody here removes the finalizer that protects claims in use, where admission adds it.
            with suppress(NotFoundError):
                await self.client.patch(ref, name, {"metadata": {"finalizers": None}}, self.namespace)

    async def _try(self, what: str, request: Any) -> None:
        try:
            await request
        except ApiError as error:
            self.answers.append(f"{what}: {error.code} {error.reason}: {_in_order(str(error), what)}")
        else:
            self.answers.append(f"{what}: ok")

    async def quota(self, name: str = "quota", *, is_complete: bool = True, **spec: Any) -> None:
        """A quota that limits already: its usage is known."""
        await self.create(RESOURCE_QUOTAS, name, spec=spec)
        await self.await_status(name, is_complete=is_complete)

    async def await_status(self, name: str = "quota", *, is_complete: bool = True) -> None:
        async def is_known() -> bool:
            quota = await self.client.get(RESOURCE_QUOTAS, name, self.namespace)
            hard, status = quota["spec"]["hard"], quota["status"]
            return bool(status.get("hard") == hard) and (
                not is_complete or set(status.get("used") or {}) == set(hard)
            )

        await until(is_known, f"the status of quota {name}", seconds=DEADLINE_SECONDS)
        await asyncio.sleep(CACHE_SECONDS)

    async def touch_until_complete(self, resource: str) -> None:
        """Theirs looks for new kinds every 30 seconds, and then at a quota only if its limits change."""
        limits = count(2)

        async def is_counted() -> bool:
            for limit in (next(limits), 1):
                change = {"spec": {"hard": {resource: str(limit)}}}
                await self.client.patch(RESOURCE_QUOTAS, "quota", change, self.namespace)
                await self.await_status(is_complete=False)
            quota = await self.client.get(RESOURCE_QUOTAS, "quota", self.namespace)
            return resource in (quota["status"].get("used") or {})

        await until(is_counted, f"the number of {resource}", seconds=DEADLINE_SECONDS)
        await self.await_status()

    async def limit_range(self, *limits: Object, name: str = "limits") -> None:
        await self.create(LIMIT_RANGES, name, spec={"limits": list(limits)})
        await asyncio.sleep(CACHE_SECONDS)

    async def pod(
        self,
        name: str,
        requests: Mapping[str, str] | None = None,
        limits: Mapping[str, str] | None = None,
        *,
        metadata: Object | None = None,
        **spec: Any,
    ) -> None:
        resources = {"requests": dict(requests or {}), "limits": dict(limits or {})}
        containers = [{"name": "main", "image": "image", "resources": resources}]
        given: Object = {"containers": containers} | spec
        await self.create(PODS, name, metadata=metadata or {}, spec=given)

    async def service(self, name: str, kind: str = "ClusterIP", ports: int = 1, **spec: Any) -> None:
        listed = [{"name": f"port-{number}", "port": 80 + number} for number in range(ports)]
        await self.create(SERVICES, name, spec={"type": kind, "ports": listed} | spec)

    async def claim(self, name: str, size: str = "1Gi", **spec: Any) -> None:
        given: Object = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
        await self.create(PERSISTENT_VOLUME_CLAIMS, name, spec=given | spec)

    async def end(self, pod: str, phase: str) -> None:
        await self.patch(PODS, pod, subresource="status", status={"phase": phase})

    # What is compared

    async def seen(self) -> Object:
        quotas = (await self.client.list(RESOURCE_QUOTAS, self.namespace)).items
        pods = (await self.client.list(PODS, self.namespace)).items
        ranges = (await self.client.list(LIMIT_RANGES, self.namespace)).items
        return {
            "answers": list(self.answers),
            "quotas": {each["metadata"]["name"]: each["status"] for each in quotas},
            "ranges": {each["metadata"]["name"]: each["spec"] for each in ranges},
            "pods": sorted(
                (
                    re.sub(r"-[a-z0-9]{5}$", "-*", each["metadata"]["name"]),
                    each["metadata"].get("annotations") or {},
                    [
                        container.get("resources") or {}
                        for field in ("initContainers", "containers")
                        for container in each["spec"].get(field) or ()
                    ],
                )
                for each in pods
            ),
        }


def _in_order(message: str, what: str) -> str:
    """Errors that theirs finds in the order of chance, sorted; and no generated names."""
    if what.endswith("-"):
        message = re.sub(r'-[a-z0-9]{5}"', '-*"', message)
    match = re.fullmatch(r"(.*? is (?:forbidden|invalid): )\[(.*)\]", message, re.DOTALL)
    if match is None:
        return message
    parts = re.split(r", (?=minimum|maximum|\S+ max limit|spec|status)", match[2])
    return f"{match[1]}[{', '.join(sorted(parts))}]"
