"""Components as processes: forked, heard, started again, and never left behind."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from podlife.aio import cancel_and_wait, spawn
from podlife.cli.guard import guard
from podlife.daemons.event_loop import stopped_by_signals
from podlife.errors import ConfigError, PodlifeError
from podlife.localcluster.forkserver import ForkServer, Message, SupervisorLink
from podlife.localcluster.supervisor import Component, ComponentSupervisor
from tests.kit.wait import until


async def answer(link: SupervisorLink) -> None:
    data = await asyncio.get_running_loop().sock_recv(link.socket, 100)
    link.send(json.loads(data))


def serve(config: Message, link: SupervisorLink) -> None:
    """Reports that it is ready, then echoes a message, until SIGTERM."""

    async def run() -> None:
        stop = asyncio.Event()
        link.socket.setblocking(False)
        with stopped_by_signals(stop.set):
            link.send({"ready": config["word"]})
            answering = spawn(answer(link), name="orders", on_failure=print)
            await stop.wait()
            await cancel_and_wait(answering)

    asyncio.run(run())


def fail(config: Message, link: SupervisorLink) -> None:
    raise ConfigError("the port is taken")


def hear_late(config: Message, link: SupervisorLink) -> None:
    """Takes a while until it can act on signals, and says that it did."""
    link.send({"ready": ""})
    time.sleep(0.3)

    async def run() -> None:
        stop = asyncio.Event()
        with stopped_by_signals(stop.set):
            await stop.wait()
        link.send({"left": 7})

    asyncio.run(run())


class Components:
    def __init__(self, fork_server: ForkServer, folder: Path) -> None:
        self.fork_server = fork_server
        self.said: list[str] = []
        self.supervisor = ComponentSupervisor(fork_server, self.said.append)
        self._folder = folder

    def start(self, kind: str, **config: str) -> Component:
        component = Component(kind, kind, config, self._folder / f"{kind}.log")
        self.supervisor.start(component)
        return component

    def read(self) -> asyncio.Task[None]:
        return spawn(self.supervisor.run(), name="components", on_failure=lambda failure: None)

    async def ready(self, component: Component) -> None:
        await self.supervisor.wait_ready(component, seconds=60.0, is_ready=lambda: False)


@pytest.fixture
def fork_server() -> ForkServer:
    # Before there is a loop that runs, as in the command itself.
    return ForkServer.open(
        {"serve": serve, "fail": fail, "hear-late": hear_late}, {"PATH": os.environ["PATH"]}, guard
    )


@pytest.fixture
async def components(fork_server: ForkServer, tmp_path: Path) -> AsyncIterator[Components]:
    made = Components(fork_server, tmp_path)
    reading = made.read()
    yield made
    await cancel_and_wait(reading)
    await fork_server.close()


async def test_a_component_tells_when_it_is_ready_and_receives_messages(components: Components) -> None:
    component = components.start("serve", word="hello")
    await components.ready(component)
    assert component.answer == "hello"
    components.supervisor.send(component, {"left": 3})
    await until(lambda: component.left == 3)


async def test_a_component_that_fails_before_all_are_up_ends_the_start_with_its_reason(
    components: Components,
) -> None:
    component = components.start("fail")
    with pytest.raises(PodlifeError, match="the port is taken"):
        await components.ready(component)
    assert component.state == "waiting"


async def test_a_signal_right_behind_the_order_to_start_is_not_lost(components: Components) -> None:
    for _ in range(10):
        component = components.start("hear-late")
        # Both orders are there before the component is forked.
        components.supervisor.signal(component, signal.SIGTERM)
        component.is_wanted = False
        await until(component.ended.is_set)
        assert component.left == 7


async def test_a_component_that_is_killed_is_started_again_with_one_line(components: Components) -> None:
    components.supervisor.is_up = True
    component = components.start("serve", word="")
    await components.ready(component)
    first = component.pid
    os.kill(first, signal.SIGKILL)
    await until(lambda: component.pid not in (0, first))
    assert component.restarts == 1
    [line] = components.said
    assert line.startswith("serve was ended by SIGKILL; restarting in 0.5 s")


async def test_a_component_that_was_stopped_is_not_started_again(components: Components) -> None:
    components.supervisor.is_up = True
    component = components.start("serve", word="")
    await components.ready(component)
    await components.supervisor.stop([component], seconds=60)
    assert (component.state, components.said) == ("stopped", [])


async def test_a_signal_that_comes_before_a_component_can_act_on_it_waits(components: Components) -> None:
    component = components.start("hear-late")
    await components.ready(component)
    await components.supervisor.stop([component], seconds=60)
    assert component.left == 7


async def test_components_end_with_the_one_that_has_started_them(
    fork_server: ForkServer, tmp_path: Path
) -> None:
    made = Components(fork_server, tmp_path)
    reading = made.read()
    component = made.start("serve", word="")
    await made.ready(component)
    await cancel_and_wait(reading)
    await fork_server.close()
    # One that nobody has waited for has ended all the same.
    await until(lambda: not Path(f"/proc/{component.pid}/cwd").exists())


async def test_components_end_with_a_fork_server_that_is_killed(
    fork_server: ForkServer, tmp_path: Path
) -> None:
    made = Components(fork_server, tmp_path)
    reading = made.read()
    component = made.start("serve", word="")
    await made.ready(component)
    os.kill(fork_server.pid, signal.SIGKILL)
    with pytest.raises(PodlifeError, match="run `podlife up` again"):
        await reading
    await until(lambda: not Path(f"/proc/{component.pid}/cwd").exists())
    await fork_server.close()


async def test_messages_that_the_fork_server_has_no_room_for_are_not_lost(components: Components) -> None:
    component = components.start("serve", word="")
    await components.ready(component)
    os.kill(components.fork_server.pid, signal.SIGSTOP)
    try:
        for _ in range(2000):
            components.supervisor.signal(component, 0)
        components.supervisor.send(component, {"left": 5})
    finally:
        os.kill(components.fork_server.pid, signal.SIGCONT)
    await until(lambda: component.left == 5)


@pytest.mark.parametrize(("runtime", "node"), [("process", "kubelet.kubelet"), ("sim", "kubelet.hollow")])
def test_what_components_need_is_imported_before_they_are_forked(runtime: str, node: str) -> None:
    program = (
        "import sys; from podlife.localcluster.components import preload; "
        f"preload({runtime!r}); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    loaded = set(done.stdout.split())
    needed = ("apiserver.server", "daemons.controllers", "podgc", "scheduler", node)
    assert {f"podlife.{name}" for name in needed} <= loaded, done.stderr
