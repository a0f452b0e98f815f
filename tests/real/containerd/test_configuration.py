"""What a pod asks for is what its containers get from containerd."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from podlife.kubelet.runtime import (
    ContainerRuntimeError,
    ContainerStatus,
    ImagePullError,
    InvalidContainerError,
    Mount,
    Resources,
    User,
)
from podlife.kubelet.runtimes.containerd import ContainerdRuntime, ContainerdSettings
from tests.conformance.runtime.machines import logged
from tests.kit.wait import until

from .conftest import ContainerdWorld
from .daemon import IMAGE, Daemon


async def run(world: ContainerdWorld, script: str, **fields: Any) -> tuple[ContainerStatus, list[str]]:
    """The end of a script and the lines that it wrote."""
    status = await world.ended(await world.started(world.machine.runs(script, **fields)))
    return status, logged(status)


async def test_environment_folder_and_user_are_as_asked(world: ContainerdWorld) -> None:
    status, lines = await run(
        world,
        "echo $GREETING; pwd; id -u; id -g; id -G; grep NoNewPrivs /proc/self/status; echo x > /dev/termination-log",
        env=(("GREETING", "good  day"),),
        working_dir="/tmp",
        user=User(1234, 2345, (3456,)),
        allow_privilege_escalation=False,
    )
    assert lines == ["good day", "/tmp", "1234", "2345", "2345 3456", "NoNewPrivs:\t1"]
    assert status.termination_message == "x\n"
    assert status.image_ref


async def test_mounts_are_shown_and_one_that_is_only_read_is_not_written(world: ContainerdWorld) -> None:
    data, fixed = world.folder / "data", world.folder / "fixed"
    for folder in (data, fixed):
        folder.mkdir()
    (fixed / "given").write_text("given")
    mounts = (Mount("/data", str(data)), Mount("/fixed", str(fixed), readonly=True))
    script = "cat /fixed/given; echo; echo new > /data/new; echo x > /fixed/new"
    status, lines = await run(world, script, mounts=mounts)
    assert "given" in lines
    assert status.exit_code == 1
    assert (data / "new").read_text() == "new\n"
    assert [path.name for path in fixed.iterdir()] == ["given"]


async def test_a_pod_has_an_address_and_a_name_of_its_own(world: ContainerdWorld) -> None:
    sandbox_id = await world.sandbox(hostname="web-0")
    _, lines = await run(world, "hostname; ip -4 addr show eth0")
    [ip] = (await world.runtime.sandbox_status(sandbox_id)).ips
    assert ip.startswith("10.86.")
    assert f"inet {ip}/16" in "\n".join(lines)
    assert "web-0" in lines
    assert [status.ips for status in await world.runtime.list_sandboxes()] == [(ip,)]


async def test_a_pod_in_the_nodes_network_has_its_name_and_sees_its_ports(world: ContainerdWorld) -> None:
    await world.sandbox(host_network=True)
    _, lines = await run(world, "hostname; ls -l /proc/self/ns/net")
    assert socket.gethostname() in "\n".join(lines)
    assert str(Path("/proc/self/ns/net").readlink()) in "\n".join(lines)


async def test_a_container_that_takes_more_memory_than_it_may_is_killed_for_it(
    world: ContainerdWorld,
) -> None:
    bounds = Resources(memory_limit_bytes=16 * 1024 * 1024, cpu_limit_millis=500, cpu_request_millis=100)
    container_id = await world.started(world.machine.runs("exec tail /dev/zero", resources=bounds))
    assert (await world.ended(container_id)).exit_code == 137

    async def is_told() -> bool:
        status = await world.status(container_id)
        assert status.reason in ("OOMKilled", "Error")
        return status.reason == "OOMKilled"

    # The daemon hears of the end and of its reason in two ways, and of either first.
    await until(is_told)


async def test_a_terminal_is_given_and_its_output_logged(world: ContainerdWorld) -> None:
    _, lines = await run(world, "test -t 1 && echo terminal", tty=True)
    assert [line.strip() for line in lines] == ["terminal"]


async def test_an_unknown_stop_signal_and_an_image_that_is_not_here_are_told(world: ContainerdWorld) -> None:
    with pytest.raises(InvalidContainerError, match="unknown stop signal 'SIGNONE'"):
        await world.created(world.machine.runs("true", stop_signal="SIGNONE"))
    with pytest.raises(ContainerRuntimeError, match=r"example\.com/other:1"):
        await world.created(world.machine.runs("true", image="example.com/other:1"))
    assert await world.runtime.list_containers() == []
    assert not list((world.machine.settings.root / "termination").glob("*"))


async def test_what_another_agent_runs_with_the_same_daemon_is_neither_seen_nor_touched(
    world: ContainerdWorld, daemon: Daemon, tmp_path: Path
) -> None:
    container_id = await world.started(world.machine.runs_for_ever())
    async with ContainerdRuntime(ContainerdSettings(tmp_path / "other", socket=daemon.socket)) as other:
        assert await other.list_sandboxes() == []
        assert await other.list_containers() == []
        await other.remove_container(container_id)
        [sandbox] = await world.runtime.list_sandboxes()
        await other.remove_sandbox(sandbox.id)
        assert (await world.status(container_id)).is_running


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
    world: ContainerdWorld, registry_address: str, image: str, reason: str, text: str
) -> None:
    with pytest.raises(ImagePullError, match=text) as refused:
        await world.runtime.pull_image(image.format(registry=registry_address))
    assert refused.value.reason == reason


async def test_a_container_runs_from_an_image_that_was_pulled(world: ContainerdWorld) -> None:
    reference = await world.runtime.pull_image(world.machine.image_to_pull)
    assert "@sha256:" in reference
    _, lines = await run(world, "echo pulled", image=world.machine.image_to_pull)
    assert lines == ["pulled"]
    assert await world.runtime.find_image(IMAGE) is not None
    assert await world.runtime.find_image("podlife.test/unknown:1") is None
