"""A cluster with some of everything on it, what happens to it by chance, and how it is calm again."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable
from typing import Any

from podlife.client import DAEMON_SETS, DEPLOYMENTS, JOBS, NODES, PODS, STATEFUL_SETS, DeleteOptions, Ref
from podlife.errors import AlreadyExistsError, ConflictError, PodlifeError
from podlife.testing import Behaviour, Cluster, FaultInjection

Object = dict[str, Any]
OUT_OF_SERVICE = {"key": "node.kubernetes.io/out-of-service", "value": "gone", "effect": "NoExecute"}

# Whoever does something waits no longer for a server that has stalled; it may be done nevertheless.
_PATIENCE_SECONDS = 5.0
# Others change a node, too.
_TRIES = 20
_TEMPLATE = {"terminationGracePeriodSeconds": 20, "containers": [{"name": "main", "image": "app"}]}


def _spec(name: str, **spec: Any) -> Object:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": _TEMPLATE}
    return {
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": labels}, "template": template, **spec},
    }


def _job() -> Object:
    template = {"spec": {**_TEMPLATE, "restartPolicy": "Never"}}
    spec = {"completions": 4, "parallelism": 2, "backoffLimit": 1000, "template": template}
    return {"metadata": {"name": "batch"}, "spec": spec}


class Storm:
    """`told` is what was done, and when."""

    def __init__(self, cluster: Cluster, chance: random.Random) -> None:
        self._cluster = cluster
        self._chance = chance
        self.told: list[str] = []
        self._later: list[asyncio.TimerHandle] = []
        self._injections: set[FaultInjection] = set()
        self._removed: set[str] = set()
        self._wanted: list[tuple[Ref, Object]] = []

    async def prepare(self) -> None:
        cluster, chance = self._cluster, self._chance
        cluster.behave(Behaviour(stop_seconds=chance.choice((0.0, 3.0, None))), pod="web-*")
        cluster.behave(Behaviour(start_seconds=chance.choice((0.0, 8.0)), stop_seconds=5.0), pod="db-*")
        cluster.behave(Behaviour(run_seconds=chance.uniform(5, 60)), pod="batch-*")
        self._wanted = [
            (DEPLOYMENTS, _spec("web", replicas=chance.randint(2, 4))),
            (STATEFUL_SETS, _spec("db", replicas=chance.randint(1, 3), serviceName="db")),
            (DAEMON_SETS, _spec("agent")),
            (JOBS, _job()),
        ]
        await self.make_what_is_missing()

    async def make_what_is_missing(self) -> None:
        """What was deleted in the foreground is in the way of its successor until it has gone."""
        for ref, obj in self._wanted:
            with contextlib.suppress(AlreadyExistsError):
                await self._cluster.client.create(ref, obj, "default")

    async def rage(self, seconds: float) -> None:
        end = self._cluster.time + seconds
        acts: list[Callable[[], Awaitable[str]]] = [
            *[self._toggle_node] * 4,
            self._restart_agent,
            self._remove_node,
            self._declare_out_of_service,
            *[self._toggle_controller] * 4,
            self._stall_server,
            *[self._disturb_component] * 3,
            self._break_watches,
            self._scale,
            *[self._delete_pod] * 3,
            self._make_anew,
            self._roll,
            self._crash,
        ]
        while self._cluster.time < end:
            act = self._chance.choice(acts)
            try:
                async with asyncio.timeout(_PATIENCE_SECONDS):
                    told = await act()
            except (PodlifeError, TimeoutError) as error:
                told = f"{act.__name__.strip('_')} came to nothing: {error}"
            self.told.append(f"{self._cluster.time:8.2f} {told}")
            await self._cluster.advance(seconds=self._chance.choice((0.0, 0.01, 0.3, 1.0, 3.0, 10.0)))

    async def calm(self) -> None:
        """Everything is put right that somebody would put right."""
        for timer in self._later:
            timer.cancel()
        for faults in (self._cluster.api, *self._injections):
            _restore(faults)
        for name in self._cluster.controllers:
            await self._cluster.controllers.start(name)
        for name, node in self._cluster.nodes.items():
            if name not in self._removed:
                await node.start()
                await self._untaint(name)
        self.told.append(f"{self._cluster.time:8.2f} calm")

    # Nodes

    async def _toggle_node(self) -> str:
        node = self._any_node()
        if not node.is_running:
            self._removed.discard(node.name)
            await node.start()
            await self._untaint(node.name)
            return f"{node.name} starts"
        if self._chance.random() < 0.7:
            await node.stop()
            return f"{node.name} stops"
        await node.power_off()
        return f"{node.name} is without power"

    async def _restart_agent(self) -> str:
        node = self._any_node()
        if node.is_running:
            await node.restart()
        return f"agent of {node.name} restarts"

    async def _remove_node(self) -> str:
        # One is always left, and none goes twice.
        if self._removed:
            return "nothing"
        node = self._any_node()
        await node.remove()
        self._removed.add(node.name)
        return f"{node.name} is removed"

    async def _declare_out_of_service(self) -> str:
        node = self._any_node()
        if node.is_running:
            return "nothing"
        # Only who has made sure that nothing runs on it may say so.
        await node.power_off()
        found = await self._cluster.client.get(NODES, node.name)
        await self._set_taints(found, [*(found["spec"].get("taints") or ()), OUT_OF_SERVICE])
        return f"{node.name} is out of service"

    async def _untaint(self, name: str) -> None:
        """Once it is back nobody says any more that it is not."""
        for _ in range(_TRIES):
            try:
                await self._try_untaint(name)
            except ConflictError:
                continue
            return

    async def _try_untaint(self, name: str) -> None:
        nodes = {each["metadata"]["name"]: each for each in (await self._cluster.client.list(NODES)).items}
        taints = nodes.get(name, {}).get("spec", {}).get("taints") or []
        kept = [each for each in taints if each["key"] != OUT_OF_SERVICE["key"]]
        if kept != taints:
            await self._set_taints(nodes[name], kept)

    async def _set_taints(self, node: Object, taints: list[Object]) -> None:
        """Of the node as it was read: a conflict if somebody has changed it since."""
        version = {"resourceVersion": node["metadata"]["resourceVersion"]}
        patch = {"metadata": version, "spec": {"taints": taints}}
        await self._cluster.client.patch(NODES, node["metadata"]["name"], patch)

    # Controllers and connections

    async def _toggle_controller(self) -> str:
        controllers = self._cluster.controllers
        name = self._chance.choice(list(controllers))
        if not controllers.is_running(name):
            await controllers.start(name)
            return f"{name} starts"
        if self._chance.random() < 0.6:
            await controllers.restart(name)
            return f"{name} restarts"
        await controllers.kill(name)
        return f"{name} is killed"

    async def _stall_server(self) -> str:
        seconds = self._chance.choice((2.0, 15.0, 50.0, 100.0))
        self._cluster.api.stall()
        self._after(seconds, self._cluster.api)
        return f"the server stalls for {seconds:g} s"

    async def _disturb_component(self) -> str:
        faults, seconds = self._any_faults(), self._chance.choice((1.0, 10.0, 45.0, 120.0))
        if faults is None:
            return "nothing"
        how = self._chance.choice(("stall", "cut", "lose"))
        match how:
            case "stall":
                faults.stall()
            case "cut":
                faults.cut()
            case "lose":
                faults.loses_answers = True
        self._injections.add(faults)
        self._after(seconds, faults)
        return f"{how} {faults.name} for {seconds:g} s"

    async def _break_watches(self) -> str:
        faults = self._chance.choice((self._cluster.api, self._any_faults())) or self._cluster.api
        faults.break_watches()
        return f"watches of {faults.name} break"

    # Users

    async def _scale(self) -> str:
        ref, name = self._chance.choice(((DEPLOYMENTS, "web"), (STATEFUL_SETS, "db")))
        replicas = self._chance.randint(0, 4)
        await self._cluster.client.scale(ref, name, "default", replicas)
        return f"{name} is scaled to {replicas}"

    async def _delete_pod(self) -> str:
        pods = (await self._cluster.client.list(PODS, "default")).items
        if not pods:
            return "nothing"
        # Those of whom nobody hears are the ones that people lose patience with.
        lost = [each for each in pods if not self._is_heard_of(each)]
        pods = lost if lost and self._chance.random() < 0.6 else pods
        pod = self._chance.choice(sorted(pods, key=lambda each: str(each["metadata"]["name"])))
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        # Nobody forces a pod away that must not run twice.
        grace = (
            self._chance.choice((None, 5)) if name.startswith("db-") else self._chance.choice((None, 5, 0))
        )
        options = DeleteOptions(uid=uid, grace_period_seconds=grace)
        await self._cluster.client.delete(PODS, name, "default", options=options)
        return f"{name} is deleted with grace {grace}"

    def _is_heard_of(self, pod: Object) -> bool:
        node = self._cluster.nodes.get(pod["spec"].get("nodeName") or "")
        return node is None or node.is_running

    async def _make_anew(self) -> str:
        """Deleted, and made again under the same name, sooner or later."""
        ref, obj = self._chance.choice(self._wanted[:3])
        name, how = obj["metadata"]["name"], self._chance.choice(("Background", "Foreground", "Orphan"))
        options = DeleteOptions(propagation_policy=how)
        await self._cluster.client.delete(ref, name, "default", options=options)
        await self._cluster.advance(seconds=self._chance.choice((0.0, 0.5, 3.0)))
        await self.make_what_is_missing()
        return f"{name} is made anew ({how})"

    async def _roll(self) -> str:
        ref, name = self._chance.choice(((DEPLOYMENTS, "web"), (STATEFUL_SETS, "db")))
        stamp = {"at": f"{self._cluster.time:.2f}"}
        patch = {"spec": {"template": {"metadata": {"annotations": stamp}}}}
        await self._cluster.client.patch(ref, name, patch, "default")
        return f"{name} gets another template"

    async def _crash(self) -> str:
        node = self._any_node()
        if not node.containers:
            return "nothing"
        container = self._chance.choice(node.containers)
        node.machine.end(node.machine.containers[container.id], self._chance.choice((1, 137)))
        return f"{container.pod}/{container.name} crashes on {node.name}"

    # Choosing

    def _any_node(self) -> Any:
        return self._chance.choice(list(self._cluster.nodes.values()))

    def _any_faults(self) -> FaultInjection | None:
        controllers = self._cluster.controllers
        all_faults = [controllers.faults(name) for name in controllers if controllers.is_running(name)]
        all_faults += [node.faults for node in self._cluster.nodes.values() if node.is_running]
        return self._chance.choice(all_faults) if all_faults else None

    def _after(self, seconds: float, faults: FaultInjection) -> None:
        self._later.append(asyncio.get_running_loop().call_later(seconds, _restore, faults))


def _restore(faults: FaultInjection) -> None:
    faults.resume()
    faults.restore()
    faults.loses_answers = False
