"""Services and their pods, given to kube-controller-manager's endpoint controllers and to ours, end the same.

Each on a kube-apiserver of its own. Scenarios run side by side, once, when the first of them is asked for; at each of
its marks a scenario waits until both sides show the same for a while, or for the deadline.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest

from podlife.client import Client
from podlife.clock import SystemClock
from podlife.controller import ControlPlane
from podlife.endpoints import (
    EndpointsController,
    EndpointSliceController,
    EndpointSliceMirroringController,
)
from podlife.ownergc import OwnerGarbageCollector
from tests.endpoints.scenarios import SCENARIOS
from tests.endpoints.stage import QUIET_SECONDS, Stage, create_nodes
from tests.kit.real_parts import Settings, controller_manager, kube_apiserver
from tests.real.conftest import require
from tests.real.differential.compare import differences_between
from tests.workloads.runs import at_work, connect

CONTROLLERS = (
    "endpoints-controller",
    "endpointslice-controller",
    "endpointslice-mirroring-controller",
    "garbage-collector-controller",
)
BOTH_FAMILIES = Settings(flags=["--service-cluster-ip-range=10.0.0.0/24,fd00:10::/112"])
# How many scenarios are under way at once.
AT_ONCE = 8
# How long both sides may take to show the same, unchanged for a while.
DEADLINE_SECONDS = 120.0
_POLL_SECONDS = 0.5
_END = object()

Outcomes = Mapping[str, str]
"""By the name of a scenario: what differs, and at which mark; empty if nothing does."""


@pytest.fixture(scope="module")
def played(request: pytest.FixtureRequest, parts_folder: Path) -> Outcomes:
    require("etcd", "kube-apiserver", "kube-controller-manager")
    names = [
        item.callspec.params["name"]  # type: ignore[attr-defined]
        for item in request.session.items
        if item.path == request.path and "played" in getattr(item, "fixturenames", ())
    ]
    folder = parts_folder / "endpoints"
    with (
        kube_apiserver(folder / "theirs", BOTH_FAMILIES) as theirs,
        kube_apiserver(folder / "ours", BOTH_FAMILIES) as ours,
        controller_manager(folder / "kcm", theirs, CONTROLLERS),
    ):
        return asyncio.run(play_all(names, theirs.kubeconfig, ours.kubeconfig))


async def play_all(names: list[str], theirs: Path, ours: Path) -> Outcomes:
    turns = asyncio.Semaphore(AT_ONCE)
    async with connect(theirs) as real, connect(ours) as own, connect(ours) as line:
        await create_nodes(real)
        await create_nodes(own)
        plane = ControlPlane(line, clock=SystemClock())
        for controller in (EndpointsController, EndpointSliceController, EndpointSliceMirroringController):
            plane.add(controller(plane))
        plane.add(OwnerGarbageCollector(plane))

        async def one(name: str) -> str:
            async with turns:
                return await play(name, real, own)

        async with at_work(plane.run):
            found = await asyncio.gather(*map(one, names))
    return dict(zip(names, found, strict=True))


async def play(name: str, real: Client, own: Client) -> str:
    """What differs at the first mark where something does."""
    stages = [Stage(client, name) for client in (real, own)]
    await asyncio.gather(*(each.open() for each in stages))
    runs = [SCENARIOS[name](each) for each in stages]
    mark = 0
    try:
        while not any(await asyncio.gather(*map(has_ended, runs))):
            mark += 1
            if complaint := await agree(*stages):
                return f"{name}, mark {mark}:\n{complaint}"
    except Exception as error:  # noqa: BLE001 - it is the outcome
        return f"{name}, after mark {mark}: {type(error).__name__}: {error}"
    return ""


async def has_ended(run: AsyncIterator[None]) -> bool:
    """Go on to the next mark."""
    return await anext(run, _END) is _END


async def agree(theirs: Stage, ours: Stage) -> str:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + DEADLINE_SECONDS
    last, since = None, loop.time()
    while True:
        seen = await asyncio.gather(theirs.seen(), ours.seen())
        if seen != last:
            last, since = seen, loop.time()
        is_quiet = loop.time() - since >= QUIET_SECONDS
        found = differences_between(*seen)
        if (is_quiet and not found) or loop.time() > deadline:
            return "\n".join(map(str, found))
        await asyncio.sleep(_POLL_SECONDS)


@pytest.mark.parametrize("name", SCENARIOS)
def test_both_make_the_same_of_it(name: str, played: Outcomes) -> None:
    if played[name]:
        pytest.fail(played[name], pytrace=False)
