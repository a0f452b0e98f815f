"""Several electors, one lease, and everything that can go wrong between them: never two do the work at once.

Each candidate has a wall clock of its own that is off, and a network of its own in which requests come late, get
lost on the way there or back, are refused, or hang for long. It is stopped, comes back under the same or another
name, and its work takes a while to end. Hypothesis chooses all of that.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from datetime import datetime

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from podlife.aio import cancel_and_wait
from podlife.controller import LeaderElector, LeaseLostError
from podlife.controller.leader_election import Work
from podlife.errors import UnreachableError
from podlife.testing import LoopClock, VirtualTimeLoop
from podlife.wire import Handler, Request, Response
from tests.kit.embedded import connect, refusal, start

# Those who wait look often, so that they come as early as they may.
LEASE, RENEW, RETRY = 15.0, 10.0, 0.5
MINUTES = 5


@dataclass
class Fault:
    """How one request fares. `there` and `back` are seconds on the way; `end` is what comes of it."""

    there: float
    back: float
    end: str


@dataclass
class Life:
    """One candidate: when it runs, how its clock is off, how its requests fare, how its work ends."""

    off_seconds: float
    is_frozen: bool
    runs: list[tuple[float, float]]
    keeps_name: bool
    work_ends_after: float
    faults: list[Fault]


seconds = st.sampled_from([0.0, 0.0, 0.001, 0.5, 1.9, 4.9, 6.0, 14.0, 30.0])
ends = st.sampled_from(["ok", "ok", "lost there", "lost back", "500", "409", "reset"])
# Trouble comes in spells: so many requests in a row fare alike.
spells = st.tuples(st.builds(Fault, seconds, seconds, ends), st.sampled_from([1, 1, 3, 20]))
lives = st.builds(
    Life,
    off_seconds=st.sampled_from([-86_400.0, -3.0, 0.0, 7.0, 86_400.0]),
    is_frozen=st.booleans(),
    # How long it waits before it starts, and how long it runs then.
    runs=st.lists(st.tuples(st.floats(0, 40), st.floats(1, 120)), min_size=1, max_size=4),
    keeps_name=st.booleans(),
    # Less than there is between losing the lease and its running out.
    work_ends_after=st.sampled_from([0.0, 0.5, 4.9]),
    faults=st.lists(spells, max_size=12).map(
        lambda several: [fault for fault, times in several for _ in range(times)]
    ),
)


LOST = Fault(0, 0, "lost there")


class FrozenClock(LoopClock):
    def now(self) -> datetime:
        return self._start


@dataclass
class Floor:
    """Where the work is done: room for one."""

    handler: Handler
    at_work: list[str] = field(default_factory=list)
    terms: int = 0

    def enter(self, who: str) -> None:
        self.at_work.append(who)
        self.terms += 1
        assert len(self.at_work) == 1, f"{self.at_work} at {asyncio.get_running_loop().time()}"

    def leave(self, who: str) -> None:
        self.at_work.remove(who)


class Network:
    def __init__(self, faults: list[Fault]) -> None:
        self.faults = list(faults)

    async def __call__(self, request: Request, handler: Handler) -> Response:
        fault = self.faults.pop(0) if self.faults else Fault(0, 0, "ok")
        # A request that its sender has given up may still arrive.
        arrival = asyncio.get_running_loop().create_task(self.deliver(request, handler, fault))
        return await asyncio.shield(arrival)

    async def deliver(self, request: Request, handler: Handler, fault: Fault) -> Response:
        await asyncio.sleep(fault.there)
        if fault.end == "lost there":
            await asyncio.sleep(1000)
        if fault.end == "500":
            return refusal(500, "InternalError")
        if fault.end == "409":
            return refusal(409, "Conflict")
        response = await handler(request)
        await asyncio.sleep(fault.back)
        if fault.end == "lost back":
            await asyncio.sleep(1000)
        if fault.end == "reset":
            raise UnreachableError("the connection was reset")
        return response


async def live(number: int, life: Life, floor: Floor) -> None:
    client = connect(floor.handler, Network(life.faults))
    for run, (wait, length) in enumerate(life.runs):
        await asyncio.sleep(wait)
        who = f"{number}" if life.keeps_name else f"{number}-{run}"
        clock = (FrozenClock if life.is_frozen else LoopClock)(off_seconds=life.off_seconds)
        elector = LeaderElector(
            client,
            "kube-system",
            "gc",
            who,
            lease_seconds=LEASE,
            renew_seconds=RENEW,
            retry_seconds=RETRY,
            clock=clock,
        )

        async def work(who: str = who) -> None:
            floor.enter(who)
            try:
                await asyncio.sleep(1_000_000)
            finally:
                await asyncio.sleep(life.work_ends_after)
                floor.leave(who)

        async def contend(elector: LeaderElector = elector, work: Work = work) -> None:
            while True:
                try:
                    await elector.run(work)
                except LeaseLostError:
                    continue

        running = asyncio.get_running_loop().create_task(contend())
        await asyncio.wait((running,), timeout=length)
        await cancel_and_wait(running, seconds=100)
        if not running.cancelled():
            running.result()


async def play(all_lives: list[Life]) -> int:
    floor = Floor(await start())
    logging.disable(logging.CRITICAL)
    try:
        async with asyncio.timeout(MINUTES * 60), asyncio.TaskGroup() as group:
            for number, life in enumerate(all_lives):
                group.create_task(live(number, life, floor))
    except TimeoutError:
        pass
    finally:
        logging.disable(logging.NOTSET)
        left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        await cancel_and_wait(*left)
    return floor.terms


# A leader that hears late of its last renewal, and then nothing any more, while another looks on.
CUT_OFF = [
    Life(0, False, [(0, 200)], True, 4.9, [Fault(0, 0, "ok")] * 20 + [Fault(0, 4.9, "ok")] + [LOST] * 100),
    Life(0, False, [(1, 200)], True, 0, []),
]


@given(st.lists(lives, min_size=2, max_size=3))
@example(CUT_OFF)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_never_do_two_lead_at_once_whatever_happens_between_them(all_lives: list[Life]) -> None:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(play(all_lives))


@pytest.mark.parametrize("count", [2, 3])
def test_somebody_leads_when_nothing_goes_wrong(count: int) -> None:
    quiet = [Life(0, False, [(1.0 * n, 60.0)] * 2, False, 0.5, []) for n in range(count)]
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        assert runner.run(play(quiet)) >= count
