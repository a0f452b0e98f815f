"""Parts of volumes: whatever a container does with links, nothing but its own volume is ever mounted."""

from __future__ import annotations

import ctypes
import itertools
import os
import stat
import threading
from pathlib import Path

import pytest

from podlife.kubelet.volumemanager import mount as kernel
from podlife.kubelet.volumemanager.container_mounts import mounted_inside
from podlife.kubelet.volumemanager.subpath import mount_sub_path, opened_beneath

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")

_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    made = tmp_path / "outside"
    made.mkdir()
    (made / "secret").write_text("the node's own")
    return made


def found(base: Path, path: str) -> str:
    with opened_beneath(base, path) as descriptor:
        return str(Path(f"/proc/self/fd/{descriptor}").readlink())


def test_a_path_that_is_there_is_found(folder: Path) -> None:
    (folder / "a/b").mkdir(parents=True)
    (folder / "a/file").write_text("")
    assert found(folder, "a/b") == str(folder / "a/b")
    assert found(folder, "a//./file") == str(folder / "a/file")


def test_what_is_missing_is_made_with_the_permissions_of_the_volume(folder: Path) -> None:
    folder.chmod(0o2775)
    before = os.umask(0o077)
    try:
        assert found(folder, "x/y") == str(folder / "x/y")
    finally:
        os.umask(before)
    assert stat.S_IMODE((folder / "x").stat().st_mode) == 0o2775
    assert stat.S_IMODE((folder / "x/y").stat().st_mode) == 0o2775


def test_links_inside_of_the_volume_are_followed(folder: Path) -> None:
    (folder / "v1/deep").mkdir(parents=True)
    (folder / "relative").symlink_to("v1/deep")
    (folder / "v1/up").symlink_to("../v1/./deep")
    (folder / "absolute").symlink_to(folder / "v1")
    (folder / "top").symlink_to(folder)
    for path in ("relative", "v1/up", "absolute/deep", "top/v1/deep", "v1/deep/../deep"):
        assert found(folder, path) == str(folder / "v1/deep")


@pytest.mark.parametrize(
    "target", ["outside", "../outside", "../../../../../../etc", "/etc", "/", "..", "a/../../outside"]
)
def test_a_link_out_of_the_volume_is_refused(folder: Path, outside: Path, target: str) -> None:
    (folder / "a").mkdir()
    (folder / "link").symlink_to(outside if target == "outside" else target)
    with pytest.raises(OSError):
        found(folder, "link")
    with pytest.raises(OSError):
        found(folder, "link/new")
    assert sorted(each.name for each in outside.iterdir()) == ["secret"]


def test_a_folder_whose_name_begins_like_the_volume_is_outside(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "folder-2").mkdir()
    (folder / "link").symlink_to(tmp_path / "folder-2")
    with pytest.raises(OSError):
        found(folder, "link")


def test_links_in_a_circle_and_files_in_the_way_end(folder: Path) -> None:
    (folder / "one").symlink_to("two")
    (folder / "two").symlink_to("one")
    (folder / "file").write_text("")
    for path in ("one", "file/below", "/".join("d" * 400)):
        with pytest.raises(OSError):
            found(folder, path)


def test_no_descriptor_is_left_open(folder: Path) -> None:
    (folder / "loop").symlink_to("loop")
    before = len(list(Path("/proc/self/fd").iterdir()))
    found(folder, "a/b/c")
    with pytest.raises(OSError):
        found(folder, "a/b/../../loop")
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_container_that_swaps_a_folder_for_a_link_never_gets_out(folder: Path, outside: Path) -> None:
    """The race of which kubelets were once the victims: look at a folder, mount a link."""
    (folder / "victim").mkdir()
    (folder / "victim/secret").write_text("the container's own")
    (folder / "link").symlink_to(outside)
    is_over = threading.Event()
    libc = ctypes.CDLL(None)
    names = [os.fsencode(folder / each) for each in ("victim", "link")]

    def swap() -> None:
        while not is_over.is_set():
            libc.renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE)

    swapping = threading.Thread(target=swap)
    swapping.start()
    outcomes = {"inside": 0, "refused": 0}
    try:
        for _ in range(100_000):
            if min(outcomes.values()) >= 300:
                break
            try:
                with opened_beneath(folder, "victim/secret") as descriptor:
                    path = str(Path(f"/proc/self/fd/{descriptor}").readlink())
                    assert path.startswith(f"{folder}/")
                    outcomes["inside"] += 1
            except OSError:
                outcomes["refused"] += 1
    finally:
        is_over.set()
        swapping.join(10)
    assert sorted(each.name for each in outside.iterdir()) == ["secret"]
    # Both happened: there was a race.
    assert all(outcomes.values())


@needs_root
def test_a_part_is_mounted_once_and_again_when_another_took_its_place(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    (folder / "a").write_text("old")
    for _ in range(2):
        with opened_beneath(folder, "a") as descriptor:
            assert mount_sub_path(descriptor, target) == target
    assert len(kernel.mount_points(target)) == 1
    (folder / "b").write_text("new")
    (folder / "b").rename(folder / "a")
    with opened_beneath(folder, "a") as descriptor:
        mount_sub_path(descriptor, target)
    assert target.read_text() == "new"
    assert len(kernel.mount_points(target)) == 1


@needs_root
def test_a_folder_is_mounted_as_a_folder_also_over_a_file(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    (folder / "file").write_text("")
    (folder / "dir").mkdir()
    for name, again in itertools.product(("file", "dir"), range(2)):
        with opened_beneath(folder, name) as descriptor:
            mount_sub_path(descriptor, target)
        assert target.is_dir() == (name == "dir"), again


def test_who_may_not_mount_gets_the_path_itself(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(source: int, target: Path) -> None:
        raise PermissionError(1, "not root")

    monkeypatch.setattr(kernel, "bind", refuse)
    with opened_beneath(folder, "a") as descriptor:
        assert mount_sub_path(descriptor, tmp_path / "target") == folder / "a"
    assert not (tmp_path / "target").exists()


def test_only_the_outermost_of_what_is_mounted_inside_is_named() -> None:
    mounts = {
        "/dir": "outer",
        "/dir/nested": "a",
        "/dir/nested-vol": "b",
        "/dir/nested/double": "c",
        "/dir/x/../y/": "d",
        "/directory": "e",
        "/elsewhere": "outer",
        "/elsewhere/z": "f",
    }
    container = {"volumeMounts": [{"name": name, "mountPath": path} for path, name in mounts.items()]}
    pod = {"spec": {"containers": [container]}}
    assert mounted_inside(pod, "outer") == ["nested", "nested-vol", "y", "z"]
    assert mounted_inside(pod, "a") == ["double"]
    assert mounted_inside(pod, "e") == []
