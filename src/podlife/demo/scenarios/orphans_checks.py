"""The steps of the story of a node that is deleted under its pods: each is made to happen, or waited for, and seen."""

from __future__ import annotations

import asyncio

from podlife.api.codec import Object
from podlife.client import DEPLOYMENTS, NODES, DeleteOptions
from podlife.demo.recorder import NotSeenError, Seen, condition
from podlife.demo.scenario import (
    Stage,
    Story,
    is_ready,
    listed,
    name_of,
    node_of,
    uid_of,
)
from podlife.demo.workloads import deployment, template

__all__ = ["Orphans"]

_REPLICAS = 3
_GRACE_SECONDS = 2
# How long beyond the quarantine somebody watches whether a pod is left alone.
_MARGIN_SECONDS = 1.0


class Orphans(Story):
    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self.facts["replicas"] = _REPLICAS
        self._record = stage.record
        self._journal = stage.journal
        self._quarantine_seconds = stage.cluster.times.quarantine_seconds
        self._pod: Object = {}
        self._gone_at = 0.0

    @property
    def _node(self) -> str:
        return node_of(self._pod)

    async def begin(self) -> None:
        web = template("web", self._journal.polite(), grace_seconds=_GRACE_SECONDS)
        await self.stage.client.create(DEPLOYMENTS, deployment("web", _REPLICAS, web), "default")
        pods = await self.stage.until_pods_ready("web", _REPLICAS)
        self._pod = pods[0]
        self.facts |= {
            "places": _places(pods),
            "pod": name_of(self._pod),
            "node": self._node,
            "pid": await self.stage.until_process(self._pod),
        }

    async def back_in_time(self) -> None:
        old = await self._delete_node()
        await self.stage.cluster.restart(self._node)

        def find() -> Object | None:
            node = self._record.node(self._node)
            return node if node is not None and uid_of(node) != old and is_ready(node) else None

        await self._record.until(f"another {self._node}, ready", find)
        now = asyncio.get_running_loop().time
        self.facts["away_seconds"] = now() - self._gone_at
        while now() < self._gone_at + self._quarantine_seconds + _MARGIN_SECONDS:
            await asyncio.sleep(0.1)
            self._see_kept()
        self.facts["kept_seconds"] = now() - self._gone_at

    async def deleted(self) -> None:
        self.facts["agent"] = await self.stage.cluster.freeze(self._node)
        await self._delete_node()
        await self._record.until_so(f"{self._node} gone", lambda: self._record.node(self._node) is None)
        self._see_kept()
        self.facts["phase"] = self._pod["status"]["phase"]

    async def collected(self) -> None:
        gone = await self._record.until_seen(
            f"{name_of(self._pod)} gone", uid_of(self._pod), lambda seen: seen.is_gone, seconds=60
        )
        after = gone.at - self._gone_at
        # The collector may have seen the deletion a moment before the demo did.
        if after < self._quarantine_seconds - 0.5:
            raise NotSeenError(f"a quarantine of {self._quarantine_seconds} s, but of {after:.1f} s")
        marked = condition(gone.object, "DisruptionTarget")
        if marked.get("reason") != "DeletionByPodGC":
            raise NotSeenError(f"{name_of(self._pod)} marked by the pod collector")
        self.facts |= {
            "orphan_seconds": after,
            "last_phase": gone.object["status"]["phase"],
            "reason": marked["reason"],
            "message": marked["message"],
        }

    async def replaced(self) -> None:
        pods = await self.stage.until_pods_ready("web", _REPLICAS)
        if any(node_of(pod) == self._node for pod in pods):
            raise NotSeenError(f"nothing on {self._node}")
        self._see_process()
        self.facts["new_places"] = _places(pods)

    async def cleaned(self) -> None:
        name, node = name_of(self._pod), self._node
        began = asyncio.get_running_loop().time()
        self.stage.cluster.thaw(node)
        await self._record.until_so(
            f"the end of the process of {name}", lambda: not self._journal.alive(name, node)
        )
        await self._record.until_so(f"{name} told to end", lambda: bool(self._journal.lines(name, "ended")))
        self.facts["clean_seconds"] = asyncio.get_running_loop().time() - began
        if self._record.node(node) is not None:
            raise NotSeenError(f"{node} staying away")

    async def registered(self) -> None:
        await self.stage.cluster.restart(self._node)
        await self.stage.until_nodes_ready([self._node])
        for pod in await self.stage.until_pods_ready("web", _REPLICAS):
            await self.stage.until_process(pod)

    # What several steps do

    async def _delete_node(self) -> str:
        """The UID of the one that was deleted."""
        node = await self.stage.client.get(NODES, self._node)
        uid = uid_of(node)
        await self.stage.client.delete(NODES, self._node, options=DeleteOptions(uid=uid))

        def is_gone(seen: Seen) -> bool:
            return seen.is_gone

        self._gone_at = (await self._record.until_seen(f"{self._node} gone", uid, is_gone)).at
        return uid

    def _see_kept(self) -> None:
        pod = self._record.pod(name_of(self._pod))
        if pod is None or uid_of(pod) != uid_of(self._pod):
            raise NotSeenError(f"{name_of(self._pod)} left alone")
        self._pod = pod
        if self._see_process() != self.facts["pid"]:
            raise NotSeenError(f"the same process of {name_of(self._pod)}")

    def _see_process(self) -> int:
        pids = self._journal.alive(name_of(self._pod), self._node)
        if len(pids) != 1:
            raise NotSeenError(f"{name_of(self._pod)} as exactly one process")
        return pids[0]


def _places(pods: list[Object]) -> str:
    return listed([f"{name_of(pod)} on {node_of(pod)}" for pod in pods])
