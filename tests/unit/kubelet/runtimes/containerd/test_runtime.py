"""The runtime without a daemon, and its small parts."""

from __future__ import annotations

import asyncio
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from podlife.errors import ConfigError
from podlife.kubelet.runtime import RuntimeUnavailableError
from podlife.kubelet.runtimes.containerd import ContainerdRuntime, ContainerdSettings
from podlife.kubelet.runtimes.containerd.client import CriClient
from podlife.kubelet.runtimes.containerd.runtime import PendingCalls
from podlife.kubelet.runtimes.containerd.statuses import make_file, read_message, remove_others


@pytest.mark.parametrize(("missing", "package"), [("grpc", "grpcio"), ("google.protobuf", "protobuf")])
async def test_a_missing_library_is_told_in_one_line_with_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str, package: str
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    said = rf"needs .*{package}.*, not installed here: install podlife\[containerd\]$"
    with pytest.raises(ConfigError, match=said):
        async with ContainerdRuntime(ContainerdSettings(tmp_path)):
            pass


def test_the_runtime_can_be_imported_without_its_libraries() -> None:
    code = (
        "import sys; sys.modules['grpc'] = sys.modules['google.protobuf'] = None\n"
        "import podlife.kubelet.runtimes.containerd"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


async def test_a_socket_that_is_not_there_is_said_with_what_to_do(tmp_path: Path) -> None:
    pytest.importorskip("grpc", reason="grpc, which the runtime containerd needs, is not installed")
    client = CriClient(tmp_path / "containerd.sock")
    client.open()
    try:
        with pytest.raises(RuntimeUnavailableError) as refused:
            await client.call("Version", seconds=20)
    finally:
        await client.close()
    assert str(refused.value) == (
        f"containerd does not answer at {tmp_path}/containerd.sock: socket does not exist; start containerd, "
        "or set --containerd-socket"
    )


async def test_a_call_continues_when_its_caller_is_cancelled() -> None:
    calls, done, go = PendingCalls(), [], asyncio.Event()

    async def call() -> None:
        await go.wait()
        done.append("done")

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await calls.run(call(), "call", within="s")
    go.set()
    await calls.wait_for("s")
    assert done == ["done"]


async def test_calls_of_other_sandboxes_do_not_delay_a_wait() -> None:
    calls, go = PendingCalls(), asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(calls.run(go.wait(), "call", within="a"))
        await asyncio.sleep(0)
        async with asyncio.timeout(60):
            await calls.wait_for("b")
        go.set()


def test_a_termination_message_is_for_any_user_of_the_container_and_nobody_else_of_the_node(
    tmp_path: Path,
) -> None:
    path = make_file(tmp_path / "messages")
    assert stat.S_IMODE(path.stat().st_mode) == 0o666
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert read_message(str(path)) == ""


def test_of_a_long_termination_message_the_end_is_kept(tmp_path: Path) -> None:
    path = make_file(tmp_path)
    path.write_bytes(b"a" * 10_000 + b"\xff the end")
    message = read_message(str(path))
    assert message.endswith("� the end")
    assert len(message) == 4096
    assert read_message(str(tmp_path / "gone")) == read_message("") == ""


def test_files_of_containers_that_are_gone_are_removed(tmp_path: Path) -> None:
    kept, gone = make_file(tmp_path), make_file(tmp_path)
    remove_others(tmp_path, [str(kept)])
    assert list(tmp_path.iterdir()) == [kept]
    assert not gone.exists()
