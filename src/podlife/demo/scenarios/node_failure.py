"""`podlife demo node-failure`: a node fails, and what happens to its pods: each step checked, then described."""

from __future__ import annotations

import asyncio
from functools import partial

from podlife.api.codec import Object
from podlife.client import DEPLOYMENTS, NODES, STATEFUL_SETS
from podlife.demo.narrator import DemoStep
from podlife.demo.recorder import NotObservedError, RecordedObject, condition
from podlife.demo.scenario import (
    DemoContext,
    DemoScenario,
    is_ready,
    is_terminating,
    listed,
    name_of,
    node_of,
    places,
    uid_of,
)
from podlife.demo.workloads import deployment, stateful_set, template

_UNREACHABLE = "node.kubernetes.io/unreachable"
_OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
_REPLICAS = 3
_GRACE_SECONDS = 2
# How long a hanging pod is watched beyond its grace period before it counts as stuck.
_STUCK_SECONDS = 4.0


class NodeFailure(DemoScenario):
    def __init__(self, context: DemoContext) -> None:
        super().__init__(context)
        self.facts |= {"replicas": _REPLICAS, "stuck_seconds": _STUCK_SECONDS}
        self._node = ""
        self._node_uid = ""
        # The pods on that node: one of the StatefulSet, and those of the Deployment.
        self._db: Object = {}
        self._webs: list[Object] = []
        self._silent_at = 0.0
        self._evicted_at = 0.0

    @property
    def _victims(self) -> list[Object]:
        return [self._db, *self._webs]

    async def begin(self) -> None:
        client = self.context.client
        db = template("db", self._journal.polite(), grace_seconds=_GRACE_SECONDS)
        web = template("web", self._journal.polite(), grace_seconds=_GRACE_SECONDS)
        await client.create(STATEFUL_SETS, stateful_set("db", _REPLICAS, db), "default")
        await client.create(DEPLOYMENTS, deployment("web", _REPLICAS, web), "default")
        dbs = await self.context.until_pods_ready("db", _REPLICAS)
        webs = await self.context.until_pods_ready("web", _REPLICAS)
        self._choose(dbs, webs)
        self.facts |= {
            "places": places([*dbs, *webs]),
            "node": self._node,
            "db": name_of(self._db),
            "victims": listed([name_of(pod) for pod in self._victims]),
        }

    def _choose(self, dbs: list[Object], webs: list[Object]) -> None:
        """The node to freeze: one that has pods of both."""
        for db in dbs:
            node = self._recorder.node(node_of(db))
            here = [web for web in webs if node_of(web) == node_of(db)]
            if here and node is not None:
                self._node, self._node_uid = name_of(node), uid_of(node)
                self._db, self._webs = db, here
                return
        raise NotObservedError("a node that has pods of both")

    async def silence(self) -> None:
        pid = await self.context.until_process(self._db)
        self._silent_at = asyncio.get_running_loop().time()
        agent = await self.context.cluster.freeze(self._node)
        self.facts |= {"agent": agent, "old_pid": pid}

    async def not_ready(self) -> None:
        def is_unknown(seen: RecordedObject) -> bool:
            return condition(seen.object, "Ready").get("status") == "Unknown"

        def is_tainted(effect: str, seen: RecordedObject) -> bool:
            return _has_taint(seen.object, _UNREACHABLE, effect)

        until_seen = partial(self._recorder.until_seen, since=self._silent_at, seconds=60)
        node = await until_seen(f"{self._node} with Ready=Unknown", self._node_uid, is_unknown)
        for effect in ("NoSchedule", "NoExecute"):
            what = f"{self._node} with the taint {_UNREACHABLE}:{effect}"
            await until_seen(what, self._node_uid, partial(is_tainted, effect))
        for pod in self._victims:
            await until_seen(f"{name_of(pod)} not ready", uid_of(pod), lambda seen: not is_ready(seen.object))
        ready = condition(node.object, "Ready")
        self.facts |= {
            "silent_seconds": node.at - self._silent_at,
            "ready": ready["status"],
            "reason": ready["reason"],
            "message": ready["message"],
        }

    async def evicted(self) -> None:
        for pod in self._victims:
            name = name_of(pod)
            marked = await self._recorder.until_seen(
                f"{name} Terminating", uid_of(pod), lambda seen: is_terminating(seen.object)
            )
            reason = condition(marked.object, "DisruptionTarget").get("reason")
            if reason != "DeletionByTaintManager":
                raise NotObservedError(f"{name} evicted, since it goes because of {reason}")
            self._evicted_at = max(self._evicted_at, marked.at)
            self.facts["grace_seconds"] = marked.object["metadata"]["deletionGracePeriodSeconds"]

    async def replaced(self) -> None:
        def find() -> list[Object] | None:
            new = [pod for pod in self._recorder.pods("web") if not is_terminating(pod)]
            is_all = len(new) == _REPLICAS and all(map(is_ready, new))
            return new if is_all and all(node_of(pod) != self._node for pod in new) else None

        new = await self._recorder.until(f"{_REPLICAS} pods of web on other nodes", find)
        there = {uid_of(pod) for pod in self._recorder.pods("web")}
        if not all(uid_of(pod) in there for pod in self._webs):
            raise NotObservedError("the old pod of web kept beside the new one")
        self.facts["webs"] = places(new)

    async def stuck(self) -> None:
        over = self._evicted_at + _GRACE_SECONDS + _STUCK_SECONDS
        self._check_stuck()
        while asyncio.get_running_loop().time() < over:
            await asyncio.sleep(0.1)
            self._check_stuck()
        ready = (await self.context.client.get(STATEFUL_SETS, "db", "default"))["status"].get(
            "readyReplicas", 0
        )
        if ready != _REPLICAS - 1:
            raise NotObservedError(f"db with {_REPLICAS - 1} ready replicas: it has {ready}")
        self.facts["ready_dbs"] = ready

    def _check_stuck(self) -> None:
        pod = self._recorder.pod(name_of(self._db))
        if pod is None or uid_of(pod) != uid_of(self._db) or not is_terminating(pod):
            raise NotObservedError(f"{name_of(self._db)} still Terminating")
        self._check_running_on(self._db)

    async def out_of_service(self) -> None:
        node = await self.context.client.get(NODES, self._node)
        taint = {"key": _OUT_OF_SERVICE, "value": "nodeshutdown", "effect": "NoExecute"}
        await self._set_taints(node, [*(node["spec"].get("taints") or ()), taint])
        await self._recorder.until_true(
            f"{self._node} with the taint {_OUT_OF_SERVICE}",
            lambda: _has_taint(self._recorder.node(self._node) or {}, _OUT_OF_SERVICE),
        )

    async def _set_taints(self, node: Object, taints: list[Object]) -> None:
        # With its resource version: taints are one list, which other writers change too.
        metadata = {"uid": uid_of(node), "resourceVersion": node["metadata"]["resourceVersion"]}
        await self.context.client.patch(NODES, self._node, {"metadata": metadata, "spec": {"taints": taints}})

    async def collected(self) -> None:
        for pod in self._victims:
            end = await self._until_gone(pod)
            self.facts["last_phase"] = end.object["status"].get("phase")

    async def successor(self) -> None:
        name = name_of(self._db)

        def find() -> Object | None:
            pod = self._recorder.pod(name)
            if pod is None or uid_of(pod) == uid_of(self._db) or node_of(pod) == self._node:
                return None
            return pod if is_ready(pod) else None

        new = await self._recorder.until(f"another {name}, ready on another node", find)
        await self.context.until_pods_ready("db", _REPLICAS)
        pid = await self.context.until_process(new)
        if not self._journal.alive(name, self._node):
            raise NotObservedError(f"the old process of {name} running beside the new one")
        self.facts |= {"new_node": node_of(new), "new_pid": pid}

    async def returned(self) -> None:
        others = self._running()
        self.context.cluster.thaw(self._node)
        await self.context.until_nodes_ready([self._node])
        names = [name_of(pod) for pod in self._victims]

        def is_clean() -> bool:
            return not any(self._journal.alive(name, self._node) for name in names)

        await self._recorder.until_true("the end of the old processes", is_clean)
        await self._recorder.until_true(
            f"{self._node} without the taints {_UNREACHABLE}",
            lambda: not _has_taint(self._recorder.node(self._node) or {}, _UNREACHABLE),
        )
        if not all(self._journal.lines(name, "ended") for name in names):
            raise NotObservedError("SIGTERM sent to the old processes before they ended")
        if self._running() != others:
            raise NotObservedError("the other pods untouched")

    def _running(self) -> dict[str, list[int]]:
        """The processes of the wanted pods, which are all on other nodes."""
        pods = [*self._recorder.pods("db"), *self._recorder.pods("web")]
        return {uid_of(pod): self._journal.alive(name_of(pod), node_of(pod)) for pod in pods}

    async def in_service(self) -> None:
        node = await self.context.client.get(NODES, self._node)
        others = [each for each in node["spec"].get("taints") or () if each["key"] != _OUT_OF_SERVICE]
        await self._set_taints(node, others)
        await self._recorder.until_true(
            f"{self._node} without taints",
            lambda: not ((self._recorder.node(self._node) or {}).get("spec") or {}).get("taints"),
        )
        for app in ("db", "web"):
            for pod in await self.context.until_pods_ready(app, _REPLICAS):
                await self.context.until_process(pod)


def _has_taint(node: Object, key: str, effect: str = "") -> bool:
    taints = (node.get("spec") or {}).get("taints") or ()
    return any(each["key"] == key and effect in ("", each["effect"]) for each in taints)


SCENARIO = NodeFailure
STEPS = (
    DemoStep(
        "A StatefulSet and a Deployment run on three nodes",
        NodeFailure.begin,
        what="{places}. Each is a process of this machine.",
        who="statefulset-controller, deployment-controller and replicaset-controller created the pods; the scheduler "
        "chose their nodes; the kubelets started them.",
        rule="a StatefulSet names its pods and starts them in order, each when its predecessor is ready; the pods of a "
        "Deployment are interchangeable.",
        see=("kubectl get pods -o wide",),
    ),
    DemoStep(
        "A node stops reporting",
        NodeFailure.silence,
        what="The kubelet of {node} was stopped (kill -STOP {agent}), as on a machine that hangs. Its pods keep "
        "running: {db} is process {old_pid}. The control plane sees neither.",
        who="the demo.",
        rule="a kubelet renews its node's lease, here every {renew_seconds:g} s (default 10 s). The control plane "
        "knows that a node is alive only by this.",
        see=(
            "kubectl get lease -n kube-node-lease {node} -o yaml",
            "ps -o pid,stat,args -p {agent},{old_pid}",
        ),
    ),
    DemoStep(
        "The node is marked as not ready and tainted",
        NodeFailure.not_ready,
        what="{silent_seconds:.0f} s after its last report {node} has Ready={ready} ({reason}: {message}) and the "
        "taint node.kubernetes.io/unreachable, with NoSchedule and with NoExecute. Its pods are marked as not ready.",
        who="node-lifecycle-controller.",
        rule="the grace period is {monitor_grace_seconds} s here (--node-monitor-grace-period, default 40 s): NL-12, "
        "NL-15. Unknown becomes the taint unreachable: NL-50, NL-60. Its pods are not ready: NL-40.",
        see=("kubectl get nodes", "kubectl describe node {node}"),
    ),
    DemoStep(
        "Its pods are evicted",
        NodeFailure.evicted,
        what="{victims}: first the condition DisruptionTarget (DeletionByTaintManager), then a deletionTimestamp with "
        "{grace_seconds} s of grace period. They are Terminating, and none has been removed.",
        who="taint-eviction-controller. The API server added the tolerations when the pods were created.",
        rule="a pod tolerates unreachable:NoExecute for {toleration_seconds} s here (default 300 s): DT-02, TE-07. The "
        "condition is set before the delete: TE-16.",
        see=(
            "kubectl get pods -o wide",
            "kubectl get pod {db} -o jsonpath='{{.spec.tolerations}}'",
            "kubectl get events --field-selector reason=TaintManagerEviction",
        ),
    ),
    DemoStep(
        "The Deployment is repaired at once",
        NodeFailure.replaced,
        what="Ready are {webs}, while the old one is still Terminating.",
        who="replicaset-controller and the scheduler.",
        rule="a ReplicaSet does not count Terminating pods and creates a new one under another name. The taint keeps "
        "the scheduler from using the node.",
        see=("kubectl get pods -l app=web -o wide",),
    ),
    DemoStep(
        "The StatefulSet is stuck: its pod stays Terminating",
        NodeFailure.stuck,
        what="{db} still exists under the same UID, {stuck_seconds:.0f} s after its grace period, and db has "
        "{ready_dbs} of its {replicas} pods. Process {old_pid} is still running on {node}: a second {db} would write "
        "to the same volume.",
        who="no component, and that is the point: only the kubelet of {node} can confirm that the pod has ended.",
        rule="the API server keeps a pod until its kubelet confirms the end by a second delete, with a grace period of "
        "0: GD-51, GD-52. A StatefulSet never has two pods of one name, so it waits.",
        see=("kubectl get pod {db} -o wide", "kubectl get statefulset db"),
    ),
    DemoStep(
        "An operator declares the machine off",
        NodeFailure.out_of_service,
        what="{node} has the taint node.kubernetes.io/out-of-service. By setting it, an operator asserts that nothing "
        "runs on the machine. (Here that is false, and the next steps show the consequence.)",
        who="an operator, or the tool that switches machines off; here the demo.",
        rule="no controller sets this taint: from missing reports alone a machine that is off cannot be distinguished "
        "from a broken network.",
        see=("kubectl taint nodes {node} node.kubernetes.io/out-of-service=nodeshutdown:NoExecute",),
    ),
    DemoStep(
        "Pod GC removes the pods",
        NodeFailure.collected,
        what="{victims} are gone: marked as {last_phase}, then deleted with a grace period of 0 and a UID "
        "precondition.",
        who="pod-garbage-collector-controller.",
        rule="a Terminating pod on a node that is not ready and has the taint out-of-service is collected: GC-30. "
        "Upstream checks every 20 s; podlife acts on the event.",
        see=("kubectl get pods -o wide",),
    ),
    DemoStep(
        "The StatefulSet recovers on another node",
        NodeFailure.successor,
        what="{db} runs on {new_node} as process {new_pid}, under a new UID, and db has all of its pods. The old "
        "process {old_pid} is running too: this is the consequence of the false assertion.",
        who="statefulset-controller and the scheduler.",
        rule="the name is free, so the StatefulSet creates its pod again, and the scheduler chooses a node for it.",
        see=("kubectl get pods -l app=db -o wide", "ps -o pid,args -p {old_pid},{new_pid}"),
    ),
    DemoStep(
        "The node comes back and cleans up",
        NodeFailure.returned,
        what="{node} is ready, and the taints unreachable are gone. Process {old_pid} received SIGTERM and has exited. "
        "No other pod was affected.",
        who="the kubelet of {node} cleans up; node-lifecycle-controller removes the taints.",
        rule="a kubelet compares running with desired pods, and terminates the others: PW-157. A ready node has no "
        "unreachable taints: NL-53.",
        see=("kubectl get nodes", "ps -o pid,args -p {old_pid}"),
    ),
    DemoStep(
        "The node is in service again",
        NodeFailure.in_service,
        what="The taint out-of-service is removed, and {node} accepts pods again. db and web have all their pods, each "
        "once, and none is Terminating.",
        who="the operator who set the taint; here the demo.",
        rule="no controller removes this taint. Pods that run on other nodes stay there.",
        see=("kubectl taint nodes {node} node.kubernetes.io/out-of-service-", "kubectl get pods -o wide"),
    ),
)
