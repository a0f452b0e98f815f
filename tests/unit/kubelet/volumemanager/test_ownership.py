from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from podlife.kubelet.volumemanager.ownership import fs_user_of, give_to_group

GROUP = 2345

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_everything_belongs_to_the_group_and_links_lead_to_nothing_that_is_changed(
    folder: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.write_text("")
    outside.chmod(0o600)
    (folder / "sub").mkdir(mode=0o700)
    (folder / "sub/file").write_text("")
    (folder / "sub/file").chmod(0o600)
    (folder / "sub/link").symlink_to(outside)
    give_to_group(folder, GROUP, readonly=False)
    for path in (folder, folder / "sub", folder / "sub/file", folder / "sub/link"):
        assert path.lstat().st_gid == GROUP
    assert (mode(folder / "sub"), mode(folder / "sub/file")) == (0o2770, 0o660)
    assert (outside.stat().st_gid, mode(outside)) == (0, 0o600)


def test_what_is_read_only_may_be_read_by_the_group(folder: Path) -> None:
    (folder / "file").write_text("")
    (folder / "file").chmod(0o400)
    give_to_group(folder, GROUP, readonly=True)
    assert mode(folder / "file") == 0o440


def test_on_root_mismatch_a_volume_that_was_given_is_not_looked_through(folder: Path) -> None:
    give_to_group(folder, GROUP, readonly=False)
    (folder / "later").write_text("")
    os.chown(folder / "later", 0, 0)
    give_to_group(folder, GROUP, readonly=False, only_on_mismatch=True)
    assert (folder / "later").stat().st_gid == 0
    give_to_group(folder, GROUP + 1, readonly=False, only_on_mismatch=True)
    assert (folder / "later").stat().st_gid == GROUP + 1


@pytest.mark.parametrize(
    ("pod_user", "users", "expected"),
    [
        (None, [None], None),
        (5, [None, None], 5),
        (5, [6, 6], 6),
        (5, [None, 6], None),
        (None, [6, None], None),
    ],
)
def test_the_user_of_a_volume_is_the_one_that_all_containers_have(
    pod_user: int | None, users: list[int | None], expected: int | None
) -> None:
    def context(user: int | None) -> dict[str, int]:
        return {} if user is None else {"runAsUser": user}

    containers = [{"securityContext": context(user)} for user in users]
    assert fs_user_of({"spec": {"securityContext": context(pod_user), "containers": containers}}) == expected
