from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from podlife.pki import write_private


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_private_file_replaces_what_was_there_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_bytes(b"old")
    path.chmod(0o644)
    write_private(path, b"new")
    assert (path.read_bytes(), mode(path)) == (b"new", 0o600)
    assert [entry.name for entry in tmp_path.iterdir()] == ["secret"]


def test_a_private_file_that_cannot_be_finished_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "secret"
    path.write_bytes(b"old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_private(path, b"new")
    assert [entry.read_bytes() for entry in tmp_path.iterdir()] == [b"old"]
