"""The connection to a containerd that is not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from podlife.kubelet.runtime import RuntimeUnavailableError
from podlife.kubelet.runtimes.containerd.client import CriClient

pytest.importorskip("grpc", reason="grpc, which the runtime containerd needs, is not installed")


async def test_a_socket_that_is_not_there_is_said_with_what_to_do(tmp_path: Path) -> None:
    client = CriClient(tmp_path / "containerd.sock")
    client.open()
    try:
        with pytest.raises(RuntimeUnavailableError) as refused:
            await client.call("Version", seconds=20)
    finally:
        await client.close()
    assert str(refused.value) == (
        f"containerd does not answer at {tmp_path}/containerd.sock: there is no such socket; start it, or say where "
        "it listens with --containerd-socket"
    )
