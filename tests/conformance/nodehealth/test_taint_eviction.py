"""TE-10 to TE-20 and the rows TE-30 to TE-43, on the embedded server: which pods are deleted, when, what is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from podlife.client import EVENTS, NODES, PODS, DeleteOptions
from podlife.testing import virtual_time
from podlife.wire import Handler, Request, Response
from tests.component.nodehealth.world import (
    Asked,
    Controllers,
    World,
    condition,
    is_terminating,
    tolerates,
    world,
)
from tests.kit import objects
from tests.kit.embedded import refusal

A, B = "a", "b"


@asynccontextmanager
async def evicting(way: Asked | None = None) -> AsyncIterator[tuple[World, Controllers]]:
    """Two nodes, and the taint eviction controller alone."""
    async with world() as w, w.at_work(way=way, lifecycle=False) as controllers:
        await w.add_nodes("n1", "n2")
        yield w, controllers


async def moment() -> None:
    await asyncio.sleep(0.1)


@virtual_time
async def test_waits_begin_anew_with_the_controller() -> None:
    """TE-10."""
    async with world() as w:
        await w.add_node("n1")
        await w.add_pod("web", "n1", tolerations=[tolerates(A, 100)])
        await w.taint("n1", A)
        for _ in range(3):
            async with w.at_work(lifecycle=False):
                await asyncio.sleep(80)
                assert not await w.has_gone("web")
        async with w.at_work(lifecycle=False):
            await asyncio.sleep(100.5)
            assert await w.has_gone("web")


@virtual_time
async def test_without_taints_everything_of_the_node_is_cancelled() -> None:
    """TE-11 and TE-18: and told, of each that was still waiting."""
    async with evicting() as (w, controllers):
        for name in ("web", "db"):
            await w.add_pod(name, "n1", tolerations=[tolerates(A, 100)])
        await w.taint("n1", A)
        await asyncio.sleep(50)
        assert len(controllers.eviction.evictions.waiting) == 2
        await w.taint("n1")
        await asyncio.sleep(500)
        assert [await w.has_gone(name) for name in ("web", "db")] == [False, False]
        assert sorted(await w.events("TaintManagerEviction")) == [
            "Cancelling deletion of Pod default/db",
            "Cancelling deletion of Pod default/web",
        ]


@virtual_time
async def test_a_node_that_is_deleted_cancels_nothing_and_a_pod_that_is_deleted_does() -> None:
    """TE-12."""
    async with evicting() as (w, controllers):
        for name in ("web", "db"):
            await w.add_pod(name, "n1", tolerations=[tolerates(A, 100)])
        await w.taint("n1", A)
        await moment()
        await w.stop("n1")
        await w.client.delete(NODES, "n1")
        await w.client.delete(PODS, "db", "default", options=DeleteOptions(grace_period_seconds=0))
        await moment()
        assert await w.events("TaintManagerEviction") == ["Cancelling deletion of Pod default/db"]
        assert len(controllers.eviction.evictions.waiting) == 1
        await asyncio.sleep(100)
        assert await w.has_gone("web")


@virtual_time
async def test_only_tolerations_node_and_evicting_taints_are_looked_at() -> None:
    """TE-13: neither a status nor another taint begins anything anew."""
    async with evicting() as (w, controllers):
        await w.add_pod("web", "n1", tolerations=[tolerates(A, 100)])
        await w.taint("n1", A)
        await moment()
        [due_at] = controllers.eviction.evictions.waiting.values()
        await asyncio.sleep(20)
        await w.say_ready("web", "False")
        taints = [{"key": A, "effect": "NoExecute"}, {"key": "other", "effect": "NoSchedule"}]
        await w.client.patch(NODES, "n1", {"spec": {"taints": taints}})
        await moment()
        assert list(controllers.eviction.evictions.waiting.values()) == [due_at]


@virtual_time
async def test_a_node_and_its_pods_in_any_order_come_to_the_same() -> None:
    """TE-14, TE-15 and TE-43: upstream shards by node and drops what is out of date; here each event is looked at as it
    comes, with what is known then. A pod seen after its node's taint is evicted by its own event."""
    async with evicting() as (w, controllers):
        await w.taint("n1", A)
        await moment()
        await w.add_pod("late", "n1")
        await w.add_pod("bears", "n1", tolerations=[tolerates(A, 100)])
        pod = await w.add_pod("elsewhere")
        await w.client.bind("elsewhere", "default", "n2", uid=pod["metadata"]["uid"])
        await moment()
        assert [await w.has_gone(name) for name in ("late", "bears", "elsewhere")] == [True, False, False]
        assert len(controllers.eviction.evictions.waiting) == 1


@virtual_time
async def test_an_eviction_is_told_marked_and_a_deletion_of_the_pod_that_was_meant() -> None:
    """TE-16: the event, the pod read, its condition, the deletion; the UID in it is ours."""
    asked = Asked()
    bodies: list[bytes] = []

    async def note(request: Request, to_server: Handler) -> Response:
        if request.method in ("PATCH", "DELETE") and "/pods/" in request.path:
            bodies.append(request.body)
        return await to_server(request)

    asked.answer = note
    async with evicting(asked) as (w, _):
        made = await w.add_pod("web", "n1")
        await w.taint("n1", A)
        await moment()
        of_pod = [(method, path) for _, method, path in asked.requests if "/pods/web" in path]
        path = "/api/v1/namespaces/default/pods/web"
        assert of_pod == [("GET", path), ("PATCH", f"{path}/status"), ("DELETE", path)]
        uid = made["metadata"]["uid"].encode()
        assert all(uid in body for body in bodies)
        assert b"gracePeriodSeconds" not in bodies[1]
        target = condition(await w.pod("web") or {}, "DisruptionTarget")
        assert (target["status"], target["reason"], target["message"]) == (
            "True",
            "DeletionByTaintManager",
            "Taint manager: deleting due to NoExecute taint",
        )
        [event] = [
            each for each in (await w.client.list(EVENTS)).items if each["reason"] == "TaintManagerEviction"
        ]
        assert (event["type"], event["message"]) == ("Normal", "Marking for deletion Pod default/web")
        assert event["source"]["component"] == "taint-eviction-controller"
        assert event["involvedObject"] == {
            "kind": "Pod",
            "namespace": "default",
            "name": "web",
            "apiVersion": "v1",
        }
        shown = w.history.states(
            "Pod", "web", lambda pod: (bool(condition(pod, "DisruptionTarget")), is_terminating(pod))
        )
        assert shown == [(False, False), (True, False), (True, True)]


@virtual_time
async def test_a_condition_that_says_so_already_is_not_written_again() -> None:
    """TE-16."""
    asked = Asked()
    async with evicting(asked) as (w, _):
        await w.add_pod("web", "n1")
        told = objects.condition(
            "DisruptionTarget",
            "True",
            reason="DeletionByTaintManager",
            message="Taint manager: deleting due to NoExecute taint",
            lastTransitionTime="2029-01-01T00:00:00Z",
        )
        await w.client.patch(PODS, "web", {"status": {"conditions": [told]}}, "default", subresource="status")
        await w.taint("n1", A)
        await moment()
        assert await w.has_gone("web")
        assert [method for method, _ in asked.writes("/pods/")] == ["DELETE"]
        assert condition(await w.pod("web") or {}, "DisruptionTarget")["lastTransitionTime"][:4] == "2029"


@virtual_time
async def test_a_deletion_that_fails_is_tried_until_it_is_done_and_told_once() -> None:
    """TE-17, otherwise than upstream, which gives up after five tries within 50 ms."""
    asked = Asked()

    async def refuse(request: Request, to_server: Handler) -> Response:
        if request.method == "DELETE" and len(asked.of("DELETE")) <= 8:
            return refusal(500)
        return await to_server(request)

    asked.answer = refuse
    async with evicting(asked) as (w, controllers):
        await w.add_pod("web", "n1")
        await w.taint("n1", A)
        await asyncio.sleep(20)
        assert await w.has_gone("web")
        tries = asked.of("DELETE")
        assert len(tries) == 9
        assert tries[1] - tries[0] < tries[-1] - tries[-2]
        assert await w.events("TaintManagerEviction") == ["Marking for deletion Pod default/web"]
        assert controllers.eviction.metrics.deletions == 1


@virtual_time
async def test_neither_phase_nor_deletion_keeps_a_pod() -> None:
    """TE-19: one that has completed, and one that is on its way out."""
    asked = Asked()
    async with evicting(asked) as (w, _):
        await w.add_pod("done", "n1")
        await w.client.patch(
            PODS, "done", {"status": {"phase": "Succeeded"}}, "default", subresource="status"
        )
        await w.add_pod("going", "n1")
        await w.client.delete(PODS, "going", "default")
        await w.taint("n1", A)
        await moment()
        assert await w.pod("done") is None
        assert len(asked.of("DELETE", "/pods/going")) == 1
        assert condition(await w.pod("going") or {}, "DisruptionTarget")["status"] == "True"


@virtual_time
async def test_what_was_deleted_is_counted_and_how_late() -> None:
    """TE-20: each once, and only by a deletion that was taken."""
    async with evicting() as (w, controllers):
        for number in range(3):
            await w.add_pod(f"web{number}", "n1")
        await w.add_pod("gone", "n1", tolerations=[tolerates(A, 5)])
        await w.taint("n1", A)
        await moment()
        metrics = controllers.eviction.metrics
        assert (metrics.deletions, metrics.delay_seconds.total) == (3, 3)
        assert metrics.delay_seconds.sum < 1


ROWS = [
    # Where the pod is, what it tolerates, the taints of n1 before it comes and after; whether it goes.
    pytest.param("", [], [A], [A], False, id="TE-30a no node"),
    pytest.param("n1", [], [], [], False, id="TE-30b untainted"),
    pytest.param("n1", [], [A], [A], True, id="TE-31 tainted"),
    pytest.param("n1", [tolerates(A, 100)], [A], [A], False, id="TE-32a borne for 100 s"),
    pytest.param("n1", [tolerates(A)], [A], [A], False, id="TE-32b borne for ever"),
    pytest.param("n1", [tolerates(B)], [A], [A], True, id="TE-32c another is borne"),
    pytest.param("n1", [], [], [A], True, id="TE-37a taint added"),
    pytest.param("n1", [tolerates(A, 100)], [], [A], False, id="TE-37b taint added, borne for 100 s"),
    pytest.param("n1", [tolerates(A, 100)], [], [A, B], True, id="TE-37c two added, one borne"),
]


@pytest.mark.parametrize(("node", "tolerations", "before", "after", "goes"), ROWS)
@virtual_time
async def test_rows_of_one_pod(
    node: str, tolerations: list[dict[str, object]], before: list[str], after: list[str], goes: bool
) -> None:
    asked = Asked()
    async with evicting(asked) as (w, _):
        await w.taint("n1", *before)
        await w.add_pod("web", node, tolerations=tolerations)
        await moment()
        if after != before:
            await w.taint("n1", *after)
        await asyncio.sleep(5)
        assert await w.has_gone("web") is goes
        assert [method for method, _ in asked.writes("/pods/")] == (["PATCH", "DELETE"] if goes else [])


@pytest.mark.parametrize(
    ("tolerations", "goes"),
    [pytest.param([], True, id="TE-33a"), pytest.param([tolerates(A)], False, id="TE-33b")],
)
@virtual_time
async def test_a_pod_gets_bound_to_a_tainted_node(tolerations: list[dict[str, object]], goes: bool) -> None:
    async with evicting() as (w, _):
        await w.taint("n1", A)
        pod = await w.add_pod("web", tolerations=tolerations)
        await moment()
        assert not await w.has_gone("web")
        await w.client.bind("web", "default", "n1", uid=pod["metadata"]["uid"])
        await moment()
        assert await w.has_gone("web") is goes


@virtual_time
async def test_what_is_borne_no_more_goes_at_once() -> None:
    """TE-34: 100 s were pending. A pod's toleration cannot be taken from it, but another taint can come."""
    async with evicting() as (w, _):
        await w.add_pod("web", "n1", tolerations=[tolerates(A, 100)])
        await w.taint("n1", A)
        await asyncio.sleep(1)
        await w.taint("n1", A, B)
        await moment()
        assert await w.has_gone("web")
        assert await w.events("TaintManagerEviction") == [
            "Cancelling deletion of Pod default/web",
            "Marking for deletion Pod default/web",
        ]


@virtual_time
async def test_a_longer_toleration_does_not_put_it_off() -> None:
    """TE-35: 1 s was pending, and 100 s come."""
    async with evicting() as (w, controllers):
        await w.add_pod("web", "n1", tolerations=[tolerates(A, 1)])
        await w.taint("n1", A)
        await asyncio.sleep(0.5)
        given = (await w.pod("web") or {})["spec"]["tolerations"]
        longer = [{**each, "tolerationSeconds": 100} for each in given]
        await w.client.patch(PODS, "web", {"spec": {"tolerations": longer}}, "default")
        await moment()
        seen = controllers.eviction._pods.cache.get("default", "web")
        assert seen is not None
        assert {each.toleration_seconds for each in seen.spec.tolerations} == {100}
        await asyncio.sleep(0.6)
        assert await w.has_gone("web")


@pytest.mark.parametrize(
    ("keys", "tolerations", "goes"),
    [
        pytest.param([], [], False, id="TE-36a untainted"),
        pytest.param([A], [], True, id="TE-36b tainted"),
        pytest.param([A], [tolerates(A)], False, id="TE-36c tainted and borne"),
    ],
)
@virtual_time
async def test_a_node_appears_under_a_pod(
    keys: list[str], tolerations: list[dict[str, object]], goes: bool
) -> None:
    async with evicting() as (w, _):
        await w.add_pod("web", "new", tolerations=tolerations)
        await w.add_node("new", taints=[{"key": key, "effect": "NoExecute"} for key in keys])
        await moment()
        assert await w.has_gone("web") is goes


@virtual_time
async def test_a_taint_that_goes_in_time_does_nothing() -> None:
    """TE-38."""
    asked = Asked()
    async with evicting(asked) as (w, _):
        await w.add_pod("web", "n1", tolerations=[tolerates(A, 1)])
        await w.taint("n1", A)
        await asyncio.sleep(0.5)
        await w.taint("n1")
        await asyncio.sleep(1.5)
        assert asked.writes("/pods/") == []


@virtual_time
async def test_of_two_taints_the_shorter_time_counts() -> None:
    """TE-39."""
    async with evicting() as (w, _):
        await w.add_pod("web", "n1", tolerations=[tolerates(A, 1), tolerates(B, 100)])
        await w.taint("n1", A, B)
        await asyncio.sleep(0.9)
        assert not await w.has_gone("web")
        await asyncio.sleep(0.2)
        assert await w.has_gone("web")


@virtual_time
async def test_two_taints_of_which_one_is_borne() -> None:
    """TE-42: three pods, all go at once."""
    async with evicting() as (w, _):
        for name, seconds in (("one", 1), ("ten", 10), ("ever", None)):
            await w.add_pod(name, "n1", tolerations=[tolerates(A, seconds)])
        await w.taint("n1", A, B)
        await moment()
        assert [await w.has_gone(name) for name in ("one", "ten", "ever")] == [True] * 3


@virtual_time
async def test_a_pod_made_anew_under_the_name_lives() -> None:
    """TE-52: also when it comes between the look at the server and the deletion."""
    asked = Asked()

    async def replace(request: Request, to_server: Handler) -> Response:
        if request.method == "DELETE" and request.path.endswith("/pods/web"):
            asked.answer = None
            await w.client.delete(PODS, "web", "default", options=DeleteOptions(grace_period_seconds=0))
            await w.add_pod("web", "n2")
        return await to_server(request)

    asked.answer = replace
    async with evicting(asked) as (w, controllers):
        first = await w.add_pod("web", "n1")
        await w.taint("n1", A)
        await asyncio.sleep(5)
        pod = await w.pod("web")
        assert pod is not None
        assert pod["metadata"]["uid"] != first["metadata"]["uid"]
        assert not is_terminating(pod)
        assert controllers.eviction.metrics.deletions == 0
