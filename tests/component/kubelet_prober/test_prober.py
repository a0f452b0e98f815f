"""A busy node must not be taken for an ill container."""

from __future__ import annotations

import asyncio

import pytest

from podlife.kubelet.prober.prober import ProbeOutcome, ProbeReply, ProbeRequest, run_probe
from podlife.testing import VirtualTimeLoop, virtual_time
from tests.conformance.kubelet.kit import container, pod


async def asked_while_held_up(monkeypatch: pytest.MonkeyPatch, seconds: float) -> ProbeReply:
    """Nobody ever answers, and the event loop stands still for so long during each try."""

    async def never(*_: object) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualTimeLoop)
        loop.call_later(0.9, loop.jump, seconds)
        await asyncio.Event().wait()

    monkeypatch.setattr(asyncio, "open_connection", never)
    one = container()
    return await run_probe(
        None,  # type: ignore[arg-type] # no runtime is asked
        ProbeRequest({"tcpSocket": {"port": 80}}, pod(one), one, "1", "127.0.0.1", 1),
    )


@virtual_time
async def test_an_answer_that_does_not_come_in_time_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = await asked_while_held_up(monkeypatch, 0.2)
    assert answer == ProbeReply(ProbeOutcome.FAILURE, "dial tcp 127.0.0.1:80: i/o timeout")
    assert asyncio.get_running_loop().time() < 1.5


@virtual_time
async def test_one_that_the_node_was_too_busy_to_wait_for_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = await asked_while_held_up(monkeypatch, 3)
    assert (answer.outcome, answer.output) == (ProbeOutcome.UNKNOWN, "")
    assert answer.error.startswith("the node was held up for 2.9 s while it waited for the answer: dial tcp")
    assert asyncio.get_running_loop().time() == pytest.approx(3 * 3.9)
