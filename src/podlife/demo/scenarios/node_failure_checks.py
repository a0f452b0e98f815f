"""The steps of the story of a node that falls silent: each is made to happen, or waited for, and seen."""

from __future__ import annotations

import asyncio
from functools import partial

from podlife.api.codec import Object
from podlife.client import DEPLOYMENTS, NODES, STATEFUL_SETS
from podlife.demo.recorder import NotSeenError, Seen, condition
from podlife.demo.scenario import (
    Stage,
    Story,
    is_ready,
    is_terminating,
    listed,
    name_of,
    node_of,
    uid_of,
)
from podlife.demo.workloads import deployment, stateful_set, template

__all__ = ["NodeFailure"]

_UNREACHABLE = "node.kubernetes.io/unreachable"
_OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
_REPLICAS = 3
_GRACE_SECONDS = 2
# How long a pod that hangs is watched beyond its grace before that is called for ever.
_STUCK_SECONDS = 4.0


class NodeFailure(Story):
    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self.facts |= {"replicas": _REPLICAS, "stuck_seconds": _STUCK_SECONDS}
        self._record = stage.record
        self._journal = stage.journal
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
        client = self.stage.client
        db = template("db", self._journal.polite(), grace_seconds=_GRACE_SECONDS)
        web = template("web", self._journal.polite(), grace_seconds=_GRACE_SECONDS)
        await client.create(STATEFUL_SETS, stateful_set("db", _REPLICAS, db), "default")
        await client.create(DEPLOYMENTS, deployment("web", _REPLICAS, web), "default")
        dbs = await self.stage.until_pods_ready("db", _REPLICAS)
        webs = await self.stage.until_pods_ready("web", _REPLICAS)
        self._choose(dbs, webs)
        self.facts |= {
            "places": _places([*dbs, *webs]),
            "node": self._node,
            "db": name_of(self._db),
            "victims": listed([name_of(pod) for pod in self._victims]),
        }

    def _choose(self, dbs: list[Object], webs: list[Object]) -> None:
        """Which node falls silent: one that has pods of both."""
        for db in dbs:
            node = self._record.node(node_of(db))
            here = [web for web in webs if node_of(web) == node_of(db)]
            if here and node is not None:
                self._node, self._node_uid = name_of(node), uid_of(node)
                self._db, self._webs = db, here
                return
        raise NotSeenError("a node that has pods of both")

    async def silence(self) -> None:
        pid = await self.stage.until_process(self._db)
        self._silent_at = asyncio.get_running_loop().time()
        agent = await self.stage.cluster.freeze(self._node)
        self.facts |= {"agent": agent, "old_pid": pid}

    async def not_ready(self) -> None:
        def is_unknown(seen: Seen) -> bool:
            return condition(seen.object, "Ready").get("status") == "Unknown"

        def is_tainted(effect: str, seen: Seen) -> bool:
            return _has_taint(seen.object, _UNREACHABLE, effect)

        until_seen = partial(self._record.until_seen, since=self._silent_at, seconds=60)
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
            marked = await self._record.until_seen(
                f"{name} Terminating", uid_of(pod), lambda seen: is_terminating(seen.object)
            )
            reason = condition(marked.object, "DisruptionTarget").get("reason")
            if reason != "DeletionByTaintManager":
                raise NotSeenError(f"{name} evicted, since it goes because of {reason}")
            self._evicted_at = max(self._evicted_at, marked.at)
            self.facts["grace_seconds"] = marked.object["metadata"]["deletionGracePeriodSeconds"]

    async def replaced(self) -> None:
        def find() -> list[Object] | None:
            new = [pod for pod in self._record.pods("web") if not is_terminating(pod)]
            is_all = len(new) == _REPLICAS and all(map(is_ready, new))
            return new if is_all and all(node_of(pod) != self._node for pod in new) else None

        new = await self._record.until(f"{_REPLICAS} pods of web on other nodes", find)
        there = {uid_of(pod) for pod in self._record.pods("web")}
        if not all(uid_of(pod) in there for pod in self._webs):
            raise NotSeenError("the old pod of web beside the new one")
        self.facts["webs"] = _places(new)

    async def stuck(self) -> None:
        over = self._evicted_at + _GRACE_SECONDS + _STUCK_SECONDS
        self._see_stuck()
        while asyncio.get_running_loop().time() < over:
            await asyncio.sleep(0.1)
            self._see_stuck()
        ready = (await self.stage.client.get(STATEFUL_SETS, "db", "default"))["status"].get(
            "readyReplicas", 0
        )
        if ready != _REPLICAS - 1:
            raise NotSeenError(f"db with {_REPLICAS - 1} ready replicas: it has {ready}")
        self.facts["ready_dbs"] = ready

    def _see_stuck(self) -> None:
        pod = self._record.pod(name_of(self._db))
        if pod is None or uid_of(pod) != uid_of(self._db) or not is_terminating(pod):
            raise NotSeenError(f"{name_of(self._db)} Terminating for ever")
        if not self._journal.alive(name_of(self._db), self._node):
            raise NotSeenError(f"the process of {name_of(self._db)} running on")

    async def out_of_service(self) -> None:
        node = await self.stage.client.get(NODES, self._node)
        taint = {"key": _OUT_OF_SERVICE, "value": "nodeshutdown", "effect": "NoExecute"}
        await self._set_taints(node, [*(node["spec"].get("taints") or ()), taint])
        await self._record.until_so(
            f"{self._node} with the taint {_OUT_OF_SERVICE}",
            lambda: _has_taint(self._record.node(self._node) or {}, _OUT_OF_SERVICE),
        )

    async def _set_taints(self, node: Object, taints: list[Object]) -> None:
        # With its version: taints are one list, and others write to it too.
        metadata = {"uid": uid_of(node), "resourceVersion": node["metadata"]["resourceVersion"]}
        await self.stage.client.patch(NODES, self._node, {"metadata": metadata, "spec": {"taints": taints}})

    async def collected(self) -> None:
        for pod in self._victims:
            name = name_of(pod)
            end = await self._record.until_seen(f"{name} gone", uid_of(pod), lambda seen: seen.is_gone)
            self.facts["last_phase"] = end.object["status"].get("phase")

    async def successor(self) -> None:
        name = name_of(self._db)

        def find() -> Object | None:
            pod = self._record.pod(name)
            if pod is None or uid_of(pod) == uid_of(self._db) or node_of(pod) == self._node:
                return None
            return pod if is_ready(pod) else None

        new = await self._record.until(f"another {name}, ready on another node", find)
        await self.stage.until_pods_ready("db", _REPLICAS)
        pid = await self.stage.until_process(new)
        if not self._journal.alive(name, self._node):
            raise NotSeenError(f"the old process of {name} beside the new one")
        self.facts |= {"new_node": node_of(new), "new_pid": pid}

    async def returned(self) -> None:
        others = self._running()
        self.stage.cluster.thaw(self._node)
        await self.stage.until_nodes_ready([self._node])
        names = [name_of(pod) for pod in self._victims]

        def is_clean() -> bool:
            return not any(self._journal.alive(name, self._node) for name in names)

        await self._record.until_so("the end of the old processes", is_clean)
        await self._record.until_so(
            f"{self._node} without the taints {_UNREACHABLE}",
            lambda: not _has_taint(self._record.node(self._node) or {}, _UNREACHABLE),
        )
        if not all(self._journal.lines(name, "ended") for name in names):
            raise NotSeenError("the old processes told to end before they ended")
        if self._running() != others:
            raise NotSeenError("the other pods untouched")

    def _running(self) -> dict[str, list[int]]:
        """The processes of the pods that are wanted, which are all on other nodes."""
        pods = [*self._record.pods("db"), *self._record.pods("web")]
        return {uid_of(pod): self._journal.alive(name_of(pod), node_of(pod)) for pod in pods}

    async def in_service(self) -> None:
        node = await self.stage.client.get(NODES, self._node)
        others = [each for each in node["spec"].get("taints") or () if each["key"] != _OUT_OF_SERVICE]
        await self._set_taints(node, others)
        await self._record.until_so(
            f"{self._node} without taints",
            lambda: not ((self._record.node(self._node) or {}).get("spec") or {}).get("taints"),
        )
        for app in ("db", "web"):
            for pod in await self.stage.until_pods_ready(app, _REPLICAS):
                await self.stage.until_process(pod)


def _places(pods: list[Object]) -> str:
    return listed([f"{name_of(pod)} on {node_of(pod)}" for pod in pods])


def _has_taint(node: Object, key: str, effect: str = "") -> bool:
    taints = (node.get("spec") or {}).get("taints") or ()
    return any(each["key"] == key and effect in ("", each["effect"]) for each in taints)
