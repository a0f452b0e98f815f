from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import pytest

from podlife.kubelet.volumemanager.host_path import check_host_path
from podlife.kubelet.volumemanager.layout import SetUpError


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "dir").mkdir()
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to("dir")
    # Short, as addresses of sockets must be.
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind("socket")
    return tmp_path


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("", "none"),
        ("", "file"),
        ("Directory", "dir"),
        ("Directory", "link"),
        ("DirectoryOrCreate", "dir"),
        ("File", "file"),
        ("FileOrCreate", "file"),
        ("Socket", "socket"),
    ],
)
def test_a_path_that_is_what_the_pod_says_is_right(node: Path, kind: str, path: str) -> None:
    check_host_path({"path": str(node / path), "type": kind})
    check_host_path({"path": "/dev/null", "type": "CharDevice"})


@pytest.mark.parametrize(
    ("kind", "path", "what"),
    [
        ("Directory", "file", "a directory"),
        ("Directory", "none", "a directory"),
        ("DirectoryOrCreate", "file", "a directory"),
        ("File", "dir", "a file"),
        ("File", "none", "a file"),
        ("FileOrCreate", "dir", "a file"),
        ("Socket", "file", "a socket file"),
        ("CharDevice", "file", "a character device"),
        ("BlockDevice", "file", "a block device"),
    ],
)
def test_a_path_that_is_something_else_is_refused_in_upstreams_words(
    node: Path, kind: str, path: str, what: str
) -> None:
    with pytest.raises(SetUpError) as failure:
        check_host_path({"path": str(node / path), "type": kind})
    assert str(failure.value) == f"hostPath type check failed: {node / path} is not {what}"


def test_what_is_to_be_created_is(node: Path) -> None:
    before = os.umask(0o022)
    try:
        check_host_path({"path": str(node / "new/deep"), "type": "DirectoryOrCreate"})
        check_host_path({"path": str(node / "new/file"), "type": "FileOrCreate"})
    finally:
        os.umask(before)
    assert stat.S_IMODE((node / "new/deep").stat().st_mode) == 0o755
    assert stat.S_IMODE((node / "new/file").stat().st_mode) == 0o644


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"path": "/a/../b"}, "invalid HostPath `/a/../b`: must not contain '..'"),
        ({"path": "relative"}, "invalid HostPath `relative`: must be an absolute path"),
        ({"path": "/tmp", "type": "SocketOrCreate"}, "SocketOrCreate is an invalid volume type"),
        ({"path": "/tmp", "type": "Door"}, "Door is an invalid volume type"),
        ({"path": "/proc/none/file", "type": "FileOrCreate"}, "No such file or directory: /proc/none/file"),
    ],
)
def test_a_mistake_is_said_in_one_line(source: dict[str, str], message: str) -> None:
    with pytest.raises(SetUpError) as failure:
        check_host_path(source)
    assert str(failure.value) == message
