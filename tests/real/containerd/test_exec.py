"""Commands in a container of containerd: in one call, and with streams through its streaming server."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace

import pytest

from podlife.kubelet.runtime import ContainerRuntimeError, ExecError, ExecTimeoutError, Runtime
from tests.kit.wait import until

from .conftest import ContainerdWorld

# How long anything may take that is waited for.
SECONDS = 120.0


@pytest.fixture
def runtime(world: ContainerdWorld) -> Runtime:
    return world.runtime


@pytest.fixture
async def container_id(world: ContainerdWorld) -> str:
    return await world.started(world.machine.runs_for_ever())


async def test_what_is_written_to_a_command_reaches_it_and_its_input_can_end(
    runtime: Runtime, container_id: str
) -> None:
    data = b"0123456789abcdef" * 20_000
    async with asyncio.timeout(SECONDS), runtime.exec(container_id, ["cat"], stdin=True) as session:
        async with asyncio.TaskGroup() as tasks:
            answer = tasks.create_task(session.stdout.read())
            await session.write_stdin(data)
            await session.close_stdin()
        assert answer.result() == data
        assert await session.wait() == 0


async def test_output_and_errors_come_apart_with_the_exit_code(runtime: Runtime, container_id: str) -> None:
    command = ["sh", "-c", "echo out; echo err >&2; exit 4"]
    async with asyncio.timeout(SECONDS), runtime.exec(container_id, command) as session:
        assert await session.stdout.read() == b"out\n"
        assert await session.stderr.read() == b"err\n"
        assert await session.wait() == 4


async def test_a_terminal_takes_its_size_and_the_end_of_input(runtime: Runtime, container_id: str) -> None:
    command = ["sh", "-c", "until stty size | grep '37 101'; do sleep 0.05; done; read line; cat"]
    async with (
        asyncio.timeout(SECONDS),
        runtime.exec(container_id, command, stdin=True, tty=True) as session,
    ):
        session.resize(columns=101, rows=37)
        await session.write_stdin(b"go\n")
        assert b"37 101" in await session.stdout.readuntil(b"37 101")
        await session.close_stdin()
        assert await session.wait() == 0


async def test_more_output_than_anybody_reads_waits_in_the_container(
    runtime: Runtime, container_id: str
) -> None:
    async with asyncio.timeout(SECONDS), runtime.exec(container_id, ["yes"]) as session:
        assert await session.stdout.readexactly(100_000) == b"y\n" * 50_000
        await asyncio.sleep(0.3)
        assert len(session.stdout._buffer) < 1024 * 1024  # type: ignore[attr-defined] # private


async def test_a_program_that_is_not_there_cannot_be_run(runtime: Runtime, container_id: str) -> None:
    with pytest.raises(ExecError, match="no-such-program"):
        await runtime.exec_sync(container_id, ["no-such-program"], timeout_seconds=SECONDS)
    with pytest.raises(ExecError, match="no-such-program"):
        async with asyncio.timeout(SECONDS), runtime.exec(container_id, ["no-such-program"]) as session:
            await session.wait()


async def test_a_command_that_takes_too_long_is_ended(runtime: Runtime, container_id: str) -> None:
    with pytest.raises(ExecTimeoutError, match=r"timed out after 0\.3 s"):
        await runtime.exec_sync(container_id, ["sleep", "777"], timeout_seconds=0.3)
    await until_gone(runtime, container_id, "sleep 777")


async def test_leaving_a_command_ends_what_runs_of_it(runtime: Runtime, container_id: str) -> None:
    async with runtime.exec(container_id, ["sh", "-c", "echo here; exec sleep 778"]) as session:
        async with asyncio.timeout(SECONDS):
            await session.stdout.readuntil(b"here")
    await until_gone(runtime, container_id, "sleep 778")


async def test_leaving_a_command_leaves_others_like_it_alone(runtime: Runtime, container_id: str) -> None:
    command = ["sh", "-c", "echo here; while :; do sleep 1; echo beat; done"]
    async with asyncio.timeout(SECONDS), runtime.exec(container_id, command) as stays:
        await stays.stdout.readuntil(b"here")
        async with runtime.exec(container_id, command) as leaves:
            await leaves.stdout.readuntil(b"here")
        await stays.stdout.readuntil(b"beat\nbeat")


async def test_of_much_output_a_megabyte_is_kept(runtime: Runtime, container_id: str) -> None:
    command = ["sh", "-c", "yes | head -c 3000000"]
    result = await runtime.exec_sync(container_id, command, timeout_seconds=SECONDS)
    assert (result.exit_code, len(result.stdout)) == (0, 1024 * 1024)


async def until_gone(runtime: Runtime, container_id: str, command: str) -> None:
    async def is_gone() -> bool:
        shown = await runtime.exec_sync(container_id, ["ps"], timeout_seconds=SECONDS)
        return command not in shown.stdout.decode()

    await until(is_gone, seconds=SECONDS)


async def test_an_attached_session_talks_to_the_process_and_leaves_it_alone(world: ContainerdWorld) -> None:
    script = 'while read line; do echo "heard $line"; done'
    config = replace(world.machine.runs(script), stdin=True)
    container_id = await world.started(config)
    for word in (b"one", b"two"):
        async with asyncio.timeout(SECONDS), world.runtime.attach(container_id, stdin=True) as session:
            await session.write_stdin(word + b"\n")
            assert await session.stdout.readline() == b"heard " + word + b"\n"
    await world.runtime.stop_container(container_id, grace_seconds=0)
    with pytest.raises(ExecError, match="does not run"):
        async with world.runtime.attach(container_id, stdin=True):
            pass


async def test_an_attached_session_ends_with_its_container_and_its_input_with_it(
    world: ContainerdWorld,
) -> None:
    config = replace(world.machine.runs("cat; echo end; exit 3"), stdin=True, stdin_once=True)
    container_id = await world.started(config)
    async with asyncio.timeout(SECONDS), world.runtime.attach(container_id, stdin=True) as session:
        await session.write_stdin(b"data\n")
        await session.close_stdin()
        assert await session.stdout.read() == b"data\nend\n"
        assert await session.wait() == 0


async def test_a_port_of_a_pod_is_reached_in_the_network_of_the_pod(world: ContainerdWorld) -> None:
    script = "mkdir /www; echo hello > /www/x; exec httpd -f -p 127.0.0.1:8080 -h /www"
    container_id = await world.started(world.machine.runs(script))
    sandbox = (await world.runtime.container_status(container_id)).sandbox_id
    heard = b""
    async with asyncio.timeout(SECONDS):
        while not heard:
            with suppress(ContainerRuntimeError):
                async with world.runtime.port_forward(sandbox, 8080) as connection:
                    await connection.write(b"GET /x HTTP/1.0\r\n\r\n")
                    heard = await connection.reader.read()
    assert heard.endswith(b"hello\n")
    with pytest.raises(ContainerRuntimeError, match="refused"):
        async with asyncio.timeout(SECONDS), world.runtime.port_forward(sandbox, 8081) as connection:
            assert await connection.reader.read() == b""
