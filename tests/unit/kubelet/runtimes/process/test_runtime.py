"""What only real processes show: groups and sessions, limits, users, terminals, files that are nobody else's."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from podlife.clock import SystemClock
from podlife.kubelet.runtime import (
    ContainerConfig,
    InvalidContainerError,
    Resources,
    SandboxConfig,
    StartContainerError,
    User,
)
from podlife.kubelet.runtimes.process import ProcessRuntime, ProcessSettings
from podlife.kubelet.runtimes.process.cgroups import discover

from .process_kit import (
    ended,
    logged,
    runs,
    said,
    started,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the process runtime needs Linux")
as_root = pytest.mark.skipif(os.getuid() != 0, reason="only root may")
with_cgroups = pytest.mark.skipif(discover() is None, reason="no control group can be made here")


async def test_a_container_is_a_session_and_a_group_of_its_own(
    runtime: ProcessRuntime, tmp_path: Path
) -> None:
    container_id = await started(runtime, tmp_path, "ps -o pid=,pgid=,sid= -p $$; pwd")
    status = await ended(runtime, container_id)
    pid, group, session = logged(status)[0].split()
    assert pid == group == session
    assert logged(status)[1] == str(tmp_path / "runtime" / "containers" / container_id / "work")


async def test_its_files_are_the_owners_alone_and_its_processes_have_the_usual_mask(
    runtime: ProcessRuntime, tmp_path: Path
) -> None:
    container_id = await started(runtime, tmp_path, "umask; exec sleep 1000")
    assert "0022" in await said(tmp_path / "logs/main/0.log")
    for path in ((tmp_path / "runtime"), *(tmp_path / "runtime").rglob("*"), tmp_path / "logs/main"):
        mode = path.stat().st_mode & 0o777
        assert mode & 0o077 == 0, f"{path} has {mode:o}"
    await runtime.remove_container(container_id)


async def test_nothing_of_the_supervisor_is_open_in_the_container(
    runtime: ProcessRuntime, tmp_path: Path
) -> None:
    status = await ended(runtime, await started(runtime, tmp_path, "ls /proc/self/fd"))
    # The fourth is the folder that ls reads.
    assert logged(status) == ["0", "1", "2", "3"]


async def test_the_agents_environment_does_not_reach_the_container(
    runtime: ProcessRuntime, tmp_path: Path
) -> None:
    script = "tr '\\0' '\\n' < /proc/$$/environ"
    status = await ended(runtime, await started(runtime, tmp_path, script, env=(("MINE", "1"),)))
    own = {"PODLIFE_CONTAINER_ID", "PODLIFE_TERMINATION_LOG"}
    assert {line.partition("=")[0] for line in logged(status)} == {"MINE", "PATH", "HOME", "HOSTNAME"} | own


async def test_a_container_begins_with_no_signal_ignored_or_blocked(
    runtime: ProcessRuntime, tmp_path: Path
) -> None:
    script = "grep -E 'SigIgn|SigBlk' /proc/self/status | cut -f2"
    masks = logged(await ended(runtime, await started(runtime, tmp_path, script)))
    # 32 and 33 are the C library's own: it lets nobody set them, and hands on what it was given.
    own = 1 << 31 | 1 << 32
    assert [int(mask, 16) & ~own for mask in masks] == [0, 0]


async def test_stop_ends_also_what_forked_away_twice_into_a_session_of_its_own(
    runtime: ProcessRuntime, tmp_path: Path
) -> None:
    script = (
        f"(setsid sh -c 'trap \"\" TERM; echo $$ > {tmp_path}/away; exec sleep 1000' &) ; exec sleep 1000"
    )
    container_id = await started(runtime, tmp_path, script)
    away = await said(tmp_path / "away")
    assert runs(away)
    await runtime.stop_container(container_id, grace_seconds=0.2)
    assert not runs(away)
    assert (await runtime.container_status(container_id)).exit_code == 143


async def test_when_the_main_process_ends_everything_else_does(
    runtime: ProcessRuntime, tmp_path: Path
) -> None:
    script = (
        f"(setsid sh -c 'echo $$ > {tmp_path}/away; exec sleep 1000' &); "
        f"while [ ! -s {tmp_path}/away ]; do :; done; exit 9"
    )
    status = await ended(runtime, await started(runtime, tmp_path, script))
    assert status.exit_code == 9
    assert not runs(await said(tmp_path / "away"))


async def test_a_grace_of_months_is_given_and_the_end_is_the_containers_own(
    runtime: ProcessRuntime, tmp_path: Path
) -> None:
    script = f"trap 'sleep 0.2; exit 7' TERM; echo up > {tmp_path}/up; while :; do sleep 0.01; done"
    container_id = await started(runtime, tmp_path, script)
    await said(tmp_path / "up")
    await runtime.stop_container(container_id, grace_seconds=2**31 - 1)
    assert (await runtime.container_status(container_id)).exit_code == 7


async def test_the_stop_signal_reaches_the_whole_group_and_the_others_have_the_rest_of_the_grace(
    runtime: ProcessRuntime, tmp_path: Path
) -> None:
    child = (
        f"trap 'sleep 0.2; echo done > {tmp_path}/child; exit' USR1; echo up > {tmp_path}/up; "
        "while :; do sleep 0.01; done"
    )
    # Its own trap is set before there is a child that could say that it is up.
    script = "trap 'exit 6' USR1; sh -c \"$CHILD\" & while :; do sleep 0.01; done"
    container_id = await started(runtime, tmp_path, script, stop_signal="SIGUSR1", env=(("CHILD", child),))
    await said(tmp_path / "up")
    await runtime.stop_container(container_id, grace_seconds=20)
    assert (tmp_path / "child").read_text() == "done\n"
    assert (await runtime.container_status(container_id)).exit_code == 6


async def test_a_process_that_forks_and_ends_all_the_time_does_not_get_away(
    runtime: ProcessRuntime, tmp_path: Path
) -> None:
    hare = (
        f"import os; open('{tmp_path}/up', 'w').write('up\\n')\nwhile True:\n    if os.fork(): os._exit(0)\n"
    )
    script = f'{sys.executable} -S -c "$HARE" & exec sleep 1000'
    container_id = await started(runtime, tmp_path, script, env=(("HARE", hare),))
    await said(tmp_path / "up")
    async with asyncio.timeout(60):
        await runtime.stop_container(container_id, grace_seconds=0)
    assert (await runtime.container_status(container_id)).exit_code == 137
    mark = f"PODLIFE_CONTAINER_ID={container_id}".encode()
    assert not [entry for entry in Path("/proc").glob("[0-9]*/environ") if mark in environ_of(entry)]


def environ_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


async def test_a_container_killed_from_outside_has_137(runtime: ProcessRuntime, tmp_path: Path) -> None:
    status = await ended(runtime, await started(runtime, tmp_path, "kill -9 $$"))
    assert (status.exit_code, status.reason) == (137, "Error")


async def test_both_streams_and_much_output_are_logged_before_the_end_is_told(
    runtime: ProcessRuntime, tmp_path: Path
) -> None:
    script = "i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done; echo last >&2; printf unended"
    status = await ended(runtime, await started(runtime, tmp_path, script))
    lines = logged(status)
    assert [line for line in lines if line.startswith("line")] == [f"line {number}" for number in range(3000)]
    assert set(lines[-2:]) == {"last", "unended"} or lines[-1] == "unended"


@as_root
async def test_a_container_runs_as_the_user_and_group_that_is_asked_for(
    runtime: ProcessRuntime, tmp_path: Path
) -> None:
    user = User(65534, 65533, (65532,))
    container_id = await started(runtime, tmp_path, "id -u; id -g; id -G", user=user)
    assert logged(await ended(runtime, container_id)) == ["65534", "65533", "65533 65532"]


async def test_without_escalation_no_new_privileges_are_had(runtime: ProcessRuntime, tmp_path: Path) -> None:
    script = "grep NoNewPrivs /proc/self/status | cut -f2"
    container_id = await started(runtime, tmp_path, script, allow_privilege_escalation=False)
    assert logged(await ended(runtime, container_id)) == ["1"]


HUNGRY = f"exec {sys.executable} -S -c 'b = bytearray(300 << 20); print(len(b))'"


@with_cgroups
async def test_a_container_over_its_memory_is_killed_and_says_so(
    runtime: ProcessRuntime, tmp_path: Path
) -> None:
    resources = Resources(memory_limit_bytes=64 << 20)
    status = await ended(runtime, await started(runtime, tmp_path, HUNGRY, resources=resources))
    assert (status.exit_code, status.reason) == (137, "OOMKilled")


async def test_without_groups_memory_is_limited_by_rlimit(tmp_path: Path) -> None:
    settings = ProcessSettings(tmp_path / "runtime", use_cgroups=False)
    async with ProcessRuntime(settings, SystemClock()) as runtime:
        resources = Resources(memory_limit_bytes=64 << 20)
        status = await ended(runtime, await started(runtime, tmp_path, HUNGRY, resources=resources))
        assert (status.exit_code, status.reason) == (1, "Error")
        assert "MemoryError" in "".join(logged(status))
        await runtime.remove_sandbox(status.sandbox_id)


@with_cgroups
async def test_the_groups_of_a_container_are_gone_when_it_is(runtime: ProcessRuntime, tmp_path: Path) -> None:
    container_id = await started(
        runtime, tmp_path, "exec sleep 1000", resources=Resources(cpu_limit_millis=500, pids_limit=50)
    )
    found = discover()
    assert found is not None
    groups = [
        group["path"] for group in found.groups(container_id, Resources(cpu_limit_millis=1, pids_limit=1))
    ]
    assert len(groups) >= 1
    assert all(Path(group, "cgroup.procs").read_text() for group in groups)
    result = await runtime.exec_sync(container_id, ["cat", "/proc/self/cgroup"])
    assert container_id.encode() in result.stdout
    await runtime.stop_container(container_id, grace_seconds=5)
    assert not any(Path(group).exists() for group in groups)


async def test_a_container_with_a_terminal(runtime: ProcessRuntime, tmp_path: Path) -> None:
    status = await ended(runtime, await started(runtime, tmp_path, "test -t 0 && test -t 1 && tty", tty=True))
    assert status.exit_code == 0
    assert logged(status)[0].startswith("/dev/pts/")


async def test_a_working_directory_that_is_missing_is_said(runtime: ProcessRuntime, tmp_path: Path) -> None:
    with pytest.raises(StartContainerError, match="working directory /there/is/none: No such file"):
        await started(runtime, tmp_path, "true", working_dir="/there/is/none")


async def test_a_refused_container_leaves_nothing(runtime: ProcessRuntime, tmp_path: Path) -> None:
    sandbox_id = await runtime.run_sandbox(SandboxConfig("uid", "default", "web"))
    with pytest.raises(InvalidContainerError, match="has no command"):
        await runtime.create_container(sandbox_id, ContainerConfig("main", image="nginx"))
    assert list((tmp_path / "runtime" / "containers").iterdir()) == []


async def test_a_record_that_cannot_be_read_is_cleared_away_and_the_others_stay(tmp_path: Path) -> None:
    settings = ProcessSettings(tmp_path / "runtime")
    async with ProcessRuntime(settings, SystemClock()) as runtime:
        container_id = await started(runtime, tmp_path, "exec sleep 1000")
    (tmp_path / "runtime/containers/half").mkdir()
    (tmp_path / "runtime/containers/half/config.json").write_text("")
    (tmp_path / "runtime/sandboxes/half.json").write_text("{")
    (tmp_path / "runtime/sandboxes/flipped.json").write_bytes(b'{"id": "\xff"}')
    async with ProcessRuntime(settings, SystemClock()) as runtime:
        assert [status.id for status in await runtime.list_containers()] == [container_id]
        [sandbox] = await runtime.list_sandboxes()
        await runtime.remove_sandbox(sandbox.id)
    assert list((tmp_path / "runtime/containers").iterdir()) == []


async def test_a_start_whose_caller_gave_up_is_seen_all_the_same(
    runtime: ProcessRuntime, tmp_path: Path
) -> None:
    sandbox_id = await runtime.run_sandbox(SandboxConfig("uid", "default", "web"))
    container_id = await runtime.create_container(
        sandbox_id, ContainerConfig("main", command=("sleep", "1000"))
    )
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await runtime.start_container(container_id)
    await runtime.stop_container(container_id, grace_seconds=5)
    assert (await runtime.container_status(container_id)).exit_code == 143
