"""A simulation as a process: nodes, then pods, then whatever the scenario says, until a signal or the time is up.

What it has made it takes away at its end, also when it fails: pods of its own run, its nodes and their leases. Standard
output has the summary, everything else goes to standard error.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from podlife.aio import wait_until_set
from podlife.api.durations import format_duration
from podlife.cli.commands.sim.app import SimOptions
from podlife.cli.commands.sim.output import (
    CLEAR,
    counted,
    show_progress,
    state_of,
    summary_of,
)
from podlife.cli.connection import ConnectionOptions, connected, load_connection
from podlife.client import Client, Connection, Limiter
from podlife.clock import SystemClock
from podlife.daemons import event_loop as loop
from podlife.daemons.logs import set_up_logs
from podlife.errors import PodlifeError
from podlife.kubelet.hollow import (
    HollowNodes,
    HollowSettings,
    Scenario,
    create_pods,
    delete_nodes,
    delete_pods,
    load_scenario,
)

__all__ = ["run_sim"]

_RIGHTS = "docs/sim.md"
# Nodes register by the hundred each second; what takes so much longer has another reason.
_READY_SECONDS, _READY_SECONDS_EACH = 60.0, 0.1
_CLEAN_SECONDS, _CLEAN_SECONDS_EACH = 60.0, 0.02
_LOOK_SECONDS = 0.05
_REQUEST_SECONDS = 60.0


def run_sim(options: SimOptions, connection: ConnectionOptions, verbosity: int) -> None:
    """Raises PodlifeError when it cannot."""
    scenario = load_scenario(options.scenario) if options.scenario is not None else Scenario()
    found = load_connection(connection)
    set_up_logs(verbosity)
    if not verbosity:
        # Of thousands of nodes and pods each would tell what it does.
        logging.getLogger("podlife").setLevel(logging.CRITICAL)
        logging.getLogger("podlife.kubelet.hollow").setLevel(logging.WARNING)
    loop.run(_run(options, connection, found, scenario))


async def _run(
    options: SimOptions, connection: ConnectionOptions, found: Connection, scenario: Scenario
) -> None:
    async with connected(connection, found, rights=_RIGHTS) as client:
        await client.with_timeout(10.0).request("GET", "/version")
        await Simulation(client, options, scenario).run()


class Simulation:
    def __init__(self, client: Client, options: SimOptions, scenario: Scenario) -> None:
        settings = HollowSettings(
            options.nodes,
            options.name,
            max_pods=options.max_pods,
            tells_events=options.events,
            tells_ends=not options.quick_ends,
        )
        # A line of its own: what nodes have to tell does not wait behind thousands of pods to be made.
        self._client = client.with_timeout(_REQUEST_SECONDS, limiter=Limiter())
        self._options = options
        self._fleet = HollowNodes(client, settings, SystemClock(), scenario)
        # Of this run alone: another one may be under way, or have been killed.
        self._run_name = f"{options.name}-{secrets.token_hex(3)}"
        self._created = 0
        self._is_stopped = asyncio.Event()

    async def run(self) -> None:
        event_loop = asyncio.get_running_loop()
        began = event_loop.time()
        with loop.stopped_by_signals(self._is_stopped.set):
            try:
                async with self._running():
                    await self._play()
            finally:
                if not self._options.keep:
                    await self._clean_up()
        seconds = event_loop.time() - began
        print(summary_of(self._fleet.tally, self._options.nodes, self._created, seconds), flush=True)

    @asynccontextmanager
    async def _running(self) -> AsyncIterator[None]:
        """The nodes, and what is shown of them; what ends them ends the simulation."""
        async with asyncio.TaskGroup() as group:
            fleet = group.create_task(self._fleet.run(), name="fleet")
            shown = group.create_task(show_progress(lambda: state_of(self._fleet)), name="progress")
            try:
                yield
            finally:
                for task in (fleet, shown):
                    task.cancel()

    async def _play(self) -> None:
        options = self._options
        if not await self._wait_for_nodes():
            return
        _say(f"{counted(options.nodes, 'node')} {'is' if options.nodes == 1 else 'are'} ready")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(options.duration or None):
                if not options.pods or await self._create_pods():
                    await self._is_stopped.wait()
            return
        if self._created < options.pods:
            _say(
                f"{self._created} of {counted(options.pods, 'pod')} were asked for within "
                f"{format_duration(options.duration)}: give --duration more time"
            )

    async def _wait_for_nodes(self) -> bool:
        """False when it was stopped meanwhile."""
        seconds = _READY_SECONDS + _READY_SECONDS_EACH * self._options.nodes
        deadline = asyncio.get_running_loop().time() + seconds
        while self._fleet.ready < self._options.nodes:
            if await wait_until_set(self._is_stopped, seconds=_LOOK_SECONDS):
                return False
            if asyncio.get_running_loop().time() > deadline:
                raise PodlifeError(
                    f"only {self._fleet.ready} of {counted(self._options.nodes, 'node')} could be registered in "
                    f"{seconds:.0f} s: look with -v 1 for what keeps the others"
                )
        return True

    async def _create_pods(self) -> bool:
        """False when it was stopped meanwhile."""
        options, event_loop = self._options, asyncio.get_running_loop()

        def asked(namespace: str, name: str) -> None:
            self._created += 1
            self._fleet.tally.ask(namespace, name, event_loop.time())

        nodes = list(self._fleet.nodes)
        async with asyncio.TaskGroup() as group:
            creating = group.create_task(
                create_pods(self._client, options.namespace, self._run_name, nodes, options.pods, asked),
                name="creating pods",
            )
            stopped = group.create_task(self._is_stopped.wait(), name="stop")
            await asyncio.wait((creating, stopped), return_when=asyncio.FIRST_COMPLETED)
            is_done = creating.done()
            creating.cancel()
            stopped.cancel()
        if is_done:
            _say(f"{counted(options.pods, 'pod')} created in namespace {options.namespace}")
        return is_done

    async def _clean_up(self) -> None:
        options = self._options
        _say("taking away what was made; Ctrl-C once more leaves it there")
        seconds = _CLEAN_SECONDS + _CLEAN_SECONDS_EACH * (options.pods + options.nodes)
        try:
            async with asyncio.timeout(seconds):
                if options.pods:
                    await delete_pods(self._client, options.namespace, self._run_name)
                nodes = [(each.name, each.uid) for each in self._fleet.nodes.values() if each.uid]
                if nodes:
                    await delete_nodes(self._client, nodes)
        except (TimeoutError, PodlifeError, ExceptionGroup) as error:
            reason = f"it took longer than {seconds:.0f} s" if isinstance(error, TimeoutError) else error
            _say(
                f"not everything was taken away: {reason}; pods of this run have the label "
                f"sim.podlife.dev/run={self._run_name}, nodes sim.podlife.dev/fleet={options.name}"
            )


def _say(line: str) -> None:
    # On a terminal a line that shows how far it is stands where this one comes.
    print(f"{CLEAR if sys.stderr.isatty() else ''}{line}", file=sys.stderr, flush=True)
