"""What a container does to the node that runs it, and what a node does that has run out of descriptors."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import resource
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from podlife.kubelet.runtime import ContainerConfig, ContainerRuntimeError, ExecTimeoutError, SandboxConfig
from podlife.kubelet.runtimes import commands
from podlife.kubelet.runtimes.process.records import Records
from tests.kit.wait import until

from .process_kit import SLEEPS, ProcessWorld, full_disk, opened, runs, said

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the process runtime needs Linux")

_MANY_FOLDERS = "import os\nfor _ in range(1050):\n os.mkdir('d'); os.chdir('d')"
_DESCRIPTORS = 256


@contextmanager
def short_of_descriptors(*, free: int) -> Iterator[None]:
    """This process can open so many files and no more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with ExitStack() as stack:
        resource.setrlimit(resource.RLIMIT_NOFILE, (_DESCRIPTORS, hard))
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        taken: list[int] = []
        try:
            while True:
                taken.append(os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC))
        except OSError:
            for _ in range(free):
                os.close(taken.pop())
        for each in taken:
            stack.callback(os.close, each)
        yield


def descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def descriptors_before() -> int:
    # What earlier tests have left to the collector would be closed at some time during this one.
    gc.collect()
    return descriptors()


async def test_folders_deeper_than_any_stack_keep_no_agent_from_beginning_and_are_removed(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as world:
        status = await world.run(f'exec {sys.executable} -c "{_MANY_FOLDERS}"')
        assert status.exit_code == 0
    folder = tmp_path / "runtime"
    (folder / "containers" / status.id).rename(folder / "leaving" / status.id)
    async with opened(tmp_path) as world:
        assert await world.runtime.list_containers() == []
    assert list((folder / "leaving").iterdir()) == []


@pytest.mark.parametrize("tty", [False, True])
async def test_a_command_for_which_there_are_no_descriptors_takes_none_with_it(
    world: ProcessWorld, tty: bool
) -> None:
    container_id = await world.start()
    before = descriptors_before()
    failures = 0
    for free in range(9):
        with short_of_descriptors(free=free):
            try:
                async with world.runtime.exec(container_id, ["true"], stdin=True, tty=tty) as session:
                    await session.wait()
            except ContainerRuntimeError:
                failures += 1
        # The loop closes them a little later; fewer than before are left if an earlier step had not ended then.
        await until(lambda: descriptors() <= before, "descriptors are left open")
    assert failures > 3


async def test_the_end_of_a_container_is_told_though_there_were_no_descriptors_when_it_came(
    world: ProcessWorld,
) -> None:
    pids = [world.folder / "one", world.folder / "other"]
    ids = [
        await world.start(f"echo $$ > {pid}; exec sleep 1000", attempt=attempt)
        for attempt, pid in enumerate(pids)
    ]
    with short_of_descriptors(free=2):
        numbers = [int(await said(pid)) for pid in pids]
    with short_of_descriptors(free=0):
        for number in numbers:
            os.kill(number, signal.SIGKILL)
        # Longer than the kernel and the supervisors take: the news comes while nothing can be opened.
        await asyncio.sleep(0.5)
    assert [(await world.ended(each)).exit_code for each in ids] == [137, 137]


@pytest.mark.parametrize(("trap", "grace_seconds", "exit_code"), [("-", 30, 143), ("''", 0.2, 137)])
async def test_a_container_that_removes_the_socket_of_its_orders_is_stopped_all_the_same(
    world: ProcessWorld, trap: str, grace_seconds: float, exit_code: int
) -> None:
    gone = world.folder / "gone"
    script = f"trap {trap} TERM; rm ../control; echo gone > {gone}; while :; do sleep 0.1; done"
    container_id = await world.start(script)
    await said(gone)
    async with asyncio.timeout(60):
        await world.runtime.stop_container(container_id, grace_seconds=grace_seconds)
    assert (await world.ended(container_id)).exit_code == exit_code


@pytest.mark.parametrize("damage", ["", "{}", '{"launch": {}}', '{"exit_code": 1e300}'])
async def test_the_end_of_a_container_that_damages_its_records_and_kills_its_supervisor_is_noticed(
    world: ProcessWorld, damage: str
) -> None:
    has_started, files = world.folder / "has_started", "../exit.json ../started.json ../config.json"
    wait = f"until [ -e {has_started} ]; do sleep 0.05; done"
    container_id = await world.start(f"{wait}; echo '{damage}' | tee {files}; kill -9 $PPID; sleep 1000")
    has_started.touch()
    ended = await world.ended(container_id)
    assert (ended.exit_code, ended.reason) == (137, "ContainerStatusUnknown")


async def test_the_control_groups_of_others_are_not_those_of_a_container(tmp_path: Path) -> None:
    records = Records(tmp_path)
    records.prepare()
    records.container("mine").mkdir()
    groups = [{"path": f"/sys/fs/cgroup/podlife/{name}"} for name in ("mine", "other", "..", "mine/..")]
    (records.container("mine") / "config.json").write_text(json.dumps({"launch": {"cgroups": groups}}))
    assert records.control_groups("mine") == [Path("/sys/fs/cgroup/podlife/mine")]


async def test_a_pod_whose_folder_of_logs_has_too_long_a_name_is_told_why(world: ProcessWorld) -> None:
    logs = str(world.folder / ("n" * 300))
    sandbox_id = await world.runtime.run_sandbox(SandboxConfig("uid", "default", "web", log_directory=logs))
    config = ContainerConfig("main", command=("true",), log_path="main/0.log")
    with pytest.raises(ContainerRuntimeError, match="File name too long"):
        await world.runtime.create_container(sandbox_id, config)
    assert await world.runtime.list_containers() == []


async def test_a_disk_that_is_full_is_told_of_and_nothing_is_left_half_made(world: ProcessWorld) -> None:
    sandbox_id = await world.sandbox()
    with full_disk():
        with pytest.raises(ContainerRuntimeError, match="cannot be written to disk"):
            await world.created(SLEEPS)
        with pytest.raises(ContainerRuntimeError, match="cannot be written to disk"):
            await world.runtime.run_sandbox(SandboxConfig("other", "default", "other"))
    assert list((world.folder / "runtime/making").iterdir()) == []
    assert [each.id for each in await world.runtime.list_sandboxes()] == [sandbox_id]


async def test_a_container_whose_folder_somebody_took_away_can_be_removed(world: ProcessWorld) -> None:
    status = await world.run("true")
    shutil.rmtree(world.folder / "runtime/containers" / status.id)
    await world.runtime.remove_container(status.id)
    assert await world.runtime.list_containers() == []


async def test_a_start_for_which_there_are_no_descriptors_says_so_and_can_be_repeated(
    world: ProcessWorld,
) -> None:
    container_id = await world.created(SLEEPS)
    before = descriptors_before()
    with short_of_descriptors(free=0), pytest.raises(ContainerRuntimeError, match="Too many open files"):
        await world.runtime.start_container(container_id)
    assert descriptors() == before
    async with asyncio.timeout(60):
        await world.runtime.start_container(container_id)
    assert (await world.status(container_id)).is_running


async def test_a_command_that_never_stops_talking_keeps_nobody_busy(
    world: ProcessWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    container_id = await world.start()
    read, reads = asyncio.StreamReader.read, 0

    async def counted(self: asyncio.StreamReader, n: int = -1) -> bytes:
        nonlocal reads
        reads += 1
        return await read(self, n)

    monkeypatch.setattr(asyncio.StreamReader, "read", counted)
    began = asyncio.get_running_loop().time()
    with pytest.raises(ExecTimeoutError):
        await world.runtime.exec_sync(container_id, ["yes"], timeout_seconds=2)
    # After each a breath, except for those of the first megabyte: without, there are thousands.
    assert reads < (asyncio.get_running_loop().time() - began) / commands._DISCARD_PAUSE_SECONDS + 300
    monkeypatch.undo()
    result = await world.runtime.exec_sync(container_id, ["head", "-c", "5000000", "/dev/zero"])
    assert (result.exit_code, len(result.stdout)) == (0, 1024 * 1024)


async def test_a_container_that_nobody_saw_start_is_stopped_before_its_stop_returns(
    world: ProcessWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = world.folder / "pid"
    refresh, failures = Records.refresh, [OSError(24, "Too many open files")]

    def fail_at_first(*arguments: Any) -> None:
        if failures:
            raise failures.pop()
        refresh(*arguments)

    monkeypatch.setattr(Records, "refresh", fail_at_first)
    container_id = await world.start(f"echo $$ > {pid}; exec sleep 1000")
    number = await said(pid)
    await world.runtime.stop_container(container_id, grace_seconds=5)
    assert failures == []
    assert not runs(number)
    assert (await world.status(container_id)).exit_code == 143
