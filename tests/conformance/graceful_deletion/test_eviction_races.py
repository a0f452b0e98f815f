"""Evictions that meet other writers.

Upstream works with preconditions and retries, up to 20 of them half a second apart, and may give up. Here the pod
and its budget are held from the decision to the last write. So there is no conflict to retry: each test shows
the outcome that the retries are there for.
"""

from __future__ import annotations

import asyncio

import pytest

from tests.conformance.graceful_deletion.conftest import on_both_stores
from tests.conformance.graceful_deletion.world import World

pytestmark = on_both_stores

RUNNING_READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
RUNNING_UNREADY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}
LABELS = {"labels": {"app": "a", "new": "yes"}}


async def test_pending_pod_that_changes_is_evicted_unless_the_caller_meant_a_version(world: World) -> None:
    """EV-06: a version that the caller gave is honoured and not retried."""
    pod = await world.pod(phase="Pending")
    meant = {"resourceVersion": pod["metadata"]["resourceVersion"]}
    picky, easy = await world.meet(
        [world.evict("p", preconditions=meant), world.evict("p")], lambda: world.plant("p", metadata=LABELS)
    )
    assert (picky.code, easy.code) == (409, 201)
    assert await world.is_going()
    assert (await world.get("p"))["metadata"]["labels"] == LABELS["labels"]


async def test_pending_pod_that_changes_twice_and_stays_pending_is_evicted_once(world: World) -> None:
    """EV-07."""
    pod = await world.pod(phase="Pending")

    async def change_twice() -> None:
        for value in ("1", "2"):
            await world.plant("p", metadata={"labels": {"new": value}})

    [answer] = await world.meet([world.evict("p")], change_twice)
    assert answer.code == 201
    marks = await world.marks(pod)
    assert [seen.meta["labels"] for seen in marks] == [{"new": "2"}]


async def test_pending_pod_that_starts_to_run_is_no_longer_free(world: World) -> None:
    """EV-08."""
    await world.budget(allowed=0, current=1, desired=1)
    await world.pod(phase="Pending")
    [answer] = await world.meet([world.evict("p")], lambda: world.plant("p", status=RUNNING_READY))
    assert answer.code == 429
    assert answer.cause["message"] == "The disruption budget b needs 1 healthy pods and has 1 currently"
    assert not await world.is_going()


async def test_pods_that_start_to_run_while_they_are_evicted_are_never_disrupted(world: World) -> None:
    """EV-08: both at once. Whoever is evicted was still pending; whoever runs was not evicted."""
    await world.budget(allowed=0, current=1, desired=1)
    names = [f"p{number}" for number in range(12)]
    pods = {name: await world.pod(name, phase="Pending") for name in names}
    reports = [world.patch(name, {"status": RUNNING_READY}, sub="status") for name in names]
    evictions = [world.evict(name) for name in names]
    both = [request for pair in zip(reports, evictions, strict=True) for request in pair]
    answers = await asyncio.gather(*both)
    for name, evicted in zip(names, answers[1::2], strict=True):
        marks = await world.marks(pods[name], name=name)
        assert [seen.phase for seen in marks[:1]] == (["Pending"] if evicted.code == 201 else [])
        assert evicted.code in (201, 429)


async def test_more_writers_than_upstream_would_bear_do_not_keep_an_eviction_away(world: World) -> None:
    """EV-09: upstream gives up after 20 conflicts. Here an eviction waits its turn, and has it: every write that
    came before is kept, and nothing has to be given up."""
    await world.pod(phase="Pending")
    writes = [world.patch("p", {"metadata": {"labels": {f"writer-{number}": "w"}}}) for number in range(25)]
    *written, evicted = await world.meet([*writes, world.evict("p")])
    assert [answer.code for answer in written] == [200] * 25
    assert evicted.code == 201
    assert len((await world.get("p"))["metadata"]["labels"]) == 26
    assert await world.is_going()


async def test_unready_pod_that_gets_ready_is_no_longer_free(world: World) -> None:
    """EV-19: what upstream's precondition is for."""
    await world.budget(allowed=0, current=2, desired=2)
    await world.pod(phase="Running", is_ready=False)
    [answer] = await world.meet([world.evict("p")], lambda: world.plant("p", status=RUNNING_READY))
    assert answer.code == 429
    assert not await world.is_going()


async def test_unready_pod_with_a_version_of_the_callers_is_a_conflict_and_no_429(world: World) -> None:
    """EV-19: other errors are returned as they are."""
    pod = await world.pod(phase="Running", is_ready=False)
    await world.budget(allowed=0, current=2, desired=2)
    meant = {"resourceVersion": pod["metadata"]["resourceVersion"]}
    request = world.evict("p", preconditions=meant)
    [answer] = await world.meet([request], lambda: world.plant("p", metadata=LABELS))
    assert (answer.code, answer.body["reason"]) == (409, "Conflict")
    assert not await world.is_going()


@pytest.mark.parametrize(("before", "after", "code"), [(0, 2, 201), (1, 0, 429)], ids=["refilled", "used up"])
async def test_budget_is_spent_as_its_controller_has_just_left_it(
    world: World, before: int, after: int, code: int
) -> None:
    """EV-20: the budget is read anew; what its controller wrote is not lost."""
    await world.budget(allowed=before, current=4, desired=2)
    await world.pod(phase="Running", is_ready=True)

    async def write() -> None:
        new = {"disruptionsAllowed": after, "currentHealthy": 9}
        await world.plant("b", resource="poddisruptionbudgets", status=new)

    [answer] = await world.meet([world.evict("p")], write, name="b", resource="poddisruptionbudgets")
    status = (await world.get_budget())["status"]
    assert answer.code == code
    assert (status["disruptionsAllowed"], status["currentHealthy"]) == (max(after - 1, 0), 9)
    assert await world.is_going() is (code == 201)


async def test_evictions_at_once_never_take_more_than_the_budget_has(world: World) -> None:
    """EV-20: nobody fails with a conflict, and every disruption is counted once."""
    await world.budget(allowed=4, current=12, desired=8)
    names = [f"p{number}" for number in range(12)]
    for name in names:
        await world.pod(name, phase="Running", is_ready=True)
    answers = await asyncio.gather(*(world.evict(name) for name in names))
    assert sorted(answer.code for answer in answers) == [201] * 4 + [429] * 8
    evicted = {name for name, answer in zip(names, answers, strict=True) if answer.code == 201}
    assert {name for name in names if await world.is_going(name)} == evicted
    status = (await world.get_budget())["status"]
    assert (status["disruptionsAllowed"], set(status["disruptedPods"])) == (0, evicted)


async def test_unready_pod_that_changes_and_stays_unready_is_evicted_once(world: World) -> None:
    """EV-23m: upstream can not tell what has changed and asks to come again with a 429. Here the decision is
    made on what is there, so there is nothing to come again for."""
    budget = await world.budget(allowed=0, current=2, desired=2)
    pod = await world.pod(phase="Running", is_ready=False)
    [answer] = await world.meet([world.evict("p")], lambda: world.plant("p", metadata=LABELS))
    assert answer.code == 201
    marks = await world.marks(pod)
    assert len(marks) == 1
    assert await world.get_budget() == budget


async def test_what_the_delete_refuses_is_told_as_it_is(world: World) -> None:
    """EV-23n: not turned into a 429. A refusal that a client can bring about is that of bad options."""
    await world.budget(allowed=0, current=2, desired=2)
    await world.pod(phase="Running", is_ready=False)
    answer = await world.evict("p", propagationPolicy="Slowly")
    assert (answer.code, answer.body["details"]["kind"]) == (422, "DeleteOptions")
    assert not await world.is_going()


async def test_pending_pod_that_runs_unready_is_freed_by_always_allow(world: World) -> None:
    """EV-23o: upstream, conflicting a second time, asks to come again; here there is no second time."""
    budget = await world.budget(allowed=0, policy="AlwaysAllow")
    pod = await world.pod(phase="Pending")
    [answer] = await world.meet([world.evict("p")], lambda: world.plant("p", status=RUNNING_UNREADY))
    assert answer.code == 201
    marks = await world.marks(pod)
    assert [seen.phase for seen in marks] == ["Running"]
    assert await world.get_budget() == budget


async def test_pending_pod_that_starts_to_run_is_paid_for_by_the_budget(world: World) -> None:
    """EV-23p."""
    await world.budget(allowed=1, current=2, desired=1)
    pod = await world.pod(phase="Pending")
    [answer] = await world.meet([world.evict("p")], lambda: world.plant("p", status=RUNNING_READY))
    assert answer.code == 201
    status = (await world.get_budget())["status"]
    assert (status["disruptionsAllowed"], list(status["disruptedPods"])) == (0, ["p"])
    marks = await world.marks(pod)
    assert [seen.phase for seen in marks] == ["Running"]
