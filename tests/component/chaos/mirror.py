"""What there is in the cluster, kept up to date by watches that nothing disturbs, and who may delete which pod now.

`Mirror.reasons` has the rules by which anybody deletes a pod. Whoever asks may be late: a request may have waited, and
a cache may have been behind; so it counts, too, what was so a moment ago.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import aclosing
from typing import Any

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

Object = dict[str, Any]

FOLLOWED = (NODES, PODS, REPLICA_SETS, STATEFUL_SETS, DAEMON_SETS, JOBS)
# For how long after it was so somebody may still act on it: a request waits no longer than its deadline, and nobody
# decides on a cache that is further behind than that.
LATE_SECONDS = 180.0

REPLICA_SET, STATEFUL_SET = "replicaset-controller", "statefulset-controller"
DAEMON_SET, JOB = "daemonset-controller", "job-controller"
OWNER_GC, POD_GC = "garbage-collector-controller", "pod-garbage-collector-controller"
EVICTION = "taint-eviction-controller"


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
