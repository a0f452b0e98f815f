"""One call for all who ask at the same time."""

from __future__ import annotations

import asyncio

from podlife.kubelet.object_cache.single_flight import SingleFlight


async def test_who_asks_again_as_soon_as_a_call_has_ended_has_a_new_one() -> None:
    """Not its old answer again and again, for as long as nobody else gets a turn to take note of its end."""
    calls: SingleFlight[int] = SingleFlight()
    made = 0

    async def call() -> int:
        nonlocal made
        made += 1
        return made

    async def ask_until_it_is_new() -> int:
        answer = 0
        for _ in range(3):
            answer = await calls.join("key", "call", call)
        return answer

    answers = await asyncio.gather(*(ask_until_it_is_new() for _ in range(3)))
    assert min(answers) > 1
