"""Hooks as the agent runs them."""

from __future__ import annotations

import asyncio

import pytest

from podlife.kubelet.interfaces import HookError
from podlife.testing import virtual_time
from tests.unit.kubelet.kuberuntime.test_handler_runner import Machine
from tests.unit.kubelet.probe.servers import answering, serving


async def test_an_answer_of_any_code_is_good_and_none_is_not() -> None:
    """KC-15"""
    async with serving(answering(b"HTTP/1.1 500 No\r\n\r\n")) as port:
        await Machine().run({"httpGet": {"port": port}})
    with pytest.raises(HookError, match="connection refused"):
        await Machine().run({"httpGet": {"port": port}})


@virtual_time
async def test_a_hook_that_sleeps_takes_its_time_and_one_of_no_known_kind_fails() -> None:
    """KC-16"""
    machine = Machine()
    await machine.run({"sleep": {"seconds": 7}})
    assert asyncio.get_running_loop().time() == 7
    await machine.run({"exec": {"command": ["true"]}})
    assert machine.commands[0][2] is None, "no limit of its own"
    with pytest.raises(HookError, match="invalid handler"):
        await machine.run({})
