"""A full disk under the whole server: writes fail with the reason, reads continue, and nothing is corrupted.

Two ways to fill it: a bound on the size of the server's files, which every user may set, and a file system of
its own that is really full, where the tests may mount one."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.component.apiserver.requests import CONFIG_MAPS
from tests.kit.server_process import ServerProcess, running_server

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="bounds another process as only Linux can")


def config_map(name: str, size: int = 200_000) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": {"x": "x" * size}}


async def create(session: aiohttp.ClientSession, name: str) -> tuple[int, dict[str, Any]]:
    async with session.post(CONFIG_MAPS, json=config_map(name)) as answer:
        return answer.status, await answer.json()


async def get(session: aiohttp.ClientSession, path: str) -> tuple[int, str]:
    async with session.get(path) as answer:
        return answer.status, await answer.text()


async def names(session: aiohttp.ClientSession) -> set[str]:
    async with session.get(CONFIG_MAPS) as answer:
        assert answer.status == 200
        return {item["metadata"]["name"] for item in (await answer.json())["items"]} - {"kube-root-ca.crt"}


async def fill(session: aiohttp.ClientSession) -> tuple[set[str], dict[str, Any]]:
    """Write until a write fails; returns what was acknowledged, and the error."""
    acknowledged: set[str] = set()
    for number in range(200):
        code, body = await create(session, f"m{number}")
        if code != 201:
            return acknowledged, body
        acknowledged.add(f"m{number}")
    raise AssertionError("the disk never filled")


async def verify_files_that_may_not_grow(server: ServerProcess, session: aiohttp.ClientSession) -> set[str]:
    acknowledged, refusal = await fill(session)
    assert acknowledged, "something fits before it is full"
    # The disk itself has room: nobody is told to make some.
    assert (refusal["kind"], refusal["code"], refusal["reason"]) == ("Status", 500, "InternalError")
    assert "could not be written" in refusal["message"]
    assert str(server.data) in refusal["message"]
    assert await names(session) == acknowledged
    async with session.delete(f"{CONFIG_MAPS}/m0") as answer:
        # A small change may still fit: what counts is that the answer is the truth.
        assert answer.status in (200, 500)
        if answer.status == 200:
            acknowledged.discard("m0")
    assert await names(session) == acknowledged
    async with session.delete(CONFIG_MAPS) as answer:
        assert answer.status == 500
        assert "could not be written" in (await answer.json())["message"]
    kept = await names(session)
    assert kept <= acknowledged
    assert (await get(session, "/readyz"))[0] == 200
    return kept


def stop_and_check(server: ServerProcess) -> None:
    assert server.stop() == 0
    report = server.run("check")
    assert report.returncode == 0, report.stderr


async def verify_recovery(server: ServerProcess, session: aiohttp.ClientSession, kept: set[str]) -> None:
    assert (await create(session, "afterwards"))[0] == 201
    kept = kept | {"afterwards"}
    assert await names(session) == kept
    stop_and_check(server)
    server.start()
    async with server.session() as again:
        assert await names(again) == kept


@linux_only
async def test_when_files_may_not_grow_writes_are_refused_until_they_may(tmp_path: Path) -> None:
    with running_server(tmp_path) as server:
        async with server.session() as session:
            before = resource.prlimit(server.pid, resource.RLIMIT_FSIZE)
            resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (2_000_000, before[1]))
            kept = await verify_files_that_may_not_grow(server, session)
            resource.prlimit(server.pid, resource.RLIMIT_FSIZE, before)
            await verify_recovery(server, session, kept)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 48 MB where the data of a server in `tmp_path` goes."""
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    mount = ["mount", "-t", "tmpfs", "-o", "size=48m,mode=700", "tmpfs", str(folder)]
    if sys.platform != "linux" or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("this user may not mount a file system")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


async def test_on_a_full_disk_objects_can_still_be_changed_and_deleted_which_makes_room(
    tmp_path: Path, small_disk: Path
) -> None:
    (small_disk / "ballast").write_bytes(b"x" * 3_000_000)
    with running_server(tmp_path) as server:
        async with server.session() as session:
            kept, refusal = await fill(session)
            assert (refusal["kind"], refusal["code"]) == ("Status", 507)
            accepted = "only changes and deletions of what exists are accepted"
            assert f"the disk is full: {accepted}" in refusal["message"]
            code, report = await get(session, "/readyz")
            assert (code, "[-]storage failed: the disk is full" in report) == (500, True)
            assert (await get(session, "/livez"))[0] == 200
            assert "podlife_storage_full 1" in (await get(session, "/metrics"))[1]
            patch = {"Content-Type": "application/merge-patch+json"}
            async with session.patch(
                f"{CONFIG_MAPS}/m0", data=b'{"data":{"y":"y"}}', headers=patch
            ) as answer:
                assert answer.status == 200, await answer.text()
            for name in sorted(kept):
                async with session.delete(f"{CONFIG_MAPS}/{name}") as answer:
                    assert answer.status == 200, await answer.text()
            assert await names(session) == set()
            # What was deleted makes room, on a disk as full as before.
            assert (await create(session, "again"))[0] == 201
            assert (await get(session, "/readyz"))[0] == 200
        stop_and_check(server)


async def test_when_there_is_room_on_a_full_disk_again_new_objects_are_accepted(
    tmp_path: Path, small_disk: Path
) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * 9_000_000)
    with running_server(tmp_path) as server:
        async with server.session() as session:
            kept, _ = await fill(session)
            assert await names(session) == kept
            ballast.unlink()
            await verify_recovery(server, session, kept)


async def test_it_does_not_start_on_a_full_disk_but_as_soon_as_there_is_room(
    tmp_path: Path, small_disk: Path
) -> None:
    with running_server(tmp_path) as server:
        async with server.session() as session:
            assert (await create(session, "kept"))[0] == 201
        assert server.stop() == 0
        ballast = small_disk / "ballast"
        with ballast.open("wb", buffering=0) as filled, suppress(OSError):
            while True:
                filled.write(b"x" * 4096)
        refused = server.run()
        assert (refused.returncode, refused.stderr.count("\n")) == (1, 1), refused.stderr
        assert "is there room on the disk?" in refused.stderr

        ballast.unlink()
        server.start()
        async with server.session() as session:
            assert await names(session) == {"kept"}


async def test_a_store_that_is_removed_under_the_server_refuses_writes_and_stays_readable(
    tmp_path: Path,
) -> None:
    with running_server(tmp_path / "data") as server:
        async with server.session() as session:
            assert (await create(session, "kept"))[0] == 201
            (server.data / "store.db").unlink()
            for _ in range(3):
                code, refusal = await create(session, "lost")
                assert (code, refusal["reason"]) == (500, "InternalError")
                assert "store.db was removed while the server was running" in refusal["message"]
            assert await names(session) == {"kept"}
            code, report = await get(session, "/readyz")
            assert (code, "[-]storage failed: store.db was removed" in report) == (500, True)
            _, metrics = await get(session, "/metrics")
            assert "podlife_storage_lost 1" in metrics
            assert "podlife_storage_full 0" in metrics
        assert server.log.read_text().count("store.db was removed") == 1
        assert server.stop() == 0
