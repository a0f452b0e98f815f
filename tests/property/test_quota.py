"""A quota is never exceeded: by no order in which concurrent creates, deletes and the controller take turns."""

from __future__ import annotations

import asyncio
import random

from hypothesis import given, settings
from hypothesis import strategies as st

from podlife.api.codec import Object
from podlife.api.quantity import parse_nanos
from podlife.client import PODS, Client, DeleteOptions
from podlife.controller import ControlPlane
from podlife.errors import ForbiddenError
from podlife.resourcequota import ResourceQuotaController
from podlife.resourcequota.controller import RESOURCE_QUOTAS
from podlife.testing import LoopClock, run_virtually
from podlife.wire import Handler, Request, Response
from tests.kit.embedded import connect, start
from tests.workloads.runs import at_work

MILLIS = 10**6
Turn = tuple[bool, int]
"""Whether a pod is created, and with how many thousandths of a CPU; if not, one is deleted."""


async def _hold(turns: list[Turn], hard: Object, seed: int) -> None:
    handler, chance = await start(), random.Random(seed)

    async def delayed(request: Request, to_server: Handler) -> Response:
        await asyncio.sleep(chance.random())
        response = await to_server(request)
        await asyncio.sleep(chance.random())
        return response

    observer, plane = connect(handler), ControlPlane(connect(handler, delayed), clock=LoopClock())
    plane.add(ResourceQuotaController(plane))
    async with at_work(plane.run):
        await observer.create(RESOURCE_QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": hard}}, "default")
        while not await _used(observer):
            await asyncio.sleep(1)
        clients = [connect(handler, delayed) for _ in range(4)]
        work = (
            _take_turns(clients[number], f"pod-{number}", turns[number::4], observer, hard)
            for number in range(4)
        )
        await asyncio.gather(*work)
        # Two resyncs.
        deadline = asyncio.get_running_loop().time() + 600
        while (used := await _used(observer)) != (existing := await _existing(observer)):
            assert asyncio.get_running_loop().time() < deadline, f"{used} is not {existing}"
            await asyncio.sleep(5)


async def _take_turns(client: Client, prefix: str, turns: list[Turn], observer: Client, hard: Object) -> None:
    made: list[str] = []
    for number, (creates, millis) in enumerate(turns):
        if creates:
            name = f"{prefix}-{number}"
            resources = {"requests": {"cpu": f"{millis}m"}}
            spec = {"containers": [{"name": "main", "image": "image", "resources": resources}]}
            try:
                await client.create(PODS, {"metadata": {"name": name}, "spec": spec}, "default")
                made.append(name)
            except ForbiddenError as error:
                if "exceeded quota: q" not in str(error):
                    raise
        elif made:
            options = DeleteOptions(grace_period_seconds=0)
            await client.delete(PODS, made.pop(), "default", options=options)
        used, existing = await _used(observer), await _existing(observer)
        for name in hard:
            assert existing[name] <= parse_nanos(hard[name]), "exceeded"
            assert used[name] >= existing[name], "counted short"


async def _used(client: Client) -> dict[str, int]:
    quota = await client.get(RESOURCE_QUOTAS, "q", "default")
    return {name: parse_nanos(text) for name, text in (quota["status"].get("used") or {}).items()}


async def _existing(client: Client) -> dict[str, int]:
    pods = (await client.list(PODS, "default")).items
    requests = [pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] for pod in pods]
    return {"pods": len(pods) * 1000 * MILLIS, "requests.cpu": sum(map(parse_nanos, requests))}


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.tuples(st.booleans() | st.just(True), st.integers(1, 900)), min_size=4, max_size=40),
    st.integers(0, 6),
    st.integers(100, 3000),
    st.integers(0, 2**32),
)
def test_a_quota_is_never_exceeded_and_ends_exact(
    turns: list[Turn], pods: int, millis: int, seed: int
) -> None:
    hard = {"pods": str(pods), "requests.cpu": f"{millis}m"}
    run_virtually(lambda: _hold(turns, hard, seed))
