"""The collector when things go wrong: servers away, watches with gaps, resources that come, go or are refused."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from typing import Any

import pytest

from podlife.client import CONFIG_MAPS, SECRETS
from podlife.testing import virtual_time
from podlife.wire import Request, Response
from tests.component.ownergc.world import HELD, World, in_world, on, to, world
from tests.kit.embedded import refusal

SECRET_PATHS = r"/secrets"


async def make_family(its: World) -> None:
    """Four owners that will go each in their own way, with dependents of two kinds."""
    for name in ("background", "foreground", "orphan", "stays"):
        owner = await its.make(name)
        for ref in (CONFIG_MAPS, SECRETS):
            middle = await its.make(f"{name}-{ref.plural}", to(owner, block=True), ref=ref)
            await its.make(f"{name}-{ref.plural}-last", to(middle, kind=ref.kind, block=True))


async def delete_family(its: World) -> None:
    await its.delete("background", "Background")
    await its.delete("foreground", "Foreground")
    await its.delete("orphan", "Orphan")


ALL = {
    "stays",
    *(
        f"{name}-{kind}{last}"
        for name in ("orphan", "stays")
        for kind in ("configmaps", "secrets")
        for last in ("", "-last")
    ),
}


async def check_family(its: World) -> None:
    assert await its.names() == ALL
    for found in (await its.left(), await its.left(SECRETS)):
        for name, metadata in found.items():
            assert "deletionTimestamp" not in metadata
            has_owner = "ownerReferences" in metadata
            assert has_owner == (name not in ("stays", "orphan-configmaps", "orphan-secrets")), name


@in_world
async def test_what_was_deleted_while_the_server_was_away_is_seen_when_it_is_back(its: World) -> None:
    async with its.collecting() as collector:
        await make_family(its)
        await asyncio.sleep(1)
        its.line.is_down = True
        its.line.cut()
        await delete_family(its)
        await asyncio.sleep(120)
        assert "configmaps" in collector.complaint or "not live" in collector.complaint
        its.line.is_down = False
        await asyncio.sleep(60)
        await check_family(its)
        assert collector.complaint == ""


@in_world
async def test_a_watch_with_a_gap_is_filled_by_a_list(its: World) -> None:
    async with its.collecting():
        await make_family(its)
        await asyncio.sleep(1)
        its.line.refuse = _once(on("watch=1.*&resourceVersion=", 410, "Expired"))
        its.line.cut()
        await delete_family(its)
        await asyncio.sleep(60)
        await check_family(its)


def _once(refuse: Callable[[Request], Response | None]) -> Callable[[Request], Response | None]:
    """Every path is refused no more than once."""
    refused: set[str] = set()

    def refuse_once(request: Request) -> Response | None:
        if request.path in refused or (answer := refuse(request)) is None:
            return None
        refused.add(request.path)
        return answer

    return refuse_once


@in_world
async def test_watches_that_break_all_the_time_lose_nothing(its: World) -> None:
    async with its.collecting():
        await make_family(its)
        await asyncio.sleep(1)
        await delete_family(its)
        for _ in range(20):
            its.line.cut()
            await asyncio.sleep(0.7)
        await asyncio.sleep(60)
        await check_family(its)


@pytest.mark.parametrize("killed_after", range(16))
@in_world
async def test_a_collector_that_is_killed_after_any_write_is_made_up_for_by_the_next(
    its: World, killed_after: int
) -> None:
    await make_family(its)
    its.line.refuse = _after(its, killed_after)
    async with its.collecting():
        await delete_family(its)
        await asyncio.sleep(2)
    its.line.refuse = lambda request: None
    async with its.collecting():
        await asyncio.sleep(30)
        await check_family(its)


def _after(its: World, writes: int) -> Any:
    """Whatever comes after so many writes does not arrive."""

    def refuse(request: Request) -> Response | None:
        is_late = len(its.line.writes) >= writes and request.method != "GET"
        return refusal(503, "ServiceUnavailable") if is_late else None

    return refuse


@in_world
async def test_a_server_that_refuses_deletes_is_tried_again_ever_more_slowly(its: World) -> None:
    async with its.collecting():
        owner = await its.make("owner")
        await its.make("dependent", to(owner))
        await asyncio.sleep(1)
        its.line.refuse = on("DELETE", 403, "Forbidden")
        its.line.sent.clear()
        await its.delete("owner")
        await asyncio.sleep(600)
        assert 10 <= its.line.sent["DELETE /api/v1/namespaces/default/configmaps/dependent"] <= 20
        its.line.refuse = lambda request: None
        await asyncio.sleep(1000)
        assert await its.names() == set()


# Resources that are refused, come and go


@in_world
async def test_a_resource_that_is_refused_is_left_out_and_said_so_once_and_the_rest_goes_on(
    its: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    its.line.refuse = on(SECRET_PATHS, 403, "Forbidden")
    await make_family(its)
    async with its.collecting() as collector:
        await delete_family(its)
        await asyncio.sleep(200)
        left = await its.left()
        assert left.keys() == {name for name in ALL if "secrets" not in name} | {
            "orphan-secrets-last",
            "stays-secrets-last",
            # Of owners that cannot be seen nothing can be said.
            "background-secrets-last",
            "foreground-secrets-last",
        }
        assert collector.complaint == ""
        said = [each for each in caplog.messages if "skipping secrets" in each]
        assert len(said) == 1
        # Once it is allowed, what was missed is made up for.
        its.line.refuse = lambda request: None
        await asyncio.sleep(1000)
        expected = ALL - {"orphan-secrets", "orphan-secrets-last"}
        assert await its.names() == expected


@in_world
async def test_a_resource_that_is_refused_later_on_is_left_out_and_taken_up_again(its: World) -> None:
    async with its.collecting() as collector:
        owner = await its.make("owner")
        await its.make("goes-unseen", ref=SECRETS)
        gone = await its.make("owns", ref=SECRETS)
        await its.make("dependent", to(owner), ref=SECRETS)
        await its.make("of-secret", to(gone, kind="Secret"))
        await asyncio.sleep(1)
        its.line.refuse = on(SECRET_PATHS, 403, "Forbidden")
        its.line.cut()
        await asyncio.sleep(100)
        await its.delete("owner")
        await its.delete("owns", ref=SECRETS)
        await asyncio.sleep(60)
        assert await its.names() == {"dependent", "goes-unseen", "of-secret"}
        its.line.refuse = lambda request: None
        await asyncio.sleep(1000)
        assert await its.names() == {"goes-unseen"}
        assert collector.graph.get(gone["metadata"]["uid"]) is None


@in_world
async def test_a_resource_that_comes_later_is_followed_within_half_a_minute(its: World) -> None:
    its.line.hidden = {"secrets"}
    owner = await its.make("owner")
    dependent = await its.make("dependent", to(owner), ref=SECRETS)
    await its.make("of-dependent", to(dependent, kind="Secret"))
    async with its.collecting():
        await its.delete("owner")
        await asyncio.sleep(60)
        assert await its.names() == {"dependent", "of-dependent"}
        its.line.hidden = set()
        await asyncio.sleep(31)
        assert "dependent" not in await its.names()
        # What its owner's kind was not known for comes again by itself, though later.
        await asyncio.sleep(1000)
        assert await its.names() == set()


@in_world
async def test_what_is_no_longer_served_holds_nobody_up_and_is_taken_up_when_it_comes_back(
    its: World,
) -> None:
    async with its.collecting() as collector:
        owner = await its.make("owner")
        held = await its.make("held", to(owner, block=True), ref=SECRETS, finalizers=[HELD])
        await its.delete("owner", "Foreground")
        await asyncio.sleep(5)
        assert await its.names() == {"owner", "held"}
        its.line.hidden = {"secrets"}
        its.line.refuse = on(SECRET_PATHS, 404, "NotFound")
        its.line.cut()
        await asyncio.sleep(120)
        assert await its.names() == {"held"}
        await its.make("of-held", to(held, kind="Secret"))
        assert "secrets" not in {str(ref) for ref in collector.monitors.followed}
        its.line.hidden, its.line.refuse = set(), lambda request: None
        await asyncio.sleep(60)
        assert await its.names() == {"held", "of-held"}
        await its.client.patch(SECRETS, "held", {"metadata": {"finalizers": None}}, "default")
        await asyncio.sleep(60)
        assert await its.names() == set()


@in_world
async def test_a_resource_that_is_not_named_for_a_while_but_served_is_still_followed(its: World) -> None:
    """As of a server that has just begun, or one whose documents are late."""
    async with its.collecting():
        owner = await its.make("owner")
        await its.make("blocking", to(owner, block=True), ref=SECRETS, finalizers=[HELD])
        orphaning = await its.make("orphaning")
        await its.make("orphaned", to(orphaning), ref=SECRETS)
        await its.delete("owner", "Foreground")
        await asyncio.sleep(1)
        its.line.hidden = {"secrets"}
        await asyncio.sleep(100)
        await its.delete("orphaning", "Orphan")
        await asyncio.sleep(100)
        assert {"owner", "blocking", "orphaned"} <= await its.names()
        its.line.hidden = set()
        await asyncio.sleep(1000)
        assert await its.names() == {"owner", "blocking", "orphaned"}
        assert "ownerReferences" not in (await its.left(SECRETS))["orphaned"]


@in_world
async def test_what_the_server_cannot_answer_for_at_the_moment_is_still_followed(its: World) -> None:
    async with its.collecting() as collector:
        before = set(collector.monitors.followed)

        def forget_apps(request: Request) -> Response | None:
            """One group's own server is away, the others are not there any more."""
            if request.path.startswith("/apis/"):
                return refusal(503 if request.path.startswith("/apis/apps/") else 404)
            if request.path != "/apis":
                return None
            stale = [{"version": "v1", "freshness": "Stale", "resources": []}]
            group = {"metadata": {"name": "apps"}, "versions": stale}
            return Response(200, json.dumps({"kind": "APIGroupDiscoveryList", "items": [group]}).encode())

        its.line.refuse = forget_apps
        its.line.cut()
        await asyncio.sleep(120)
        now = set(collector.monitors.followed)
        assert {ref for ref in before if ref.group in ("", "apps")} == now
        assert "apps" in collector.complaint
        its.line.refuse = lambda request: None
        await asyncio.sleep(60)
        assert set(collector.monitors.followed) == before
        assert collector.complaint == ""


@in_world
async def test_a_server_that_does_not_say_what_it_has_is_asked_again_and_nothing_is_dropped(
    its: World,
) -> None:
    its.line.refuse = on("GET /apis?", 500)
    owner = await its.make("owner")
    await its.make("dependent", to(owner))
    async with its.collecting() as collector:
        await asyncio.sleep(60)
        assert collector.complaint == "API discovery has not completed"
        its.line.refuse = lambda request: None
        await asyncio.sleep(60)
        assert collector.complaint == ""
        its.line.refuse = on("GET /apis?", 500)
        await asyncio.sleep(60)
        await its.delete("owner")
        await asyncio.sleep(5)
        assert await its.names() == set()


@in_world
async def test_an_owner_whose_resource_is_not_served_at_the_moment_is_not_taken_for_gone(its: World) -> None:
    """A server that begins may answer 404 for what it has not begun to serve: that speaks of no object."""
    owner = await its.make("owner", ref=SECRETS)
    await its.make("dependent", to(owner, kind="Secret"))
    its.line.refuse = on(SECRET_PATHS, 404, "NotFound")
    async with its.collecting():
        await asyncio.sleep(100)
        assert await its.names() == {"owner", "dependent"}
        its.line.refuse = lambda request: None
        await asyncio.sleep(100)
        assert await its.names() == {"owner", "dependent"}
        await its.delete("owner", ref=SECRETS)
        await asyncio.sleep(5)
        assert await its.names() == set()


# Dependents that are not seen


@in_world
async def test_nobody_is_orphaned_or_let_go_while_a_resource_is_not_being_followed(its: World) -> None:
    """Its dependents there would be missed, and deleted when their owner is gone."""
    async with its.collecting():
        orphaning, waiting = await its.make("orphaning"), await its.make("waiting")
        await asyncio.sleep(1)
        its.line.refuse = on(f"{SECRET_PATHS}.*watch=1", 503)
        its.line.cut()
        await asyncio.sleep(1)
        await its.make("unseen", to(orphaning), ref=SECRETS)
        await its.make("blocking", to(waiting, block=True), ref=SECRETS, finalizers=[HELD])
        await its.delete("orphaning", "Orphan")
        await its.delete("waiting", "Foreground")
        await asyncio.sleep(10)
        assert await its.names() == {"orphaning", "waiting", "unseen", "blocking"}
        its.line.refuse = lambda request: None
        await asyncio.sleep(30)
        assert await its.names() == {"waiting", "unseen", "blocking"}
        assert "ownerReferences" not in (await its.left(SECRETS))["unseen"]


@in_world
async def test_a_resource_that_stays_broken_holds_nobody_up_for_longer_than_half_a_minute(its: World) -> None:
    its.line.refuse = on(SECRET_PATHS, 500)
    owner = await its.make("owner")
    await its.make("dependent", to(owner))
    async with its.collecting():
        await asyncio.sleep(40)
        await its.delete("owner", "Orphan")
        await asyncio.sleep(2)
        assert await its.names() == {"dependent"}
    its.line.refuse = lambda request: None
    async with its.collecting():
        other = await its.make("other")
        await its.make("another", to(other))
        await asyncio.sleep(1)
        its.line.refuse = on(SECRET_PATHS, 500)
        its.line.cut()
        await its.delete("other", "Orphan")
        await asyncio.sleep(20)
        assert await its.names() == {"dependent", "other", "another"}
        await asyncio.sleep(20)
        assert await its.names() == {"dependent", "another"}


@virtual_time
async def test_a_server_that_does_not_say_what_it_has_is_told_once_and_so_is_its_return(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "podlife")
    async with world() as its, its.collecting():
        its.line.refuse = on(r"GET /apis?\?", 503)
        await asyncio.sleep(600)
        its.line.refuse = lambda request: None
        await asyncio.sleep(600)
    said = [each for each in caplog.messages if "API discovery" in each]
    assert [each.partition(":")[0] for each in said] == [
        "API discovery failed, retrying",
        "API discovery works again",
    ]
