"""Logs in the CRI format: lines, parts of lines, and rotation by size."""

from __future__ import annotations

import re
from pathlib import Path

from podlife.kubelet.runtimes.process.supervisor.logfile import LogFile
from tests.unit.kubelet.runtimes.process.process_kit import full_disk

LINE = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z) (stdout|stderr) ([FP]) (.*)")


def log_at(path: Path, *, max_bytes: int = 1 << 20, max_files: int = 5) -> LogFile:
    return LogFile(str(path), max_bytes=max_bytes, max_files=max_files)


def parsed(path: Path) -> list[tuple[str, str, str]]:
    found = [LINE.fullmatch(line) for line in path.read_text().splitlines()]
    return [(line[2], line[3], line[4]) for line in found if line is not None]


def test_lines_of_both_streams_are_put_together_by_themselves(tmp_path: Path) -> None:
    log = log_at(tmp_path / "0.log")
    log.feed("stdout", b"one\ntw")
    log.feed("stderr", b"er")
    log.feed("stdout", b"o\n\n")
    log.feed("stderr", b"ror\n")
    log.end()
    assert parsed(tmp_path / "0.log") == [
        ("stdout", "F", "one"),
        ("stdout", "F", "two"),
        ("stdout", "F", ""),
        ("stderr", "F", "error"),
    ]


def test_a_last_line_without_end_is_written_when_the_container_ends(tmp_path: Path) -> None:
    log = log_at(tmp_path / "0.log")
    log.feed("stdout", b"never ended")
    assert not (tmp_path / "0.log").exists()
    log.end()
    assert parsed(tmp_path / "0.log") == [("stdout", "F", "never ended")]


def test_a_long_line_comes_in_parts_and_nothing_of_it_is_lost(tmp_path: Path) -> None:
    log = log_at(tmp_path / "0.log")
    text = "".join(str(number) for number in range(9000))
    for start in range(0, len(text), 1000):
        log.feed("stdout", text[start : start + 1000].encode())
    log.feed("stdout", b"\n")
    log.end()
    lines = parsed(tmp_path / "0.log")
    assert [tag for _, tag, _ in lines] == ["P", "P", "F"]
    assert "".join(part for _, _, part in lines) == text
    assert max(len(part) for _, _, part in lines) == 16 * 1024


def test_a_log_is_rotated_by_size_and_the_oldest_go(tmp_path: Path) -> None:
    log = log_at(tmp_path / "0.log", max_bytes=200, max_files=3)
    for number in range(40):
        log.feed("stdout", f"line {number:02d}\n".encode())
    log.end()
    files = sorted(tmp_path.iterdir())
    assert len(files) == 3
    assert all(file.stat().st_size <= 200 for file in files)
    kept = [text for file in (*files[1:], files[0]) for _, _, text in parsed(file)]
    assert kept == [f"line {number:02d}" for number in range(40 - len(kept), 40)]


def test_with_one_file_only_the_newest_lines_are_kept(tmp_path: Path) -> None:
    log = log_at(tmp_path / "0.log", max_bytes=100, max_files=1)
    for number in range(10):
        log.feed("stdout", f"line {number}\n".encode())
    log.end()
    assert [file.name for file in tmp_path.iterdir()] == ["0.log"]
    assert parsed(tmp_path / "0.log")[-1] == ("stdout", "F", "line 9")


def test_logs_are_the_owners_alone_and_a_link_is_not_followed(tmp_path: Path) -> None:
    for name in ("0.log", "1.log"):
        if name == "1.log":
            (tmp_path / name).symlink_to(tmp_path / "elsewhere")
        log = log_at(tmp_path / name)
        log.feed("stdout", b"line\n")
        log.end()
    assert (tmp_path / "0.log").stat().st_mode & 0o777 == 0o600
    assert not (tmp_path / "elsewhere").exists()


def test_a_folder_that_is_taken_away_costs_lines_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    log = log_at(tmp_path / "logs" / "0.log", max_bytes=60)
    log.feed("stdout", b"before\n")
    (tmp_path / "logs" / "0.log").unlink()
    (tmp_path / "logs").rmdir()
    log.feed("stdout", b"after that it would be rotated\n")
    log.end()
    assert not (tmp_path / "logs").exists()


def test_a_disk_that_fills_up_within_a_line_costs_that_line_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    log = LogFile(str(path), max_bytes=10_000, max_files=2)
    log.feed("stdout", b"first\n")
    with full_disk(left=120):
        log.feed("stdout", b"second\n" + b"x" * 100 + b"\n")
    log.feed("stdout", b"last\n")
    log.end()
    assert [line.split(" ", 3)[3] for line in path.read_text().splitlines()] == ["first", "second", "last"]
