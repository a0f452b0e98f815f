from __future__ import annotations

import os
from pathlib import Path

import pytest

from podlife.kubelet.volumemanager import mount as kernel
from podlife.kubelet.volumemanager.layout import Layout
from podlife.linux import removal
from podlife.linux.removal import remove_tree

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")


def test_links_are_removed_and_what_they_point_to_is_not(folder: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("")
    (folder / "sub").mkdir()
    (folder / "sub/link").symlink_to(outside)
    (folder / "broken").symlink_to("/nowhere")
    remove_tree(folder)
    assert not folder.exists()
    assert (outside / "file").exists()


def test_a_link_in_the_place_of_the_folder_itself_is_removed_alone(folder: Path, tmp_path: Path) -> None:
    (folder / "file").write_text("")
    link = tmp_path / "link"
    link.symlink_to(folder)
    remove_tree(link)
    assert not link.is_symlink()
    assert (folder / "file").exists()


def test_what_is_gone_already_is_removed(tmp_path: Path) -> None:
    remove_tree(tmp_path / "none")
    remove_tree(tmp_path / "no/ne")


def test_a_folder_deeper_than_any_stack_or_path_is_removed(folder: Path) -> None:
    """A container can make one with a loop of mkdir and cd."""
    here = os.open(folder, os.O_RDONLY)
    for _ in range(1100):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    remove_tree(folder)
    assert not folder.exists()


def test_what_somebody_else_removes_meanwhile_keeps_nothing_else(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a/b", "c"):
        (folder / name).mkdir(parents=True)
        (folder / name / "file").write_text("")
    some_names = removal._some_names

    def with_ghosts(of: int) -> list[str]:
        found = some_names(of)
        return ["gone", *found] if found else []

    monkeypatch.setattr(removal, "_some_names", with_ghosts)
    remove_tree(folder)
    assert not folder.exists()


def test_more_than_is_looked_at_in_one_go_is_removed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removal, "_BATCH", 3)
    for one in range(10):
        (folder / f"d{one}").mkdir()
        for two in range(10):
            (folder / f"d{one}/f{two}").write_text("")
            (folder / f"d{one}/s{two}/x").mkdir(parents=True)
    remove_tree(folder)
    assert not folder.exists()


def test_folders_that_forbid_it_are_removed_whatever_is_in_them(folder: Path) -> None:
    (folder / "a/b/c").mkdir(parents=True)
    (folder / "a/b/file").write_text("")
    os.mkfifo(folder / "a/b/fifo")
    (folder / "a" / os.fsdecode(b"not \xff utf-8\n")).write_text("")
    for each in ("a/b/c", "a/b", "a"):
        (folder / each).chmod(0)
    remove_tree(folder)
    assert not folder.exists()


def test_no_descriptor_is_left_open(folder: Path) -> None:
    (folder / "a/b").mkdir(parents=True)
    before = len(list(Path("/proc/self/fd").iterdir()))
    remove_tree(folder)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


@needs_root
@pytest.mark.parametrize("point", ["", "a/point", "/".join("d" * 60)])
def test_a_mount_is_not_gone_into(folder: Path, tmp_path: Path, point: str) -> None:
    """Also one of the same filesystem, which no device number gives away."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("")
    (folder / point).mkdir(parents=True, exist_ok=True)
    source = os.open(outside, os.O_PATH)
    kernel.bind(source, folder / point)
    os.close(source)
    with pytest.raises(OSError):
        remove_tree(folder)
    assert (outside / "file").exists()


@needs_root
def test_a_pod_goes_with_its_mounts_and_what_they_showed_stays(tmp_path: Path, folder: Path) -> None:
    layout = Layout(folder)
    outside = tmp_path / "out side"
    outside.mkdir()
    (outside / "file").write_text("")
    source = os.open(outside, os.O_PATH)
    part = layout.sub_path("uid", "vol", "main", 0)
    in_volume = layout.volume("uid", "kubernetes.io~empty-dir", "with space") / "inside"
    for target in (part, in_volume):
        layout.make_parents(target)
        target.mkdir(parents=True)
        kernel.bind(source, target)
        # One over the other: both must go.
        kernel.bind(source, target)
    os.close(source)
    (folder / "pods/uid/containers").mkdir()
    layout.remove("uid")
    assert (outside / "file").exists()
    assert kernel.mount_points(folder) == []
    assert [each.name for each in (folder / "pods/uid").iterdir()] == ["containers"]
    assert layout.uids() == []


def test_a_part_that_is_mounted_still_is_never_emptied(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the list of mounts had missed one: the content of what looks like a folder of ours stays."""
    layout = Layout(folder)
    part = layout.sub_path("uid", "vol", "main", 0)
    layout.make_parents(part)
    part.mkdir()
    (part / "precious").write_text("")
    monkeypatch.setattr(kernel, "mount_points", lambda below: [])
    with pytest.raises(OSError):
        layout.remove("uid")
    assert (part / "precious").exists()
