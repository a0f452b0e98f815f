"""Where scenarios are played: nodes that beat every second, graces of a few, and waiting for what becomes of them.

The same code runs in real time on a real server and in virtual time on the embedded one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from podlife.client import NODES, PODS, Client
from podlife.clock import Clock
from podlife.nodehealth import NodeHealthSettings
from tests.component.nodehealth.world import History, World, condition, is_terminating, taints
from tests.workloads.runs import at_work

Object = dict[str, Any]

HEARTBEAT_SECONDS = 1.0
# So many heartbeats may be late on a busy machine.
GRACE_SECONDS = 8.0
PERIOD_SECONDS = 0.5
RATE = 0.5
PATIENCE_SECONDS = 180.0
# How long nothing has to change before a scenario is over: longer than a turn takes, and than what comes late.
QUIET_SECONDS = 2.5

SETTINGS = NodeHealthSettings(
    monitor_period_seconds=PERIOD_SECONDS,
    monitor_grace_seconds=GRACE_SECONDS,
    startup_grace_seconds=GRACE_SECONDS,
    eviction_rate=RATE,
)
FLAGS = (
    f"--node-monitor-period={PERIOD_SECONDS}s",
    f"--node-monitor-grace-period={GRACE_SECONDS}s",
    f"--node-startup-grace-period={GRACE_SECONDS}s",
    f"--node-eviction-rate={RATE}",
)
"""The same for kube-controller-manager."""


class Stage(World):
    """A scenario's own part of the cluster."""

    def zone(self, name: str = "") -> str:
        """One that no other scenario has."""
        return f"{self.prefix}zone{name}"

    async def raise_node(self, name: str, zone: str = "", **extra: Any) -> None:
        await self.add_node(name, zone=self.zone(zone), **extra)

    async def until(self, what: str, holds: Callable[..., object]) -> None:
        """Looked at with every change that is seen; raises AssertionError with `what` in it."""
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while not holds():
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise AssertionError(f"{self.prefix}: after {PATIENCE_SECONDS:g} s not so: {what}") from None

    def last(self, kind: str, name: str) -> Object:
        found = [
            obj
            for _, a_kind, a_name, obj in self.history.changes
            if (a_kind, a_name) == (kind, self.prefix + name)
        ]
        return found[-1] if found else {}

    async def until_ready(self, name: str, status: str) -> None:
        await self.until(
            f"node {name} is Ready={status}",
            lambda: condition(self.last("Node", name), "Ready").get("status") == status,
        )

    async def until_taints(self, name: str, *wanted: str) -> None:
        """These, in any order, and no others."""
        await self.until(
            f"node {name} has {wanted}", lambda: sorted(taints(self.last("Node", name))) == sorted(wanted)
        )

    async def until_going(self, *names: str) -> None:
        for name in names:
            await self.until(f"pod {name} goes", lambda name=name: _is_going(self.last("Pod", name)))

    async def until_unready(self, *names: str) -> None:
        for name in names:
            await self.until(
                f"pod {name} is not ready",
                lambda name=name: condition(self.last("Pod", name), "Ready").get("status") == "False",
            )

    async def settle(self) -> None:
        """Until nothing has changed for a while."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        while (left := max(began, self._changed_at()) + QUIET_SECONDS - loop.time()) > 0:
            await asyncio.sleep(left)

    def _changed_at(self) -> float:
        return max(
            (at for at, _, name, _ in self.history.changes if name.startswith(self.prefix)), default=0.0
        )


def _is_going(pod: Object) -> bool:
    return "gone" in pod or (bool(pod) and is_terminating(pod))


@asynccontextmanager
async def staging(client: Client, clock: Clock) -> AsyncIterator[Callable[[str], Stage]]:
    """What makes a stage by its prefix, on a server where somebody is at work."""
    history = History(client)
    async with at_work(history.run):

        def make(prefix: str) -> Stage:
            return Stage(
                client, None, history, clock=clock, prefix=prefix, heartbeat_seconds=HEARTBEAT_SECONDS
            )

        yield make


async def clear(stage: Stage) -> None:
    """Take away what a scenario has left, so that its zones are nobody's any more."""
    for node in (await stage.client.list(NODES)).items:
        if node["metadata"]["name"].startswith(stage.prefix):
            await stage.client.delete(NODES, node["metadata"]["name"])
    for pod in (await stage.client.list(PODS)).items:
        if pod["metadata"]["name"].startswith(stage.prefix):
            await stage.client.delete(PODS, pod["metadata"]["name"], pod["metadata"]["namespace"])
