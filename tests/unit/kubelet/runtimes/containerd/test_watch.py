"""The watch uses the best available event stream, and frequent lists if there is none."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

from podlife.aio import cancel_and_wait, spawn
from podlife.kubelet.runtime import ContainerRuntimeError, RuntimeUnavailableError
from podlife.kubelet.runtimes.containerd.client import ContainerdSettings, NotOfferedError
from podlife.kubelet.runtimes.containerd.watch import DaemonWatch
from podlife.testing import virtual_time


class Daemon:
    """Serves the streams a test asks for, and records the checks."""

    def __init__(self, *, cri: bool = False, containerd: bool = False, checks_until_ended: int = 1) -> None:
        self.cri, self.containerd = cri, containerd
        self.is_away = False
        self.events: asyncio.Queue[str | None] = asyncio.Queue()
        self.listings: list[float] = []
        self.checks: list[str] = []
        self.checks_until_ended = checks_until_ended

    def container_events(self) -> AsyncGenerator[str, None]:
        return self._stream(self.cri)

    def task_exits(self) -> AsyncGenerator[str, None]:
        return self._stream(self.containerd)

    async def relist(self) -> None:
        self.listings.append(asyncio.get_running_loop().time())
        if self.is_away:
            raise RuntimeUnavailableError("away")

    async def refresh(self, container_or_sandbox_id: str) -> bool:
        self.checks.append(container_or_sandbox_id)
        return len(self.checks) >= self.checks_until_ended

    async def _stream(self, is_offered: bool) -> AsyncGenerator[str, None]:
        if self.is_away:
            raise RuntimeUnavailableError("away")
        if not is_offered:
            raise NotOfferedError("unknown method")
        while (event := await self.events.get()) is not None:
            yield event
        raise RuntimeUnavailableError("the daemon was killed")


async def watched(daemon: Daemon, seconds: float) -> None:
    failures: list[BaseException] = []
    watch = DaemonWatch(daemon, daemon, ContainerdSettings(Path("unused")))  # type: ignore[arg-type] # a fake of both
    task = spawn(watch.run(), name="watch", on_failure=failures.append)
    await asyncio.sleep(seconds)
    await cancel_and_wait(task)
    assert failures == []


@virtual_time
async def test_without_events_everything_is_listed_every_second() -> None:
    daemon = Daemon()
    await watched(daemon, 60)
    assert 55 <= len(daemon.listings) <= 75


@virtual_time
async def test_with_events_everything_is_listed_seldom_once_the_stream_has_held() -> None:
    for daemon in (Daemon(cri=True), Daemon(containerd=True)):
        await watched(daemon, 60)
        assert 5 <= len(daemon.listings) <= 12


@virtual_time
async def test_a_cri_event_causes_one_check() -> None:
    daemon = Daemon(cri=True, checks_until_ended=1000)
    daemon.events.put_nowait("c")
    await watched(daemon, 5)
    assert daemon.checks == ["c"]


@virtual_time
async def test_an_end_that_cri_does_not_know_yet_is_checked_again_within_a_bound() -> None:
    daemon = Daemon(containerd=True, checks_until_ended=5)
    daemon.events.put_nowait("c")
    await watched(daemon, 5)
    assert daemon.checks == ["c"] * 5
    daemon.checks, daemon.checks_until_ended = [], 1000
    daemon.events.put_nowait("c")
    await watched(daemon, 5)
    assert len(daemon.checks) == 40


@virtual_time
async def test_after_a_restart_the_daemon_is_listed_and_subscribed_to_again() -> None:
    daemon = Daemon(containerd=True)

    async def go_and_come() -> None:
        await asyncio.sleep(20)
        daemon.is_away = True
        daemon.events.put_nowait(None)
        await asyncio.sleep(20)
        daemon.is_away = False
        back = asyncio.get_running_loop().time()
        daemon.events.put_nowait("c")
        await asyncio.sleep(5)
        assert any(back <= listed <= back + 1.5 for listed in daemon.listings)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(watched(daemon, 60))
        tasks.create_task(go_and_come())
    assert daemon.checks == ["c"]


@virtual_time
async def test_a_listing_that_fails_does_not_end_the_watch() -> None:
    class ConfusedDaemon(Daemon):
        async def relist(self) -> None:
            await super().relist()
            raise ContainerRuntimeError("the daemon is confused")

    daemon = ConfusedDaemon()
    await watched(daemon, 10)
    assert len(daemon.listings) >= 8
