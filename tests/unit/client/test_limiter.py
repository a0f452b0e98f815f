"""The limiter: its pure core, and the shell that lets callers in."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podlife.client.limiter import Finished, Limiter, LimiterSettings, LimiterState, Started, may_start, step
from podlife.testing import virtual_time

SETTINGS = LimiterSettings(initial=4, least=1, most=8, quick_seconds=0.25)


def test_a_round_of_quick_answers_at_the_limit_adds_one() -> None:
    state = LimiterState(limit=4, in_flight=4)
    for _ in range(4):
        state = step(state, Finished(round=0, seconds=0.01), 0, SETTINGS)
        state = step(state, Started(), 0, SETTINGS)
    assert 4.8 < state.limit <= 5


@pytest.mark.parametrize(
    ("before", "event", "after"),
    [
        pytest.param((4, 2), Finished(0, 0.01), (4, 1), id="it does not grow while it is not used"),
        pytest.param((4, 4), Finished(0, 3.0), (4, 3), id="slow answers do not let it grow"),
        pytest.param((4, 4), Finished(0, 0.01, is_silent=True), (4, 3), id="a request given up says nothing"),
        pytest.param((8, 8), Finished(0, 0.01), (8, 7), id="it never exceeds the most"),
    ],
)
def test_the_limit_stays(before: tuple[int, int], event: Finished, after: tuple[int, int]) -> None:
    assert step(LimiterState(*before), event, 0, SETTINGS) == LimiterState(*after)


def test_trouble_halves_the_limit_once_for_all_requests_that_were_under_way() -> None:
    state = LimiterState(limit=8, in_flight=8)
    for _ in range(8):
        state = step(state, Finished(round=0, is_trouble=True), 0, SETTINGS)
    assert state == LimiterState(limit=4, in_flight=0, round=1)
    state = step(step(state, Started(), 0, SETTINGS), Finished(round=1, is_trouble=True), 0, SETTINGS)
    assert state.limit == 2


def test_the_limit_never_falls_below_the_least() -> None:
    state = LimiterState(limit=1, in_flight=1)
    assert step(state, Finished(0, is_trouble=True), 0, SETTINGS).limit == 1


def test_retry_after_holds_everybody_back_and_never_gets_shorter() -> None:
    state = LimiterState(limit=4, in_flight=2)
    state = step(state, Finished(0, is_trouble=True, retry_after=10), 100, SETTINGS)
    state = step(state, Finished(0, is_trouble=True, retry_after=1), 101, SETTINGS)
    assert state.paused_until == 110
    assert not may_start(state, 109.9)
    assert may_start(state, 110)


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 2), st.booleans(), st.integers(0, 3))))
def test_whatever_happens_the_limit_stays_within_its_bounds(
    events: list[tuple[bool, float, bool, int]],
) -> None:
    state, rounds = LimiterState(limit=4), []
    for start, seconds, trouble, retry_after in events:
        if start and may_start(state, 1e9):
            state = step(state, Started(), 0, SETTINGS)
            rounds.append(state.round)
        elif rounds:
            finished = Finished(rounds.pop(0), seconds, trouble, retry_after)
            state = step(state, finished, 0, SETTINGS)
        assert SETTINGS.least <= state.limit <= SETTINGS.most
        assert state.in_flight == len(rounds)


@virtual_time
async def test_no_more_are_let_in_than_the_limit_and_the_first_to_come_is_the_first_served() -> None:
    limiter = Limiter(LimiterSettings(initial=2, most=2))
    served: list[int] = []
    most = 0

    async def work(number: int) -> None:
        nonlocal most
        slot = await limiter.enter()
        served.append(number)
        most = max(most, limiter.state.in_flight)
        await asyncio.sleep(1)
        slot.report_answer()
        limiter.leave(slot)

    async with asyncio.TaskGroup() as group:
        for number in range(6):
            group.create_task(work(number))
    assert served == [0, 1, 2, 3, 4, 5]
    assert most == 2
    assert limiter.state.in_flight == 0
    assert asyncio.get_running_loop().time() == 3


@virtual_time
async def test_after_a_retry_after_nobody_is_let_in_before_its_time() -> None:
    limiter = Limiter(LimiterSettings(initial=4))
    slot = await limiter.enter()
    slot.report_trouble(retry_after=7)
    limiter.leave(slot)
    other = await limiter.enter()
    assert asyncio.get_running_loop().time() == 7
    limiter.leave(other)


@virtual_time
async def test_a_caller_that_gives_up_waiting_leaves_its_place_to_the_next() -> None:
    limiter = Limiter(LimiterSettings(initial=1))
    held = await limiter.enter()
    loop = asyncio.get_running_loop()
    first, second = (loop.create_task(limiter.enter()) for _ in range(2))
    await asyncio.sleep(0)
    assert limiter.waiting == 2
    first.cancel()
    limiter.leave(held)
    slot = await second
    assert limiter.state.in_flight == 1
    assert limiter.waiting == 0
    limiter.leave(slot)


@virtual_time
async def test_a_caller_cancelled_at_the_moment_it_is_let_in_gives_the_slot_back() -> None:
    limiter = Limiter(LimiterSettings(initial=1))
    held = await limiter.enter()
    waiting = asyncio.get_running_loop().create_task(limiter.enter())
    await asyncio.sleep(0)
    limiter.leave(held)
    waiting.cancel()
    await asyncio.wait([waiting])
    assert waiting.cancelled()
    assert limiter.state.in_flight == 0


@virtual_time
async def test_at_once_means_without_a_wait_and_not_before_those_in_line() -> None:
    limiter = Limiter(LimiterSettings(initial=1))
    held = limiter.enter_at_once()
    assert held is not None
    assert limiter.enter_at_once() is None
    waiting = asyncio.get_running_loop().create_task(limiter.enter())
    await asyncio.sleep(0)
    limiter.leave(held)
    # The slot is free for the one in line, who has not run yet.
    assert limiter.enter_at_once() is None
    limiter.leave(await waiting)
    assert limiter.state.in_flight == 0
