"""The adapter for own compute, over compute that fails, hangs, forgets or lies; and the page that shows one."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from podlife.errors import ConfigError
from podlife.kubelet.runtime import (
    ConflictInRuntimeError,
    ContainerConfig,
    ContainerState,
    EventKind,
    ExecError,
    ExecResult,
    ExecTimeoutError,
    RuntimeUnavailableError,
    SandboxConfig,
    StartContainerError,
)
from podlife.kubelet.runtimes.custom import ComputeError, CustomRuntime, End, Work
from podlife.testing import LoopClock, virtual_time
from tests.conformance.runtime.custom_machine import PAGE, blocks, own_compute


async def for_ever() -> None:
    await asyncio.Event().wait()


class Fake:
    """A compute in the test's hand: `on` says what a method does before it does what it should."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.on: dict[str, Callable[[], Awaitable[None]]] = {}
        self.known: dict[str, End | None] = {}
        self.calls: list[str] = []
        self.under_way = 0
        self.has_changed = asyncio.Event()

    async def _called(self, name: str) -> None:
        self.calls.append(name)
        if name in self.on:
            self.under_way += 1
            try:
                await self.on[name]()
            finally:
                self.under_way -= 1

    def end(self, work_id: str, code: int) -> None:
        self.known[work_id] = End(code)
        self.has_changed.set()

    async def start_and_hang(self) -> None:
        """For `on`: the one container runs, and its start does not return."""
        [work_id] = (path.stem for path in (self.folder / "containers").glob("*.json"))
        self.known[work_id] = None
        await for_ever()

    async def start(self, work: Work) -> None:
        await self._called("start")
        assert work.id not in self.known, "started twice"
        self.known[work.id] = None

    async def stop(self, work_id: str, *, force: bool) -> None:
        await self._called("kill" if force else "ask")
        if work_id in self.known and self.known[work_id] is None:
            self.end(work_id, 137 if force else 143)

    async def remove(self, work_id: str) -> None:
        await self._called("remove")
        self.known.pop(work_id, None)

    async def runs(self) -> Mapping[str, End | None]:
        await self._called("runs")
        return dict(self.known)

    async def changed(self) -> None:
        await self._called("changed")
        await self.has_changed.wait()
        self.has_changed.clear()

    async def exec(self, work_id: str, command: Sequence[str]) -> ExecResult:
        await self._called("exec")
        return ExecResult(0, b"out", b"")


async def failing() -> None:
    raise ComputeError("not today")


@pytest.fixture
def compute(tmp_path: Path) -> Fake:
    return Fake(tmp_path / "state")


def opened(compute: Fake) -> CustomRuntime:
    return CustomRuntime(compute, compute.folder, LoopClock())


async def created(runtime: CustomRuntime, compute: Fake) -> str:
    logs = compute.folder.parent / "logs"
    pod = SandboxConfig("uid", "default", "web", log_directory=str(logs))
    sandbox_id = await runtime.run_sandbox(pod)
    return await runtime.create_container(
        sandbox_id, ContainerConfig("c", command=("x",), log_path="c/0.log")
    )


@asynccontextmanager
async def one_running(compute: Fake) -> AsyncIterator[tuple[CustomRuntime, str]]:
    async with opened(compute) as runtime:
        container_id = await created(runtime, compute)
        await runtime.start_container(container_id)
        yield runtime, container_id


@virtual_time
async def test_a_start_cut_off_by_a_crash_is_never_made_again(compute: Fake) -> None:
    compute.on["start"] = for_ever
    async with opened(compute) as runtime:
        container_id = await created(runtime, compute)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await runtime.start_container(container_id)
    assert compute.under_way == 0
    async with opened(compute) as runtime:
        status = await runtime.container_status(container_id)
        assert (status.exit_code, status.reason) == (137, "ContainerStatusUnknown")
        with pytest.raises(ConflictInRuntimeError, match="was started before"):
            await runtime.start_container(container_id)
    assert compute.calls.count("start") == 1


@virtual_time
async def test_one_that_did_start_before_the_crash_is_found_running(compute: Fake) -> None:
    compute.on["start"] = compute.start_and_hang
    async with opened(compute) as runtime:
        container_id = await created(runtime, compute)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await runtime.start_container(container_id)
    async with opened(compute) as runtime:
        assert (await runtime.container_status(container_id)).state is ContainerState.RUNNING
        compute.end(container_id, 5)
        await asyncio.sleep(1)
        assert (await runtime.container_status(container_id)).exit_code == 5


@virtual_time
async def test_output_of_what_went_on_goes_to_the_log_of_the_next_agent(tmp_path: Path) -> None:
    class Lasting(Fake):
        async def resume(self, work: Work) -> None:
            await self._called("resume")
            work.write("still here\n")

    compute = Lasting(tmp_path / "state")
    async with one_running(compute) as (_, container_id):
        pass
    assert "resume" not in compute.calls
    async with opened(compute) as runtime:
        await asyncio.sleep(1)
        log_path = (await runtime.container_status(container_id)).log_path
        assert log_path is not None
        assert log_path.read_text().endswith(" stdout F still here\n")
        await runtime.stop_container(container_id, grace_seconds=1)
    compute.on["resume"] = failing
    async with opened(compute) as runtime:
        await asyncio.sleep(1)
    assert compute.calls.count("resume") == 1, "what has ended does not go on"


@virtual_time
async def test_a_start_that_never_returns_is_given_up_and_what_came_of_it_is_ended(compute: Fake) -> None:
    compute.on["start"] = for_ever
    async with opened(compute) as runtime:
        container_id = await created(runtime, compute)
        with pytest.raises(StartContainerError, match="not started it after 300 s"):
            await runtime.start_container(container_id)
        assert "kill" in compute.calls
        assert (await runtime.container_status(container_id)).reason == "StartError"


@virtual_time
async def test_a_start_that_happened_though_it_never_returned_is_not_said_to_have_failed(
    compute: Fake,
) -> None:
    compute.on["start"], compute.on["kill"] = compute.start_and_hang, failing
    async with opened(compute) as runtime:
        container_id = await created(runtime, compute)
        with pytest.raises(RuntimeUnavailableError, match="says that it runs"):
            await runtime.start_container(container_id)
        assert (await runtime.container_status(container_id)).state is ContainerState.RUNNING
        compute.on.clear()
        await runtime.stop_container(container_id, grace_seconds=1)
        assert (await runtime.container_status(container_id)).exit_code == 143


@virtual_time
async def test_what_the_compute_forgets_ended_in_a_way_nobody_knows(compute: Fake) -> None:
    async with one_running(compute) as (runtime, container_id):
        compute.known.clear()
        compute.has_changed.set()
        await asyncio.sleep(1)
        status = await runtime.container_status(container_id)
        assert (status.exit_code, status.reason) == (137, "ContainerStatusUnknown")


@virtual_time
async def test_a_question_to_end_that_hangs_does_not_lengthen_the_grace(compute: Fake) -> None:
    compute.on["ask"] = for_ever
    async with one_running(compute) as (runtime, container_id):
        await runtime.stop_container(container_id, grace_seconds=30)
        assert asyncio.get_running_loop().time() == pytest.approx(30)
        assert (await runtime.container_status(container_id)).exit_code == 137
        await asyncio.sleep(0)
        assert compute.under_way == 0


@virtual_time
async def test_one_that_cannot_be_ended_is_not_said_to_have_and_is_tried_again_by_the_next(
    compute: Fake,
) -> None:
    compute.on["kill"] = failing
    async with one_running(compute) as (runtime, container_id):
        for _ in range(2):
            with pytest.raises(RuntimeUnavailableError, match="has not ended container 'c'"):
                await runtime.stop_container(container_id, grace_seconds=0)
        with pytest.raises(RuntimeUnavailableError):
            await runtime.remove_container(container_id)
        assert (await runtime.container_status(container_id)).state is ContainerState.RUNNING
        del compute.on["kill"]
        await runtime.remove_container(container_id)
        assert await runtime.list_containers() == []


@virtual_time
async def test_a_compute_that_does_not_answer_is_asked_again_until_it_does(compute: Fake) -> None:
    async with one_running(compute) as (runtime, container_id):
        compute.on["changed"] = compute.on["runs"] = failing
        compute.end(container_id, 4)
        with pytest.raises(RuntimeUnavailableError, match="the compute failed: not today"):
            await runtime.version()
        await asyncio.sleep(10)
        assert (await runtime.container_status(container_id)).state is ContainerState.RUNNING
        compute.on.clear()
        compute.has_changed.set()
        await asyncio.sleep(10)
        assert (await runtime.container_status(container_id)).exit_code == 4
        compute.on["runs"] = for_ever
        with pytest.raises(RuntimeUnavailableError, match="did not answer within 60 s"):
            await runtime.version()


@virtual_time
async def test_an_agent_begins_while_the_compute_is_away_and_learns_later_what_ended(compute: Fake) -> None:
    async with one_running(compute) as (_, container_id):
        pass
    compute.end(container_id, 6)
    compute.on["runs"] = failing
    async with opened(compute) as runtime, runtime.events() as events:
        assert (await runtime.container_status(container_id)).state is ContainerState.RUNNING
        await asyncio.sleep(5)
        compute.on.clear()
        compute.has_changed.set()
        assert (await anext(events)).kind is EventKind.CONTAINER_STOPPED
        assert (await runtime.container_status(container_id)).exit_code == 6


@virtual_time
async def test_one_that_always_says_something_changed_stops_nobody(tmp_path: Path) -> None:
    class Restless(Fake):
        async def changed(self) -> None:
            self.calls.append("changed")

    compute = Restless(tmp_path / "state")
    async with one_running(compute) as (runtime, container_id):
        await asyncio.sleep(1)
        assert compute.calls.count("changed") <= 101
        await runtime.stop_container(container_id, grace_seconds=5)
        assert (await runtime.container_status(container_id)).exit_code == 143


@virtual_time
async def test_a_command_that_fails_or_takes_too_long_is_told_and_ended(compute: Fake) -> None:
    async with one_running(compute) as (runtime, container_id):
        compute.on["exec"] = failing
        with pytest.raises(ExecError, match="could not be run: not today"):
            await runtime.exec_sync(container_id, ["x"])
        compute.on["exec"] = for_ever
        with pytest.raises(ExecTimeoutError):
            await runtime.exec_sync(container_id, ["x"], timeout_seconds=2)
        assert compute.under_way == 0
        async with runtime.exec(container_id, ["x"]):
            pass
        assert compute.under_way == 0


@virtual_time
async def test_a_folder_belongs_to_one_agent_and_its_files_to_nobody_else(compute: Fake) -> None:
    async with one_running(compute):
        with pytest.raises(ConfigError, match="another agent uses"):
            await opened(compute).__aenter__()
        for path in compute.folder.rglob("*"):
            assert path.stat().st_mode & 0o077 == 0, path


@virtual_time
async def test_a_record_that_cannot_be_read_is_forgotten_and_the_others_stay(compute: Fake) -> None:
    async with one_running(compute) as (_, kept):
        pass
    (compute.folder / "containers" / "half.json").write_text('{"id": ')
    (compute.folder / "sandboxes" / "empty.json").write_text("")
    (compute.folder / "sandboxes" / "flipped.json").write_bytes(b'{"id": "\xff"}')
    async with opened(compute) as runtime:
        assert [status.id for status in await runtime.list_containers()] == [kept]
    assert not (compute.folder / "containers" / "half.json").exists()


def test_the_page_is_as_long_as_it_says() -> None:
    lines = [line for line in blocks()[0].splitlines() if line.strip()]
    assert f"in {len(lines)} lines of Python" in re.sub(r"\s+", " ", PAGE)


@virtual_time
async def test_what_the_page_shows_runs(tmp_path: Path) -> None:
    module = own_compute()
    async with CustomRuntime(
        module.Coroutines({"greet": module.greet}), tmp_path / "state", LoopClock()
    ) as runtime:
        pod = SandboxConfig("uid", "default", "web", log_directory=str(tmp_path / "logs"))
        config = ContainerConfig("c", command=("greet",), args=("node",), log_path="c/0.log")
        container_id = await runtime.create_container(await runtime.run_sandbox(pod), config)
        await runtime.start_container(container_id)
        await asyncio.sleep(2.5)
        await runtime.stop_container(container_id, grace_seconds=30)
        status = await runtime.container_status(container_id)
    assert (status.state, status.exit_code) == (ContainerState.EXITED, 143)
    lines = (tmp_path / "logs" / "c" / "0.log").read_text().splitlines()
    assert [line.partition(" ")[2] for line in lines] == ["stdout F hello node"] * 3
