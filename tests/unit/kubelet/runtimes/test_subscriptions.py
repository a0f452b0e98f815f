"""Events to whoever asked; whoever falls behind is told to list."""

from __future__ import annotations

import asyncio

import pytest

from podlife.kubelet.runtime import EventKind, RuntimeEvent
from podlife.kubelet.runtimes.subscriptions import Subscriptions


def event(number: int) -> RuntimeEvent:
    return RuntimeEvent(EventKind.CONTAINER_STARTED, container_id=str(number))


async def test_a_subscriber_that_falls_behind_gets_a_relist_in_place_of_what_was_lost() -> None:
    subscriptions = Subscriptions(max_waiting=3)
    async with subscriptions.events() as events:
        for number in range(5):
            subscriptions.publish(event(number))
        assert [await anext(events), await anext(events)] == [RuntimeEvent(EventKind.RELIST), event(4)]


async def test_a_wait_that_was_given_up_loses_nothing() -> None:
    subscriptions = Subscriptions()
    async with subscriptions.events() as events:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await anext(events)
        subscriptions.publish(event(1))
        assert await anext(events) == event(1)


async def test_nothing_is_kept_for_those_who_left() -> None:
    subscriptions = Subscriptions(max_waiting=1)
    async with subscriptions.events() as events:
        pass
    subscriptions.publish(event(1))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await anext(events)
