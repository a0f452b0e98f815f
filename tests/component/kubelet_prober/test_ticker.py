"""When probes are asked: by their periods, at once where somebody waits for it, and never after the pod has gone."""

from __future__ import annotations

import asyncio

from podlife.testing import virtual_time
from tests.component.kubelet_prober.kit import BAD, LIVENESS, OK, READINESS, at, node, probe, running, status
from tests.conformance.kubelet.kit import container, pod


@virtual_time
async def test_a_probe_is_asked_at_once_and_then_every_period() -> None:
    async with node() as here:
        here.probe_running(livenessProbe=probe(timeoutSeconds=3))
        await at(30)
        assert here.times == [0, 10, 20, 30]
        assert set(here.timeouts) == {3}
        assert here.changes == [("u", "1", LIVENESS, OK)]


@virtual_time
async def test_a_question_that_takes_longer_than_a_period_makes_up_for_one_beat_only() -> None:
    async with node() as here:
        here.answer = lambda: asyncio.sleep(25, 0)
        here.probe_running(livenessProbe=probe(timeoutSeconds=60))
        await at(59)
        # The beats at 10 and 20 were missed: one question follows at once, the next at the beat after it.
        assert here.times == [0, 25, 50]
        here.answer = lambda: 0
        await at(100)
        assert here.times == [0, 25, 50, 75, 80, 90, 100]


@virtual_time
async def test_readiness_is_asked_as_soon_as_the_container_is_known_to_run() -> None:
    async with node() as here:
        here.probes.add(pod(container(readinessProbe=probe(), livenessProbe=probe())))
        await at(3)
        assert here.asked == []
        here.shown["u"] = status(running(since=3))
        here.probes.status_changed("u")
        await at(4)
        assert here.times == [3.001]
        assert here.probes.result(READINESS, "1") is OK
        here.probes.status_changed("u")
        await at(9)
        assert len(here.asked) == 1, "one that is ready waits for its period"
        await at(14)
        assert [round(when) for when in here.times] == [3, 10, 13]


@virtual_time
async def test_a_change_during_a_question_is_looked_at_when_it_is_answered() -> None:
    async with node() as here:
        here.answer = lambda: asyncio.sleep(2, 1)
        here.probe_running(readinessProbe=probe())
        await at(1)
        here.shown["u"] = status(running(container_id="2"))
        here.probes.status_changed("u")
        here.probes.status_changed("u")
        await at(5)
        assert here.asked == [(0, "1"), (2, "2")]


@virtual_time
async def test_a_command_the_runtime_never_answers_for_is_given_up() -> None:
    async with node() as here:
        here.answer = lambda: asyncio.sleep(100_000, 0)
        here.probe_running(livenessProbe=probe())
        await at(40)
        assert here.times == [0, 11, 22, 33]
        message = "Liveness probe errored and resulted in unknown state: the runtime did not answer in time"
        assert here.events == [("spec.containers{a}", "Unhealthy", message)]
        assert here.probes.result(LIVENESS, "1") is OK


@virtual_time
async def test_a_question_under_way_is_broken_off_when_the_pod_goes() -> None:
    async with node() as here:
        here.answer = lambda: asyncio.sleep(5, 1)
        here.probe_running(livenessProbe=probe(failureThreshold=1, timeoutSeconds=9))
        await at(1)
        assert here.under_way == 1
        here.probes.remove("u")
        await at(2)
        assert here.under_way == 0
        here.probes.remove("u")
        await at(100)
        assert here.times == [0]
        assert here.events == []
        assert here.probes.result(LIVENESS, "1") is None


@virtual_time
async def test_a_container_that_has_ended_for_good_is_told_once_however_often_its_pod_is_added() -> None:
    async with node() as here:
        done = {"name": "a", "containerID": "sim://1", "state": {"terminated": {"exitCode": 0}}}
        here.shown["u"] = status(done)
        never = pod(container(livenessProbe=probe(), readinessProbe=probe()), policy="Never")
        for _ in range(5):
            here.probes.add(never)
            await asyncio.sleep(1)
        assert here.changes == [("u", "1", READINESS, BAD), ("u", "1", LIVENESS, BAD)]
        assert here.asked == []


@virtual_time
async def test_one_who_removes_the_pod_when_told_of_a_verdict_ends_the_look() -> None:
    async with node() as here:
        here.on_change = lambda uid, *_: here.probes.remove(uid)
        here.probe_running(livenessProbe=probe(), readinessProbe=probe())
        await at(100)
        assert here.asked == []


@virtual_time
async def test_a_status_that_cannot_be_read_stops_nobody() -> None:
    async with node() as here:
        here.shown["u"] = {"phase": "Running", "containerStatuses": [{"containerID": "sim://1"}]}
        here.probes.add(pod(container(livenessProbe=probe())))
        await at(15)
        here.shown["u"] = status(running())
        await at(25)
        assert here.times == [20]


@virtual_time
async def test_two_thousand_probes_between_their_periods_are_timers_and_no_tasks() -> None:
    async with node() as here:
        for number in range(500):
            uid = f"u{number}"
            here.shown[uid] = status(running("a", f"{uid}-a"), running("b", f"{uid}-b"))
            both = {"livenessProbe": probe(), "readinessProbe": probe()}
            of_pod = pod(container("a", **both), container("b", **both), metadata={"uid": uid})
            here.probes.add(of_pod)
        await at(5)
        assert len(here.asked) == 2000
        assert len(asyncio.all_tasks()) == 1
        await at(25)
        assert len(here.asked) == 6000
        here.probes.keep_only({"u1"})
        await at(35)
        assert len(here.asked) == 6004
        assert len(here.probes.metrics.total) == 4


@virtual_time
async def test_one_who_says_the_status_changed_when_told_of_a_verdict_makes_nobody_ask_twice() -> None:
    async with node() as here:
        here.answer = lambda: asyncio.sleep(2, 1)
        here.on_change = lambda uid, *_: here.probes.status_changed(uid)
        here.probe_running(readinessProbe=probe(timeoutSeconds=5))
        await at(9)
        assert (here.most_at_once, here.times) == (1, [0])
