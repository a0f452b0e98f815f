"""The story of a pod's end, as far as the API server has a part in it.

A user deletes a pod: it is only marked. The agent of its node sees the mark, stops the pod, and asks for the
end with grace 0: then it is gone. The agent's part is played by the test.
"""

from __future__ import annotations

from tests.conformance.graceful_deletion.world import NODE, Answer, World


async def finish(world: World) -> Answer:
    """What the agent sends when nothing of the pod runs any more."""
    return await world.delete("p", who=NODE, gracePeriodSeconds=0)


async def test_deleted_pod_terminates_until_its_agent_ends_it(world: World) -> None:
    """The ideal end, seen by a watcher: marked, reported stopped, marked for the last time, gone."""
    pod = await world.pod(phase="Running", is_ready=True)

    deleted = await world.delete("p", gracePeriodSeconds=30)
    assert deleted.code == 200
    assert deleted.meta["deletionGracePeriodSeconds"] == 30
    assert await world.printed_status("p") == "Terminating"

    world.clock.advance(seconds=12)
    stopped = {"status": {"phase": "Succeeded", "conditions": [{"type": "Ready", "status": "False"}]}}
    assert (await world.patch("p", stopped, sub="status", who=NODE)).code == 200
    assert not await world.is_gone("p")

    assert (await finish(world)).code == 200
    assert await world.is_gone("p")
    told = [
        (seen.type, seen.phase, seen.meta["deletionGracePeriodSeconds"]) for seen in await world.events(pod)
    ]
    assert told == [
        ("MODIFIED", "Running", 30),
        ("MODIFIED", "Succeeded", 30),
        ("MODIFIED", "Succeeded", 0),
        ("DELETED", "Succeeded", 0),
    ]


async def test_hook_that_takes_too_long_gets_two_seconds_more_and_no_longer(world: World) -> None:
    """The small extra grace is the agent's own affair: the server lets nobody lengthen a deletion."""
    await world.pod(phase="Running", is_ready=True)
    marked = (await world.delete("p", gracePeriodSeconds=30)).body
    world.clock.advance(seconds=30)
    assert (await world.delete("p", gracePeriodSeconds=32)).body == marked
    assert await world.get("p") == marked


async def test_pod_on_a_node_without_an_agent_stays_terminating(world: World) -> None:
    """Nobody but the agent sends the last delete, however long the grace is over and however often it is asked
    for; a user can still force it."""
    await world.pod(phase="Running", is_ready=True)
    marked = (await world.delete("p", gracePeriodSeconds=30)).body
    for _ in range(3):
        world.clock.advance(minutes=60)
        assert (await world.delete("p", gracePeriodSeconds=30)).code == 200
        assert await world.get("p") == marked
    assert await world.printed_status("p") == "Terminating"
    assert (await world.delete("p", gracePeriodSeconds=0)).code == 200
    assert await world.is_gone("p")


async def test_pod_that_was_never_scheduled_has_no_agent_and_goes_at_once(world: World) -> None:
    pod = await world.pod(node="")
    assert (await world.delete("p", gracePeriodSeconds=30)).code == 200
    assert await world.is_gone("p")
    assert [seen.type for seen in await world.events(pod)] == ["MODIFIED", "DELETED"]


async def test_name_is_free_again_only_when_the_pod_is_gone(world: World) -> None:
    """Why a StatefulSet waits: a pod of the same name can not be made while the old one terminates."""
    old = await world.pod(phase="Running", is_ready=True)
    await world.delete("p")
    body = {"metadata": {"name": "p"}, "spec": old["spec"]}
    assert (await world.request("POST", world.path("pods"), body)).code == 409
    await finish(world)
    new = await world.request("POST", world.path("pods"), body)
    assert (new.code, new.meta["uid"] != old["metadata"]["uid"]) == (201, True)
