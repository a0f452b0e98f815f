"""What only real processes show: groups and sessions, limits, users, terminals, files that are nobody else's."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from podlife.clock import SystemClock
from podlife.kubelet.runtime import (
    ContainerConfig,
    ContainerState,
    ContainerStatus,
    ExecError,
    ExecTimeoutError,
    InvalidContainerError,
    Resources,
    SandboxConfig,
    StartContainerError,
    User,
)
from podlife.kubelet.runtimes.process import ProcessRuntime, ProcessSettings
from podlife.kubelet.runtimes.process.cgroups import discover

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the process runtime needs Linux")
as_root = pytest.mark.skipif(os.getuid() != 0, reason="only root may")
with_cgroups = pytest.mark.skipif(discover() is None, reason="no control group can be made here")


@pytest.fixture
async def runtime(tmp_path: Path) -> AsyncIterator[ProcessRuntime]:
    async with ProcessRuntime(ProcessSettings(tmp_path / "runtime"), SystemClock()) as opened:
        yield opened
        for sandbox in await opened.list_sandboxes():
            await opened.remove_sandbox(sandbox.id)


async def started(runtime: ProcessRuntime, tmp_path: Path, script: str, **fields: object) -> str:
    sandboxes = await runtime.list_sandboxes()
    sandbox = SandboxConfig("uid", "default", "web", log_directory=str(tmp_path / "logs"))
    sandbox_id = sandboxes[0].id if sandboxes else await runtime.run_sandbox(sandbox)
    config = ContainerConfig("main", command=("sh", "-c", script), log_path="main/0.log")
    container_id = await runtime.create_container(sandbox_id, replace(config, **fields))  # type: ignore[arg-type]
    await runtime.start_container(container_id)
    return container_id


async def ended(runtime: ProcessRuntime, container_id: str) -> ContainerStatus:
    async with asyncio.timeout(20), runtime.events() as events:
        while (status := await runtime.container_status(container_id)).state is not ContainerState.EXITED:
            await anext(events)
    return status


async def said(path: Path) -> str:
    """What a process has written to a file, once it has."""
    async with asyncio.timeout(20):
        while not path.exists() or not path.read_text().endswith("\n"):
            await asyncio.sleep(0.005)
    return path.read_text().strip()


def runs(pid: str) -> bool:
    try:
        return not Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].startswith(("Z", "X"))
    except (FileNotFoundError, ProcessLookupError):
        return False


def logged(status: ContainerStatus) -> list[str]:
    assert status.log_path is not None
    return [line.split(" ", 3)[3] for line in status.log_path.read_text().splitlines()]


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
    assert logged(await ended(runtime, await started(runtime, tmp_path, script))) == ["0" * 16] * 2


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


async def test_the_stop_signal_reaches_the_whole_group_and_the_others_have_the_rest_of_the_grace(
    runtime: ProcessRuntime, tmp_path: Path
) -> None:
    child = (
        f"trap 'sleep 0.2; echo done > {tmp_path}/child; exit' USR1; echo up > {tmp_path}/up; "
        "while :; do sleep 0.01; done"
    )
    script = "sh -c \"$CHILD\" & trap 'exit 6' USR1; while :; do sleep 0.01; done"
    container_id = await started(runtime, tmp_path, script, stop_signal="SIGUSR1", env=(("CHILD", child),))
    await said(tmp_path / "up")
    await runtime.stop_container(container_id, grace_seconds=20)
    assert (tmp_path / "child").read_text() == "done\n"
    assert (await runtime.container_status(container_id)).exit_code == 6


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


async def test_a_termination_message_is_cut_to_its_last_4096_bytes(
    runtime: ProcessRuntime, tmp_path: Path
) -> None:
    script = (
        "head -c 5000 /dev/zero | tr '\\0' a > $PODLIFE_TERMINATION_LOG; echo end >> $PODLIFE_TERMINATION_LOG"
    )
    status = await ended(runtime, await started(runtime, tmp_path, script))
    assert len(status.termination_message) == 4096
    assert status.termination_message.endswith("aend\n")


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


async def test_a_command_reads_what_is_written_to_it(runtime: ProcessRuntime, tmp_path: Path) -> None:
    container_id = await started(runtime, tmp_path, "exec sleep 1000")
    async with runtime.exec(container_id, ["cat"], stdin=True) as session:
        await session.write_stdin(b"some ")
        await session.write_stdin(b"text")
        await session.close_stdin()
        assert await session.stdout.read() == b"some text"
        assert await session.wait() == 0
        assert await session.wait() == 0


async def test_a_terminal_of_a_command_can_be_resized(runtime: ProcessRuntime, tmp_path: Path) -> None:
    container_id = await started(runtime, tmp_path, "exec sleep 1000")
    async with runtime.exec(container_id, ["sh", "-c", "read x; stty size"], stdin=True, tty=True) as session:
        session.resize(columns=132, rows=43)
        await session.write_stdin(b"\n")
        assert b"43 132" in await session.stdout.read()


async def test_a_command_that_takes_too_long_is_ended(runtime: ProcessRuntime, tmp_path: Path) -> None:
    container_id = await started(runtime, tmp_path, "exec sleep 1000")
    command = ["sh", "-c", f"echo $$ > {tmp_path}/pid; sleep 1000"]
    with pytest.raises(ExecTimeoutError, match=r"timed out after 0\.3 s"):
        await runtime.exec_sync(container_id, command, timeout_seconds=0.3)
    pid = await said(tmp_path / "pid")
    async with asyncio.timeout(20):
        while runs(pid):
            await asyncio.sleep(0.005)
    assert (await runtime.container_status(container_id)).state is ContainerState.RUNNING


async def test_a_command_of_which_something_stays_does_not_keep_its_caller(
    runtime: ProcessRuntime, tmp_path: Path
) -> None:
    container_id = await started(runtime, tmp_path, "exec sleep 1000")
    async with asyncio.timeout(20):
        result = await runtime.exec_sync(container_id, ["sh", "-c", "sleep 1000 & echo out"])
    assert (result.exit_code, result.stdout) == (0, b"out\n")


async def test_a_container_that_ends_takes_its_commands_along(
    runtime: ProcessRuntime, tmp_path: Path
) -> None:
    container_id = await started(runtime, tmp_path, "exec sleep 1000")
    async with runtime.exec(container_id, ["sh", "-c", f"echo $$ > {tmp_path}/pid; sleep 1000"]) as session:
        pid = await said(tmp_path / "pid")
        await runtime.stop_container(container_id, grace_seconds=0)
        assert not runs(pid)
        assert await session.wait() == 137


async def test_a_command_that_does_not_exist_is_said(runtime: ProcessRuntime, tmp_path: Path) -> None:
    container_id = await started(runtime, tmp_path, "exec sleep 1000")
    with pytest.raises(ExecError, match='exec: "nope": no such file, or not in'):
        await runtime.exec_sync(container_id, ["nope"])


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
