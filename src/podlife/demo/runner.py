"""A demo from its start to its end: the cluster, the story step by step, and nothing left behind.

A step that does not happen as it is told ends the demo with exit code 1.
"""

from __future__ import annotations

import asyncio
import importlib
import shlex
import sys

from podlife.cli.connection import ConnectionOptions, load_connection
from podlife.client import Client
from podlife.daemons import event_loop as loop
from podlife.demo.cluster import DemoCluster, Times
from podlife.demo.narrator import Teller
from podlife.demo.recorder import Record
from podlife.demo.scenario import Stage, Story
from podlife.demo.workloads import Journal
from podlife.errors import ConfigError

__all__ = ["play"]

_NODES = 3
# Each has `STEPS` and `begin(stage)`, the story that they are steps of.
_STORIES = {
    "node-failure": "podlife.demo.scenarios.node_failure",
    "graceful-delete": "podlife.demo.scenarios.graceful_delete",
    "orphans": "podlife.demo.scenarios.orphans",
}


def play(name: str, *, is_paused: bool, is_kept: bool) -> None:
    """Raises PodlifeError when something is not as it is told, KeyboardInterrupt when it was interrupted."""
    if sys.platform != "linux":
        raise ConfigError(f"podlife demo runs pods as processes of Linux, and this is {sys.platform}")
    teller = Teller(is_paused=is_paused)
    if not loop.run(_Demo(name, teller, is_kept=is_kept).run()):
        raise KeyboardInterrupt


class _Demo:
    def __init__(self, name: str, teller: Teller, *, is_kept: bool) -> None:
        self._told = importlib.import_module(_STORIES[name])
        self._teller = teller
        self._is_kept = is_kept
        self._cluster: DemoCluster | None = None

    async def run(self) -> bool:
        """False when a signal came first."""
        playing = asyncio.get_running_loop().create_task(self._play(), name="story")

        def stop() -> None:
            playing.cancel()

        with loop.stopped_by_signals(stop):
            try:
                await asyncio.wait((playing,))
            finally:
                await self._end()
        if playing.cancelled():
            return False
        try:
            playing.result()
        except ExceptionGroup as group:
            raise _first(group) from None
        return True

    async def _play(self) -> None:
        cluster = self._cluster = DemoCluster(_NODES, Times(), is_kept=self._is_kept)
        cluster.begin()
        self._teller.say("A cluster for this demo; what takes minutes in another one takes seconds here:\n")
        self._teller.say(f"  {shlex.join(cluster.command)}")
        await cluster.wait_until_served()
        connection = load_connection(ConnectionOptions(kubeconfig=str(cluster.kubeconfig)))
        async with Client.connect(connection) as client, asyncio.TaskGroup() as group:
            record, journal = Record(client), Journal(cluster.path)
            beside = [
                group.create_task(record.run(), name="record"),
                group.create_task(journal.run(), name="journal"),
            ]
            stage = Stage(cluster, client, record, journal)
            await stage.until_nodes_ready(cluster.nodes)
            self._teller.say("\nTo look at it from another terminal:\n")
            self._teller.say(f"  export KUBECONFIG={shlex.quote(str(cluster.kubeconfig))}")
            await self._tell(stage)
            for task in beside:
                task.cancel()

    async def _tell(self, stage: Stage) -> None:
        story: Story = self._told.begin(stage)
        for number, step in enumerate(self._told.STEPS, 1):
            self._teller.title(number, step.title)
            await step.do(story)
            self._teller.tell(step, story.facts)
            await self._teller.pause()

    async def _end(self) -> None:
        if self._cluster is None:
            return
        if self._is_kept:
            folder = shlex.quote(str(self._cluster.path))
            self._teller.say(f"\nThe cluster runs on; `podlife down --data {folder}` ends it.")
        else:
            self._teller.say("\nEnding the cluster, with all that runs in it.")
        await self._cluster.end()


def _first(group: ExceptionGroup[Exception]) -> Exception:
    """Of those who failed together, the first tells enough."""
    error = group.exceptions[0]
    return _first(error) if isinstance(error, ExceptionGroup) else error
