"""One namespace of a server, for one scenario: what users do there, and waiting for what becomes of it.

The same code runs in real time on a real server and in virtual time on the embedded one: it waits with the loop's
time alone. What is read (`pods`, `find`, `all`) is what the observatory has seen; `until` looks only when that holds
everything this world has written itself.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from podlife.aio import cancel_and_wait
from podlife.client import EVENTS, NAMESPACES, NODES, PODS, Client, DeleteOptions, PatchType, Ref
from podlife.clock import Clock
from podlife.errors import ConflictError, NotFoundError
from tests.workloads.node import Node
from tests.workloads.observatory import FOLLOWED, Object, Observatory

T = TypeVar("T")

PATIENCE_SECONDS = 180.0
# How often the storm comes, in seconds.
_GUST_SECONDS = 0.02
STORM_ANNOTATION = "test.podlife.io/storm"


class WaitedInVainError(AssertionError):
    """What was waited for did not come; the text has what there was instead."""


class Quota(Protocol):
    """Lets a namespace have so many pods more, and refuses those after."""

    async def refuse(self, namespace: str, limit: int) -> None: ...
    async def allow(self, namespace: str) -> None: ...


@dataclass(frozen=True)
class Cluster:
    client: Client
    clock: Clock
    seen: Observatory
    quota: Quota
    # How long nothing has to change before a namespace counts as quiet.
    quiet_seconds: float


class World:
    """`node` stands in for scheduler and kubelets: tell it how pods behave, see `tests.workloads.node`."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self.namespace = namespace
        self.client = cluster.client
        self.clock = cluster.clock
        self.node = Node(cluster.client, cluster.clock, cluster.seen, namespace)
        self._cluster = cluster
        self._seen = cluster.seen
        self._written: dict[Ref, int] = {}

    # Reading

    def all(self, ref: Ref) -> list[Object]:
        """In the order of their names. Of nodes those whose name begins with that of the namespace."""
        found = sorted(self._seen.objects(ref, self.namespace).items())
        return [obj for name, obj in found if ref.namespaced or name.startswith(self.namespace)]

    def find(self, ref: Ref, name: str) -> Object | None:
        return self._seen.objects(ref, self.namespace).get(name)

    def get(self, ref: Ref, name: str) -> Object:
        found = self.find(ref, name)
        assert found is not None, f"there is no {ref} {name}"
        return found

    def status(self, ref: Ref, name: str) -> Object:
        """Empty when there is none, or no such object."""
        return (self.find(ref, name) or {}).get("status") or {}

    def pods(self, **labels: str) -> list[Object]:
        """All of them, or those with these labels (`app="web"`)."""
        return [
            pod for pod in self.all(PODS) if labels.items() <= (pod["metadata"].get("labels") or {}).items()
        ]

    def living(self, **labels: str) -> list[Object]:
        """The pods that are neither on their way out nor at their end."""
        return [pod for pod in self.pods(**labels) if is_living(pod)]

    def events(self, reason: str) -> list[Object]:
        return [event for event in self.all(EVENTS) if event["reason"] == reason]

    # Waiting

    async def until(self, what: str, holds: Callable[..., T], *, seconds: float = PATIENCE_SECONDS) -> T:
        """Wait until `holds` is true, and give what it was; raises WaitedInVainError with `what` in it."""
        try:
            async with asyncio.timeout(seconds):
                while True:
                    news = self._seen.news(self.namespace)
                    if self._is_caught_up() and (held := holds()):
                        return held
                    await news.wait()
        except TimeoutError:
            shown = self.describe()
            raise WaitedInVainError(
                f"{self.namespace}: after {seconds:g} s not so: {what}\n{shown}"
            ) from None

    async def until_pods(self, count: int, **labels: str) -> list[Object]:
        """Until there are exactly so many living pods, and give them."""
        await self.until(f"{count} living pods", lambda: len(self.living(**labels)) == count)
        return self.living(**labels)

    async def until_status(self, ref: Ref, name: str, **fields: Any) -> Object:
        """Until the status says so of the newest generation; a count that is left out is 0."""

        def holds() -> Object | None:
            obj = self.find(ref, name)
            if obj is None:
                return None
            status = obj.get("status") or {}
            is_current = status.get("observedGeneration", obj["metadata"].get("generation")) == obj[
                "metadata"
            ].get("generation")
            return (
                obj if is_current and all(status.get(each, 0) == to for each, to in fields.items()) else None
            )

        found = await self.until(f"{ref} {name} has {fields}", holds)
        assert found is not None
        return found

    async def until_gone(self, ref: Ref, name: str) -> None:
        await self.until(f"{ref} {name} is gone", lambda: self.find(ref, name) is None)

    async def until_event(self, reason: str, *, times: int = 1) -> None:
        await self.until(
            f"{times} events {reason}",
            lambda: sum(event.get("count") or 1 for event in self.events(reason)) >= times,
        )

    async def settle(self, *, seconds: float | None = None) -> None:
        """Until nothing has changed for a while."""
        await self.until("what was written is seen", lambda: True)
        quiet = self._cluster.quiet_seconds if seconds is None else seconds
        loop = asyncio.get_running_loop()
        started = loop.time()
        while (left := max(started, self._seen.changed_at(self.namespace)) + quiet - loop.time()) > 0:
            await asyncio.sleep(left)
            if loop.time() - started > 10 * PATIENCE_SECONDS:
                raise WaitedInVainError(f"{self.namespace} is never quiet\n{self.describe()}")

    def describe(self) -> str:
        """What is there, in a few lines."""
        lines = []
        for ref in FOLLOWED:
            for obj in self.all(ref):
                shown = obj.get("status") if ref is not EVENTS else f"{obj['reason']}: {obj.get('message')}"
                going = " (going)" if "deletionTimestamp" in obj["metadata"] else ""
                lines.append(f"  {ref.kind} {obj['metadata']['name']}{going}: {json.dumps(shown)[:300]}")
        return "\n".join(lines)

    def _is_caught_up(self) -> bool:
        return all(self._seen.has_seen(ref, revision) for ref, revision in self._written.items())

    def _note(self, ref: Ref, written: Object) -> Object:
        version = (written.get("metadata") or {}).get("resourceVersion") or "0"
        self._written[ref] = max(self._written.get(ref, 0), int(version))
        return written

    # Writing

    async def create(self, ref: Ref, obj: Object) -> Object:
        return self._note(ref, await self.client.create(ref, obj, self._in(ref)))

    async def patch(self, ref: Ref, name: str, patch: Object, *, subresource: str = "") -> Object:
        """A merge patch."""
        written: Object = await self.client.patch(ref, name, patch, self._in(ref), subresource=subresource)
        return self._note(ref, written)

    async def strategic_patch(self, ref: Ref, name: str, patch: Object) -> Object:
        written: Object = await self.client.patch(ref, name, patch, self._in(ref), type=PatchType.STRATEGIC)
        return self._note(ref, written)

    async def scale(self, ref: Ref, name: str, replicas: int) -> None:
        self._note(ref, await self.client.scale(ref, name, self.namespace, replicas))

    async def delete(
        self, ref: Ref, name: str, *, cascade: str = "Background", grace_seconds: int | None = None
    ) -> None:
        """`cascade` is Background, Foreground or Orphan."""
        options = DeleteOptions(grace_period_seconds=grace_seconds, propagation_policy=cascade)
        self._note(ref, await self.client.delete(ref, name, self._in(ref), options=options))

    async def lose(self, pod: Object) -> None:
        """The pod's object goes at once, as if its node had been taken away."""
        metadata = pod["metadata"]
        options = DeleteOptions(grace_period_seconds=0, uid=metadata["uid"])
        await self.client.delete(PODS, metadata["name"], self.namespace, options=options)
        await self.until(
            f"pod {metadata['name']} is lost",
            lambda: metadata["uid"] not in {each["metadata"]["uid"] for each in self.all(PODS)},
        )

    async def evict(self, pod: Object) -> None:
        await self.client.evict(pod["metadata"]["name"], self.namespace)

    async def relabel(self, pod: Object, labels: Mapping[str, str | None]) -> None:
        """None takes a label away."""
        await self.patch(PODS, pod["metadata"]["name"], {"metadata": {"labels": dict(labels)}})

    async def set_pod_status(self, pod: Object, status: Object) -> None:
        await self.patch(PODS, pod["metadata"]["name"], {"status": status}, subresource="status")

    async def create_node(self, suffix: str, **spec: Any) -> str:
        """A node for this scenario alone, ready; its name begins with the namespace's."""
        name = f"{self.namespace}-{suffix}"
        labels = {"kubernetes.io/hostname": name, "scenario": self.namespace}
        status = {
            "conditions": [{"type": "Ready", "status": "True"}],
            "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"},
            "capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"},
        }
        await self.create(
            NODES, {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": status}
        )
        return name

    async def refuse_pods(self, limit: int = 0) -> None:
        """From now on so many pods more, and a quota refuses the others."""
        await self._cluster.quota.refuse(self.namespace, limit)

    async def allow_pods(self) -> None:
        await self._cluster.quota.allow(self.namespace)

    async def terminate_namespace(self) -> None:
        """Nothing can be created in it any more; what is in it stays, since nobody clears it away."""
        await self.client.delete(NAMESPACES, self.namespace)

    @asynccontextmanager
    async def storm(self, ref: Ref, name: str) -> AsyncIterator[None]:
        """Somebody writes the object all the time: whoever updates it meets conflicts."""
        task = asyncio.get_running_loop().create_task(self._storm(ref, name))
        try:
            yield
        finally:
            await cancel_and_wait(task)
            if not task.cancelled():
                task.result()
        await self._write_annotation(ref, name, None)

    async def _storm(self, ref: Ref, name: str) -> None:
        for number in range(10_000):
            await self._write_annotation(ref, name, str(number))
            await asyncio.sleep(_GUST_SECONDS)

    async def _write_annotation(self, ref: Ref, name: str, value: str | None) -> None:
        try:
            await self.patch(ref, name, {"metadata": {"annotations": {STORM_ANNOTATION: value}}})
        except (ConflictError, NotFoundError):
            return

    def _in(self, ref: Ref) -> str:
        return self.namespace if ref.namespaced else ""


def is_living(pod: Object) -> bool:
    phase = (pod.get("status") or {}).get("phase")
    return "deletionTimestamp" not in pod["metadata"] and phase not in ("Succeeded", "Failed")
