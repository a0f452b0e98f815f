"""What upstream retries or re-checks when somebody else was faster, and what stands in its place here.

A verb holds its object from reading it to the commit, so nothing can come between: there is no stale copy and
no conflict half way. Each test shows the outcome that the rule wants: a request that meets another writer
decides on what that writer left.
"""

from __future__ import annotations

import asyncio

from tests.conformance.graceful_deletion.conftest import on_both_stores
from tests.conformance.graceful_deletion.world import NODE, World

pytestmark = on_both_stores

HELD = {"finalizers": ["example.com/held"]}


async def test_version_that_moves_on_before_the_delete_begins_is_a_conflict(world: World) -> None:
    """GD-42: preconditions hold at the moment of the write, not only when the request came."""
    pod = await world.pod()
    meant = {"resourceVersion": pod["metadata"]["resourceVersion"]}
    request = world.delete("p", preconditions=meant, gracePeriodSeconds=0)
    [answer] = await world.meet([request], lambda: world.plant("p", metadata={"labels": {"new": "yes"}}))
    assert (answer.code, answer.body["reason"]) == (409, "Conflict")
    assert (await world.get("p"))["metadata"]["labels"] == {"new": "yes"}


async def test_pod_that_is_replaced_before_the_delete_begins_is_not_touched(world: World) -> None:
    """GD-42: the same for the UID."""
    pod = await world.pod()
    request = world.delete("p", preconditions={"uid": pod["metadata"]["uid"]})
    [answer] = await world.meet([request], lambda: world.plant("p", metadata={"uid": "of-the-next-one"}))
    assert answer.code == 409
    assert not await world.is_going()


async def test_of_many_deletes_of_one_version_only_the_first_is_right(world: World) -> None:
    """GD-42: each would shorten the grace; all but one come too late for their version."""
    await world.pod()
    marked = (await world.delete("p", gracePeriodSeconds=60)).body
    meant = {"resourceVersion": marked["metadata"]["resourceVersion"]}
    deletes = [world.delete("p", preconditions=meant, gracePeriodSeconds=grace) for grace in range(20, 40)]
    answers = await asyncio.gather(*deletes)
    assert sorted(answer.code for answer in answers) == [200] + [409] * 19
    [winner] = [answer for answer in answers if answer.code == 200]
    assert await world.get("p") == winner.body


async def test_many_final_deletes_at_once_remove_the_pod_once(world: World) -> None:
    """GD-53: upstream's loser still succeeds if it had begun; here it comes later and finds nothing. Nobody
    fails otherwise, and there is one removal."""
    pod = await world.pod()
    answers = await asyncio.gather(*(world.delete("p", gracePeriodSeconds=0) for _ in range(20)))
    assert sorted(answer.code for answer in answers) == [200] + [404] * 19
    [winner] = [answer for answer in answers if answer.code == 200]
    assert "deletionTimestamp" in winner.meta
    assert winner.meta["deletionGracePeriodSeconds"] == 0
    assert [seen.type for seen in await world.events(pod)] == ["MODIFIED", "DELETED"]


async def test_delete_that_finds_the_pod_just_removed_says_so(world: World) -> None:
    """GD-53."""
    await world.pod()
    [answer] = await world.meet([world.delete("p", gracePeriodSeconds=0)], lambda: world.uproot("p"))
    assert answer.code == 404


async def test_finalizer_that_comes_before_the_delete_begins_keeps_the_pod(world: World) -> None:
    """GD-62: what is stored decides, not what was there when the request came."""
    await world.pod()
    request = world.delete("p", gracePeriodSeconds=0)
    [answer] = await world.meet([request], lambda: world.plant("p", metadata=HELD))
    assert answer.code == 200
    meta = (await world.get("p"))["metadata"]
    assert (meta["finalizers"], meta["deletionGracePeriodSeconds"]) == (HELD["finalizers"], 0)


async def test_finalizer_that_was_acknowledged_is_never_lost_to_a_delete(world: World) -> None:
    """GD-62: both at once; whoever comes second finds the other's work."""
    names = [f"p{number}" for number in range(15)]
    for name in names:
        await world.pod(name)
    patches = [world.patch(name, {"metadata": HELD}) for name in names]
    deletes = [world.delete(name, gracePeriodSeconds=0) for name in names]
    both = [request for pair in zip(patches, deletes, strict=True) for request in pair]
    answers = await asyncio.gather(*both)
    for name, patched, deleted in zip(names, answers[::2], answers[1::2], strict=True):
        assert (patched.code, deleted.code) in ((200, 200), (404, 200))
        assert await world.is_gone(name) is (patched.code == 404)


async def test_delete_by_a_node_is_admitted_by_where_the_pod_is_now(world: World) -> None:
    """GD-63: admission looks at what is deleted. A node may delete only what is bound to it."""
    await world.pod(node=NODE)
    request = world.delete("p", who=NODE, gracePeriodSeconds=0)
    [answer] = await world.meet([request], lambda: world.plant("p", spec={"nodeName": "node-b"}))
    assert (answer.code, answer.body["reason"]) == (403, "Forbidden")
    assert not await world.is_going()


async def test_grace_follows_the_pod_as_it_is_now(world: World) -> None:
    """GD-63: the result follows the fresh object. The pod is over before the delete begins."""
    await world.pod(phase="Running")
    [answer] = await world.meet([world.delete("p")], lambda: world.plant("p", status={"phase": "Failed"}))
    assert (answer.code, answer.meta["deletionGracePeriodSeconds"]) == (200, 0)
    assert await world.is_gone("p")
