"""What must hold all the time, looked at the moment it could be broken: who deletes which pod, and what runs twice."""

from __future__ import annotations

import asyncio
import json
import random
import re
from typing import Any

from podlife.client import PODS, Client
from podlife.errors import NotFoundError
from podlife.kubelet.runtime import ContainerConfig, SandboxConfig
from podlife.kubelet.runtimes.sim import Behaviour, Script
from podlife.testing import Cluster
from podlife.wire import Handler, Request, Response
from tests.component.chaos.mirror import Mirror

Object = dict[str, Any]

_POD = re.compile(r"^/api/v1/namespaces/([^/]+)/pods/([^/]+)$")


class Judge:
    """Stands before the server and looks at each deletion of a pod; `faults` are those that no rule covers. Whatever
    comes by it delays a little."""

    def __init__(self, mirror: Mirror, client: Client, faults: list[str], chance: random.Random) -> None:
        self._chance = random.Random(chance.random())
        self._mirror = mirror
        self._client = client
        self._faults = faults

    async def __call__(self, request: Request, onwards: Handler) -> Response:
        # No request takes as long as another: what is sent together arrives in any order.
        await asyncio.sleep(self._chance.choice((0.0, 0.001, 0.005, 0.03)))
        found = _POD.match(request.path) if request.method == "DELETE" else None
        if found is None:
            return await onwards(request)
        try:
            before: Object = await self._client.get(PODS, found[2], found[1])
        except NotFoundError:
            return await onwards(request)
        response = await onwards(request)
        if response.status < 300:
            self._judge(request, before)
        return response

    def _judge(self, request: Request, pod: Object) -> None:
        who, name = request.headers.get("User-Agent", ""), pod["metadata"]["name"]
        if who == "test":
            return
        conditions = (json.loads(request.body or b"{}").get("preconditions")) or {}
        if conditions.get("uid") != pod["metadata"]["uid"]:
            self._faults.append(f"{who} deleted {name} without naming its UID")
        if not self._mirror.may_delete(who, pod):
            shown = {
                "metadata": pod["metadata"],
                "node": pod["spec"].get("nodeName"),
                "status": pod["status"],
            }
            self._faults.append(f"{who} deleted {name}, which no rule covers: {json.dumps(shown)}")


class Starts:
    """Looks at every container that is made: none runs twice, and no ordinal of a StatefulSet at two places."""

    def __init__(self, cluster: Cluster, faults: list[str]) -> None:
        self._cluster = cluster
        self._faults = faults

    def over(self, script: Script) -> Script:
        def watched(sandbox: SandboxConfig, container: ContainerConfig) -> Behaviour:
            self._look(sandbox, container)
            return script(sandbox, container)

        return watched

    def _look(self, sandbox: SandboxConfig, container: ContainerConfig) -> None:
        for node in self._cluster.nodes.values():
            for other in node.containers:
                if (other.pod_uid, other.name) == (sandbox.pod_uid, container.name):
                    self._faults.append(
                        f"{sandbox.name}/{container.name} is made while it runs on {node.name}"
                    )
                is_namesake = (other.namespace, other.pod) == (sandbox.namespace, sandbox.name)
                if is_namesake and other.pod_uid != sandbox.pod_uid and sandbox.name.startswith("db-"):
                    self._faults.append(f"{sandbox.name} is made while another of it runs on {node.name}")
