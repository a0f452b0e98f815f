"""The file of an audit log: private, whole lines, bounded."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from podlife.apiserver.audit import AuditLogFile
from podlife.clock import ManualClock
from podlife.errors import ConfigError

LINE = b"x" * 99 + b"\n"


def log_file(folder: Path, clock: ManualClock | None = None, **bounds: int) -> AuditLogFile:
    file = AuditLogFile(folder / "audit.log", clock or ManualClock(), **{"size_bytes": 250, **bounds})
    file.open()
    return file


def fill(folder: Path, lines: int = 1, **bounds: int) -> None:
    """Write so many lines, each a second after the other."""
    clock = ManualClock()
    file = log_file(folder, clock, **bounds)
    for _ in range(lines):
        file.write(LINE)
        clock.advance(seconds=1)
    file.close()


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def test_it_is_for_its_owner_only_even_if_it_was_not_before(tmp_path: Path) -> None:
    (tmp_path / "audit.log").touch(mode=0o644)
    log_file(tmp_path).close()
    assert stat.S_IMODE((tmp_path / "audit.log").stat().st_mode) == 0o600


def test_a_full_file_is_rotated_under_the_name_that_kube_apiserver_gives(tmp_path: Path) -> None:
    fill(tmp_path, 3)
    rotated = "audit-2030-01-01T00-00-02.000.log"
    assert names(tmp_path) == [rotated, "audit.log"]
    assert (tmp_path / "audit.log").read_bytes() == LINE
    assert stat.S_IMODE((tmp_path / rotated).stat().st_mode) == 0o600


def test_two_rotations_in_one_millisecond_keep_both_files(tmp_path: Path) -> None:
    file = log_file(tmp_path)
    for _ in range(5):
        file.write(LINE)
    file.close()
    assert len(names(tmp_path)) == 3


def test_only_so_many_rotated_files_are_kept_and_others_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "audit-notes.log").touch()
    fill(tmp_path, 7, backups=1)
    assert names(tmp_path) == ["audit-2030-01-01T00-00-06.000.log", "audit-notes.log", "audit.log"]


def test_rotated_files_of_long_ago_are_removed_at_the_next_start(tmp_path: Path) -> None:
    (tmp_path / "audit-2029-12-20T00-00-00.000.log").touch()
    (tmp_path / "audit-2029-12-31T00-00-00.000.log.gz").touch()
    log_file(tmp_path, age_days=7).close()
    assert names(tmp_path) == ["audit-2029-12-31T00-00-00.000.log.gz", "audit.log"]


def test_a_line_that_a_crash_has_cut_does_not_spoil_the_next(tmp_path: Path) -> None:
    (tmp_path / "audit.log").write_bytes(b'{"half":')
    fill(tmp_path)
    assert (tmp_path / "audit.log").read_bytes() == b'{"half":\n' + LINE


def test_a_disk_that_fills_up_in_the_middle_of_a_line_leaves_none_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = log_file(tmp_path)
    file.write(LINE)
    write = os.write

    def fill(descriptor: int, data: bytes) -> int:
        if len(data) < len(LINE):
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, data[:10])

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", fill)
        with pytest.raises(OSError, match="No space"):
            file.write(LINE)
    file.write(LINE)
    file.close()
    assert (tmp_path / "audit.log").read_bytes() == LINE * 2


@pytest.mark.parametrize("path", ["folder", "folder/audit.log/below", "pipe"])
def test_a_path_that_cannot_be_written_is_one_line(tmp_path: Path, path: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "audit.log").touch()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigError) as refused:
        AuditLogFile(tmp_path / path, ManualClock(), size_bytes=1).open()
    assert str(refused.value).startswith(f"cannot write the audit log {tmp_path / path}: ")


def test_a_folder_that_took_the_place_of_the_file_is_not_renamed(tmp_path: Path) -> None:
    file = log_file(tmp_path)
    file.write(LINE * 2)
    (tmp_path / "audit.log").unlink()
    (tmp_path / "audit.log").mkdir()
    for _ in range(2):
        with pytest.raises(OSError, match="Is a directory"):
            file.write(LINE)
    assert names(tmp_path) == ["audit.log"]
    (tmp_path / "audit.log").rmdir()
    file.write(LINE)
    file.close()
    assert (tmp_path / "audit.log").read_bytes() == LINE


def test_a_folder_with_the_name_of_a_rotated_file_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "audit-2020-01-01T00-00-00.000.log"
    folder.mkdir()
    fill(tmp_path, 7, backups=1)
    assert folder.is_dir()
    assert len(names(tmp_path)) == 3


def test_a_file_that_was_moved_away_is_made_again_and_loses_no_line(tmp_path: Path) -> None:
    file = log_file(tmp_path)
    file.write(LINE * 2)
    (tmp_path / "audit.log").rename(tmp_path / "moved")
    file.write(LINE)
    file.close()
    assert (tmp_path / "audit.log").read_bytes() == LINE
