"""What must hold all the time, looked at the moment it could be broken: who deletes which pod, and what runs twice.

`Mirror` has what there is in the cluster, kept up to date by watches that nothing disturbs. `Mirror.reasons` has the
rules by which anybody deletes a pod. Whoever asks may be late: a request may have waited, and a cache may have been
behind; so it counts, too, what was so a moment ago.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

from podlife.aio import cancel_and_wait
from podlife.apiserver.storage import Key
from podlife.client import (
    DAEMON_SETS,
    JOBS,
    NODES,
    PODS,
    REPLICA_SETS,
    STATEFUL_SETS,
    Bookmark,
    Client,
    EventType,
    Ref,
)
from podlife.errors import NotFoundError
from podlife.kubelet.runtime import ContainerConfig, SandboxConfig
from podlife.kubelet.runtimes.sim import Behaviour, Script
from podlife.testing import Cluster
from podlife.wire import Handler, Request, Response

Object = dict[str, Any]

FOLLOWED = (NODES, PODS, REPLICA_SETS, STATEFUL_SETS, DAEMON_SETS, JOBS)
# For how long after it was so somebody may still act on it: a request waits no longer than its deadline, and nobody
# decides on a cache that is further behind than that.
LATE_SECONDS = 180.0

REPLICA_SET, STATEFUL_SET = "replicaset-controller", "statefulset-controller"
DAEMON_SET, JOB = "daemonset-controller", "job-controller"
OWNER_GC, POD_GC = "garbage-collector-controller", "pod-garbage-collector-controller"
EVICTION = "taint-eviction-controller"
_POD = re.compile(r"^/api/v1/namespaces/([^/]+)/pods/([^/]+)$")


class Mirror:
    def __init__(self, client: Client) -> None:
        self._client = client
        self.objects: dict[str, dict[str, Object]] = {ref.kind: {} for ref in FOLLOWED}
        # When it was last so that this component might delete the pod of this UID.
        self._allowed_at: dict[tuple[str, str], float] = {}

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for ref in FOLLOWED:
                group.create_task(self._follow(ref), name=f"mirror of {ref}")

    async def _follow(self, ref: Ref) -> None:
        async with aclosing(self._client.list_watch(ref)) as events:
            async for event in events:
                if isinstance(event, Bookmark):
                    continue
                uid = event.object["metadata"]["uid"]
                if event.type is EventType.DELETED:
                    self.objects[ref.kind].pop(uid, None)
                else:
                    self.objects[ref.kind][uid] = event.object
                self._note()

    def _note(self) -> None:
        now = asyncio.get_running_loop().time()
        for pod in self.pods():
            for who in self.reasons(pod):
                self._allowed_at[who, pod["metadata"]["uid"]] = now

    def may_delete(self, who: str, pod: Object) -> bool:
        """`pod` as it was right before."""
        if who in self.reasons(pod):
            return True
        at = self._allowed_at.get((who, pod["metadata"]["uid"]))
        return at is not None and asyncio.get_running_loop().time() - at <= LATE_SECONDS

    def pods(self) -> Iterator[Object]:
        return iter(list(self.objects["Pod"].values()))

    def owned(self, uid: str) -> list[Object]:
        return [each for each in self.pods() if owner_of(each).get("uid") == uid]

    def node(self, name: str) -> Object | None:
        return next(
            (each for each in self.objects["Node"].values() if each["metadata"]["name"] == name), None
        )

    def reasons(self, pod: Object) -> Iterator[str]:
        """Who may delete this pod, by a rule that holds now."""
        name = pod["spec"].get("nodeName") or ""
        node = self.node(name)
        if is_terminating(pod):
            # The final delete of its node, once everything has ended; nobody's node cannot do it.
            yield name or POD_GC
        if name and (node is None or (is_terminating(pod) and "out-of-service" in taint_keys(node))):
            yield POD_GC
        if node is not None and taint_keys(node):
            yield EVICTION
        owner = owner_of(pod)
        if not owner:
            return
        kept = self.objects.get(owner["kind"], {}).get(owner["uid"])
        if kept is None or is_terminating(kept):
            yield OWNER_GC
        if kept is not None:
            yield from self._reasons_of_owner(owner["kind"], kept, pod)

    def _reasons_of_owner(self, kind: str, owner: Object, pod: Object) -> Iterator[str]:
        pods = [each for each in self.owned(owner["metadata"]["uid"]) if is_active(each)]
        spec, status = owner["spec"], owner.get("status") or {}
        has_ended = pod["status"].get("phase") in ("Failed", "Succeeded")
        revision = pod["metadata"].get("labels", {}).get("controller-revision-hash")
        match kind:
            case "ReplicaSet" if len(pods) > spec.get("replicas", 1):
                yield REPLICA_SET
            case "StatefulSet":
                ordinal = int(pod["metadata"]["name"].rpartition("-")[2])
                # Of a template that has just changed it is told only after the first pods went.
                is_new = status.get("observedGeneration") == owner["metadata"]["generation"]
                is_current = is_new and revision == status.get("updateRevision")
                if has_ended or ordinal >= spec.get("replicas", 1) or not is_current:
                    yield STATEFUL_SET
            case "DaemonSet":
                name = target_node(pod)
                node = self.node(name)
                is_wanted = node is not None and "out-of-service" not in taint_keys(node)
                if has_ended or not is_wanted or [target_node(each) for each in pods].count(name) > 1:
                    yield DAEMON_SET
            case "Job":
                is_over = any(
                    each["type"] in ("Complete", "Failed", "SuccessCriteriaMet", "FailureTarget")
                    for each in status.get("conditions") or ()
                )
                done = status.get("succeeded", 0)
                wanted = min(spec.get("parallelism", 1), max(0, spec.get("completions", 1) - done))
                if is_over or len(pods) > wanted:
                    yield JOB


def owner_of(pod: Object) -> Object:
    return next((each for each in pod["metadata"].get("ownerReferences") or () if each.get("controller")), {})


def is_terminating(obj: Object) -> bool:
    return "deletionTimestamp" in obj["metadata"]


def is_active(pod: Object) -> bool:
    return not is_terminating(pod) and pod["status"].get("phase") not in ("Failed", "Succeeded")


def taint_keys(node: Object) -> list[str]:
    """Those that make pods go."""
    found = node["spec"].get("taints") or ()
    return [each["key"].rpartition("/")[2] for each in found if each["effect"] == "NoExecute"]


def target_node(pod: Object) -> str:
    """Where a pod of a DaemonSet is, or is to be."""
    if name := pod["spec"].get("nodeName"):
        return str(name)
    try:
        terms = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        return str(terms["nodeSelectorTerms"][0]["matchFields"][0]["values"][0])
    except (KeyError, IndexError):
        return ""


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


@asynccontextmanager
async def judged(cluster: Cluster, faults: list[str], chance: random.Random) -> AsyncIterator[None]:
    """Every deletion in the block; the mirror sees what is there, whatever happens to the others."""
    beside, _ = cluster.connect("mirror", is_beside=True)
    mirror = Mirror(beside)
    following = asyncio.get_running_loop().create_task(mirror.run())
    cluster.api.disturb = Judge(mirror, beside, faults, chance)
    yield
    await cancel_and_wait(following)
    await beside.close()


def watch_starts(cluster: Cluster, faults: list[str]) -> None:
    starts = Starts(cluster, faults)
    for node in cluster.nodes.values():
        node.machine.script = starts.over(node.machine.script)


class Starts:
    """Looks at every container that is made: none runs twice, and no ordinal of a StatefulSet at two places.

    An agent that has just listed its pods may start one that was removed by force since then, as upstream's does; it
    ends it with the next event. So a namesake of such a pod is no fault."""

    def __init__(self, cluster: Cluster, faults: list[str]) -> None:
        self._cluster = cluster
        self._faults = faults
        # UIDs of pods that were started when the server no longer had them.
        self._removed: set[str] = set()

    def over(self, script: Script) -> Script:
        def watched(sandbox: SandboxConfig, container: ContainerConfig) -> Behaviour:
            self._look(sandbox, container)
            return script(sandbox, container)

        return watched

    def _look(self, sandbox: SandboxConfig, container: ContainerConfig) -> None:
        store = self._cluster._inside.server.handler.registry.store
        record = store.get(Key("pods", sandbox.namespace, sandbox.name))
        if record is None or sandbox.pod_uid.encode() not in record.value:
            self._removed.add(sandbox.pod_uid)
        for node in self._cluster.nodes.values():
            for other in node.containers:
                if (other.pod_uid, other.name) == (sandbox.pod_uid, container.name):
                    self._faults.append(
                        f"{sandbox.name}/{container.name} is made while it runs on {node.name}"
                    )
                is_namesake = (other.namespace, other.pod) == (sandbox.namespace, sandbox.name)
                is_other = other.pod_uid not in (sandbox.pod_uid, *self._removed)
                if is_namesake and is_other and sandbox.name.startswith("db-"):
                    self._faults.append(f"{sandbox.name} is made while another of it runs on {node.name}")
