"""The rate-limited queue, all its layers, against a naive model that looks through everything at every step."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from podlife.testing import VirtualTimeLoop
from podlife.workqueue import ExponentialLimiter, RateLimitedQueue, ShutDownError

KEYS = st.sampled_from("abcd")


@dataclass
class Model:
    """What is wanted, in order; what is being worked on; what comes when."""

    wanted: list[str] = field(default_factory=list)
    working: list[str] = field(default_factory=list)
    # key, time, and the order in which keys of one time come.
    later: list[tuple[float, int, str]] = field(default_factory=list)
    failures: dict[str, int] = field(default_factory=dict)
    now: float = 0.0
    steps: int = 0
    is_shut_down: bool = False

    def add(self, key: str) -> None:
        if not self.is_shut_down and key not in self.wanted:
            self.wanted.append(key)

    def add_after(self, key: str, seconds: float) -> None:
        if self.is_shut_down:
            return
        if seconds <= 0:
            self.add(key)
            return
        self.steps += 1
        planned = [entry for entry in self.later if entry[2] == key]
        if planned and planned[0][0] <= self.now + seconds:
            return
        self.later = [entry for entry in self.later if entry[2] != key]
        self.later.append((self.now + seconds, self.steps, key))

    def takeable(self) -> list[str]:
        return [key for key in self.wanted if key not in self.working]

    def take(self) -> str:
        key = self.takeable()[0]
        self.wanted.remove(key)
        self.working.append(key)
        return key

    def done(self, key: str) -> None:
        self.working.remove(key)
        if key in self.wanted:
            # It was not in line while it was worked on: it goes to the end.
            self.wanted.remove(key)
            self.wanted.append(key)

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        for entry in sorted(self.later):
            if entry[0] <= self.now:
                self.later.remove(entry)
                self.add(entry[2])


class QueueMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner(loop_factory=VirtualTimeLoop)
        self.model = Model()
        self.queue: RateLimitedQueue[str] = RateLimitedQueue(limiter=ExponentialLimiter(1.0, 16.0))
        self.getters: list[asyncio.Task[str]] = []

    def teardown(self) -> None:
        self.run(self.end())
        self.runner.close()

    async def end(self) -> None:
        for getter in self.getters:
            getter.cancel()
        await asyncio.gather(*self.getters, return_exceptions=True)

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return self.runner.run(coroutine)

    def step(self, act: Callable[[], object]) -> None:
        """Do it within the loop, and let those who wait take what they are given."""

        async def on_the_loop() -> None:
            act()
            for _ in range(6):
                await asyncio.sleep(0)
            self.hand_out()

        self.run(on_the_loop())

    def hand_out(self) -> None:
        """Getters that are done have taken keys as the model says: the first in line got the first key."""
        for getter in [getter for getter in self.getters if getter.done()]:
            self.getters.remove(getter)
            if getter.exception() is not None:
                assert isinstance(getter.exception(), ShutDownError)
                assert self.model.is_shut_down
                assert not self.model.takeable()
            else:
                assert getter.result() == self.model.take()

    @rule(key=KEYS)
    def add(self, key: str) -> None:
        self.model.add(key)
        self.step(lambda: self.queue.add(key))

    @rule(key=KEYS, seconds=st.sampled_from([-1.0, 0.0, 1.0, 2.0, 3.0, 8.0]))
    def add_after(self, key: str, seconds: float) -> None:
        self.model.add_after(key, seconds)
        self.step(lambda: self.queue.add_after(key, seconds))

    @rule(key=KEYS)
    def fail(self, key: str) -> None:
        failures = self.model.failures.get(key, 0)
        self.model.failures[key] = failures + 1
        self.model.add_after(key, min(16.0, 2.0**failures))
        self.step(lambda: self.queue.add_rate_limited(key))

    @rule(key=KEYS)
    def forget(self, key: str) -> None:
        self.model.failures.pop(key, None)
        self.queue.forget(key)

    @precondition(lambda self: len(self.getters) < 3)
    @rule()
    def get(self) -> None:
        async def begin() -> None:
            getter = asyncio.get_running_loop().create_task(self.queue.get())
            self.getters.append(getter)

        self.run(begin())
        self.step(lambda: None)

    @precondition(lambda self: self.getters)
    @rule(data=st.data(), key=KEYS, with_add=st.booleans())
    def give_up(self, data: st.DataObject, key: str, with_add: bool) -> None:
        """A getter is cancelled while it waits, or at the very moment at which a key wakes it."""
        getter = data.draw(st.sampled_from(self.getters))

        def act() -> None:
            if with_add:
                self.queue.add(key)
            getter.cancel()

        if with_add:
            self.model.add(key)
        self.getters.remove(getter)
        self.step(act)
        assert getter.cancelled()

    @precondition(lambda self: self.model.working)
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(self.model.working))
        self.model.done(key)
        self.step(lambda: self.queue.done(key))

    @rule(seconds=st.sampled_from([0.5, 1.0, 4.0]))
    def pass_time(self, seconds: float) -> None:
        self.model.pass_time(seconds)
        self.run(asyncio.sleep(seconds))
        self.step(lambda: None)

    @precondition(lambda self: self.model.steps > 10)
    @rule()
    def shut_down(self) -> None:
        self.model.is_shut_down = True
        self.model.later.clear()
        self.run(self.queue.shut_down())
        self.step(lambda: None)

    @invariant()
    def agree(self) -> None:
        model, queue = self.model, self.queue
        assert len(queue) == len(model.takeable())
        assert queue.depth == len(model.wanted)
        assert queue.working == len(model.working)
        assert queue.delayed == len(model.later)
        for key in "abcd":
            assert queue.retries(key) == model.failures.get(key, 0)
        assert not (self.getters and model.takeable()), "somebody waits though there is work"


TestQueue = QueueMachine.TestCase
TestQueue.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
