"""What is kept of a pod before it is deleted, and what keeps the pod: under virtual time, against our own server."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import parse_qsl

import pytest
from prometheus_client import CollectorRegistry

from podlife.client import EVENTS, PODS, WithdrawnError
from podlife.errors import TooManyRequestsError
from podlife.podgc import Action, Outcome, Reason, Settings, Victim
from podlife.podgc.archive import ArchiveError, ArchiveStep, Entry, LogSettings
from podlife.podgc.archive import pod_reader as reading_module
from podlife.podgc.collector import Collector
from podlife.podgc.prometheus import GcMetrics
from podlife.podgc.removal import remove
from podlife.podgc.views import Pod
from podlife.wire import Request, Response
from tests.component.podgc.world import NODE, World, in_cluster, now, running
from tests.kit.embedded import refusal

LOG = "/log$"


class Shelf:
    """An archive in memory that a test can fill up."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self.trouble = ""
        self.late_trouble = ""
        self.most_at_once = 0
        self._at_once = 0

    async def check(self) -> None:
        if self.trouble:
            raise ArchiveError(self.trouble)

    async def get(self, namespace: str, name: str, uid: str) -> Entry | None:
        return self.entries.get(uid)

    async def put(self, entry: Entry) -> None:
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        await asyncio.sleep(0.1)
        self._at_once -= 1
        if self.late_trouble:
            raise ArchiveError(self.late_trouble)
        self.entries[entry.header.uid] = entry

    async def close(self) -> None: ...


class Node:
    """Answers for the logs of a pod: what each container has written, or how it cannot be had."""

    def __init__(self, world: World) -> None:
        self.logs: dict[tuple[str, bool], bytes | Response] = {}
        self.asked: list[dict[str, str]] = []
        self.is_silent = False
        # Containers whose logs do not come.
        self.slow: set[str] = set()
        # Pods whose names begin so are on a node that is dead.
        self.dead = "none"
        world.faults.put("GET", LOG, self._answer)

    async def _answer(self, request: Request) -> Response:
        query = dict(parse_qsl(request.query.raw))
        self.asked.append(query)
        if self.is_silent or f"/pods/{self.dead}" in request.path or query["container"] in self.slow:
            await asyncio.sleep(3600)
        log = self.logs.get((query["container"], query.get("previous") == "true"), b"")
        if isinstance(log, Response):
            return log
        # As a kubelet does: the last lines, and of those the first bytes.
        tail = b"".join(log.splitlines(keepends=True)[-int(query["tailLines"]) :])
        return Response(200, tail[: int(query["limitBytes"])], content_type="text/plain")


def archive_of(world: World) -> tuple[Shelf, Node]:
    return Shelf(), Node(world)


def step_of(world: World, shelf: Shelf, **settings: Any) -> ArchiveStep:
    return ArchiveStep(world.client, shelf, world.clock, LogSettings(**settings))


async def victim_of(world: World, name: str) -> Victim:
    pod = await world.client.get(PODS, name, "default", view=Pod)
    return Victim(pod, Reason.TERMINATED, Action.DELETE, "there are too many", "jobs")


async def tell(world: World, pod: dict[str, Any], reason: str, number: int = 0) -> None:
    metadata = pod["metadata"]
    event = {
        "metadata": {"name": f"{metadata['name']}.{reason.lower()}-{number}"},
        "involvedObject": {
            "kind": "Pod",
            "namespace": "default",
            "name": metadata["name"],
            "uid": metadata["uid"],
        },
        "reason": reason,
        "message": "told",
    }
    await world.admin.create(EVENTS, event, "default")


@in_cluster
async def test_an_entry_has_the_pod_its_events_and_the_end_of_its_logs(world: World) -> None:
    shelf, node = archive_of(world)
    pod = await world.pod("web", phase="Failed", labels={"app": "x"})
    other = await world.pod("other")
    await tell(world, pod, "BackOff")
    await tell(world, other, "Pulled")
    node.logs["c", False] = b"one\ntwo\n"
    began = world.clock.now()
    assert await step_of(world, shelf, lines=7)(await victim_of(world, "web")) == ""
    [entry] = shelf.entries.values()
    assert entry.pod == await world.get("web")
    assert [event["reason"] for event in entry.events] == ["BackOff"]
    assert [(log.container, log.text, log.is_cut, log.problem) for log in entry.logs] == [
        ("c", "one\ntwo\n", False, "")
    ]
    assert node.asked[0]["tailLines"] == "7"
    header = entry.header
    assert (header.namespace, header.name, header.uid) == ("default", "web", pod["metadata"]["uid"])
    assert (header.reason, header.why, header.rule) == ("terminated", "there are too many", "jobs")
    assert (header.phase, header.node, header.problems) == ("Failed", NODE, ())
    assert header.archived_at == began
    # The pod itself was only read.
    assert await world.left() == ["other", "web"]


@in_cluster
async def test_init_containers_and_the_instance_before_a_restart_are_read_too(world: World) -> None:
    shelf, node = archive_of(world)
    await world.pod("web", phase="Failed")
    await world.plant(
        "web",
        spec={"initContainers": [{"name": "first", "image": "i"}]},
        status={"phase": "Failed", "containerStatuses": [{"name": "c", "restartCount": 3}]},
    )
    node.logs = {("first", False): b"began", ("c", True): b"crashed", ("c", False): b"again"}
    await step_of(world, shelf)(await victim_of(world, "web"))
    [entry] = shelf.entries.values()
    assert [(log.container, log.kind, log.is_previous, log.text) for log in entry.logs] == [
        ("first", "init", False, "began"),
        ("c", "main", True, "crashed"),
        ("c", "main", False, "again"),
    ]


@in_cluster
async def test_of_a_log_that_is_too_long_the_end_is_kept_and_it_is_told(world: World) -> None:
    shelf, node = archive_of(world)
    await world.pod("web", phase="Failed")
    node.logs["c", False] = b"x" * 5000 + b"the end \xff"
    await step_of(world, shelf, most_bytes=1000)(await victim_of(world, "web"))
    [[log]] = [entry.logs for entry in shelf.entries.values()]
    assert (len(log.text), log.is_cut) == (1000, True)
    assert log.text.endswith("xthe end �")


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (refusal(404, "NotFound"), "404"),
        (refusal(400, "BadRequest"), "400"),
        (refusal(500, "InternalError"), "500"),
        (refusal(503, "ServiceUnavailable"), "503"),
    ],
)
@in_cluster
async def test_a_log_that_cannot_be_had_is_noted_and_does_not_keep_the_pod(
    world: World, answer: Response, why: str
) -> None:
    shelf, node = archive_of(world)
    await world.pod("web", phase="Failed")
    node.logs["c", False] = answer
    assert await step_of(world, shelf)(await victim_of(world, "web")) == ""
    [entry] = shelf.entries.values()
    assert why in entry.logs[0].problem
    [problem] = entry.header.problems
    assert problem.startswith(f"log of c: {why}")


@in_cluster
async def test_a_node_that_does_not_answer_is_waited_for_once_and_its_other_pods_go_at_once(
    world: World,
) -> None:
    shelf, node = archive_of(world)
    loop = asyncio.get_running_loop()
    node.is_silent = True
    step = step_of(world, shelf, seconds=10.0)
    await world.pods("one", "two", phase="Failed")
    assert await step(await victim_of(world, "one")) == ""
    first = loop.time()
    assert 10 <= first < 11
    assert await step(await victim_of(world, "two")) == ""
    assert loop.time() - first < 1
    told = [entry.logs[0].problem for entry in shelf.entries.values()]
    assert told == ["no answer within 10 s", f"node {NODE} did not answer"]
    # It is not written off for ever.
    node.is_silent = False
    node.logs["c", False] = b"back"
    await asyncio.sleep(61)
    await step(await victim_of(world, "one"))
    assert [entry.logs[0].text for entry in shelf.entries.values()] == ["back", ""]


@in_cluster
async def test_without_lines_no_log_is_asked_for_and_a_pod_without_a_node_has_none(world: World) -> None:
    shelf, node = archive_of(world)
    await world.pod("web", phase="Failed")
    await world.pod("never", phase="Pending", node="", is_terminating=True)
    await step_of(world, shelf, lines=0)(await victim_of(world, "web"))
    await step_of(world, shelf)(await victim_of(world, "never"))
    assert node.asked == []
    assert [[log.problem for log in entry.logs] for entry in shelf.entries.values()] == [
        [],
        ["the pod was never scheduled"],
    ]


@in_cluster
async def test_a_pod_that_is_gone_or_another_by_now_has_nothing_to_archive_and_goes_on(world: World) -> None:
    shelf, _ = archive_of(world)
    await world.pod("web", phase="Failed")
    victim = await victim_of(world, "web")
    await world.replace("web", phase="Running")
    assert await step_of(world, shelf)(victim) == ""
    removal = await remove(world.client, victim, Settings().gates, world.clock, (step_of(world, shelf),))
    assert removal.outcome in (Outcome.REPLACED, Outcome.CHANGED)
    assert await world.left() == ["web"]
    await world.admin.delete(PODS, "web", "default")
    await world.admin.request(
        "DELETE", "/api/v1/namespaces/default/pods/web", query={"gracePeriodSeconds": "0"}
    )
    assert await step_of(world, shelf)(victim) == ""
    assert shelf.entries == {}


@pytest.mark.parametrize("when", ["trouble", "late_trouble"])
@in_cluster
async def test_a_pod_stays_while_the_archive_fails_and_goes_when_it_is_well_again(
    world: World, when: str
) -> None:
    shelf, node = archive_of(world)
    await world.pods("old", "young", phase="Failed")
    setattr(shelf, when, "the archive is full")
    step = step_of(world, shelf)
    told: list[tuple[str, str, str]] = []

    class Recorder:
        def event(self, regarding: Any, type_: str, reason: str, message: str) -> None:
            told.append((regarding["name"], reason, message))

    collector = Collector(
        world.client,
        Settings(threshold=1),
        clock=world.clock,
        recorder=Recorder(),  # type: ignore[arg-type] # a fake
        steps=(step,),
    )
    async with running(collector):
        await asyncio.sleep(30)
        assert await world.left() == ["old", "young"]
        assert set(told) == {("old", "PodNotCollected", "podlife-gc: the archive is full")}
        # Full from the beginning: then nothing is read of any pod for it.
        assert bool(node.asked) == (when == "late_trouble")
        setattr(shelf, when, "")
        await asyncio.sleep(300)
        assert await world.left() == ["young"]
    assert [entry.header.name for entry in shelf.entries.values()] == ["old"]
    registry = CollectorRegistry()
    registry.register(GcMetrics(collector, step))
    numbers = {
        name: registry.get_sample_value(f"podlife_gc_archive_{name}_total")
        for name in ("entries", "refusals", "missing_logs")
    }
    assert numbers == {"entries": 1, "refusals": step.counts.refusals, "missing_logs": 0}
    assert step.counts.refusals >= 3


@pytest.mark.parametrize("path", ["/pods/web$", "/events$", LOG])
@in_cluster
async def test_a_right_that_is_missing_keeps_the_pod_and_names_the_file_that_has_it(
    world: World, path: str
) -> None:
    shelf, _ = archive_of(world)
    await world.pod("web", phase="Failed")
    victim = await victim_of(world, "web")
    world.faults.clear()

    async def forbid(request: Request) -> Response:
        return refusal(403, "Forbidden")

    world.faults.put("GET", path, forbid)
    why = await step_of(world, shelf)(victim)
    assert why.startswith("cannot be archived: ")
    assert why.endswith("see deploy/gc/archive/rbac.yaml")
    assert shelf.entries == {}


@in_cluster
async def test_a_server_that_is_overloaded_keeps_the_pod_for_later(world: World) -> None:
    shelf, node = archive_of(world)
    await world.pod("web", phase="Failed")
    node.logs["c", False] = refusal(429, "TooManyRequests")
    with pytest.raises(TooManyRequestsError):
        await step_of(world, shelf)(await victim_of(world, "web"))
    assert shelf.entries == {}


@in_cluster
async def test_who_has_withdrawn_reads_nothing_more_and_the_pod_stays(world: World) -> None:
    shelf, node = archive_of(world)
    await world.pod("web", phase="Failed")
    step = step_of(world, shelf)
    victim = await victim_of(world, "web")
    step.withdraw()
    with pytest.raises(WithdrawnError):
        await step(victim)
    assert (shelf.entries, node.asked) == ({}, [])


@in_cluster
async def test_of_very_many_events_a_bounded_number_is_kept_and_it_is_told(world: World) -> None:
    shelf, _ = archive_of(world)
    pod = await world.pod("web", phase="Failed")
    for number in range(501):
        await tell(world, pod, "Again", number)
    await step_of(world, shelf)(await victim_of(world, "web"))
    [entry] = shelf.entries.values()
    assert len(entry.events) == 500
    assert entry.header.problems == ("events: only 500 of them were read",)


@in_cluster
async def test_a_sweep_makes_only_so_many_entries_at_a_time(world: World) -> None:
    shelf, _ = archive_of(world)
    await world.pods(*(f"web-{number}" for number in range(60)), phase="Failed")
    collector = world.collector(threshold=1, steps=(step_of(world, shelf),))
    summary = await collector.sweep_once()
    assert (summary.outcomes[Outcome.DELETED], len(shelf.entries)) == (59, 59)
    assert shelf.most_at_once == 16


@in_cluster
async def test_for_many_pods_of_a_namespace_its_events_are_read_once_and_everybody_gets_their_own(
    world: World,
) -> None:
    shelf, _ = archive_of(world)
    for number in range(121):
        await tell(world, await world.pod(f"web-{number}", phase="Failed"), "Failed", number)
    step = step_of(world, shelf)
    collector = world.collector(threshold=1, steps=(step,))
    await collector.sweep_once()
    assert len(shelf.entries) == 120
    for entry in shelf.entries.values():
        assert [each["involvedObject"]["uid"] for each in entry.events] == [entry.header.uid]
    lists = world.faults.sent("GET", "/events")
    assert len(lists) < 40
    # Later it is asked anew: what was told since must be in it.
    await asyncio.sleep(60)
    left = await world.get((await world.left())[0])
    await tell(world, left, "Late")
    await step(await victim_of(world, left["metadata"]["name"]))
    assert len(shelf.entries[left["metadata"]["uid"]].events) == 2


@in_cluster
async def test_a_namespace_with_too_many_events_is_asked_about_pod_by_pod(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading_module, "_MAX_CACHED", 50)
    shelf, _ = archive_of(world)
    for number in range(61):
        await tell(world, await world.pod(f"web-{number}", phase="Failed"), "Failed", number)
    step = step_of(world, shelf)
    await world.collector(threshold=1, steps=(step,)).sweep_once()
    assert [len(entry.events) for entry in shelf.entries.values()] == [1] * 60


@in_cluster
async def test_a_dead_node_costs_the_pods_of_others_neither_their_logs_nor_much_time(world: World) -> None:
    shelf, node = archive_of(world)
    await world.node("dead", ready="Unknown")
    node.dead, node.logs["c", False] = "dead-", b"well"
    for number in range(50):
        await world.pod(f"dead-{number}", phase="Failed", node="dead")
        await world.pod(f"well-{number}", phase="Failed")
    await world.pod("youngest", phase="Failed")
    step = step_of(world, shelf, seconds=10.0)
    await world.collector(threshold=1, steps=(step,)).sweep_once()
    assert len(shelf.entries) == 100
    for entry in shelf.entries.values():
        [log] = entry.logs
        assert (log.text == "well") == entry.header.name.startswith("well-"), log.problem
    assert now() < 60


@in_cluster
async def test_a_pod_that_is_archived_again_keeps_the_logs_and_events_that_are_not_there_any_more(
    world: World,
) -> None:
    """Its first deletion was held by a finalizer; by the second its node is gone, and its events have expired."""
    shelf, node = archive_of(world)
    pod = await world.pod("web", phase="Failed")
    await tell(world, pod, "OOMKilling")
    node.logs["c", False] = b"the reason\n"
    step = step_of(world, shelf)
    assert await step(await victim_of(world, "web")) == ""
    for event in (await world.admin.list(EVENTS, "default")).items:
        await world.admin.delete(EVENTS, event["metadata"]["name"], "default")
    await tell(world, pod, "NodeGone")
    node.logs["c", False] = refusal(404, "NotFound")
    await asyncio.sleep(4000)
    assert await step(await victim_of(world, "web")) == ""
    [entry] = shelf.entries.values()
    assert [(log.text, log.problem) for log in entry.logs] == [("the reason\n", "")]
    assert [event["reason"] for event in entry.events] == ["OOMKilling", "NodeGone"]
    assert entry.header.problems == ()
    # Of what is still there, the later counts.
    node.logs["c", False] = b"more of it\n"
    assert await step(await victim_of(world, "web")) == ""
    [entry] = shelf.entries.values()
    assert [log.text for log in entry.logs] == ["more of it\n"]
    assert len(entry.events) == 2


@in_cluster
async def test_the_end_of_a_log_is_kept_also_where_its_lines_are_more_than_is_read_of_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading_module, "_MAX_READ_BYTES", 10_000)
    shelf, node = archive_of(world)
    await world.pod("web", phase="Failed")
    node.logs["c", False] = b"".join(b"line %6d\n" % number for number in range(5000)) + b"the end\n"
    await step_of(world, shelf, lines=4000, most_bytes=1000)(await victim_of(world, "web"))
    [[log]] = [entry.logs for entry in shelf.entries.values()]
    assert log.text.endswith("line   4999\nthe end\n")
    assert (500 < len(log.text) <= 1000, log.is_cut) == (True, True)
    assert len(node.asked) == 2


@in_cluster
async def test_one_log_that_is_slow_costs_other_pods_of_its_node_nothing(world: World) -> None:
    shelf, node = archive_of(world)
    await world.pods("one", "two", phase="Failed")
    await world.plant(
        "one",
        spec={"containers": [{"name": "c", "image": "i"}, {"name": "slow", "image": "i"}]},
        status={"phase": "Failed"},
    )
    node.slow, node.logs["c", False] = {"slow"}, b"well"
    step = step_of(world, shelf, seconds=10.0)
    for name in ("one", "two"):
        assert await step(await victim_of(world, name)) == ""
    one, two = shelf.entries.values()
    assert [(log.text, log.problem) for log in one.logs] == [("well", ""), ("", "no answer within 10 s")]
    assert [(log.text, log.problem) for log in two.logs] == [("well", "")]


@pytest.mark.parametrize("often", [20, 0])
@in_cluster
async def test_events_that_somebody_made_large_are_kept_only_as_far_as_an_entry_bears_them(
    world: World, monkeypatch: pytest.MonkeyPatch, often: int
) -> None:
    """Asked of the pod alone, and from what is held of its namespace."""
    monkeypatch.setattr(reading_module, "_CACHE_REQUESTS", often)
    monkeypatch.setattr(reading_module, "MAX_EVENT_BYTES", 10_000)
    shelf, _ = archive_of(world)
    pod = await world.pod("web", phase="Failed")
    for number in range(30):
        await tell(world, pod, "Large", number)
    await step_of(world, shelf)(await victim_of(world, "web"))
    [entry] = shelf.entries.values()
    assert 0 < len(entry.events) < 30
    assert entry.header.problems == (f"events: only {len(entry.events)} of them were read",)


@in_cluster
async def test_a_namespace_whose_events_are_too_large_to_hold_is_asked_about_pod_by_pod(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading_module, "_CACHE_REQUESTS", 0)
    monkeypatch.setattr(reading_module, "_MAX_CACHED_BYTES", 100)
    shelf, _ = archive_of(world)
    await tell(world, await world.pod("web", phase="Failed"), "Failed")
    await step_of(world, shelf)(await victim_of(world, "web"))
    [entry] = shelf.entries.values()
    assert len(entry.events) == 1
    assert any("involvedObject.uid" in each.query.raw for each in world.faults.sent("GET", "/events"))
