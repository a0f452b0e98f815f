"""The agent side of the process runtime killed with -9 at many points; its supervisors and its launcher, too.

Nothing runs twice, nothing is lost, and every exit code is reported by whoever comes next.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import select
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from podlife.clock import SystemClock
from podlife.errors import ConfigError
from podlife.kubelet.runtime import (
    ContainerConfig,
    ContainerState,
    ContainerStatus,
    EventKind,
    Runtime,
    RuntimeUnavailableError,
    SandboxConfig,
)
from podlife.kubelet.runtimes.process import ProcessRuntime
from tests.crash.process_agent import container, settings_of
from tests.kit.wait import until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the process runtime needs Linux")

# How far apart the points are; PODLIFE_CRASH_ROUNDS asks for more of them, down to every call.
_ROUNDS = int(os.environ.get("PODLIFE_CRASH_ROUNDS", "25"))
# How long anything may take that is waited for.
_SECONDS = 120.0


class Agents:
    """The program that forks agents and reports how they ended."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, calls: int) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{calls}\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()


@contextmanager
def agents(folder: Path) -> Iterator[Agents]:
    with subprocess.Popen(
        [sys.executable, "-m", "tests.crash.process_agent", str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield Agents(process)
        assert process.stdin is not None
        process.stdin.close()


@asynccontextmanager
async def next_agent(folder: Path) -> AsyncIterator[Runtime]:
    async with ProcessRuntime(settings_of(folder), SystemClock()) as runtime:
        yield runtime


def witnessed(folder: Path) -> list[tuple[str, int]]:
    """Who ever started, in order: container and process."""
    try:
        lines = (folder / "witness").read_text().splitlines()
    except FileNotFoundError:
        return []
    return [(line.split()[0], int(line.split()[1])) for line in lines]


def runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return not state.startswith(("Z", "X"))


async def until_none_runs(pids: Iterable[int]) -> None:
    """One that was killed is no longer there when the kernel has got round to it, and that takes its time."""
    known = set(pids)
    await until(lambda: not any(map(runs, known)), f"some of {sorted(known)} still run", seconds=_SECONDS)


async def ended(runtime: Runtime, container_id: str) -> ContainerStatus:
    async with asyncio.timeout(_SECONDS), runtime.events() as events:
        while (status := await runtime.container_status(container_id)).exit_code is None:
            await anext(events)
    return status


async def witness_of(folder: Path, container_id: str) -> int:
    """The process of a container that runs; it may not have got to its first line yet."""
    pid = await until(lambda: dict(witnessed(folder)).get(container_id), seconds=_SECONDS)
    return int(pid)


async def check_what_was_left(folder: Path) -> None:
    """As the next agent sees it: every container in a state that is true, and everything can still be ended."""
    async with next_agent(folder) as runtime:
        for status in await runtime.list_containers():
            if status.state is ContainerState.CREATED:
                assert status.id not in dict(witnessed(folder)), "it says that it has not started, but it has"
                await runtime.start_container(status.id)
            if status.config.name == "short":
                assert (await ended(runtime, status.id)).exit_code == 5
                continue
            if status.state is not ContainerState.EXITED:
                pid = await witness_of(folder, status.id)
                assert runs(pid) or (await ended(runtime, status.id)).exit_code in (137, 143)
                await runtime.stop_container(status.id, grace_seconds=10)
                assert not runs(pid)
            assert (await runtime.container_status(status.id)).exit_code in (137, 143)
        for sandbox in await runtime.list_sandboxes():
            await runtime.remove_sandbox(sandbox.id)
        assert await runtime.list_containers() == []
    starts = Counter(container_id for container_id, _ in witnessed(folder))
    twice = [container_id for container_id, times in starts.items() if times > 1]
    assert not twice, "containers ran twice"
    await until_none_runs(pid for _, pid in witnessed(folder))
    for left in ("containers", "locks", "making", "leaving", "sandboxes"):
        assert list((folder / "runtime" / left).iterdir()) == []


async def test_an_agent_killed_at_any_call_leaves_nothing_lost_and_nothing_twice(tmp_path: Path) -> None:
    with agents(tmp_path) as started:
        outcome = await asyncio.to_thread(started.run, 1_000_000)
        assert outcome == "done 0", "the scenario itself works"
        await check_what_was_left(tmp_path)
        total = await _calls_in_scenario(started, tmp_path)
        outcomes: Counter[str] = Counter()
        for number in range(_ROUNDS):
            (tmp_path / "witness").unlink(missing_ok=True)
            outcomes[await asyncio.to_thread(started.run, 1 + number * total // _ROUNDS)] += 1
            await check_what_was_left(tmp_path)
        # How many calls it takes differs a little from one time to the next.
        assert outcomes.keys() <= {"killed", "done 0"}
        assert outcomes["killed"] > _ROUNDS // 2, outcomes


async def _calls_in_scenario(started: Agents, folder: Path) -> int:
    """How many calls the scenario makes, found by halving: the last point at which an agent is still killed."""
    low, high = 1, 16_384
    while high - low > 64:
        middle = (low + high) // 2
        is_killed = await asyncio.to_thread(started.run, middle) == "killed"
        await check_what_was_left(folder)
        low, high = (middle, high) if is_killed else (low, middle)
    return low


SANDBOX = SandboxConfig("uid", "default", "web")


async def started_one(runtime: Runtime, config: ContainerConfig) -> str:
    sandbox_id = await runtime.run_sandbox(SANDBOX)
    container_id = await runtime.create_container(sandbox_id, config)
    await runtime.start_container(container_id)
    return container_id


def supervisor_of(folder: Path, container_id: str) -> int:
    started = json.loads((folder / "runtime" / "containers" / container_id / "started.json").read_text())
    return parent_of(started["pid"])


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[1])


@asynccontextmanager
async def gone(pid: int) -> AsyncIterator[int]:
    """Leaves when the process has ended; it need not be a child."""
    pidfd = os.pidfd_open(pid)
    try:
        yield pid
        ready, _, _ = await asyncio.to_thread(select.select, [pidfd], [], [], _SECONDS)
        assert ready, f"process {pid} does not end"
    finally:
        os.close(pidfd)


def control_groups(pid: int, container_id: str) -> list[Path]:
    """The folders of a container's own groups, wherever they are mounted; none where none can be made."""
    lines = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
    own = [line.rpartition(":")[2] for line in lines if line.endswith(container_id)]
    mountinfo = Path("/proc/self/mountinfo").read_text().splitlines()
    mounts = [line.split()[4] for line in mountinfo if " - cgroup" in line]
    return [folder for mount in mounts for group in own if (folder := Path(mount + group)).exists()]


async def test_a_killed_supervisor_takes_its_container_along_and_the_agent_is_told(tmp_path: Path) -> None:
    child = f"setsid sh -c 'echo child $$ >> {tmp_path}/witness; exec sleep 1000' & wait"
    async with next_agent(tmp_path) as runtime:
        container_id = await started_one(runtime, container(tmp_path, "web", child))
        main, survivor = await witness_of(tmp_path, container_id), await witness_of(tmp_path, "child")
        groups = control_groups(main, container_id)
        async with runtime.events() as events, asyncio.timeout(_SECONDS):
            os.kill(supervisor_of(tmp_path, container_id), signal.SIGKILL)
            assert (await anext(events)).kind is EventKind.CONTAINER_STOPPED
        status = await runtime.container_status(container_id)
        assert (status.exit_code, status.reason) == (137, "ContainerStatusUnknown")
        assert "supervisor was killed" in status.message
        await until_none_runs([main, survivor])
        assert not [group for group in groups if group.exists()]
        await runtime.remove_sandbox(status.sandbox_id)


async def test_a_supervisor_killed_while_there_was_no_agent_is_found_by_the_next(tmp_path: Path) -> None:
    child = f"setsid sh -c 'echo child $$ >> {tmp_path}/witness; exec sleep 1000' & wait"
    async with next_agent(tmp_path) as runtime:
        container_id = await started_one(runtime, container(tmp_path, "web", child))
        survivor = await witness_of(tmp_path, "child")
    async with gone(supervisor_of(tmp_path, container_id)) as supervisor:
        os.kill(supervisor, signal.SIGKILL)
    async with next_agent(tmp_path) as runtime:
        status = await ended(runtime, container_id)
        assert (status.exit_code, status.reason) == (137, "ContainerStatusUnknown")
        await until_none_runs([survivor])
        await runtime.remove_sandbox(status.sandbox_id)
    async with next_agent(tmp_path) as runtime:
        assert await runtime.list_containers() == []


async def test_a_killed_launcher_is_started_again(tmp_path: Path) -> None:
    async with next_agent(tmp_path) as runtime:
        first = await started_one(runtime, container(tmp_path, "first", "exec sleep 1000"))
        sandbox_id = (await runtime.container_status(first)).sandbox_id
        async with gone(parent_of(supervisor_of(tmp_path, first))) as launcher:
            os.kill(launcher, signal.SIGKILL)
        second = await runtime.create_container(sandbox_id, container(tmp_path, "second", "exec sleep 1000"))
        await runtime.start_container(second)
        states = {status.config.name: status.state for status in await runtime.list_containers()}
        assert states == {"first": ContainerState.RUNNING, "second": ContainerState.RUNNING}
        await runtime.remove_sandbox(sandbox_id)


def launchers(folder: Path) -> list[int]:
    """Those that serve this folder: they have its lock open, and are nobody's supervisor."""
    lock = folder / "runtime" / "starting.lock"
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and b"supervisor.launcher" in _command(entry):
            with contextlib.suppress(OSError):
                if any(opened.resolve() == lock for opened in (entry / "fd").iterdir()):
                    found.append(int(entry.name))
    return found


def _command(process: Path) -> bytes:
    try:
        return (process / "cmdline").read_bytes()
    except OSError:
        return b""


async def test_launchers_and_starting_supervisors_killed_again_and_again_start_nothing_twice(
    tmp_path: Path,
) -> None:
    async with next_agent(tmp_path) as runtime:
        sandbox_id = await runtime.run_sandbox(SANDBOX)
        for number in range(_ROUNDS):
            config = container(tmp_path, f"c{number}", "exec sleep 1000")
            container_id = await runtime.create_container(sandbox_id, config)
            start = asyncio.gather(runtime.start_container(container_id), return_exceptions=True)
            await asyncio.sleep(number % 10 / 1000)
            for pid in launchers(tmp_path):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            [outcome] = await start
            status = await runtime.container_status(container_id)
            if outcome is None:
                if status.state is ContainerState.UNKNOWN:
                    # Its supervisor was killed after the start: the agent ends what it left.
                    status = await ended(runtime, container_id)
                assert status.state in (ContainerState.RUNNING, ContainerState.EXITED)
            else:
                assert isinstance(outcome, RuntimeUnavailableError), outcome
                assert (await settled(runtime, container_id)).exit_code in (None, 137)
            await runtime.remove_container(container_id)
            await until_none_runs(pid for _, pid in witnessed(tmp_path))
        await runtime.remove_sandbox(sandbox_id)
    starts = Counter(container_id for container_id, _ in witnessed(tmp_path))
    assert set(starts.values()) <= {1}


async def settled(runtime: Runtime, container_id: str) -> ContainerStatus:
    status = await runtime.container_status(container_id)
    return status if status.state is ContainerState.CREATED else await ended(runtime, container_id)


async def test_an_exit_while_there_was_no_agent_is_reported_by_the_next(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "gate")
    async with next_agent(tmp_path) as runtime:
        config = container(tmp_path, "web", f"read x < {tmp_path}/gate; exit 42")
        container_id = await started_one(runtime, config)
        supervisor = supervisor_of(tmp_path, container_id)
    async with gone(supervisor):
        await asyncio.to_thread((tmp_path / "gate").write_text, "go\n")
    async with next_agent(tmp_path) as runtime:
        status = await runtime.container_status(container_id)
        assert (status.state, status.exit_code) == (ContainerState.EXITED, 42)
        await runtime.remove_sandbox(status.sandbox_id)


async def test_a_grace_period_runs_out_though_the_agent_that_asked_is_gone(tmp_path: Path) -> None:
    config = container(tmp_path, "web", "trap '' TERM; while :; do sleep 1000; done")
    async with next_agent(tmp_path) as runtime:
        container_id = await started_one(runtime, config)
        await witness_of(tmp_path, container_id)
        supervisor = supervisor_of(tmp_path, container_id)
        async with gone(supervisor):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await runtime.stop_container(container_id, grace_seconds=3)
            await runtime.__aexit__()
    async with next_agent(tmp_path) as runtime:
        status = await runtime.container_status(container_id)
        assert status.exit_code in (137, 143)
        await runtime.remove_sandbox(status.sandbox_id)


async def test_two_agents_do_not_share_a_folder(tmp_path: Path) -> None:
    async with next_agent(tmp_path):
        with pytest.raises(ConfigError, match="in use by another node agent"):
            async with next_agent(tmp_path):
                pass
