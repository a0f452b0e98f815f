"""Histories in files: what was recorded is shown again, and damage hides only what comes after it."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from podlife.errors import ConfigError
from podlife.testing import virtual_time
from podlife.ui.feed import VERSION
from podlife.ui.journal import Journal
from podlife.ui.life import PodLife
from podlife.ui.recording import Recorder, Recording

HELLO = {
    "version": VERSION,
    "cluster": "https://c",
    "started": 1,
    "now": 5,
    "missing": [],
    "namespace": "shop",
}
# In the first format a life was stuck for one cause, and not from a time on.
OLD = b"""{"event":"hello","data":{"version":1,"now":5}}
{"event":"lives","data":[{"uid":"a","kind":"pod","from":1,"segs":[[1,"ready"]],"stuck":"finalizer"}]}
"""


def life(uid: str, **fields: Any) -> dict[str, Any]:
    return {"uid": uid, "kind": "pod", "from": 1, "segs": [[1, "ready"]], **fields}


def write(path: Path, *lines: Any) -> Path:
    with gzip.open(path, "wb") as file:
        for line in lines:
            file.write(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n")
    return path


def frame(event: str, data: Any) -> dict[str, Any]:
    return {"event": event, "data": data}


def shown(recording: Recording) -> list[dict[str, Any]]:
    return [each for chunk in recording.chunks() for each in json.loads(chunk)]


class FakeFeed:
    def __init__(self) -> None:
        self.journal = Journal(most_frames=2)
        self.is_complete = True
        self.lives = [life("a")]

    def hello(self) -> dict[str, Any]:
        return HELLO

    def now(self) -> int:
        return 5

    def chunks(self) -> Iterator[bytes]:
        yield json.dumps(self.lives).encode()


@pytest.mark.parametrize(
    "strange",
    [
        {"kind": "<b>"},
        {"segs": [[1, "x y"]]},
        {"next": [{"since": 1, "who": "w", "what": "t", "state": "x"}]},
    ],
)
def test_a_life_of_an_unknown_kind_or_state_is_damage(tmp_path: Path, strange: dict[str, Any]) -> None:
    lines = frame("lives", [life("a")]), frame("lives", [life("b", **strange)])
    recording = Recording(write(tmp_path / "r.gz", frame("hello", HELLO), *lines))
    assert [each["uid"] for each in shown(recording)] == ["a"]
    assert recording.hello()["missing"]


@virtual_time
async def test_what_is_recorded_is_shown_again(tmp_path: Path) -> None:
    path, feed = tmp_path / "r.gz", FakeFeed()
    recorder = Recorder(path)
    assert path.stat().st_mode & 0o777 == 0o600
    async with asyncio.TaskGroup() as group:
        task = group.create_task(recorder.run(feed))
        await asyncio.sleep(1.5)
        feed.journal.publish("lives", json.dumps([life("b"), life("a", to=9)]).encode())
        feed.journal.publish("status", b'{"now":12}')
        await asyncio.sleep(2)
        # Flushed: a reader that comes before the end sees it, with a note that the end is missing.
        assert {each["uid"] for each in shown(Recording(path))} == {"a", "b"}
        task.cancel()
    recording = Recording(path)
    assert [(each["uid"], each["to"]) for each in shown(recording)] == [("a", 9), ("b", None)]
    hello = recording.hello()
    assert (hello["mode"], hello["now"], hello["actions"], hello["missing"]) == ("replay", 12, False, [])
    assert hello["namespace"] == "shop"


@virtual_time
async def test_a_recorder_that_fell_behind_writes_everything_again(tmp_path: Path) -> None:
    path, feed = tmp_path / "r.gz", FakeFeed()
    recorder = Recorder(path)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(recorder.run(feed))
        await asyncio.sleep(0.5)
        for number in range(9):
            feed.journal.publish("lives", json.dumps([life(f"lost-{number}")]).encode())
        feed.lives = [life("a", to=7), life("z")]
        await asyncio.sleep(2)
        task.cancel()
    assert {"a", "z"} <= {each["uid"] for each in shown(Recording(path))}


@virtual_time
async def test_a_recording_ends_at_its_bound(tmp_path: Path) -> None:
    feed = FakeFeed()
    async with asyncio.timeout(60):
        await Recorder(tmp_path / "r.gz", most_bytes=10).run(feed)
    assert [each["uid"] for each in shown(Recording(tmp_path / "r.gz"))] == ["a"]


def test_an_existing_file_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "r.gz").write_text("precious")
    with pytest.raises(ConfigError, match="exists"):
        Recorder(tmp_path / "r.gz")
    with pytest.raises(ConfigError, match="No such file"):
        Recorder(tmp_path / "none" / "r.gz")


@virtual_time
async def test_a_replay_tells_its_status_as_a_live_page_does(tmp_path: Path) -> None:
    recording = Recording(write(tmp_path / "r.gz", frame("hello", HELLO)))
    async with asyncio.TaskGroup() as group:
        task = group.create_task(recording.run())
        await asyncio.sleep(12)
        task.cancel()
    frames = recording.journal.since(0) or []
    assert [(each.event, json.loads(each.data)["now"]) for each in frames] == [("status", 5)] * 3


async def test_forgotten_lives_stay_in_a_replay(tmp_path: Path) -> None:
    path = write(
        tmp_path / "r.gz", frame("hello", HELLO), frame("lives", [life("a")]), frame("forget", ["a"])
    )
    assert [each["uid"] for each in shown(Recording(path))] == ["a"]


async def test_a_file_that_was_cut_off_is_shown_up_to_there(tmp_path: Path) -> None:
    lines = [frame("hello", HELLO), frame("lives", [life("a")])]
    lines += [frame("lives", [life(f"b-{number}", name="x" * number)]) for number in range(500)]
    path = write(tmp_path / "r.gz", *lines)
    path.write_bytes(path.read_bytes()[:-100])
    recording = Recording(path)
    assert "a" in {each["uid"] for each in shown(recording)}
    assert recording.hello()["missing"] == ["the rest of the recording (it is damaged, or was not closed)"]


@pytest.mark.parametrize(
    "bad",
    [
        b"{\n",
        b"[]\n",
        b'{"event":"lives","data":[{"uid":1,"kind":"pod"}]}\n',
        b'{"event":"lives","data":[{"uid":"u","kind":"pod","marks":["<script>"]}]}\n',
        b'{"event":"lives","data":' + b"[" * 100_000 + b"\n",
        b"\xff\xfe\n",
    ],
)
async def test_a_line_that_is_no_frame_ends_what_is_shown(tmp_path: Path, bad: bytes) -> None:
    path = write(
        tmp_path / "r.gz",
        frame("hello", HELLO),
        frame("lives", [life("a")]),
        bad,
        frame("lives", [life("b")]),
    )
    recording = Recording(path)
    assert [each["uid"] for each in shown(recording)] == ["a"]
    assert len(recording.hello()["missing"]) == 1


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"not gzip at all", "damaged"),
        (b"", "empty"),
        (gzip.compress(b"", mtime=0), "empty"),
        (gzip.compress(b"hello\n", mtime=0), "cannot be read"),
        (gzip.compress(b'{"event":"lives","data":[]}\n', mtime=0), "not a recording"),
        (gzip.compress(b'{"event":"hello","data":{"version":3}}\n', mtime=0), "format version 3"),
        (gzip.compress(OLD, mtime=0), "recorded in format version 1, and this podlife replays version 2"),
    ],
)
async def test_what_is_no_recording_is_refused_in_one_line(tmp_path: Path, content: bytes, why: str) -> None:
    (tmp_path / "r.gz").write_bytes(content)
    with pytest.raises(ConfigError, match=why) as refused:
        Recording(tmp_path / "r.gz")
    assert "\n" not in str(refused.value)


async def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        Recording(tmp_path / "none")


async def test_a_life_is_encoded_as_the_page_reads_it(tmp_path: Path) -> None:
    path = write(
        tmp_path / "r.gz", frame("hello", HELLO), frame("lives", [life("a", marks=[[1, "event", "x", ""]])])
    )
    [found] = shown(Recording(path))
    names = {field.encode_name for field in msgspec.structs.fields(PodLife)}
    assert set(found) == names
    assert found["marks"] == [[1, "event", "x", ""]]
