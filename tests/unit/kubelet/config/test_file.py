"""Pods from the files of a folder, as they come, change and go."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from podlife.aio import cancel_and_wait, spawn
from podlife.api.codec import Object
from podlife.clock import ManualClock
from podlife.kubelet.config import SEEN, FileSource
from podlife.kubelet.config.manifest import Manifest, read_manifest
from podlife.testing import virtual_time

LOOK_SECONDS = 21


def text(name: str, command: str = "run") -> str:
    container = f"{{name: c, image: i, command: [{command}]}}"
    return f"apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec: {{containers: [{container}]}}\n"


class Told:
    def __init__(self) -> None:
        self.pods: list[list[Object]] = []
        self.problems: list[str] = []
        self.clock = ManualClock()

    @property
    def names(self) -> list[str]:
        return [pod["metadata"]["name"] for pod in self.pods[-1]]

    @property
    def uids(self) -> list[str]:
        return [pod["metadata"]["uid"] for pod in self.pods[-1]]


@asynccontextmanager
async def told_of(folder: Path, told: Told | None = None) -> AsyncIterator[Told]:
    told = told or Told()

    def check(pod: Object) -> list[str]:
        return ["no luck", "at all"] if pod["metadata"]["name"].startswith("unlucky") else []

    static = FileSource(folder, "n", told.clock, check=check, report=told.problems.append)
    failures: list[BaseException] = []
    task = spawn(static.run(told.pods.append), name="static", on_failure=failures.append)
    await asyncio.sleep(0.01)
    try:
        yield told
    finally:
        await cancel_and_wait(task)
    assert not failures


@virtual_time
async def test_an_empty_folder_and_one_that_is_not_there_have_no_pods_and_say_so_once(tmp_path: Path) -> None:
    async with told_of(tmp_path) as told:
        await asyncio.sleep(100)
        assert told.pods == [[]]
        assert not told.problems
    async with told_of(tmp_path / "later") as told:
        await asyncio.sleep(100)
        assert told.pods == [[]]
        assert told.problems == [f"{tmp_path / 'later'} cannot be read: No such file or directory"]
        (tmp_path / "later").mkdir()
        (tmp_path / "later" / "a.yaml").write_text(text("a"))
        await asyncio.sleep(LOOK_SECONDS)
        assert told.names == ["a-n"]


async def test_a_file_that_comes_changes_moves_and_goes_is_noticed_at_once(tmp_path: Path) -> None:
    async with told_of(tmp_path) as told, asyncio.timeout(60):

        async def until(count: int) -> None:
            while len(told.pods) < count:
                await asyncio.sleep(0.005)

        (tmp_path / "a.yaml").write_text(text("a"))
        await until(2)
        first = told.uids
        (tmp_path / ".b.yaml.tmp").write_text(text("a", "walk"))
        (tmp_path / ".b.yaml.tmp").rename(tmp_path / "a.yaml")
        await until(3)
        assert told.names == ["a-n"]
        assert told.uids != first
        (tmp_path / "a.yaml").rename(tmp_path / "z.json")
        await until(4)
        (tmp_path / "z.json").unlink()
        await until(5)
        assert told.pods[-1] == []


@virtual_time
async def test_pods_come_in_the_order_of_their_files_and_are_seen_once(tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / f"{name}.yaml").write_text(text(name))
    async with told_of(tmp_path) as told:
        assert told.names == ["a-n", "b-n"]
        seen = told.pods[-1][0]["metadata"]["annotations"][SEEN]
        told.clock.advance(seconds=60)
        (tmp_path / "a.yaml").write_text("# another way to say it\n" + text("a"))
        (tmp_path / "c.yaml").write_text(text("c"))
        await asyncio.sleep(LOOK_SECONDS)
        assert told.names == ["a-n", "b-n", "c-n"]
        assert told.pods[-1][0]["metadata"]["annotations"][SEEN] == seen
        assert told.pods[-1][2]["metadata"]["annotations"][SEEN] != seen


@virtual_time
async def test_a_file_that_says_the_same_in_another_way_is_no_change(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(text("a"))
    async with told_of(tmp_path) as told:
        (tmp_path / "a.yaml").write_text("# hello\n" + text("a"))
        await asyncio.sleep(LOOK_SECONDS)
        assert len(told.pods) == 1


@virtual_time
async def test_a_bad_file_is_reported_once_in_one_line_and_leaves_the_others_alone(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("a: [")
    (tmp_path / "b.yaml").write_text(text("b"))
    (tmp_path / "c.yaml").write_text(text("unlucky"))
    (tmp_path / "d.txt").write_text(text("d"))
    (tmp_path / "e.yaml").mkdir()
    (tmp_path / "f.yaml").symlink_to(tmp_path / "nowhere")
    async with told_of(tmp_path) as told:
        await asyncio.sleep(100)
        assert told.names == ["b-n"]
        problems = [each.removeprefix(f"{tmp_path}/") for each in told.problems]
        assert problems[0].startswith("a.yaml: cannot be read: while parsing")
        assert problems[1:] == [
            "c.yaml: no luck; at all",
            "d.txt: ignored: file name must end with .yaml, .yml, .json",
            "e.yaml: not a regular file; subdirectories are not read",
        ]
        assert not any("\n" in each for each in problems)


@virtual_time
async def test_a_pod_whose_file_was_spoilt_goes_on_until_the_file_is_mended_or_gone(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(text("a"))
    async with told_of(tmp_path) as told:
        (tmp_path / "a.yaml").write_text("a: [")
        await asyncio.sleep(LOOK_SECONDS)
        assert len(told.pods) == 1
        assert told.problems[0].endswith("; the previous pod keeps running")
        (tmp_path / "a.yaml").write_text(text("a", "walk"))
        await asyncio.sleep(LOOK_SECONDS)
        assert len(told.pods) == 2
        (tmp_path / "a.yaml").write_text("a: [")
        await asyncio.sleep(LOOK_SECONDS)
        (tmp_path / "a.yaml").unlink()
        await asyncio.sleep(LOOK_SECONDS)
        assert told.pods[-1] == []


@virtual_time
async def test_of_two_files_with_one_pod_the_first_counts(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text(text("a", "walk"))
    (tmp_path / "a.yaml").write_text(text("a"))
    async with told_of(tmp_path) as told:
        await asyncio.sleep(100)
        assert len(told.pods[-1]) == 1
        assert told.problems == [
            f"{tmp_path / 'b.yaml'}: pod default/a-n has the name or UID of the pod in a.yaml and is ignored"
        ]
        (tmp_path / "a.yaml").unlink()
        await asyncio.sleep(LOOK_SECONDS)
        assert told.pods[-1][0]["spec"]["containers"][0]["command"] == ["walk"]


@virtual_time
async def test_a_folder_that_was_replaced_is_watched_anew(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    folder.mkdir()
    (folder / "a.yaml").write_text(text("a"))
    async with told_of(folder) as told:
        folder.rename(tmp_path / "old")
        await asyncio.sleep(LOOK_SECONDS)
        assert told.pods[-1] == []
        folder.mkdir()
        (folder / "b.yaml").write_text(text("b"))
        await asyncio.sleep(LOOK_SECONDS)
        assert told.names == ["b-n"]
        (folder / "c.yaml").write_text(text("c"))
        await asyncio.sleep(1)
        assert told.names == ["b-n", "c-n"]
        folder.rename(tmp_path / "older")
        folder.mkdir()
        await asyncio.sleep(1)
        assert told.names == []
        (folder / "d.yaml").write_text(text("d"))
        await asyncio.sleep(1)
        assert told.names == ["d-n"]


@virtual_time
async def test_two_files_that_claim_one_uid_are_one_pod(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.yaml").write_text(text(name).replace("{name:", "{uid: mine, name:", 1))
    async with told_of(tmp_path) as told:
        assert told.names == ["a-n"]
        assert "default/b-n has the name or UID of the pod in a.yaml" in told.problems[0]


@virtual_time
async def test_a_pod_is_the_same_however_its_folder_was_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.yaml").write_text(text("a"))
    async with told_of(tmp_path) as told:
        uids = told.uids
    monkeypatch.chdir(tmp_path.parent)
    async with told_of(Path(tmp_path.name)) as told:
        assert told.uids == uids


@virtual_time
async def test_a_folder_that_cannot_be_read_ends_nothing_that_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.yaml").write_text(text("a"))
    async with told_of(tmp_path) as told:

        def refuse(self: Path) -> None:
            raise PermissionError(13, "Permission denied")

        with monkeypatch.context() as patched:
            patched.setattr(Path, "iterdir", refuse)
            await asyncio.sleep(100)
        assert told.names == ["a-n"]
        assert told.problems == [f"{tmp_path} cannot be read: Permission denied"]


@virtual_time
async def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "a.yaml").open("wb") as file:
        file.truncate(1024 * 1024 + 1)
    async with told_of(tmp_path) as told:
        assert told.problems == [f"{tmp_path / 'a.yaml'}: is larger than 1048576 bytes"]


@virtual_time
@pytest.mark.parametrize("line", ["- 1\n", "- []\n", "- a: b\n"])
async def test_a_file_of_many_values_is_not_read_to_its_end(tmp_path: Path, line: str) -> None:
    (tmp_path / "a.yaml").write_text(line * (1024 * 1024 // len(line)))
    (tmp_path / "b.yaml").write_text(text("b"))
    async with told_of(tmp_path) as told:
        assert told.names == ["b-n"]
        assert "the YAML holds more than 10000 values: write it as JSON" in told.problems[0]


@virtual_time
async def test_a_file_that_nobody_has_thought_of_concerns_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.yaml").write_text(text("a"))
    (tmp_path / "b.yaml").write_text(text("b"))

    def fails(data: bytes, source: str, node_name: str) -> Manifest:
        if source.endswith("a.yaml"):
            raise KeyError("a")
        return read_manifest(data, source, node_name)

    monkeypatch.setattr("podlife.kubelet.config.file.read_manifest", fails)
    async with told_of(tmp_path) as told:
        assert told.names == ["b-n"]
        assert told.problems == [f"{tmp_path / 'a.yaml'}: cannot be read: KeyError('a')"]
