"""What a pod asks for is what its containers get from containerd."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Any

import pytest

from podlife.kubelet.runtime import (
    ContainerRuntimeError,
    ContainerStatus,
    ImagePullError,
    InvalidContainerError,
    Resources,
    SandboxConfig,
    User,
)
from podlife.kubelet.runtimes.containerd import ContainerdRuntime, ContainerdSettings
from tests.conformance.runtime.machines import ended, pod, running

from .daemon import IMAGE, Daemon
from .machine import ContainerdMachine


async def run(
    runtime: ContainerdRuntime, machine: ContainerdMachine, folder: Path, script: str, **fields: Any
) -> tuple[ContainerStatus, list[str]]:
    """The end of a script and the lines that it wrote."""
    async with running(runtime, folder, machine.runs(script, **fields)) as container_id:
        status = await ended(runtime, container_id)
    assert status.log_path is not None
    return status, [line.split(" ", 3)[3] for line in status.log_path.read_text().splitlines()]


async def test_environment_folder_and_user_are_as_asked(
    runtime: ContainerdRuntime, machine: ContainerdMachine, tmp_path: Path
) -> None:
    status, lines = await run(
        runtime,
        machine,
        tmp_path,
        "echo $GREETING; pwd; id -u; id -g; id -G; grep NoNewPrivs /proc/self/status; echo x > /dev/termination-log",
        env=(("GREETING", "good  day"),),
        working_dir="/tmp",
        user=User(1234, 2345, (3456,)),
        allow_privilege_escalation=False,
    )
    assert lines == ["good day", "/tmp", "1234", "2345", "2345 3456", "NoNewPrivs:\t1"]
    assert status.termination_message == "x\n"
    assert status.image_ref


async def test_mounts_are_shown_and_one_that_is_only_read_is_not_written(
    runtime: ContainerdRuntime, machine: ContainerdMachine, tmp_path: Path
) -> None:
    data, fixed = tmp_path / "data", tmp_path / "fixed"
    for folder in (data, fixed):
        folder.mkdir()
    (fixed / "given").write_text("given")
    mounts = (machine.mount(data, "/data"), machine.mount(fixed, "/fixed", readonly=True))
    status, lines = await run(
        runtime,
        machine,
        tmp_path,
        "cat /fixed/given; echo; echo new > /data/new; echo x > /fixed/new",
        mounts=mounts,
    )
    assert "given" in lines
    assert status.exit_code == 1
    assert (data / "new").read_text() == "new\n"
    assert [path.name for path in fixed.iterdir()] == ["given"]


async def test_a_pod_has_an_address_and_a_name_of_its_own(
    runtime: ContainerdRuntime, machine: ContainerdMachine, tmp_path: Path
) -> None:
    config = SandboxConfig("u", "default", "web", hostname="web-0", log_directory=str(tmp_path / "logs"))
    sandbox_id = await runtime.run_sandbox(config)
    container_id = await runtime.create_container(sandbox_id, machine.runs("hostname; ip -4 addr show eth0"))
    await runtime.start_container(container_id)
    log_path = (await ended(runtime, container_id)).log_path
    assert log_path is not None
    shown = log_path.read_text()
    [ip] = (await runtime.sandbox_status(sandbox_id)).ips
    assert ip.startswith("10.86.")
    assert f"inet {ip}/16" in shown
    assert " web-0\n" in shown
    assert [status.ips for status in await runtime.list_sandboxes()] == [(ip,)]


async def test_a_pod_in_the_nodes_network_has_its_name_and_sees_its_ports(
    runtime: ContainerdRuntime, machine: ContainerdMachine, tmp_path: Path
) -> None:
    config = SandboxConfig("u", "default", "web", log_directory=str(tmp_path / "logs"), host_network=True)
    sandbox_id = await runtime.run_sandbox(config)
    container_id = await runtime.create_container(
        sandbox_id, machine.runs("hostname; ls -l /proc/self/ns/net")
    )
    await runtime.start_container(container_id)
    log_path = (await ended(runtime, container_id)).log_path
    assert log_path is not None
    shown = log_path.read_text()
    assert socket.gethostname() in shown
    assert str(Path("/proc/self/ns/net").readlink()) in shown


async def test_a_container_that_takes_more_memory_than_it_may_is_killed_for_it(
    runtime: ContainerdRuntime, machine: ContainerdMachine, tmp_path: Path
) -> None:
    bounds = Resources(memory_limit_bytes=16 * 1024 * 1024, cpu_limit_millis=500, cpu_request_millis=100)
    config = machine.runs("exec tail /dev/zero", resources=bounds)
    async with running(runtime, tmp_path, config) as container_id:
        assert (await ended(runtime, container_id)).exit_code == 137
        # The daemon hears of the end and of its reason in two ways, and of either first.
        async with asyncio.timeout(120):
            while (status := await runtime.container_status(container_id)).reason != "OOMKilled":
                assert status.reason == "Error"
                await asyncio.sleep(0.05)


async def test_a_terminal_is_given_and_its_output_logged(
    runtime: ContainerdRuntime, machine: ContainerdMachine, tmp_path: Path
) -> None:
    _, lines = await run(runtime, machine, tmp_path, "test -t 1 && echo terminal", tty=True)
    assert [line.strip() for line in lines] == ["terminal"]


async def test_an_unknown_stop_signal_and_an_image_that_is_not_here_are_told(
    runtime: ContainerdRuntime, machine: ContainerdMachine, tmp_path: Path
) -> None:
    sandbox_id = await runtime.run_sandbox(pod(tmp_path))
    with pytest.raises(InvalidContainerError, match="unknown stop signal 'SIGNONE'"):
        await runtime.create_container(sandbox_id, machine.runs("true", stop_signal="SIGNONE"))
    with pytest.raises(ContainerRuntimeError, match=r"example\.com/other:1"):
        await runtime.create_container(sandbox_id, machine.runs("true", image="example.com/other:1"))
    assert await runtime.list_containers() == []
    assert not list((machine.settings.root / "termination").glob("*"))


async def test_what_another_agent_runs_with_the_same_daemon_is_neither_seen_nor_touched(
    runtime: ContainerdRuntime, machine: ContainerdMachine, daemon: Daemon, tmp_path: Path
) -> None:
    async with (
        running(runtime, tmp_path, machine.runs_for_ever()) as container_id,
        ContainerdRuntime(ContainerdSettings(tmp_path / "other", socket=daemon.socket)) as other,
    ):
        assert await other.list_sandboxes() == []
        assert await other.list_containers() == []
        await other.remove_container(container_id)
        [sandbox] = await runtime.list_sandboxes()
        await other.remove_sandbox(sandbox.id)
        assert (await runtime.container_status(container_id)).is_running


@pytest.mark.parametrize(
    ("image", "reason", "text"),
    [
        ("{registry}/unknown:1", "ErrImagePull", "not found"),
        ("{registry}/denied:1", "ErrImagePull", "403"),
        ("127.0.0.1:1/image:1", "ErrImagePull", "connection refused"),
        ("No/Such:Image:Name", "InvalidImageName", "invalid reference format"),
    ],
)
async def test_an_image_that_cannot_be_had_says_why(
    runtime: ContainerdRuntime, registry_address: str, image: str, reason: str, text: str
) -> None:
    with pytest.raises(ImagePullError, match=text) as refused:
        await runtime.pull_image(image.format(registry=registry_address))
    assert refused.value.reason == reason


async def test_a_container_runs_from_an_image_that_was_pulled(
    runtime: ContainerdRuntime, machine: ContainerdMachine, tmp_path: Path
) -> None:
    reference = await runtime.pull_image(machine.image_to_pull)
    assert "@sha256:" in reference
    _, lines = await run(runtime, machine, tmp_path, "echo pulled", image=machine.image_to_pull)
    assert lines == ["pulled"]
    assert await runtime.find_image(IMAGE) is not None
    assert await runtime.find_image("podlife.test/unknown:1") is None
