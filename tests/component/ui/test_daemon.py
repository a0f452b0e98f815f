"""`podlife ui` as a process: the line it prints, a recording of a cluster and its replay, TLS."""

from __future__ import annotations

import asyncio
import re
import ssl
import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from aiohttp import ClientSession, CookieJar, TCPConnector

from podlife.client import PODS, Client, Flags, load
from podlife.clock import SystemClock
from podlife.pki.certificates import self_signed
from podlife.ui.access import Access
from tests.component.ui.page import Browser, a_pod
from tests.kit.component_process import ComponentProcess, running
from tests.kit.server_process import ServerProcess, running_server


class UiProcess(ComponentProcess):
    def __init__(self, folder: Path, *flags: str) -> None:
        super().__init__(folder, "ui", ready="podlife ui: http")
        self._flags = flags

    @property
    def arguments(self) -> list[str]:
        return ["ui", *self._flags]

    @property
    def url(self) -> str:
        [found] = re.findall(r"^podlife ui: (\S+)$", self.said, re.MULTILINE)
        return str(found)


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with running_server(tmp_path_factory.mktemp("api"), "--memory") as server:
        yield server


@asynccontextmanager
async def opened(process: UiProcess, tls: ssl.SSLContext | None = None) -> AsyncIterator[Browser]:
    url = urlsplit(process.url)
    access = Access(url.hostname or "", url.port or 0, tls is not None, parse_qs(url.query)["token"][0])
    connector = TCPConnector(ssl=tls) if tls is not None else TCPConnector()
    async with ClientSession(cookie_jar=CookieJar(unsafe=True), connector=connector) as session:
        browser = Browser(session, f"{url.scheme}://{url.netloc}{access.prefix}", access)
        await browser.open()
        yield browser


async def test_a_history_is_recorded_and_shown_again_without_the_cluster(
    api: ServerProcess, tmp_path: Path
) -> None:
    flags = ("--kubeconfig", str(api.kubeconfig), "--record", str(tmp_path / "r.gz"))
    with running(UiProcess(tmp_path, *flags)) as live:
        async with (
            opened(live) as browser,
            Client.connect(load(Flags(kubeconfig=str(api.kubeconfig)))) as client,
        ):
            await client.create(PODS, a_pod("web"), "default")
            async with browser.stream() as events:
                async for each in events:
                    if each.event == "lives" and "web" in {life["name"] for life in each.data}:
                        break
            await asyncio.to_thread(live.stop)
    assert stat.S_IMODE((tmp_path / "r.gz").stat().st_mode) == 0o600
    with running(UiProcess(tmp_path / "again", "--replay", str(tmp_path / "r.gz"))) as replay:
        async with opened(replay) as browser:
            lives, _ = await browser.picture()
            async with browser.stream() as events:
                hello = (await anext(events)).data
        assert "web" in lives
        assert (hello["mode"], hello["cluster"], hello["missing"]) == ("replay", api.url, [])
        assert await asyncio.to_thread(replay.stop) == 0


async def test_with_a_certificate_it_serves_tls(api: ServerProcess, tmp_path: Path) -> None:
    now = SystemClock().now()
    pem = tmp_path / "page.pem"
    pem.write_bytes(self_signed("page", ("127.0.0.1",), now - timedelta(hours=1), now + timedelta(hours=1)))
    flags = (
        "--kubeconfig",
        str(api.kubeconfig),
        "--tls-cert-file",
        str(pem),
        "--tls-private-key-file",
        str(pem),
    )
    with running(UiProcess(tmp_path, *flags, "--bind", "0.0.0.0", "--port", "0")) as process:
        assert process.url.startswith("https://127.0.0.1:")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        # Self-signed: what is tested is that it is TLS at all.
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        async with opened(process, context) as browser:
            assert (await browser.get("/api/plan"))[0] == 200
            assert (await browser.get("/api/plan", Host="evil.example"))[0] == 421


async def test_two_pages_of_one_machine_have_a_port_each(api: ServerProcess, tmp_path: Path) -> None:
    flags = ("--kubeconfig", str(api.kubeconfig))
    with running(UiProcess(tmp_path / "a", *flags)) as one, running(UiProcess(tmp_path / "b", *flags)) as two:
        assert urlsplit(one.url).port != urlsplit(two.url).port
        port = str(urlsplit(one.url).port)
        third = UiProcess(tmp_path / "c", *flags, "--port", port)
        third.begin()
        assert await asyncio.to_thread(third.wait) == 1
        assert f"cannot listen on 127.0.0.1:{port}" in third.said
