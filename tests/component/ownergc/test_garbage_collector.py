"""The collector on a server that is well, beyond the table of scenarios: what it costs, and what it spares."""

from __future__ import annotations

import asyncio

import pytest

from podlife.client import CONFIG_MAPS, NAMESPACES, SECRETS
from podlife.ownergc import IGNORED
from podlife.testing import virtual_time
from podlife.wire import Request, Response
from tests.component.ownergc.world import HELD, World, in_world, is_watch, on, to, world

NOBODY = {"metadata": {"name": "nobody", "uid": "11111111-2222-3333-4444-555555555555"}}


@in_world
async def test_everything_that_can_be_deleted_is_followed_by_its_metadata_except_events(its: World) -> None:
    async with its.collecting() as collector:
        followed = {str(ref) for ref in collector.monitors.followed}
        assert {"configmaps", "pods", "nodes", "namespaces", "deployments.apps", "jobs.batch"} <= followed
        assert not followed & {"events", "events.events.k8s.io"}
        assert collector.complaint == ""
        assert collector.name == "garbage-collector-controller"


@in_world
async def test_a_dependent_costs_one_request_since_what_is_being_followed_need_not_be_asked_for(
    its: World,
) -> None:
    owner = await its.make("owner")
    for number in range(40):
        await its.make(f"dependent-{number}", to(owner))
    async with its.collecting():
        its.line.sent.clear()
        await its.delete("owner")
        await asyncio.sleep(5)
        assert await its.names() == set()
        assert sum(its.line.sent.values()) == 40
        assert all(each.startswith("DELETE") for each in its.line.sent)


@in_world
async def test_an_absent_owner_is_asked_for_once_however_many_refer_to_it(its: World) -> None:
    for number in range(40):
        await its.make(f"dependent-{number}", to(NOBODY))
    async with its.collecting():
        await asyncio.sleep(5)
        assert await its.names() == set()
        assert its.line.sent["GET /api/v1/namespaces/default/configmaps/nobody"] == 1


@in_world
async def test_every_delete_names_the_uid_and_the_state_it_was_decided_for(its: World) -> None:
    bodies: list[bytes] = []

    def note(request: Request) -> None:
        if request.method == "DELETE":
            bodies.append(request.body)

    dependent = await its.make("dependent", to(NOBODY))
    its.line.refuse = note
    async with its.collecting():
        await asyncio.sleep(5)
    (body,) = bodies
    assert dependent["metadata"]["uid"].encode() in body
    assert f'"resourceVersion":"{dependent["metadata"]["resourceVersion"]}"'.encode() in body


@in_world
async def test_when_nothing_changes_nothing_is_asked_but_what_there_is(its: World) -> None:
    """Also with owners that are never seen, of kinds that nobody knows, and with what is held for ever."""
    await its.make("unknown", to(NOBODY, kind="Widget"))
    owner = await its.make("owner")
    await its.make("held", to(owner, block=True), finalizers=[HELD])
    unfollowed = await its.make("unfollowed", ref=SECRETS)
    await its.make("of-unfollowed", to(unfollowed, kind="Secret"))
    async with its.collecting(ignored=IGNORED | {("", "secrets")}):
        await its.delete("owner", "Foreground")
        await asyncio.sleep(600)
        its.line.sent.clear()
        await asyncio.sleep(600)
        asked = its.line.sent
        assert 20 <= asked.pop("GET /api") <= 21
        assert 20 <= asked.pop("GET /apis") <= 21
        assert asked.pop("GET /api/v1/namespaces/default/secrets/unfollowed", 0) <= 2
        # Watches end by themselves after a while, and are taken up again.
        assert all(count <= 3 for count in asked.values()), asked
    assert await its.names() == {"unknown", "owner", "held", "unfollowed", "of-unfollowed"}


@in_world
async def test_a_dependent_of_an_unfollowed_owner_goes_after_it_is_gone(its: World) -> None:
    owner = await its.make("owner", ref=SECRETS)
    await its.make("dependent", to(owner, kind="Secret"))
    async with its.collecting(ignored=IGNORED | {("", "secrets")}) as collector:
        await asyncio.sleep(5)
        assert await its.names() == {"owner", "dependent"}
        await its.delete("owner", ref=SECRETS)
        await asyncio.sleep(60)
        assert await its.names() == set()
        assert not collector._unobserved_backoff._failures, "nothing is kept of who is gone"


@in_world
async def test_dependents_that_are_seen_before_their_owner_are_not_taken_for_orphans(its: World) -> None:
    """The owner's resource is followed slowly: the server is asked, and says that it is there."""
    async with its.collecting():
        its.line.delay = lambda request: 20.0 if request.path.endswith("/configmaps") else 0.0
        owner = await its.make("owner")
        for number in range(5):
            await its.make(f"dependent-{number}", to(owner), ref=SECRETS)
        await asyncio.sleep(10)
        assert len(await its.left(SECRETS)) == 5
        assert its.line.writes == []
        await asyncio.sleep(60)
        assert len(await its.left(SECRETS)) == 5
        await its.delete("owner")
        await asyncio.sleep(60)
        assert await its.names() == set()


@in_world
async def test_an_owner_made_again_under_its_name_inherits_nothing(its: World) -> None:
    old = await its.make("owner")
    await its.make("of-the-old", to(old))
    await its.delete("owner")
    new = await its.make("owner")
    await its.make("of-the-new", to(new))
    async with its.collecting():
        await asyncio.sleep(5)
        assert await its.names() == {"owner", "of-the-new"}


@in_world
async def test_a_dependent_that_was_made_again_under_its_name_is_not_the_one_that_was_meant(
    its: World,
) -> None:
    """The delete comes late: by then another object has the name."""
    async with its.collecting():
        owner = await its.make("owner")
        await its.make("dependent", to(owner))
        await asyncio.sleep(1)
        its.line.refuse = on("DELETE", 500)
        its.line.delay = lambda request: 30.0 if is_watch(request) else 0.0
        await its.delete("owner")
        await asyncio.sleep(29)
        await its.delete("dependent")
        await its.make("dependent")
        its.line.refuse = lambda request: None
        await asyncio.sleep(300)
        assert await its.names() == {"dependent"}


@in_world
async def test_resources_that_know_no_strategic_patch_are_patched_whole_and_lose_nothing_else(
    its: World,
) -> None:
    """As custom resources do."""
    goes, stays = await its.make("goes"), await its.make("stays")
    others = to(stays, controller=True, block=True)
    await its.make("shared", to(goes), others)
    lets_go = await its.make("lets-go")
    await its.make("orphaned", to(lets_go), others)

    def refuse(request: Request) -> Response | None:
        is_strategic = "strategic" in request.headers.get("Content-Type", "")
        return on("PATCH", 415, "UnsupportedMediaType")(request) if is_strategic else None

    its.line.refuse = refuse
    async with its.collecting():
        await its.delete("goes")
        await its.delete("lets-go", "Orphan")
        await asyncio.sleep(5)
        left = await its.left()
    assert left.keys() == {"stays", "shared", "orphaned"}
    assert left["shared"]["ownerReferences"] == [others]
    assert left["orphaned"]["ownerReferences"] == [others]


@in_world
async def test_a_circle_whose_resource_knows_no_strategic_patch_is_broken_all_the_same(its: World) -> None:
    async with its.collecting():
        first = await its.make("first")
        second = await its.make("second", to(first, block=True))
        patch = {"metadata": {"ownerReferences": [to(second, block=True)]}}
        await its.client.patch(CONFIG_MAPS, "first", patch, "default")

        def refuse(request: Request) -> Response | None:
            is_strategic = "strategic" in request.headers.get("Content-Type", "")
            return on("PATCH", 415, "UnsupportedMediaType")(request) if is_strategic else None

        its.line.refuse = refuse
        await asyncio.sleep(1)
        await its.delete("first", "Foreground")
        await asyncio.sleep(5)
        assert await its.names() == set()


@in_world
async def test_an_owner_with_a_name_that_no_object_can_have_is_given_up_in_one_line_and_nothing_is_deleted(
    its: World, caplog: pytest.LogCaptureFixture
) -> None:
    await its.make("slash", to(NOBODY, name="a/../configmaps"))
    await its.make("dots", to(NOBODY, name="..", uid="11111111-2222-3333-4444-666666666666"))
    async with its.collecting():
        await asyncio.sleep(100)
    assert await its.names() == {"slash", "dots"}
    assert its.line.writes == []
    said = [each for each in caplog.messages if "invalid object name" in each]
    assert len(said) == 2
    assert not any(record.exc_info for record in caplog.records)


@in_world
async def test_rights_that_are_missing_for_an_owner_keep_its_dependents_alive(its: World) -> None:
    """An owner that may not be asked for is not one that is gone."""
    its.line.refuse = on("/secrets", 403, "Forbidden")
    await its.make("dependent", to(NOBODY, kind="Secret"))
    async with its.collecting():
        await asyncio.sleep(600)
        assert await its.names() == {"dependent"}


@virtual_time
async def test_object_of_another_namespace_does_not_hold_up_an_owner_that_it_cannot_have() -> None:
    """Whoever knows a UID may write it into a reference; what does not go may be kept by a finalizer of its own."""
    async with world() as made, made.collecting():
        await made.client.create(NAMESPACES, {"metadata": {"name": "elsewhere"}})
        owner = await made.make("owner")
        await made.make("stranger", to(owner, block=True), namespace="elsewhere", finalizers=[HELD])
        await asyncio.sleep(5)
        await made.delete("owner", "Foreground")
        await asyncio.sleep(60)
        assert "owner" not in await made.left()


@virtual_time
async def test_owner_still_waits_for_a_dependent_that_waits_for_one_of_its_own() -> None:
    async with world() as made, made.collecting():
        owner = await made.make("owner")
        middle = await made.make("middle", to(owner, block=True))
        await made.make("last", to(middle, block=True), finalizers=[HELD])
        await asyncio.sleep(5)
        await made.delete("middle", "Foreground")
        await made.delete("owner", "Foreground")
        await asyncio.sleep(60)
        assert {"owner", "middle", "last"} <= (await made.left()).keys()
        await made.client.patch(CONFIG_MAPS, "last", {"metadata": {"finalizers": None}}, "default")
        await asyncio.sleep(60)
        assert not {"owner", "middle", "last"} & (await made.left()).keys()
