"""What only real processes show: groups and sessions, limits, users, terminals, files that are nobody else's."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from podlife.kubelet.runtime import (
    ContainerConfig,
    ContainerRuntimeError,
    InvalidContainerError,
    Resources,
    StartContainerError,
    User,
)
from podlife.kubelet.runtimes.process.cgroups import discover
from tests.conformance.runtime.machines import logged

from .process_kit import SLEEPS, ProcessWorld, opened, runs, said

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the process runtime needs Linux")
as_root = pytest.mark.skipif(os.getuid() != 0, reason="only root may")
with_cgroups = pytest.mark.skipif(discover() is None, reason="no control group can be made here")


async def test_a_container_is_a_session_and_a_group_of_its_own(world: ProcessWorld) -> None:
    status = await world.run("ps -o pid=,pgid=,sid= -p $$; pwd")
    pid, group, session = logged(status)[0].split()
    assert pid == group == session
    assert logged(status)[1] == str(world.folder / "runtime" / "containers" / status.id / "work")


async def test_its_files_are_the_owners_alone_and_its_processes_have_the_usual_mask(
    world: ProcessWorld,
) -> None:
    container_id = await world.start("umask; exec sleep 1000")
    assert "0022" in await said(world.folder / "logs/main/0.log")
    for path in (
        (world.folder / "runtime"),
        *(world.folder / "runtime").rglob("*"),
        world.folder / "logs/main",
    ):
        mode = path.stat().st_mode & 0o777
        assert mode & 0o077 == 0, f"{path} has {mode:o}"
    await world.runtime.remove_container(container_id)


async def test_nothing_of_the_supervisor_is_open_in_the_container(world: ProcessWorld) -> None:
    status = await world.run("ls /proc/self/fd")
    # The fourth is the folder that ls reads.
    assert logged(status) == ["0", "1", "2", "3"]


async def test_the_agents_environment_does_not_reach_the_container(world: ProcessWorld) -> None:
    script = "tr '\\0' '\\n' < /proc/$$/environ"
    status = await world.run(script, env=(("MINE", "1"),))
    own = {"PODLIFE_CONTAINER_ID", "PODLIFE_TERMINATION_LOG"}
    assert {line.partition("=")[0] for line in logged(status)} == {"MINE", "PATH", "HOME", "HOSTNAME"} | own


async def test_a_container_begins_with_no_signal_ignored_or_blocked(world: ProcessWorld) -> None:
    script = "grep -E 'SigIgn|SigBlk' /proc/self/status | cut -f2"
    masks = logged(await world.run(script))
    # 32 and 33 are the C library's own: it lets nobody set them, and hands on what it was given.
    own = 1 << 31 | 1 << 32
    assert [int(mask, 16) & ~own for mask in masks] == [0, 0]


async def test_stop_ends_also_what_forked_away_twice_into_a_session_of_its_own(world: ProcessWorld) -> None:
    script = (
        f"(setsid sh -c 'trap \"\" TERM; echo $$ > {world.folder}/away; exec sleep 1000' &) ; exec sleep 1000"
    )
    container_id = await world.start(script)
    away = await said(world.folder / "away")
    assert runs(away)
    await world.runtime.stop_container(container_id, grace_seconds=0.2)
    assert not runs(away)
    assert (await world.status(container_id)).exit_code == 143


async def test_when_the_main_process_ends_everything_else_does(world: ProcessWorld) -> None:
    script = (
        f"(setsid sh -c 'echo $$ > {world.folder}/away; exec sleep 1000' &); "
        f"while [ ! -s {world.folder}/away ]; do :; done; exit 9"
    )
    status = await world.run(script)
    assert status.exit_code == 9
    assert not runs(await said(world.folder / "away"))


async def test_a_grace_of_months_is_given_and_the_end_is_the_containers_own(world: ProcessWorld) -> None:
    script = f"trap 'sleep 0.2; exit 7' TERM; echo up > {world.folder}/up; while :; do sleep 0.01; done"
    container_id = await world.start(script)
    await said(world.folder / "up")
    assert (await world.stopped(container_id, grace_seconds=2**31 - 1)).exit_code == 7


async def test_the_stop_signal_reaches_the_whole_group_and_the_others_have_the_rest_of_the_grace(
    world: ProcessWorld,
) -> None:
    child = (
        f"trap 'sleep 0.2; echo done > {world.folder}/child; exit' USR1; echo up > {world.folder}/up; "
        "while :; do sleep 0.01; done"
    )
    # Its own trap is set before there is a child that could say that it is up.
    script = "trap 'exit 6' USR1; sh -c \"$CHILD\" & while :; do sleep 0.01; done"
    container_id = await world.start(script, stop_signal="SIGUSR1", env=(("CHILD", child),))
    await said(world.folder / "up")
    await world.runtime.stop_container(container_id, grace_seconds=20)
    assert (world.folder / "child").read_text() == "done\n"
    assert (await world.status(container_id)).exit_code == 6


async def test_a_process_that_forks_and_ends_all_the_time_does_not_get_away(world: ProcessWorld) -> None:
    hare = f"import os; open('{world.folder}/up', 'w').write('up\\n')\nwhile True:\n    if os.fork(): os._exit(0)\n"
    script = f'{sys.executable} -S -c "$HARE" & exec sleep 1000'
    container_id = await world.start(script, env=(("HARE", hare),))
    await said(world.folder / "up")
    async with asyncio.timeout(60):
        assert (await world.stopped(container_id, grace_seconds=0)).exit_code == 137
    mark = f"PODLIFE_CONTAINER_ID={container_id}".encode()
    assert not [entry for entry in Path("/proc").glob("[0-9]*/environ") if mark in environ_of(entry)]


def environ_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


async def test_a_container_killed_from_outside_has_137(world: ProcessWorld) -> None:
    status = await world.run("kill -9 $$")
    assert (status.exit_code, status.reason) == (137, "Error")


async def test_both_streams_and_much_output_are_logged_before_the_end_is_told(world: ProcessWorld) -> None:
    script = "i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done; echo last >&2; printf unended"
    status = await world.run(script)
    lines = logged(status)
    assert [line for line in lines if line.startswith("line")] == [f"line {number}" for number in range(3000)]
    assert set(lines[-2:]) == {"last", "unended"} or lines[-1] == "unended"


@as_root
async def test_a_container_runs_as_the_user_and_group_that_is_asked_for(world: ProcessWorld) -> None:
    user = User(65534, 65533, (65532,))
    assert logged(await world.run("id -u; id -g; id -G", user=user)) == ["65534", "65533", "65533 65532"]


async def test_without_escalation_no_new_privileges_are_had(world: ProcessWorld) -> None:
    script = "grep NoNewPrivs /proc/self/status | cut -f2"
    assert logged(await world.run(script, allow_privilege_escalation=False)) == ["1"]


HUNGRY = f"exec {sys.executable} -S -c 'b = bytearray(300 << 20); print(len(b))'"


@with_cgroups
async def test_a_container_over_its_memory_is_killed_and_says_so(world: ProcessWorld) -> None:
    resources = Resources(memory_limit_bytes=64 << 20)
    status = await world.run(HUNGRY, resources=resources)
    assert (status.exit_code, status.reason) == (137, "OOMKilled")


async def test_without_groups_memory_is_limited_by_rlimit(tmp_path: Path) -> None:
    async with opened(tmp_path, use_cgroups=False) as world:
        status = await world.run(HUNGRY, resources=Resources(memory_limit_bytes=64 << 20))
        assert (status.exit_code, status.reason) == (1, "Error")
        assert "MemoryError" in "".join(logged(status))
        await world.clear()


@with_cgroups
async def test_the_groups_of_a_container_are_gone_when_it_is(world: ProcessWorld) -> None:
    container_id = await world.start(resources=Resources(cpu_limit_millis=500, pids_limit=50))
    found = discover()
    assert found is not None
    groups = [
        group["path"] for group in found.groups(container_id, Resources(cpu_limit_millis=1, pids_limit=1))
    ]
    assert len(groups) >= 1
    assert all(Path(group, "cgroup.procs").read_text() for group in groups)
    result = await world.runtime.exec_sync(container_id, ["cat", "/proc/self/cgroup"])
    assert container_id.encode() in result.stdout
    await world.runtime.stop_container(container_id, grace_seconds=5)
    assert not any(Path(group).exists() for group in groups)


@with_cgroups
async def test_the_limits_of_a_running_container_change_but_not_below_its_usage(world: ProcessWorld) -> None:
    container_id = await world.start(resources=Resources(cpu_request_millis=100))
    found = discover()
    assert found is not None

    async def set_and_read(resources: Resources) -> set[str]:
        await world.runtime.update_container_resources(container_id, resources)
        folders = [Path(group["path"]) for group in found.groups(container_id, resources)]
        files = ("cpu.max", "cpu.cfs_quota_us", "memory.max", "memory.limit_in_bytes")
        return {
            path.read_text().strip() for each in folders for name in files if (path := each / name).exists()
        }

    quotas = {1: {"50000", str(512 << 20)}, 2: {"50000 100000", str(512 << 20)}}
    limits = Resources(100, 500, 512 << 20)
    assert await set_and_read(limits) == quotas[found.version]
    with pytest.raises(ContainerRuntimeError, match=r"memory limit \(4096\) below current usage \(\d+\)"):
        await set_and_read(Resources(100, 500, 4096))
    assert (await world.runtime.container_status(container_id)).config.resources == limits


async def test_a_container_with_a_terminal(world: ProcessWorld) -> None:
    status = await world.run("test -t 0 && test -t 1 && tty && echo $TERM", tty=True)
    assert status.exit_code == 0
    terminal, kind = logged(status)
    assert terminal.startswith("/dev/pts/")
    assert kind == "xterm"


async def test_a_working_directory_that_is_missing_is_said(world: ProcessWorld) -> None:
    with pytest.raises(StartContainerError, match="working directory /there/is/none: No such file"):
        await world.start("true", working_dir="/there/is/none")


async def test_a_refused_container_leaves_nothing(world: ProcessWorld) -> None:
    with pytest.raises(InvalidContainerError, match="has no command"):
        await world.created(ContainerConfig("main", image="nginx"))
    assert list((world.folder / "runtime" / "containers").iterdir()) == []


async def test_a_record_that_cannot_be_read_is_cleared_away_and_the_others_stay(tmp_path: Path) -> None:
    async with opened(tmp_path) as world:
        container_id = await world.start()
    (tmp_path / "runtime/containers/half").mkdir()
    (tmp_path / "runtime/containers/half/config.json").write_text("")
    (tmp_path / "runtime/sandboxes/half.json").write_text("{")
    (tmp_path / "runtime/sandboxes/flipped.json").write_bytes(b'{"id": "\xff"}')
    async with opened(tmp_path) as world:
        assert [status.id for status in await world.runtime.list_containers()] == [container_id]
        assert len(await world.runtime.list_sandboxes()) == 1
        await world.clear()
    assert list((tmp_path / "runtime/containers").iterdir()) == []


async def test_a_start_whose_caller_gave_up_is_seen_all_the_same(world: ProcessWorld) -> None:
    container_id = await world.created(SLEEPS)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await world.runtime.start_container(container_id)
    assert (await world.stopped(container_id, grace_seconds=5)).exit_code == 143
