"""Running scenarios on a server where somebody is at work: kube-controller-manager, or ours."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager

from podlife.client import Client
from podlife.clock import Clock
from podlife.controller import ControlPlane
from podlife.nodehealth import NodeLifecycleController, TaintEvictionController
from tests.kit.real_parts import Settings
from tests.nodehealth.outcome import Outcome, take
from tests.nodehealth.scenarios import Scenario, golden
from tests.nodehealth.stage import SETTINGS, Stage, clear, staging
from tests.workloads.runs import at_work

KUBE_SETTINGS = Settings(disabled_admission=("ServiceAccount", "TaintNodesByCondition"))
"""Without what taints every new node until a controller looks at it: when that taint goes depends on timing."""
KUBE_CONTROLLERS = ("node-lifecycle-controller", "taint-eviction-controller")
# A node that is always ready, so that a zone which goes down is not the last one.
_ANCHOR = "anchor-"
_EVENT_LOOKS = 30


@asynccontextmanager
async def own_controllers(client: Client, clock: Clock) -> AsyncIterator[None]:
    plane = ControlPlane(client, clock=clock)
    plane.add(NodeLifecycleController(plane, settings=SETTINGS))
    plane.add(TaintEvictionController(plane))
    async with at_work(plane.run):
        yield


async def play(stage: Stage, scenario: Scenario) -> Outcome:
    async with stage.beating():
        await scenario.play(stage)
        await stage.settle()
        outcome = await take(stage, scenario.ignoring)
        for _ in range(_EVENT_LOOKS):
            if outcome.get("events") == _recorded_events(scenario):
                break
            # They are sent behind everything else, and a machine that is busy takes its time.
            await asyncio.sleep(1)
            outcome = await take(stage, scenario.ignoring)
        return outcome


def _recorded_events(scenario: Scenario) -> object:
    try:
        return golden(scenario).get("events")
    except LookupError:
        return None


@asynccontextmanager
async def anchored(make: Callable[[str], Stage]) -> AsyncIterator[None]:
    stage = make(_ANCHOR)
    async with stage.beating():
        await stage.add_node("node")
        await asyncio.sleep(1)
        yield
    await clear(stage)


async def play_all(
    client: Client, clock: Clock, scenarios: Iterable[Scenario], suffix: str = ""
) -> dict[str, Outcome | Exception]:
    """Side by side, and then those that need all of the cluster, one by one; why not, where one did not get through."""
    outcomes: dict[str, Outcome | Exception] = {}
    chosen = list(scenarios)
    async with staging(client, clock) as make:

        async def one(scenario: Scenario) -> None:
            stage = make(scenario.prefix(suffix))
            try:
                outcomes[scenario.name] = await play(stage, scenario)
            except Exception as error:  # noqa: BLE001 - it is the outcome
                outcomes[scenario.name] = error
            await clear(stage)

        async with anchored(make):
            await asyncio.gather(*(one(each) for each in chosen if not each.is_alone))
        for each in chosen:
            if each.is_alone:
                # The zones of the others are forgotten by then.
                await asyncio.sleep(3)
                await one(each)
    return outcomes
