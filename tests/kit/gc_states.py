"""Creates pods in every state that the collector handles, on any API server."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

from podlife.api.codec import Object
from podlife.client import NAMESPACES, NODES, PODS, Client, DeleteOptions, PatchType
from podlife.errors import AlreadyExistsError, NotFoundError

FINALIZER = "podlife.example/hold"
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"


class States:
    """Creates nodes and pods in one namespace; it prefixes node names, so that namespaces do not interfere."""

    def __init__(self, client: Client, namespace: str) -> None:
        self.client = client
        self.namespace = namespace

    async def begin(self) -> None:
        """Create the namespace, a ready node and one that is out of service."""
        with contextlib.suppress(AlreadyExistsError):
            await self.client.create(NAMESPACES, {"metadata": {"name": self.namespace}})
        await self.node("alive")
        await self.node("broken", is_ready=False, taints=[OUT_OF_SERVICE])

    def node_name(self, name: str) -> str:
        return f"{self.namespace}-{name}"

    async def node(self, name: str, *, is_ready: bool = True, taints: Sequence[str] = ()) -> None:
        spec = {"taints": [{"key": key, "value": "nodeshutdown", "effect": "NoExecute"} for key in taints]}
        full = self.node_name(name)
        await self.client.create(NODES, {"metadata": {"name": full}, "spec": spec})
        condition = {"type": "Ready", "status": "True" if is_ready else "False"}
        await self._status(NODES, full, {"conditions": [condition]}, "")

    async def pod(
        self,
        name: str,
        *,
        node: str = "alive",
        phase: str = "Running",
        reason: str = "",
        **metadata: Any,
    ) -> Object:
        """A pod in this phase, on the node of this name, which need not exist, or on none."""
        spec: Object = {
            "containers": [{"name": "main", "image": "example/none"}],
            "terminationGracePeriodSeconds": 3600,
            **({"nodeName": self.node_name(node)} if node else {}),
        }
        body = {"metadata": {"name": name, **metadata}, "spec": spec}
        created: Object = await self.client.create(PODS, body, self.namespace)
        if phase == "Pending":
            return created
        status = {"phase": phase, **({"reason": reason} if reason else {})}
        return await self._status(PODS, name, status, self.namespace)

    async def _status(self, ref: Any, name: str, status: Object, namespace: str) -> Object:
        changed: Object = await self.client.patch(
            ref, name, {"status": status}, namespace, type=PatchType.MERGE, subresource="status"
        )
        return changed

    async def terminated(self, *names: str) -> None:
        for name in names:
            await self.pod(name, phase="Succeeded")

    async def orphaned(self, *names: str) -> None:
        for name in names:
            await self.pod(name, node="gone")

    async def out_of_service(self, *names: str) -> None:
        for name in names:
            await self.pod(name, node="broken")
            await self.delete(name)

    async def unscheduled(self, *names: str) -> None:
        """Deleting a pod without a node removes it at once, unless a finalizer holds it."""
        for name in names:
            await self.pod(name, node="", phase="Pending", finalizers=[FINALIZER])
            await self.delete(name)

    async def delete(self, name: str, *, grace_seconds: int | None = None) -> None:
        options = DeleteOptions(grace_period_seconds=grace_seconds)
        await self.client.delete(PODS, name, self.namespace, options=options)

    async def names(self) -> set[str]:
        page = await self.client.list_all(PODS, self.namespace)
        return {pod["metadata"]["name"] for pod in page.items}

    async def get(self, name: str) -> Object:
        pod: Object = await self.client.get(PODS, name, self.namespace)
        return pod

    async def end(self) -> None:
        """Delete everything: pods with their finalizers, and the nodes."""
        for name in await self.names():
            with contextlib.suppress(NotFoundError):
                await self.client.patch(PODS, name, {"metadata": {"finalizers": None}}, self.namespace)
                await self.delete(name, grace_seconds=0)
        for name in ("alive", "broken"):
            await self.client.delete(NODES, self.node_name(name))
