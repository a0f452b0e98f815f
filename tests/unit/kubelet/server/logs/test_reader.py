"""Logs from files: their tail, and as they grow."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from podlife.kubelet.server.logs import reader as log_reader
from podlife.kubelet.server.logs.cri_format import LogOptions
from podlife.kubelet.server.logs.reader import Growth, follow_log, read_log
from podlife.linux.inotify import CloseWatch
from tests.kit.wait import until

LINE = "2030-01-01T00:00:00Z stdout F {}\n"
FOLLOW = LogOptions(follow=True)


class Reader:
    """Whoever asked: keeps what was written to it."""

    def __init__(self) -> None:
        self.text = b""
        self.came = asyncio.Event()

    async def write(self, text: bytes) -> None:
        self.text += text
        self.came.set()

    async def until(self, text: bytes) -> None:
        async with asyncio.timeout(60):
            while not self.text.endswith(text):
                self.came.clear()
                await self.came.wait()


@asynccontextmanager
async def following(path: Path, options: LogOptions = FOLLOW) -> AsyncIterator[Reader]:
    """Somebody follows the log; its container ends with the block."""
    reader, changed, runs = Reader(), asyncio.Event(), [True]

    async def is_running() -> bool:
        return bool(runs)

    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        group.create_task(follow_log(path, options, reader.write, Growth(is_running, changed)))
        yield reader
        runs.clear()
        changed.set()


async def read(path: Path, options: LogOptions) -> bytes:
    reader = Reader()
    await read_log(path, options, reader.write)
    return reader.text


@pytest.mark.parametrize("piece", [1, 7, 64, 100_000])
@pytest.mark.parametrize("is_ended", [True, False])
async def test_the_tail_is_the_last_lines_however_the_file_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int, is_ended: bool
) -> None:
    monkeypatch.setattr(log_reader, "_CHUNK_BYTES", piece)
    path = tmp_path / "0.log"
    whole = "".join(LINE.format(number) for number in range(10))
    path.write_text(whole if is_ended else whole[:-1])
    lines = [b"%d\n" % number for number in range(10)]
    if not is_ended:
        lines[-1] = b"9"
    for tail in (0, 1, 3, 9, 10, 11):
        expected = b"".join(lines[-tail:]) if tail else b""
        assert await read(path, LogOptions(tail_lines=tail)) == expected


async def test_a_file_that_is_empty_or_not_there_is_an_empty_log(tmp_path: Path) -> None:
    assert await read(tmp_path / "0.log", LogOptions(tail_lines=3)) == b""
    (tmp_path / "0.log").touch()
    assert await read(tmp_path / "0.log", LogOptions(tail_lines=3)) == b""


@pytest.mark.parametrize("has_watches", [True, False])
async def test_a_log_that_comes_later_is_followed_from_its_beginning_with_or_without_inotify(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_watches: bool
) -> None:
    def refuse(self: object) -> None:
        raise OSError(24, "Too many open files")

    if not has_watches:
        monkeypatch.setattr(CloseWatch, "open", refuse)
        monkeypatch.setattr(log_reader, "_POLL_SECONDS", 0.01)
    async with following(tmp_path / "0.log") as reader:
        await asyncio.sleep(0)
        (tmp_path / "0.log").write_text(LINE.format("one"))
        await reader.until(b"one\n")
    assert reader.text == b"one\n"


async def test_what_was_written_before_the_end_is_read_to_the_end(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    path.write_text(LINE.format("one"))
    async with following(path) as reader:
        await reader.until(b"one\n")
        # Nothing is told of the file in between: only that the container has ended.
        with path.open("a") as file:
            file.write(LINE.format("last"))
    assert reader.text == b"one\nlast\n"


async def test_a_file_is_not_closed_while_a_thread_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "0.log").write_text(LINE.format("one"))
    begun, go_on = threading.Event(), threading.Event()
    seen: list[bool] = []

    def slow_read(fd: int, size: int) -> bytes:
        begun.set()
        go_on.wait(60)
        seen.append(Path(f"/proc/self/fd/{fd}").readlink() == tmp_path / "0.log")
        return b""

    monkeypatch.setattr(os, "read", slow_read)
    task = asyncio.get_running_loop().create_task(read(tmp_path / "0.log", LogOptions()))
    await asyncio.to_thread(begun.wait, 60)
    task.cancel()
    await asyncio.wait([task])
    go_on.set()
    monkeypatch.undo()
    await until(lambda: seen and not _has_open(tmp_path / "0.log"))
    assert seen == [True]


def _has_open(path: Path) -> bool:
    return any(_leads_to(each) == path for each in list(Path("/proc/self/fd").iterdir()))


def _leads_to(descriptor: Path) -> Path | None:
    try:
        return descriptor.readlink()
    except FileNotFoundError:
        # Another thread has just closed it.
        return None


async def test_a_followed_log_ends_when_it_has_shown_enough(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    path.write_text(LINE.format("one") + LINE.format("two"))
    reader = Reader()

    async def is_running() -> bool:
        return True

    async with asyncio.timeout(60):
        options = LogOptions(follow=True, limit_bytes=5)
        await follow_log(path, options, reader.write, Growth(is_running, asyncio.Event()))
    assert reader.text == b"one\nt"


async def test_nothing_is_lost_where_a_log_is_rotated_while_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    path.touch()
    async with following(path) as reader:
        for number in range(20):
            with path.open("a") as file:
                file.write(LINE.format(f"{number} is new"))
                file.flush()
                await reader.until(f"{number} is new\n".encode())
                file.write(LINE.format(number))
                path.rename(tmp_path / f"0.log.{number}")
                # Its writer goes on with the old file until it has made the new one.
                file.write(LINE.format(f"{number} again"))
            path.touch()
    assert reader.text.decode() == "".join(f"{n} is new\n{n}\n{n} again\n" for n in range(20))


async def test_who_reads_more_slowly_than_a_log_is_rotated_misses_only_what_was_removed(
    tmp_path: Path,
) -> None:
    path = tmp_path / "0.log"
    # From before: it was never to be shown.
    (tmp_path / "0.log.00001").write_text(LINE.format("old"))
    path.write_text(LINE.format("a"))
    async with following(path) as reader:
        await reader.until(b"a\n")
        # All of it between two looks.
        for number, text in enumerate("bcde", 2):
            path.rename(tmp_path / f"0.log.0000{number}")
            path.write_text(LINE.format(text))
        (tmp_path / "0.log.00001").unlink()
        (tmp_path / "0.log.00002").unlink()
        await reader.until(b"e\n")
    assert reader.text == b"a\nb\nc\nd\ne\n"


async def test_a_log_that_was_put_anew_is_followed_without_what_was_rotated_away_before(
    tmp_path: Path,
) -> None:
    path = tmp_path / "0.log"
    older = tmp_path / "0.log.00001"
    older.write_text(LINE.format("old"))
    os.utime(older, (1, 1))
    path.write_text(LINE.format("a"))
    async with following(path) as reader:
        await reader.until(b"a\n")
        path.unlink()
        path.write_text(LINE.format("b"))
        await reader.until(b"b\n")
    assert reader.text == b"a\nb\n"
