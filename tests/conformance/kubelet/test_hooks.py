"""Hooks as the agent runs them: each kind, how it fails, and servers and commands that do not behave."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from podlife.kubelet.interfaces import HookError
from podlife.kubelet.kuberuntime.handler_runner import HandlerRunner
from podlife.kubelet.runtime import ExecError, ExecResult
from podlife.testing import virtual_time
from tests.conformance.kubelet.kit import Object, container, pod
from tests.kit.real_parts import free_port
from tests.unit.kubelet.probe.servers import answering, hanging, ok, serving


class Machine:
    def __init__(self, result: ExecResult | ExecError | None = None) -> None:
        self.result = result or ExecResult(0, b"", b"")
        self.commands: list[tuple[str, Sequence[str], float | None]] = []
        self.events: list[tuple[str, str]] = []

    async def exec_sync(
        self, container_id: str, command: Sequence[str], *, timeout_seconds: float | None = None
    ) -> ExecResult:
        self.commands.append((container_id, command, timeout_seconds))
        if isinstance(self.result, ExecError):
            raise self.result
        return self.result

    def event(self, regarding: Mapping[str, Any], type_: str, reason: str, message: str) -> None:
        assert (regarding["kind"], regarding["uid"], type_) == ("Pod", "u", "Warning")
        assert "fieldPath" not in regarding
        self.events.append((reason, message))

    async def run(self, handler: Object, *, pod_ip: str = "127.0.0.1") -> None:
        one = container()
        await HandlerRunner(self, self).run(pod(one), one, "id", handler, pod_ip=pod_ip)  # type: ignore[arg-type]


async def test_a_command_runs_as_written_and_without_a_limit_of_its_own() -> None:
    """KC-16"""
    machine = Machine()
    await machine.run({"exec": {"command": ["echo", "$(HOME)"]}})
    assert machine.commands == [("id", ["echo", "$(HOME)"], None)]


async def test_a_command_that_fails_says_how_and_not_more_than_is_reasonable() -> None:
    machine = Machine(ExecResult(3, b"x" * 1_000_000, b"y"))
    with pytest.raises(HookError) as raised:
        await machine.run({"exec": {"command": ["sh", "-c", "false"]}})
    text = str(raised.value)
    assert text.startswith(
        'Exec lifecycle hook ([sh -c false]) for Container "a" in Pod "p_ns(u)" failed - error: '
        "command 'sh -c false' exited with 3, message: 'xxx"
    )
    assert len(text) < 11_000


async def test_a_command_that_cannot_run_is_a_hook_that_failed() -> None:
    with pytest.raises(HookError, match="no such program"):
        await Machine(ExecError("no such program")).run({"exec": {"command": ["x"]}})


async def test_a_hook_by_http_has_run_whatever_the_answer() -> None:
    """KC-15"""
    seen: list[bytes] = []
    async with serving(answering(b"HTTP/1.1 500 No\r\nContent-Length: 99\r\n\r\nbroken off", seen)) as port:
        await Machine().run({"httpGet": {"port": port, "path": "/stop?now"}})
    assert seen[0].startswith(b"GET /stop?now HTTP/1.1\r\n")
    assert b"User-Agent: kube-lifecycle/1.36" in seen[0]


async def test_nobody_who_answers_is_a_hook_that_failed() -> None:
    """KC-15"""
    port = free_port()
    with pytest.raises(HookError, match=r"HTTP lifecycle hook \(/stop\) for Container .*connection refused"):
        await Machine().run({"httpGet": {"port": port, "path": "/stop"}})
    with pytest.raises(HookError, match="no IP address"):
        await Machine().run({"httpGet": {"port": port}}, pod_ip="")
    with pytest.raises(HookError, match="port web not found"):
        await Machine().run({"httpGet": {"port": "web"}})


async def test_a_server_that_speaks_no_tls_is_asked_once_more_without_the_password() -> None:
    seen: list[bytes] = []

    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first = await reader.read(1)
        if first != b"G":
            writer.write(b"HTTP/1.0 400 Bad Request\r\n\r\n")
            return
        seen.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(ok())

    machine = Machine()
    headers = [{"name": "authorization", "value": "Bearer x"}, {"name": "X-A", "value": "1"}]
    async with serving(plain) as port:
        await machine.run({"httpGet": {"port": port, "scheme": "HTTPS", "httpHeaders": headers}})
    assert b"Bearer" not in seen[0]
    assert b"X-A: 1" in seen[0]
    text = f"request to HTTPS lifecycle hook 127.0.0.1:{port} got HTTP response, retry with HTTP succeeded"
    assert machine.events == [("LifecycleHTTPFallback", text)]


async def test_a_server_whose_plain_answer_was_a_lie_is_told_with_the_first_failure() -> None:
    machine = Machine()
    async with serving(answering_once_then_nothing()) as port:
        with pytest.raises(HookError, match="server gave HTTP response to HTTPS client"):
            await machine.run({"httpGet": {"port": port, "scheme": "HTTPS"}})
    assert machine.events == []


def answering_once_then_nothing() -> Any:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if await reader.read(1) != b"G":
            writer.write(b"HTTP/1.0 400 Bad Request\r\n\r\n")

    return script


@pytest.mark.parametrize("scheme", ["HTTP", "HTTPS"])
async def test_a_hook_that_hangs_ends_when_its_caller_gives_up(scheme: str) -> None:
    async with serving(hanging) as port:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await Machine().run({"httpGet": {"port": port, "scheme": scheme}})


@pytest.mark.parametrize("handler", [{}, {"tcpSocket": {"port": 80}}])
async def test_what_is_no_hook_fails(handler: Object) -> None:
    """KC-16"""
    with pytest.raises(
        HookError, match=r"Cannot run handler: invalid handler: .* use exec, httpGet or sleep"
    ):
        await Machine().run(handler)


@virtual_time
async def test_a_hook_that_sleeps_takes_its_time() -> None:
    """KC-16"""
    await Machine().run({"sleep": {"seconds": 7}})
    assert asyncio.get_running_loop().time() == 7
