"""A stand-in for the scheduler and the kubelets of one namespace.

It binds each pod, says of it what its behaviour is, and confirms deletions. Behaviours are given by predicates, the
last that fits counts, and a behaviour given later changes pods that are there already:

    world.node.let(RUNS)                              # as it is without
    world.node.let(UNREADY, app("web"))
    world.node.let(exits(1), lambda pod: pod["metadata"]["name"] == "web-0")
    world.node.hold()                                 # pods that are asked to go stay
    world.node.let_go()
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from podlife.api.codec import format_time
from podlife.client import PODS, Client, DeleteOptions
from podlife.clock import Clock
from podlife.errors import ConflictError, NotFoundError
from tests.workloads.observatory import Object, Observatory

Predicate = Callable[[Object], bool]


@dataclass(frozen=True)
class Behaviour:
    # Empty: it is not even scheduled.
    phase: str
    is_ready: bool = False
    # Of all its containers, once they have ended.
    exit_code: int | None = None
    # More of the status: reason, message.
    rest: Mapping[str, str] = field(default_factory=dict)
    # More conditions, by type: DisruptionTarget.
    conditions: Mapping[str, str] = field(default_factory=dict)


PENDING = Behaviour("")
"""No node takes it."""
WAITS = Behaviour("Pending")
"""It is bound, and does not start."""
RUNS = Behaviour("Running", is_ready=True)
UNREADY = Behaviour("Running")


def exits(code: int) -> Behaviour:
    return Behaviour("Failed" if code else "Succeeded", exit_code=code)


def fails(*, reason: str = "", message: str = "", conditions: Mapping[str, str] | None = None) -> Behaviour:
    """It fails as a whole, not by its containers; `conditions` are reasons by type."""
    rest = {name: text for name, text in (("reason", reason), ("message", message)) if text}
    return Behaviour("Failed", rest=rest, conditions=conditions or {})


def app(name: str) -> Predicate:
    return lambda pod: (pod["metadata"].get("labels") or {}).get("app") == name


def named(*names: str) -> Predicate:
    return lambda pod: pod["metadata"]["name"] in names


class Node:
    def __init__(self, client: Client, clock: Clock, seen: Observatory, namespace: str) -> None:
        self._client = client
        self._clock = clock
        self._seen = seen
        self._namespace = namespace
        self._rules: list[tuple[Predicate, Behaviour]] = [(lambda _: True, RUNS)]
        self._held: list[Predicate] = []
        self._shown: dict[str, Behaviour] = {}
        self._is_bound: set[str] = set()
        self._has_gone: set[str] = set()

    def let(self, behaviour: Behaviour, pods: Predicate = lambda _: True) -> None:
        """From now on such pods, those that are there too, behave so."""
        self._rules.append((pods, behaviour))
        self._seen.wake(self._namespace)

    def hold(self, pods: Predicate = lambda _: True) -> None:
        """Such pods take their time to go."""
        self._held.append(pods)

    def let_go(self) -> None:
        """Nobody is held any more."""
        self._held.clear()
        self._seen.wake(self._namespace)

    async def run(self) -> None:
        while True:
            news = self._seen.news(self._namespace)
            pods = list(self._seen.objects(PODS, self._namespace).values())
            await asyncio.gather(*(self._tend(pod) for pod in pods))
            await news.wait()

    async def _tend(self, pod: Object) -> None:
        try:
            if "deletionTimestamp" in pod["metadata"]:
                await self._end(pod)
            else:
                await self._continue(pod)
        except (NotFoundError, ConflictError):
            # Gone, or changed: news of it is on its way.
            return

    async def _continue(self, pod: Object) -> None:
        uid, name = pod["metadata"]["uid"], pod["metadata"]["name"]
        behaviour = next(each for holds, each in reversed(self._rules) if holds(pod))
        if not behaviour.phase or self._shown.get(uid) == behaviour or pod["spec"].get("schedulingGates"):
            return
        if not pod["spec"].get("nodeName") and uid not in self._is_bound:
            await self._client.bind(name, self._namespace, self._node_for(pod), uid=uid)
            self._is_bound.add(uid)
        if behaviour.phase != "Pending":
            await self._say(pod, behaviour)
        self._shown[uid] = behaviour

    async def _end(self, pod: Object) -> None:
        metadata = pod["metadata"]
        if metadata["uid"] in self._has_gone or any(holds(pod) for holds in self._held):
            return
        is_at_its_end = pod["status"].get("phase") in ("Succeeded", "Failed")
        if metadata.get("finalizers") and not is_at_its_end and pod["spec"].get("nodeName"):
            # Somebody waits for how it ended.
            await self._say(pod, exits(143))
        self._has_gone.add(metadata["uid"])
        options = DeleteOptions(grace_period_seconds=0, uid=metadata["uid"])
        await self._client.delete(PODS, metadata["name"], self._namespace, options=options)

    async def _say(self, pod: Object, behaviour: Behaviour) -> None:
        metadata = pod["metadata"]
        status = status_of(pod, behaviour, format_time(self._clock.now()))
        patch = {"metadata": {"uid": metadata["uid"]}, "status": status}
        await self._client.patch(PODS, metadata["name"], patch, self._namespace, subresource="status")

    def _node_for(self, pod: Object) -> str:
        affinity = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
        terms = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {}).get(
            "nodeSelectorTerms", []
        )
        for term in terms:
            for wanted in term.get("matchFields", []):
                if wanted["key"] == "metadata.name":
                    node: str = wanted["values"][0]
                    return node
        return f"{self._namespace}-node"


def status_of(pod: Object, behaviour: Behaviour, now: str) -> Object:
    """What a kubelet would say of such a pod. What stood there before of conditions stays, unless it changes."""
    wanted = {
        "PodScheduled": ("True", ""),
        "Initialized": ("True", ""),
        "ContainersReady": _ready(behaviour),
        "Ready": _ready(behaviour),
        **{type_: ("True", reason) for type_, reason in behaviour.conditions.items()},
    }
    before = {each["type"]: each for each in pod["status"].get("conditions") or []}
    conditions = []
    for type_, (value, reason) in wanted.items():
        condition: Object = {"type": type_, "status": value, "lastTransitionTime": now}
        if reason:
            condition["reason"] = reason
        if before.get(type_, {}).get("status") == value:
            condition["lastTransitionTime"] = before[type_].get("lastTransitionTime") or now
        conditions.append(condition)
    status: Object = {
        "phase": behaviour.phase,
        "startTime": pod["status"].get("startTime") or now,
        "conditions": conditions,
        **behaviour.rest,
    }
    if not behaviour.rest:
        status["containerStatuses"] = [_container(each, behaviour, now) for each in pod["spec"]["containers"]]
    return status


def _ready(behaviour: Behaviour) -> tuple[str, str]:
    if behaviour.is_ready:
        return "True", ""
    return "False", {"Succeeded": "PodCompleted", "Failed": "PodFailed"}.get(
        behaviour.phase, "ContainersNotReady"
    )


def _container(container: Object, behaviour: Behaviour, now: str) -> Object:
    state: dict[str, Any] = {"running": {"startedAt": now}}
    if behaviour.exit_code is not None:
        reason = "Error" if behaviour.exit_code else "Completed"
        times = {"startedAt": now, "finishedAt": now}
        state = {"terminated": {"exitCode": behaviour.exit_code, "reason": reason, **times}}
    return {
        "name": container["name"],
        "image": container["image"],
        "imageID": "",
        "ready": behaviour.is_ready,
        "restartCount": 0,
        "started": behaviour.phase == "Running",
        "state": state,
    }
