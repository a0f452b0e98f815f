"""Connections to containers: by address and by name, with name servers that do not answer."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator

import pytest

from podlife.kubelet.probe import NoResponseError, ProbeError, tcp_connect
from podlife.kubelet.probe.connection import resolve
from tests.kit.real_parts import free_port

from .servers import hanging, serving


@pytest.fixture
def silent_name_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    answers = threading.Event()
    before = set(threading.enumerate())

    def look_up(*_: object, **__: object) -> list[object]:
        answers.wait(60)
        raise socket.gaierror(socket.EAI_AGAIN, "nobody answered")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    yield
    answers.set()
    for thread in set(threading.enumerate()) - before:
        if thread.daemon:
            thread.join(60)


async def test_names_that_nobody_knows_take_no_thread_from_the_node(silent_name_server: None) -> None:
    asked = [tcp_connect("silent.example", 80, seconds=0.1) for _ in range(50)]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert {type(each) for each in answers} == {NoResponseError, ProbeError}
    async with asyncio.timeout(60):
        assert await asyncio.to_thread(int, "7") == 7


async def test_one_name_too_many_says_nothing_about_its_container(silent_name_server: None) -> None:
    waiting = asyncio.gather(
        *(tcp_connect("silent.example", 80, seconds=0.5) for _ in range(16)), return_exceptions=True
    )
    await asyncio.sleep(0)
    with pytest.raises(ProbeError, match="waits for 16 other names"):
        await tcp_connect("other.example", 80, seconds=0.1)
    assert {type(each) for each in await waiting} == {NoResponseError}


async def test_addresses_are_looked_up_by_nobody(silent_name_server: None) -> None:
    assert await resolve("127.0.0.1") == ["127.0.0.1"]
    assert await resolve("::1") == ["::1"]


async def test_a_host_with_several_addresses_is_asked_at_the_one_that_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def look_up(*_: object, **__: object) -> list[tuple[object, ...]]:
        return [(0, 0, 0, "", (address, 0)) for address in ("127.0.0.2", "127.0.0.1")]

    async with serving(lambda *_: asyncio.sleep(0)) as port:
        monkeypatch.setattr(socket, "getaddrinfo", look_up)
        await tcp_connect("twice.example", port, seconds=60)


async def test_a_name_that_there_is_not_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def look_up(*_: object, **__: object) -> list[object]:
        raise socket.gaierror(socket.EAI_NONAME, "not known")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    with pytest.raises(NoResponseError, match=r"lookup none\.example: no such host"):
        await tcp_connect("none.example", 80, seconds=60)


async def test_tcp_is_well_when_somebody_listens_and_ill_when_nobody_does() -> None:
    async with serving(hanging) as port:
        await tcp_connect("127.0.0.1", port, seconds=60)
    port = free_port()
    with pytest.raises(NoResponseError) as raised:
        await tcp_connect("127.0.0.1", port, seconds=60)
    assert str(raised.value) == f"dial tcp 127.0.0.1:{port}: connect: connection refused"


async def test_a_name_that_can_be_none_is_ill() -> None:
    for name in ("a\0b", "x" * 300 + ".invalid"):
        with pytest.raises(NoResponseError, match="lookup"):
            await tcp_connect(name, 80, seconds=60)


async def test_a_shortage_of_the_node_says_nothing_about_the_container(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def no_more_files(*_: object) -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(asyncio, "open_connection", no_more_files)
    with pytest.raises(ProbeError, match="too many open files"):
        await tcp_connect("127.0.0.1", 80, seconds=60)
