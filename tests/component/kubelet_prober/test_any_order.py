"""Whatever happens to pods and in whatever order: one question per prober at a time, none of a pod that is gone, and
nothing left behind."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from podlife.kubelet.runtime import ExecError
from podlife.testing import virtual_time
from tests.component.kubelet_prober.kit import (
    LIVENESS,
    READINESS,
    STARTUP,
    Node,
    node,
    probe,
    running,
    status,
)
from tests.conformance.kubelet.kit import container, deleting, pod

UIDS = ("u1", "u2")
TYPES = (STARTUP, READINESS, LIVENESS)

step = st.one_of(
    st.tuples(
        st.sampled_from(["add", "end", "remove", "show", "forget", "change", "restart", "stop"]),
        st.sampled_from(UIDS),
    ),
    st.tuples(st.sampled_from(["answer"]), st.sampled_from(["well", "ill", "slow", "error"])),
    st.tuples(st.just("wait"), st.sampled_from(["0.5", "3", "11", "40"])),
)


def a_pod(uid: str) -> dict[str, object]:
    probes = {
        type_.value: probe(exec={"command": [type_.value]}, timeoutSeconds=5, periodSeconds=4)
        for type_ in TYPES
    }
    return pod(container(**probes), metadata={"uid": uid})


class Story:
    def __init__(self, here: Node) -> None:
        self.here = here
        self.number = Counter[str]()
        self.wanted: set[str] = set()
        here.answer = lambda: 0

    async def go(self, what: str, which: str) -> None:
        probes = self.here.probes
        match what:
            case "add":
                self.wanted.add(which)
                probes.add(a_pod(which))
            case "end":
                probes.stop_for_termination(deleting(a_pod(which)))
            case "remove":
                self.wanted.discard(which)
                probes.remove(which)
            case "show" | "restart":
                self.number[which] += what == "restart"
                self.show(which, started=bool(self.number[which] % 2))
            case "stop":
                self.here.shown[which] = status(phase="Succeeded")
            case "forget":
                self.here.shown.pop(which, None)
            case "change":
                probes.status_changed(which)
            case "answer":
                self.answer(which)
            case "wait":
                await asyncio.sleep(float(which))

    def show(self, uid: str, *, started: bool) -> None:
        self.here.shown[uid] = status(running(container_id=f"{uid}-{self.number[uid]}", started=started))

    def answer(self, how: str) -> None:
        def error() -> int:
            raise ExecError("no")

        answers: dict[str, Callable[[], int | Awaitable[int]]] = {
            "well": lambda: 0,
            "ill": lambda: 1,
            "slow": lambda: asyncio.sleep(4.5, 0),
            "error": error,
        }
        self.here.answer = answers[how]


@settings(max_examples=150, deadline=None)
@given(st.lists(step, max_size=40))
@virtual_time
async def test_nothing_is_asked_twice_at_once_or_after_its_pod_is_gone(steps: list[tuple[str, str]]) -> None:
    async with node() as here:
        story = Story(here)
        for what, which in steps:
            await story.go(what, which)
            assert here.most_at_once <= 1
            if not story.wanted:
                # What was broken off has one turn to notice.
                await asyncio.sleep(0)
                await asyncio.sleep(0)
                assert here.under_way == 0
        here.probes.keep_only(())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        asked = len(here.asked)
        await asyncio.sleep(100)
        assert len(here.asked) == asked
        assert here.under_way == 0
        assert not here.probes.metrics.total
        ids = [f"{uid}-{number}" for uid in UIDS for number in range(story.number[uid] + 1)]
        assert {here.probes.result(type_, each) for type_ in TYPES for each in ids} == {None}
