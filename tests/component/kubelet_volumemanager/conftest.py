from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from podlife.kubelet.volumemanager import mount as kernel
from tests.component.kubelet_volumemanager.node import Node

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount and give files away")


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    """An agent's folder; mounts that a test leaves there do not outlive it."""
    yield tmp_path / "agent"
    for point in kernel.mount_points(tmp_path):
        kernel.unmount(point)


@pytest.fixture
def node(root: Path) -> Node:
    return Node(root)
