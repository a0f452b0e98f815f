"""Commands in a process container: their streams, their terminal, and their end."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import uvloop

from podlife.kubelet.runtime import ContainerState, ExecError, ExecTimeoutError
from tests.kit.moved_time import use_up
from tests.kit.wait import until

from .process_kit import ProcessWorld, opened, runs, said

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the process runtime needs Linux")


async def test_a_command_reads_what_is_written_to_it(world: ProcessWorld) -> None:
    container_id = await world.start()
    async with world.runtime.exec(container_id, ["cat"], stdin=True) as session:
        await session.write_stdin(b"some ")
        await session.write_stdin(b"text")
        await session.close_stdin()
        assert await session.stdout.read() == b"some text"
        assert await session.wait() == 0
        assert await session.wait() == 0


async def test_a_terminal_of_a_command_can_be_resized(world: ProcessWorld) -> None:
    container_id = await world.start()
    async with world.runtime.exec(
        container_id, ["sh", "-c", "read x; stty size; echo is $TERM"], stdin=True, tty=True
    ) as session:
        session.resize(columns=132, rows=43)
        await session.write_stdin(b"\n")
        said = await session.stdout.read()
        assert b"43 132" in said
        assert b"is xterm" in said


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_everything_that_is_said_in_a_terminal_arrives_on_every_loop(
    new_loop: Callable[[], asyncio.AbstractEventLoop], tmp_path: Path
) -> None:
    complaints: list[str] = []

    async def talk() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(str(context)))
        async with opened(tmp_path) as world:
            container_id = await world.start()
            async with world.runtime.exec(container_id, ["sh"], stdin=True, tty=True) as session:
                await session.write_stdin(b"stty -echo; seq 1 20000; echo $((40 + 2)) ends\n")
                heard = b""
                while b"42 ends\r\n" not in heard:
                    heard += await session.stdout.read(4096)
                # Longer than a terminal takes at once: the shell reads it when it comes to it.
                await session.write_stdin(b"sleep 0.1\n" + b"true\n" * 4000 + b"exit 3\n")
                await session.stdout.read()
                assert await session.wait() == 3
                await session.write_stdin(b"nobody reads this")
            assert b"\r\n".join(b"%d" % number for number in range(1, 20001)) in heard
            await world.clear()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(asyncio.wait_for(talk(), 120))
    assert complaints == []


async def test_a_command_that_takes_too_long_is_ended(world: ProcessWorld) -> None:
    container_id = await world.start()
    command = ["sh", "-c", f"echo $$ > {world.folder}/pid; sleep 1000"]
    running = asyncio.get_running_loop().create_task(
        world.runtime.exec_sync(container_id, command, timeout_seconds=1000)
    )
    pid = await said(world.folder / "pid")
    assert runs(pid)
    await use_up(1000, running)
    with pytest.raises(ExecTimeoutError, match="timed out after 1000 s"):
        await running
    await until(lambda: not runs(pid), seconds=60)
    assert (await world.status(container_id)).state is ContainerState.RUNNING


async def test_a_command_of_which_something_stays_does_not_keep_its_caller(world: ProcessWorld) -> None:
    container_id = await world.start()
    async with asyncio.timeout(60):
        result = await world.runtime.exec_sync(container_id, ["sh", "-c", "sleep 1000 & echo out"])
    assert (result.exit_code, result.stdout) == (0, b"out\n")


async def test_a_container_that_ends_takes_its_commands_along(world: ProcessWorld) -> None:
    container_id = await world.start()
    async with world.runtime.exec(
        container_id, ["sh", "-c", f"echo $$ > {world.folder}/pid; sleep 1000"]
    ) as session:
        pid = await said(world.folder / "pid")
        await world.runtime.stop_container(container_id, grace_seconds=0)
        assert not runs(pid)
        assert await session.wait() == 137


async def test_a_command_that_does_not_exist_is_said(world: ProcessWorld) -> None:
    container_id = await world.start()
    with pytest.raises(ExecError, match='exec: "nope": no such file, or not in'):
        await world.runtime.exec_sync(container_id, ["nope"])
