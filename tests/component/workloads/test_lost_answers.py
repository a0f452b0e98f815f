"""Pods that were made though nobody knows: the server has done it, and the answer was lost on its way.

Together with a watch that is behind there is nothing in the cache that would say so. A controller that took such a
creation for a failure would make the pod again; one that waited for it might wait for what never was. On the embedded
server under virtual time; what is counted is what the server holds.
"""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

from podlife.client import DAEMON_SETS, JOBS, NODES, PODS, REPLICA_SETS, Client, Ref
from podlife.controller import ControlPlane
from podlife.errors import UnreachableError
from podlife.testing import LoopClock, virtual_time
from podlife.wire import Handler, Request, Response
from podlife.workloads import CONTROLLERS
from tests.kit.embedded import connect, refusal, start
from tests.workloads.disturbances import is_creation, late_watch
from tests.workloads.runs import at_work

SPEC = {"containers": [{"name": "c", "image": "i"}]}
TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": SPEC}
SELECTOR = {"matchLabels": {"app": "web"}}


def workload(name: str, count: int) -> tuple[Ref, dict[str, Any]]:
    """One that asks for so many pods."""
    if name == "replicaset-controller":
        return REPLICA_SETS, {"replicas": count, "selector": SELECTOR, "template": TEMPLATE}
    if name == "job-controller":
        template = {"metadata": {}, "spec": {**SPEC, "restartPolicy": "Never"}}
        return JOBS, {"parallelism": count, "completions": count, "template": template}
    return DAEMON_SETS, {"selector": SELECTOR, "template": TEMPLATE}


class LosesAnswers:
    """Every third creation of a pod is done and not answered, or neither done nor answered; and what is watched of pods
    comes late."""

    def __init__(self, *, is_done: bool) -> None:
        self._is_done = is_done
        self._numbers = itertools.count(1)
        self.lost = 0

    async def __call__(self, request: Request, to_server: Handler) -> Response:
        if is_creation(request) and next(self._numbers) % 3 == 1:
            self.lost += 1
            if self._is_done:
                await to_server(request)
            raise UnreachableError("the connection was lost")
        return await late_watch("/pods")(request, to_server)


async def make(client: Client, name: str, count: int) -> None:
    for number in range(count if name == "daemonset-controller" else 0):
        await client.create(NODES, {"metadata": {"name": f"node-{number}"}})
    ref, spec = workload(name, count)
    await client.create(ref, {"metadata": {"name": "web"}, "spec": spec}, "default")


@pytest.mark.parametrize("is_done", [True, False], ids=["done", "not done"])
@pytest.mark.parametrize("count", [1, 2, 5, 20])
@pytest.mark.parametrize("name", ["replicaset-controller", "job-controller", "daemonset-controller"])
@virtual_time
async def test_answers_that_are_lost_lead_to_no_pod_too_many_and_none_too_few(
    name: str, count: int, is_done: bool
) -> None:
    server, network = await start(), LosesAnswers(is_done=is_done)
    most = 0
    async with connect(server) as client, connect(server, network) as cut_off:
        await make(client, name, count)
        plane = ControlPlane(cut_off, clock=LoopClock())
        plane.add(CONTROLLERS[name](plane))
        async with at_work(plane.run):
            for _ in range(600):
                await asyncio.sleep(0.2)
                most = max(most, len((await client.list(PODS, "default")).items))
        left = len((await client.list(PODS, "default")).items)
    assert network.lost
    assert (most, left) == (count, count)


@pytest.mark.parametrize("name", ["replicaset-controller", "job-controller", "daemonset-controller"])
@virtual_time
async def test_a_server_that_never_answers_creations_is_asked_ever_more_slowly(name: str) -> None:
    tries: list[float] = []

    async def broken(request: Request, to_server: Handler) -> Response:
        if is_creation(request):
            tries.append(asyncio.get_running_loop().time())
            return refusal(500, "InternalError")
        return await to_server(request)

    server = await start()
    async with connect(server) as client, connect(server, broken) as cut_off:
        await make(client, name, 3)
        plane = ControlPlane(cut_off, clock=LoopClock())
        plane.add(CONTROLLERS[name](plane))
        async with at_work(plane.run):
            await asyncio.sleep(600)
    assert 5 <= len(tries) <= 25
    assert tries[-1] - tries[-2] > 50
