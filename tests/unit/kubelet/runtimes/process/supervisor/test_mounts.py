"""What a process container sees of volumes, and where its termination message is read from."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

import pytest

from podlife.kubelet.runtime import Mount, StartContainerError, User
from podlife.kubelet.runtimes.process.launch import can_mount
from tests.conformance.runtime.machines import logged
from tests.unit.kubelet.runtimes.process.process_kit import ProcessWorld, said

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the process runtime needs Linux")
with_mounts = pytest.mark.skipif(
    not can_mount() or "overlay" not in Path("/proc/filesystems").read_text(),
    reason="mounts cannot be made here",
)


async def test_a_termination_message_is_cut_to_its_last_4096_bytes(world: ProcessWorld) -> None:
    script = (
        "head -c 5000 /dev/zero | tr '\\0' a > $PODLIFE_TERMINATION_LOG; echo end >> $PODLIFE_TERMINATION_LOG"
    )
    status = await world.run(script)
    assert len(status.termination_message) == 4096
    assert status.termination_message.endswith("aend\n")


@with_mounts
async def test_volumes_are_seen_at_their_paths_by_the_container_and_its_commands_alone(
    world: ProcessWorld,
) -> None:
    (world.folder / "config").mkdir()
    (world.folder / "config" / "key").write_text("value\n")
    (world.folder / "there").mkdir()
    (world.folder / "token").write_text("secret\n")
    mounts = (
        Mount("/no-such-folder-here/config", str(world.folder / "config"), readonly=True),
        Mount("/var/run/secrets/podlife.test/token", str(world.folder / "token")),
        Mount(str(world.folder / "there"), str(world.folder / "config")),
    )
    script = (
        "cat /no-such-folder-here/config/key /var/run/secrets/podlife.test/token; "
        "echo no > /no-such-folder-here/config/no || echo read-only; "
        f"echo new > {world.folder}/there/new; exec sleep 1000"
    )
    container_id = await world.start(script, mounts=mounts)
    assert await said(world.folder / "config" / "new") == "new"
    command = ["cat", "/no-such-folder-here/config/key"]
    result = await world.runtime.exec_sync(container_id, command, timeout_seconds=60)
    assert (result.exit_code, result.stdout) == (0, b"value\n")
    await world.runtime.stop_container(container_id, grace_seconds=5)
    status = await world.status(container_id)
    assert logged(status)[:2] == ["value", "secret"]
    assert "read-only" in logged(status)
    assert not Path("/no-such-folder-here").exists()
    assert not Path("/var/run/secrets/podlife.test").exists()
    assert list((world.folder / "there").iterdir()) == []


@with_mounts
async def test_what_a_container_with_a_layered_root_writes_outside_of_its_volumes_ends_with_it(
    world: ProcessWorld,
) -> None:
    (world.folder / "data").mkdir()
    mounts = (Mount("/no-such-folder-here", str(world.folder / "data")),)
    script = "echo x > /podlife-wrote-this && cp /podlife-wrote-this /no-such-folder-here/kept; ls /proc/self/fd; tty"
    status = await world.run(script, mounts=mounts, tty=True)
    assert status.exit_code == 0, logged(status)
    assert (world.folder / "data" / "kept").read_text() == "x\n"
    assert not Path("/podlife-wrote-this").exists()


@with_mounts
@pytest.mark.parametrize("path", ["/dev/termination-log", "/no-such-folder-here/message"])
async def test_a_termination_message_is_read_from_the_path_that_was_asked_for(
    world: ProcessWorld, path: str
) -> None:
    script = f"echo why > {path}; exit 1"
    status = await world.run(script, termination_message_path=path)
    assert (status.exit_code, status.termination_message) == (1, "why\n")


@with_mounts
async def test_a_volume_that_is_not_there_is_said(world: ProcessWorld) -> None:
    with pytest.raises(StartContainerError, match="/there/is/none: No such file or directory"):
        await world.start("true", mounts=(Mount("/data", "/there/is/none"),))


@with_mounts
async def test_another_user_sees_its_volumes_where_the_node_has_no_such_path(world: ProcessWorld) -> None:
    """Both in a layer over the root and in one over another mount, which look as what they cover."""
    (world.folder / "config").mkdir(mode=0o755)
    (world.folder / "config" / "key").write_text("value\n")
    paths = ("/no-such-folder-here/below/config", "/dev/shm/no-such-folder-here/config")
    mounts = tuple(Mount(path, str(world.folder / "config")) for path in paths)
    script = (
        f"cat {' '.join(f'{path}/key' for path in paths)}; stat -c '%a %u' / /dev/shm; cd / && ls > /dev/null"
    )
    status = await world.run(script, mounts=mounts, user=User(12345, 12345))
    assert status.exit_code == 0, logged(status)
    modes = [
        f"{stat.S_IMODE(Path(path).stat().st_mode):o} {Path(path).stat().st_uid}"
        for path in ("/", "/dev/shm")
    ]
    assert logged(status) == ["value", "value", *modes]
