from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from podlife.kubelet.volumemanager import mount as kernel


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Mounts that a test leaves there do not outlive it."""
    made = tmp_path / "folder"
    made.mkdir()
    yield made
    for point in kernel.mount_points(tmp_path):
        kernel.unmount(point)
