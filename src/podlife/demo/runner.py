"""Plays a demo: starts its cluster, narrates and checks a scenario step by step, and removes everything.

A step that does not happen as described raises PodlifeError.
"""

from __future__ import annotations

import asyncio
import importlib
import shlex
import sys
from dataclasses import dataclass

from podlife.client import Client, Flags, load
from podlife.daemons.connection import first_error
from podlife.daemons.event_loop import Shutdown, never_stopped
from podlife.demo.cluster import DemoCluster, DemoTimes
from podlife.demo.narrator import Narrator
from podlife.demo.recorder import ClusterRecorder
from podlife.demo.scenario import DemoContext, DemoScenario
from podlife.demo.workloads import Journal
from podlife.errors import ConfigError

_NODES = 3
# Each module has `SCENARIO`, a class, and its `STEPS`.
_SCENARIOS = {
    "node-failure": "podlife.demo.scenarios.node_failure",
    "graceful-delete": "podlife.demo.scenarios.graceful_delete",
    "orphans": "podlife.demo.scenarios.orphans",
}


@dataclass(frozen=True, slots=True)
class DemoSettings:
    # node-failure, graceful-delete or orphans.
    name: str
    # Wait for Enter after every step.
    is_paused: bool = False
    # Leave the cluster running.
    is_kept: bool = False
    # Serve the page of the cluster.
    has_page: bool = False


async def run(settings: DemoSettings, *, shutdown: Shutdown = never_stopped) -> bool:
    """Play a demo; false if `shutdown` ended it first. Raises PodlifeError if a step does not happen as described."""
    if sys.platform != "linux":
        raise ConfigError(f"podlife demo runs pods as Linux processes; unsupported platform {sys.platform!r}")
    return await _Demo(settings, Narrator(is_paused=settings.is_paused)).run(shutdown)


class _Demo:
    def __init__(self, settings: DemoSettings, narrator: Narrator) -> None:
        self._scenario = importlib.import_module(_SCENARIOS[settings.name])
        self._narrator = narrator
        self._is_kept = settings.is_kept
        self._has_page = settings.has_page
        self._cluster: DemoCluster | None = None
        self._is_told = False

    async def run(self, shutdown: Shutdown) -> bool:
        playing = asyncio.get_running_loop().create_task(self._play(), name="scenario")

        def stop() -> None:
            playing.cancel()

        with shutdown(stop):
            try:
                await asyncio.wait((playing,))
            finally:
                await self._end()
        if playing.cancelled():
            return self._is_told
        try:
            playing.result()
        except ExceptionGroup as group:
            raise first_error(group) from None
        return True

    async def _play(self) -> None:
        cluster = self._cluster = DemoCluster(
            _NODES, DemoTimes(), is_kept=self._is_kept, has_page=self._has_page
        )
        cluster.begin()
        self._narrator.say("Starting a cluster for this demo, with timeouts of seconds instead of minutes:\n")
        self._narrator.say(f"  {shlex.join(cluster.command)}")
        await cluster.wait_until_served()
        connection = load(Flags(kubeconfig=str(cluster.kubeconfig)))
        async with Client.connect(connection) as client, asyncio.TaskGroup() as group:
            recorder, journal = ClusterRecorder(client), Journal(cluster.path)
            beside = [
                group.create_task(recorder.run(), name="recorder"),
                group.create_task(journal.run(), name="journal"),
            ]
            context = DemoContext(cluster, client, recorder, journal)
            await context.until_nodes_ready(cluster.nodes)
            self._narrator.say("\nTo inspect it from another terminal:\n")
            self._narrator.say(f"  export KUBECONFIG={shlex.quote(str(cluster.kubeconfig))}")
            if self._has_page:
                # A minute is what a demo shows at a time.
                self._narrator.say(f"\nTo watch it in a browser:\n\n  {await cluster.page()}#span=60")
            await self._narrate(context)
            for task in beside:
                task.cancel()
        self._is_told = True
        if self._has_page and not self._is_kept:
            await self._keep_page()

    async def _keep_page(self) -> None:
        """On a terminal, serve the page until the demo is interrupted."""
        if not sys.stdout.isatty():
            self._narrator.say(
                "\nThe page ends with the demo; --keep leaves the cluster and its page running."
            )
            return
        self._narrator.say("\nThe page stays open until you press Ctrl-C.")
        await asyncio.get_running_loop().create_future()

    async def _narrate(self, context: DemoContext) -> None:
        scenario: DemoScenario = self._scenario.SCENARIO(context)
        for number, step in enumerate(self._scenario.STEPS, 1):
            self._narrator.title(number, step.title)
            await step.do(scenario)
            self._narrator.describe(step, scenario.facts)
            await self._narrator.pause()

    async def _end(self) -> None:
        if self._cluster is None:
            return
        if self._is_kept:
            folder = shlex.quote(str(self._cluster.path))
            self._narrator.say(f"\nThe cluster keeps running; `podlife down --data {folder}` stops it.")
        else:
            self._narrator.say("\nStopping the cluster and everything in it.")
        await self._cluster.end()
