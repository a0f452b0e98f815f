"""`podlife demo orphans`: a node is deleted while its pods run: each step checked, then described."""

from __future__ import annotations

import asyncio

from podlife.api.codec import Object
from podlife.client import DEPLOYMENTS, NODES, DeleteOptions
from podlife.demo.narrator import DemoStep
from podlife.demo.recorder import NotObservedError, condition
from podlife.demo.scenario import DemoContext, DemoScenario, is_ready, name_of, node_of, places, uid_of
from podlife.demo.workloads import deployment, template

_REPLICAS = 3
_GRACE_SECONDS = 2
# How long beyond the quarantine a pod is watched before it counts as kept.
_MARGIN_SECONDS = 1.0


class Orphans(DemoScenario):
    def __init__(self, context: DemoContext) -> None:
        super().__init__(context)
        self.facts["replicas"] = _REPLICAS
        self._quarantine_seconds = context.cluster.times.quarantine_seconds
        self._pod: Object = {}
        self._gone_at = 0.0

    @property
    def _node(self) -> str:
        return node_of(self._pod)

    async def begin(self) -> None:
        web = template("web", self._journal.polite(), grace_seconds=_GRACE_SECONDS)
        await self.context.client.create(DEPLOYMENTS, deployment("web", _REPLICAS, web), "default")
        pods = await self.context.until_pods_ready("web", _REPLICAS)
        self._pod = pods[0]
        self.facts |= {
            "places": places(pods),
            "pod": name_of(self._pod),
            "node": self._node,
            "pid": await self.context.until_process(self._pod),
        }

    async def back_in_time(self) -> None:
        old = await self._delete_node()
        await self.context.cluster.restart(self._node)

        def find() -> Object | None:
            node = self._recorder.node(self._node)
            return node if node is not None and uid_of(node) != old and is_ready(node) else None

        await self._recorder.until(f"another {self._node}, ready", find)
        now = asyncio.get_running_loop().time
        self.facts["away_seconds"] = now() - self._gone_at
        while now() < self._gone_at + self._quarantine_seconds + _MARGIN_SECONDS:
            await asyncio.sleep(0.1)
            self._check_kept()
        self.facts["kept_seconds"] = now() - self._gone_at

    async def deleted(self) -> None:
        self.facts["agent"] = await self.context.cluster.freeze(self._node)
        await self._delete_node()
        await self._recorder.until_true(f"{self._node} gone", lambda: self._recorder.node(self._node) is None)
        self._check_kept()
        self.facts["phase"] = self._pod["status"]["phase"]

    async def collected(self) -> None:
        gone = await self._until_gone(self._pod, seconds=60)
        after = gone.at - self._gone_at
        # Pod GC may have observed the deletion slightly earlier than the demo.
        if after < self._quarantine_seconds - 0.5:
            raise NotObservedError(f"a quarantine of {self._quarantine_seconds} s, but of {after:.1f} s")
        marked = condition(gone.object, "DisruptionTarget")
        if marked.get("reason") != "DeletionByPodGC":
            raise NotObservedError(f"{name_of(self._pod)} marked by pod GC")
        self.facts |= {
            "orphan_seconds": after,
            "last_phase": gone.object["status"]["phase"],
            "reason": marked["reason"],
            "message": marked["message"],
        }

    async def replaced(self) -> None:
        pods = await self.context.until_pods_ready("web", _REPLICAS)
        if any(node_of(pod) == self._node for pod in pods):
            raise NotObservedError(f"nothing on {self._node}")
        self._check_process()
        self.facts["new_places"] = places(pods)

    async def cleaned(self) -> None:
        name, node = name_of(self._pod), self._node
        began = asyncio.get_running_loop().time()
        self.context.cluster.thaw(node)
        await self._recorder.until_true(
            f"the end of the process of {name}", lambda: not self._journal.alive(name, node)
        )
        await self._recorder.until_true(
            f"SIGTERM for {name}", lambda: bool(self._journal.lines(name, "ended"))
        )
        self.facts["clean_seconds"] = asyncio.get_running_loop().time() - began
        if self._recorder.node(node) is not None:
            raise NotObservedError(f"{node} not registered")

    async def registered(self) -> None:
        await self.context.cluster.restart(self._node)
        await self.context.until_nodes_ready([self._node])
        for pod in await self.context.until_pods_ready("web", _REPLICAS):
            await self.context.until_process(pod)

    # Shared by several steps

    async def _delete_node(self) -> str:
        """Return the UID of the deleted node."""
        node = await self.context.client.get(NODES, self._node)
        await self.context.client.delete(NODES, self._node, options=DeleteOptions(uid=uid_of(node)))
        self._gone_at = (await self._until_gone(node)).at
        return uid_of(node)

    def _check_kept(self) -> None:
        pod = self._recorder.pod(name_of(self._pod))
        if pod is None or uid_of(pod) != uid_of(self._pod):
            raise NotObservedError(f"{name_of(self._pod)} left alone")
        self._pod = pod
        if self._check_process() != self.facts["pid"]:
            raise NotObservedError(f"the same process of {name_of(self._pod)}")

    def _check_process(self) -> int:
        pids = self._journal.alive(name_of(self._pod), self._node)
        if len(pids) != 1:
            raise NotObservedError(f"{name_of(self._pod)} as exactly one process")
        return pids[0]


SCENARIO = Orphans
STEPS = (
    DemoStep(
        "A Deployment runs on three nodes",
        Orphans.begin,
        what="{places}. Each is a process of this machine.",
        who="deployment-controller, replicaset-controller, the scheduler, and the kubelets.",
        rule="a pod is bound to its node by name (spec.nodeName), permanently.",
        see=("kubectl get pods -o wide",),
    ),
    DemoStep(
        "A node is deleted and returns in time",
        Orphans.back_in_time,
        what="The Node {node} was deleted and, {away_seconds:.1f} s later, registered again by its kubelet, with "
        "another UID. {pod} was on it all the time: process {pid} kept running, and {kept_seconds:.0f} s after the "
        "deletion the pod has not been collected.",
        who="the demo deleted it (and killed the kubelet, which registers its node when it starts); pod GC waited.",
        rule="a node must be missing for {quarantine_seconds} s here (default 40 s) before its pods are orphans: "
        "GC-02, GC-50. A node that returns leaves the quarantine: GC-52.",
        see=("kubectl delete node {node}", "kubectl get pods -o wide"),
    ),
    DemoStep(
        "The node is deleted again, and this time its machine hangs",
        Orphans.deleted,
        what="The kubelet of {node} was stopped (kill -STOP {agent}) and the Node deleted. {pod} is still {phase}, on "
        "a node that does not exist; process {pid} is running. Its ReplicaSet counts it and does not replace it.",
        who="the demo, like an autoscaler or an operator who removes a lost machine.",
        rule="deleting a Node neither deletes nor evicts its pods: evictions need a tainted node.",
        see=("kubectl get nodes", "kubectl get pods -o wide"),
    ),
    DemoStep(
        "After the quarantine, pod GC collects the orphan",
        Orphans.collected,
        what="{orphan_seconds:.1f} s after the Node was gone: {pod} marked as {last_phase} with the condition "
        "DisruptionTarget ({reason}: {message}), then deleted with a grace period of 0 and a UID precondition.",
        who="pod-garbage-collector-controller.",
        rule="after the quarantine pod GC reads the node from the server, and collects its pods only if it does not "
        "exist: GC-52, GC-54. The condition and Failed are set first: GC-55, GC-90.",
        see=("kubectl get pods -o wide", "podlife gc plan -o wide"),
    ),
    DemoStep(
        "The ReplicaSet creates a replacement",
        Orphans.replaced,
        what="Ready are {new_places}. {pod} is no longer stored, but process {pid} is still running.",
        who="replicaset-controller and the scheduler.",
        rule="a ReplicaSet replaces missing pods.",
        see=("kubectl get pods -o wide", "ps -o pid,args -p {pid}"),
    ),
    DemoStep(
        "The machine resumes and cleans up",
        Orphans.cleaned,
        what="{clean_seconds:.1f} s after the kubelet of {node} resumed, process {pid} had received SIGTERM and "
        "exited. The Node is still gone.",
        who="the kubelet of {node}.",
        rule="a kubelet terminates running pods that are not desired: PW-157. It registers its node only when it "
        "starts, so a deleted node stays away until then.",
        see=("kubectl get nodes", "ps -o pid,args -p {pid}"),
    ),
    DemoStep(
        "The kubelet is restarted, and the node is back",
        Orphans.registered,
        what="{node} is registered and ready, without pods. web has its {replicas} pods, each once.",
        who="the demo killed the kubelet (-9), `podlife up` restarted it, and it registered its node.",
        rule="a Node of the same name with another UID does not inherit the old one's pods.",
        see=("kubectl get nodes", "kubectl get pods -o wide"),
    ),
)
