"""The codes and bodies of DELETE."""

from __future__ import annotations

from tests.conformance.graceful_deletion.world import World


async def test_pod_is_answered_with_itself_whether_marked_or_removed(world: World) -> None:
    """GD-80."""
    created = await world.pod()
    for grace in (30, 0):
        answer = await world.delete("p", gracePeriodSeconds=grace)
        assert (answer.code, answer.body["kind"]) == (200, "Pod")
        assert answer.meta["uid"] == created["metadata"]["uid"]
        assert answer.meta["deletionGracePeriodSeconds"] == grace


async def test_other_kinds_are_answered_with_a_status_once_removed(world: World) -> None:
    """GD-80."""
    created = await world.create("configmaps", {"metadata": {"name": "m"}})
    answer = await world.delete("m", resource="configmaps")
    assert answer.code == 200
    assert (answer.body["kind"], answer.body["status"]) == ("Status", "Success")
    details = {"name": "m", "kind": "configmaps", "uid": created["metadata"]["uid"]}
    assert answer.body["details"] == details


async def test_other_kinds_are_answered_with_themselves_while_finalizers_hold_them(world: World) -> None:
    """GD-80: a Status would say that it is gone."""
    await world.create("configmaps", {"metadata": {"name": "m", "finalizers": ["example.com/held"]}})
    answer = await world.delete("m", resource="configmaps")
    assert (answer.code, answer.body) == (200, await world.get("m", "configmaps"))


async def test_refusals_have_their_codes(world: World) -> None:
    """GD-80: 404, 409 and 422, each as a Status."""
    await world.pod()
    for code, answer in (
        (404, await world.delete("missing")),
        (409, await world.delete("p", preconditions={"uid": "another"})),
        (422, await world.delete("p", propagationPolicy="Slowly")),
    ):
        assert (answer.code, answer.body["code"], answer.body["kind"]) == (code, code, "Status")
        assert answer.body["status"] == "Failure"


async def test_graceful_deletion_is_a_202_only_for_the_old_way_to_ask_for_a_cascade(world: World) -> None:
    """GD-81."""
    await world.pod("modern")
    assert (await world.delete("modern", propagationPolicy="Background")).code == 200
    await world.pod("old")
    assert (await world.delete("old", orphanDependents=False)).code == 202
    await world.pod("orphaning")
    assert (await world.delete("orphaning", orphanDependents=True)).code == 200


async def test_what_is_gone_at_once_is_a_200_however_it_was_asked_for(world: World) -> None:
    """GD-81."""
    await world.pod(node="")
    assert (await world.delete("p", orphanDependents=False)).code == 200
    assert await world.is_gone("p")
