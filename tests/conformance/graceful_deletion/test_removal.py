"""What a delete writes and answers, when the object really goes, and what a watcher sees of it."""

from __future__ import annotations

from typing import Any

import pytest

from podlife.api.codec import format_time
from tests.conformance.graceful_deletion.conftest import on_both_stores
from tests.conformance.graceful_deletion.world import NODE, World

HELD = {"finalizers": ["example.com/held"]}


async def test_delete_of_what_is_not_there_is_a_404_and_no_event(world: World) -> None:
    """GD-50. What upstream's hook would have done shows as an event here, and there is none."""
    created = await world.pod("p")
    answer = await world.delete("q")
    assert (answer.code, answer.message) == (404, 'pods "q" not found')
    assert answer.body["details"] == {"name": "q", "kind": "pods"}
    assert await world.events(created, name="q") == []
    assert await world.get("p") == created


@on_both_stores
async def test_graceful_delete_is_one_update_and_the_pod_stays(world: World) -> None:
    """GD-51."""
    created = await world.pod()
    answer = await world.delete("p")
    [marked] = await world.events(created)
    assert (marked.type, marked.obj) == ("MODIFIED", answer.body)
    assert await world.get("p") == answer.body
    before, after = created["metadata"], answer.meta
    changed = {field for field in before.keys() | after.keys() if before.get(field) != after.get(field)}
    assert changed == {"deletionTimestamp", "deletionGracePeriodSeconds", "generation", "resourceVersion"}
    assert (answer.body["spec"], answer.body["status"]) == (created["spec"], created["status"])


@on_both_stores
async def test_zero_grace_is_a_modification_and_then_a_deletion(world: World) -> None:
    """GD-52."""
    created = await world.pod(phase="Running")
    answer = await world.delete("p", gracePeriodSeconds=0)
    modified, deleted = await world.events(created)
    assert (modified.type, deleted.type) == ("MODIFIED", "DELETED")
    for meta in (modified.meta, deleted.meta, answer.meta):
        assert meta["deletionGracePeriodSeconds"] == 0
        assert world.seconds_until(meta["deletionTimestamp"]) == 0
        assert meta["uid"] == created["metadata"]["uid"]
    versions = [int(meta["resourceVersion"]) for meta in (created["metadata"], modified.meta, deleted.meta)]
    assert versions == sorted(set(versions))
    assert await world.is_gone("p")


@pytest.mark.parametrize(
    ("options", "grace"), [({"gracePeriodSeconds": 0}, 0), ({}, 30)], ids=["zero grace", "own grace"]
)
async def test_pod_with_finalizers_is_marked_and_never_removed_by_a_delete(
    world: World, options: dict[str, Any], grace: int
) -> None:
    """GD-55."""
    created = await world.pod(metadata=HELD)
    answer = await world.delete("p", **options)
    assert (answer.code, await world.get("p")) == (200, answer.body)
    assert answer.meta["deletionGracePeriodSeconds"] == grace
    assert world.seconds_until(answer.meta["deletionTimestamp"]) == grace
    assert answer.meta["generation"] == created["metadata"]["generation"] + 1
    assert [seen.type for seen in await world.events(created)] == ["MODIFIED"]


@on_both_stores
async def test_update_that_takes_the_last_finalizer_removes_the_pod(world: World) -> None:
    """GD-56: removed instead of updated; the caller gets the object it sent."""
    await world.pod(metadata={"finalizers": ["example.com/one", "example.com/two"]})
    marked = (await world.delete("p", gracePeriodSeconds=0)).body

    sent = {**marked, "metadata": {**marked["metadata"], "finalizers": ["example.com/two"]}}
    kept = await world.request("PUT", world.path("pods", "p"), sent)
    assert (kept.code, await world.get("p")) == (200, kept.body)

    sent = {**kept.body, "metadata": {**kept.meta}}
    del sent["metadata"]["finalizers"]
    answer = await world.request("PUT", world.path("pods", "p"), sent)
    # Whose fields the finalizers were has changed, too.
    sent["metadata"]["managedFields"] = answer.meta["managedFields"]
    assert (answer.code, answer.body) == (200, sent)
    assert await world.is_gone("p")
    assert [seen.type for seen in await world.events(kept.body)] == ["DELETED"]


async def test_pod_that_loses_its_finalizers_within_its_grace_waits_for_the_last_delete(world: World) -> None:
    """GD-57."""
    await world.pod(metadata=HELD)
    marked = (await world.delete("p")).body
    answer = await world.patch("p", {"metadata": {"finalizers": None}})
    assert (answer.code, await world.get("p")) == (200, answer.body)
    assert answer.meta["deletionGracePeriodSeconds"] == 30
    assert [seen.type for seen in await world.events(marked)] == ["MODIFIED"]
    await world.delete("p", gracePeriodSeconds=0)
    assert await world.is_gone("p")


@pytest.mark.parametrize(
    ("change", "sub"),
    [({"status": {"phase": "Failed"}}, "status"), ({"metadata": {"labels": {"x": "y"}}}, ""), ({}, "")],
    ids=["status", "labels", "nothing at all"],
)
@pytest.mark.parametrize("grace", [0, None])
async def test_any_update_finishes_a_removal_that_was_left_half_done(
    world: World, change: dict[str, Any], sub: str, grace: int | None
) -> None:
    """GD-58."""
    await world.pod()
    now = format_time(world.clock.now())
    left = await world.plant("p", metadata={"deletionTimestamp": now, "deletionGracePeriodSeconds": grace})
    assert (await world.patch("p", change, sub=sub)).code == 200
    assert await world.is_gone("p")
    assert [seen.type for seen in await world.events(left)] == ["DELETED"]


async def test_dry_run_shows_what_would_be_and_stores_nothing(world: World) -> None:
    """GD-65."""
    created = await world.pod()
    for answer in (await world.delete("p", dryRun=["All"]), await world.delete("p", query="?dryRun=All")):
        assert (answer.code, answer.meta["deletionGracePeriodSeconds"]) == (200, 30)
        assert world.seconds_until(answer.meta["deletionTimestamp"]) == 30
    assert await world.get("p") == created
    assert await world.events(created) == []


async def test_dry_run_of_a_removal_removes_nothing(world: World) -> None:
    """GD-65: also where the delete would have been the end of the pod."""
    created = await world.pod(node="")
    assert (await world.delete("p", dryRun=["All"], gracePeriodSeconds=0)).code == 200
    assert await world.get("p") == created


@pytest.mark.parametrize("time", [None, "2031-01-01T00:00:00Z"], ids=["cleared", "changed"])
async def test_update_can_not_touch_the_time_of_deletion(world: World, time: str | None) -> None:
    """GD-66: it is not refused, it simply stays."""
    await world.pod()
    marked = (await world.delete("p")).body
    answer = await world.patch("p", {"metadata": {"deletionTimestamp": time}})
    assert answer.code == 200
    assert (await world.get("p"))["metadata"]["deletionTimestamp"] == marked["metadata"]["deletionTimestamp"]


async def test_update_can_not_change_the_grace_and_need_not_name_it(world: World) -> None:
    """GD-66."""
    await world.pod()
    marked = (await world.delete("p")).body
    refused = await world.patch("p", {"metadata": {"deletionGracePeriodSeconds": 1}})
    assert (refused.code, refused.body["reason"]) == (422, "Invalid")
    assert "metadata.deletionGracePeriodSeconds: Invalid value: 1: field is immutable" in refused.message
    assert await world.get("p") == marked
    accepted = await world.patch(
        "p", {"metadata": {"deletionGracePeriodSeconds": None, "labels": {"x": "y"}}}
    )
    assert (accepted.code, accepted.meta["deletionGracePeriodSeconds"]) == (200, 30)


async def test_finalizer_can_not_be_added_to_a_pod_that_is_going(world: World) -> None:
    """GD-66."""
    await world.pod()
    marked = (await world.delete("p")).body
    answer = await world.patch("p", {"metadata": HELD})
    assert (answer.code, answer.body["reason"]) == (422, "Invalid")
    assert (
        "no new finalizers can be added if the object is being deleted, "
        'found new finalizers []string{"example.com/held"}'
    ) in answer.message
    assert await world.get("p") == marked


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


async def test_name_is_free_again_only_when_the_pod_is_gone(world: World) -> None:
    """Why a StatefulSet waits: a pod of the same name can not be made while the old one terminates."""
    old = await world.pod(phase="Running", is_ready=True)
    await world.delete("p")
    body = {"metadata": {"name": "p"}, "spec": old["spec"]}
    assert (await world.request("POST", world.path("pods"), body)).code == 409
    await world.delete("p", who=NODE, gracePeriodSeconds=0)
    new = await world.request("POST", world.path("pods"), body)
    assert (new.code, new.meta["uid"] != old["metadata"]["uid"]) == (201, True)
