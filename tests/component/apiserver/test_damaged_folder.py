"""Damaged files beside the store in a data folder: the server serves, or fails with a one-line error."""

from __future__ import annotations

import asyncio
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import aiohttp
import pytest

from podlife.apiserver.server import ApiServer
from podlife.apiserver.settings import ApiServerSettings
from podlife.cli.apiserver_exec import prepare
from podlife.daemons.kubeconfigs import make_kubeconfig
from podlife.errors import PodlifeError
from tests.kit import objects
from tests.kit.server_process import running_server

FILES = (
    "pki/ca.pem",
    "pki/ca.crt",
    "pki/apiserver.pem",
    "pki/apiserver-kubelet-client.pem",
    "tokens.csv",
    "admin.kubeconfig",
    "controllers.kubeconfig",
    "store.lock",
)


def _changed(content: bytes, at: int, by: bytes) -> bytes:
    return content[:at] + by + content[at + 1 :]


def _flipped(content: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(max(1, len(content)))
    return _changed(content, at, bytes([content[at] ^ 1 << chance.randrange(8)])) if content else b"1"


DAMAGES: dict[str, Callable[[bytes, random.Random], bytes | None]] = {
    "removed": lambda content, chance: None,
    "emptied": lambda content, chance: b"",
    "cut": lambda content, chance: content[: chance.randrange(max(1, len(content)))],
    "changed": lambda content, chance: _changed(content, chance.randrange(max(1, len(content))), b"\0"),
    "a bit flipped": _flipped,
    "noise": lambda content, chance: chance.randbytes(200),
    "not closed": lambda content, chance: content + b'"',
}


async def serve_once(folder: Path) -> str:
    """Start a server and stop it as soon as it serves; returns the error it failed with, if any."""
    settings = ApiServerSettings(data=folder, port=0)
    server = ApiServer(settings)
    try:
        prepare(settings, folder)
        await server.run(lambda _: server.stop())
    except PodlifeError as error:
        return str(error)
    return ""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "data"
    assert asyncio.run(serve_once(folder)) == ""
    return folder


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_damaged_file_is_refused_in_one_line_or_does_not_matter(
    whole: Path, tmp_path: Path, file: str, damage: str
) -> None:
    folder = tmp_path / "data"
    shutil.copytree(whole, folder)
    authority = (folder / "pki" / "ca.pem").read_bytes()
    path = folder / file
    content = DAMAGES[damage](path.read_bytes(), random.Random(f"{file} {damage}"))
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    kubeconfig_refusal = ""
    try:
        make_kubeconfig(folder, node="node-0")
    except PodlifeError as error:
        kubeconfig_refusal = str(error)
    refusal = await serve_once(folder)

    assert "\n" not in refusal + kubeconfig_refusal
    if refusal:
        assert str(path) in refusal or "tokens" in refusal
        assert path.read_bytes() == content if content is not None else not path.exists()
    else:
        assert (folder / "pki" / "ca.pem").read_bytes() == authority or file == "pki/ca.pem"
        assert make_kubeconfig(folder, node="node-0"), "what can be made again has been"


async def test_four_bytes_overwritten_in_a_pod_stop_the_server_with_one_line_that_names_it(
    tmp_path: Path,
) -> None:
    """Without the check, lists would be invalid JSON, and deleting the pod would fail with 500."""
    pod = objects.pod("web", objects.container(image="sentinel-image"))
    with running_server(tmp_path) as server:
        async with server.session() as session:
            await create(session, pod)
        assert server.stop() == 0
        store = server.data / "store.db"
        content = store.read_bytes()
        at = content.rindex(b"sentinel-image")
        store.write_bytes(content[:at] + b'"\0\xff{' + content[at + 4 :])

        refused = server.run()
        assert (refused.returncode, refused.stderr.count("\n")) == (1, 1), refused.stderr
        assert "(pods default/web) does not match its checksum" in refused.stderr
        checked = server.run("check")
        assert checked.returncode == 1
        assert "(pods default/web) is damaged: it does not match its checksum" in checked.stderr

        saved = server.run("salvage", str(tmp_path / "saved.db"))
        assert saved.returncode == 0, saved.stderr
        assert "(pods default/web) is damaged" in saved.stderr
        assert f"saved to {tmp_path / 'saved.db'}, 1 change lost." in saved.stdout
        assert server.run("restore", str(tmp_path / "saved.db")).returncode == 0
        server.start()
        async with server.session() as session, session.get("/api/v1/namespaces/default/pods") as answer:
            assert (answer.status, (await answer.json())["items"]) == (200, [])


async def create(session: aiohttp.ClientSession, pod: dict[str, object]) -> None:
    async with session.post("/api/v1/namespaces/default/pods", json=pod) as answer:
        assert answer.status == 201, await answer.text()


async def test_a_server_whose_store_was_lost_starts_again_from_a_backup_with_its_own_identities(
    tmp_path: Path,
) -> None:
    with running_server(tmp_path) as server:
        async with server.session() as session:
            await create(session, objects.pod())
        assert server.run("backup", str(tmp_path / "saved.db")).returncode == 0
        server.kill()
        (server.data / "store.db").write_bytes(b"")

        refused = server.run()
        assert (refused.returncode, refused.stderr.count("\n")) == (1, 1), refused.stderr
        assert "store.db is empty, but a cluster has used this folder" in refused.stderr
        restored = server.run("restore", str(tmp_path / "saved.db"))
        assert restored.returncode == 0, restored.stderr
        assert "damaged-1" in restored.stdout
        server.start()
        async with server.session() as session, session.get("/api/v1/namespaces/default/pods/web") as answer:
            assert answer.status == 200
