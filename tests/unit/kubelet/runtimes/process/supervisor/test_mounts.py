"""What a process container sees of volumes, and where its termination message is read from."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

import pytest

from podlife.kubelet.runtime import (
    Mount,
    StartContainerError,
    User,
)
from podlife.kubelet.runtimes.process import ProcessRuntime
from podlife.kubelet.runtimes.process.launch import can_mount
from tests.unit.kubelet.runtimes.process.process_kit import (
    ended,
    logged,
    said,
    started,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the process runtime needs Linux")
with_mounts = pytest.mark.skipif(
    not can_mount() or "overlay" not in Path("/proc/filesystems").read_text(),
    reason="mounts cannot be made here",
)


async def test_a_termination_message_is_cut_to_its_last_4096_bytes(
    runtime: ProcessRuntime, tmp_path: Path
) -> None:
    script = (
        "head -c 5000 /dev/zero | tr '\\0' a > $PODLIFE_TERMINATION_LOG; echo end >> $PODLIFE_TERMINATION_LOG"
    )
    status = await ended(runtime, await started(runtime, tmp_path, script))
    assert len(status.termination_message) == 4096
    assert status.termination_message.endswith("aend\n")


@with_mounts
async def test_volumes_are_seen_at_their_paths_by_the_container_and_its_commands_alone(
    runtime: ProcessRuntime, tmp_path: Path
) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "key").write_text("value\n")
    (tmp_path / "there").mkdir()
    (tmp_path / "token").write_text("secret\n")
    mounts = (
        Mount("/no-such-folder-here/config", str(tmp_path / "config"), readonly=True),
        Mount("/var/run/secrets/podlife.test/token", str(tmp_path / "token")),
        Mount(str(tmp_path / "there"), str(tmp_path / "config")),
    )
    script = (
        "cat /no-such-folder-here/config/key /var/run/secrets/podlife.test/token; "
        "echo no > /no-such-folder-here/config/no || echo read-only; "
        f"echo new > {tmp_path}/there/new; exec sleep 1000"
    )
    container_id = await started(runtime, tmp_path, script, mounts=mounts)
    assert await said(tmp_path / "config" / "new") == "new"
    command = ["cat", "/no-such-folder-here/config/key"]
    result = await runtime.exec_sync(container_id, command, timeout_seconds=60)
    assert (result.exit_code, result.stdout) == (0, b"value\n")
    await runtime.stop_container(container_id, grace_seconds=5)
    status = await runtime.container_status(container_id)
    assert logged(status)[:2] == ["value", "secret"]
    assert "read-only" in logged(status)
    assert not Path("/no-such-folder-here").exists()
    assert not Path("/var/run/secrets/podlife.test").exists()
    assert list((tmp_path / "there").iterdir()) == []


@with_mounts
async def test_what_a_container_with_a_layered_root_writes_outside_of_its_volumes_ends_with_it(
    runtime: ProcessRuntime, tmp_path: Path
) -> None:
    (tmp_path / "data").mkdir()
    mounts = (Mount("/no-such-folder-here", str(tmp_path / "data")),)
    script = "echo x > /podlife-wrote-this && cp /podlife-wrote-this /no-such-folder-here/kept; ls /proc/self/fd; tty"
    status = await ended(runtime, await started(runtime, tmp_path, script, mounts=mounts, tty=True))
    assert status.exit_code == 0, logged(status)
    assert (tmp_path / "data" / "kept").read_text() == "x\n"
    assert not Path("/podlife-wrote-this").exists()


@with_mounts
@pytest.mark.parametrize("path", ["/dev/termination-log", "/no-such-folder-here/message"])
async def test_a_termination_message_is_read_from_the_path_that_was_asked_for(
    runtime: ProcessRuntime, tmp_path: Path, path: str
) -> None:
    script = f"echo why > {path}; exit 1"
    status = await ended(runtime, await started(runtime, tmp_path, script, termination_message_path=path))
    assert (status.exit_code, status.termination_message) == (1, "why\n")


@with_mounts
async def test_a_volume_that_is_not_there_is_said(runtime: ProcessRuntime, tmp_path: Path) -> None:
    with pytest.raises(StartContainerError, match="/there/is/none: No such file or directory"):
        await started(runtime, tmp_path, "true", mounts=(Mount("/data", "/there/is/none"),))


@with_mounts
async def test_another_user_sees_its_volumes_where_the_node_has_no_such_path(
    runtime: ProcessRuntime, tmp_path: Path
) -> None:
    """Both in a layer over the root and in one over another mount, which look as what they cover."""
    (tmp_path / "config").mkdir(mode=0o755)
    (tmp_path / "config" / "key").write_text("value\n")
    paths = ("/no-such-folder-here/below/config", "/dev/shm/no-such-folder-here/config")
    mounts = tuple(Mount(path, str(tmp_path / "config")) for path in paths)
    script = (
        f"cat {' '.join(f'{path}/key' for path in paths)}; stat -c '%a %u' / /dev/shm; cd / && ls > /dev/null"
    )
    container_id = await started(runtime, tmp_path, script, mounts=mounts, user=User(12345, 12345))
    status = await ended(runtime, container_id)
    assert status.exit_code == 0, logged(status)
    modes = [
        f"{stat.S_IMODE(Path(path).stat().st_mode):o} {Path(path).stat().st_uid}"
        for path in ("/", "/dev/shm")
    ]
    assert logged(status) == ["value", "value", *modes]
