"""Our leader election and client-go's on one lease: kube-controller-manager is the other candidate, both ways."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from podlife.aio import cancel_and_wait
from podlife.api.codec import Object, parse_time
from podlife.client import LEASES, Client, EventType, Flags, WatchEvent, load
from podlife.clock import SystemClock
from podlife.controller import LeaderElector
from tests.kit.real_parts import Server, controller_manager
from tests.kit.wait import until
from tests.real.conftest import require

# So long may a machine be busy with something else, and whoever leads still does.
LEASE_SECONDS = 8
TIMES: dict[str, Any] = {"lease_seconds": float(LEASE_SECONDS), "renew_seconds": 6.0, "retry_seconds": 0.5}
# More than come in the time of a lease.
RENEWALS = 20
SECONDS = 120
FLAGS = (
    "--leader-elect=true",
    f"--leader-elect-lease-duration={LEASE_SECONDS}s",
    "--leader-elect-renew-deadline=6s",
    "--leader-elect-retry-period=500ms",
    "--leader-elect-resource-namespace=kube-system",
)


class Rival:
    """kube-controller-manager, started and ended without holding up the loop."""

    def __init__(self, folder: Path, server: Server, lease: str) -> None:
        flags = (*FLAGS, f"--leader-elect-resource-name={lease}")
        self._running = controller_manager(folder, server, ["pod-garbage-collector-controller"], *flags)
        self._stack = ExitStack()

    async def start(self) -> None:
        await asyncio.to_thread(self._stack.enter_context, self._running)

    async def end(self) -> None:
        await asyncio.to_thread(self._stack.close)


@asynccontextmanager
async def watching(client: Client, name: str) -> AsyncIterator[list[Object]]:
    """Every state of the lease, as it is written."""
    states: list[Object] = []

    async def watch() -> None:
        async for event in client.list_watch(LEASES, "kube-system"):
            if isinstance(event, WatchEvent) and event.type is not EventType.DELETED:
                state: Object = event.object
                if state["metadata"]["name"] == name:
                    states.append(state["spec"])

    task = asyncio.get_running_loop().create_task(watch())
    try:
        yield states
    finally:
        await cancel_and_wait(task)


@pytest.mark.parametrize("which", ["kube", "podlife_server"])
async def test_we_and_client_go_wait_for_each_other_and_follow_each_other(
    which: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    require("kube-controller-manager")
    server: Server = request.getfixturevalue(which)
    name = f"election-{which.replace('_', '-')}"
    begun: list[float] = []
    loop = asyncio.get_running_loop()

    async def work() -> None:
        begun.append(loop.time())
        await asyncio.Event().wait()

    async with (
        Client.connect(load(Flags(kubeconfig=str(server.kubeconfig)), {})) as client,
        watching(client, name) as states,
    ):
        first, second = Rival(tmp_path / "first", server, name), Rival(tmp_path / "second", server, name)
        elector = LeaderElector(client, "kube-system", name, "ours", clock=SystemClock(), **TIMES)
        ours: asyncio.Task[None] | None = None
        try:
            await first.start()
            await until(lambda: bool(states) and bool(states[-1]["holderIdentity"]), seconds=SECONDS)
            theirs = states[-1]["holderIdentity"]

            ours = loop.create_task(elector.run(work))
            await until(lambda: elector.leader == theirs, seconds=SECONDS)
            seen = len(states)
            await until(lambda: len(states) > seen + RENEWALS, seconds=SECONDS)
            assert {state["holderIdentity"] for state in states} == {theirs}, "we wait while it renews"
            assert not begun

            await first.end()
            last = next(state for state in reversed(states) if state["holderIdentity"] == theirs)
            await until(lambda: bool(begun), seconds=SECONDS)
            taken = next(state for state in states if state["holderIdentity"] == "ours")
            assert taken["leaseTransitions"] == last["leaseTransitions"] + 1
            assert taken["leaseDurationSeconds"] == LEASE_SECONDS
            waited = parse_time(taken["acquireTime"]) - parse_time(last["renewTime"])
            assert waited.total_seconds() >= LEASE_SECONDS - 0.1, "not before its lease has run out"

            await second.start()
            seen = len(states)
            await until(lambda: len(states) > seen + RENEWALS, seconds=SECONDS)
            assert {state["holderIdentity"] for state in states[seen:]} == {"ours"}, "it waits while we renew"

            await cancel_and_wait(ours)
            await until(lambda: states[-1]["holderIdentity"] not in ("", "ours"), seconds=SECONDS)
            assert any(state["holderIdentity"] == "" for state in states), "we gave it back"
            assert states[-1]["leaseTransitions"] == taken["leaseTransitions"] + 1
        finally:
            if ours is not None:
                await cancel_and_wait(ours)
            await first.end()
            await second.end()
