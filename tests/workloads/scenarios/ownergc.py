"""The collector of owned objects: chains made by hand, so that no workload's controller has a part in them."""

from __future__ import annotations

from typing import Any

from podlife.client import CONFIG_MAPS, DEPLOYMENTS, NAMESPACES, NODES, PODS, REPLICA_SETS, Ref
from tests.workloads.objects import Object, labelled_pod, replica_set
from tests.workloads.scenario import scenario
from tests.workloads.world import World

CMS = CONFIG_MAPS
HELD = "test.podlife.io/held"
# How long a collector has to see what was made before it is asked to act on it.
SEEN_SECONDS = 2.0


def to(owner: Object, *, block: bool | None = None, **other: Any) -> Object:
    """A reference to the owner; it is nobody's controller, so that nobody adopts or releases."""
    kind = owner.get("kind") or "ConfigMap"
    reference = {
        "apiVersion": owner.get("apiVersion") or "v1",
        "kind": kind,
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
    }
    return {**reference, **({} if block is None else {"blockOwnerDeletion": block}), **other}


async def make(world: World, name: str, *references: Object, **metadata: Any) -> Object:
    """A ConfigMap."""
    owners = {"ownerReferences": list(references)} if references else {}
    return await world.create(CMS, {"metadata": {"name": name, **owners, **metadata}})


async def make_pod(world: World, name: str, *references: Object) -> Object:
    return await world.create(PODS, labelled_pod(name, name, ownerReferences=list(references)))


async def make_chain(world: World, *, block: bool = True) -> Object:
    """A Deployment, a ReplicaSet and two pods that their own controllers take for strangers."""
    spec = replica_set("top", 0)["spec"]
    top = await world.create(DEPLOYMENTS, {"metadata": {"name": "top"}, "spec": {**spec, "paused": True}})
    middle = replica_set("middle", 0)
    middle["metadata"]["ownerReferences"] = [to(top, block=block)]
    made = await world.create(REPLICA_SETS, middle)
    for name in ("one", "two"):
        await make_pod(world, name, to(made, block=block))
    await seen(world)
    return top


async def seen(world: World) -> None:
    await world.settle(seconds=SEEN_SECONDS)


async def delete(world: World, name: str, cascade: str) -> None:
    """A ConfigMap, once the collector has seen what there is."""
    await seen(world)
    await world.delete(CMS, name, cascade=cascade)


async def until_left(world: World, *names: str, ref: Ref = CMS) -> None:
    def left() -> set[str]:
        return {obj["metadata"]["name"] for obj in world.all(ref)} - {"kube-root-ca.crt"}

    await world.until(f"{names} are left of {ref}", lambda: left() == {*names})


def is_going(world: World, ref: Ref, name: str) -> bool:
    found = world.find(ref, name)
    return found is not None and "deletionTimestamp" in found["metadata"]


@scenario("ownergc")
async def background(world: World) -> None:
    owner = await make(world, "owner")
    for name in ("a", "b", "c"):
        await make(world, name, to(owner))
    await make(world, "stranger")
    await delete(world, "owner", "Background")
    await until_left(world, "stranger")


@scenario("ownergc")
async def background_through_a_chain(world: World) -> None:
    await make_chain(world)
    await world.delete(DEPLOYMENTS, "top", cascade="Background")
    await world.until("all are gone", lambda: not world.pods() and not world.all(REPLICA_SETS))


@scenario("ownergc")
async def background_and_pods_slow_to_go(world: World) -> None:
    """The owner does not wait for them."""
    await make_chain(world)
    world.node.hold()
    await world.delete(REPLICA_SETS, "middle", cascade="Background")
    await world.until_gone(REPLICA_SETS, "middle")
    await world.until("both are going", lambda: len(world.pods()) == 2 and not world.living())


@scenario("ownergc")
async def background_of_many(world: World) -> None:
    owner = await make(world, "owner")
    for number in range(60):
        await make(world, f"dependent-{number}", to(owner))
    await delete(world, "owner", "Background")
    await until_left(world)


@scenario("ownergc")
async def foreground(world: World) -> None:
    owner = await make(world, "owner")
    for name, block in (("a", True), ("b", False), ("c", None)):
        await make(world, name, to(owner, block=block))
    await delete(world, "owner", "Foreground")
    await until_left(world)


@scenario("ownergc")
async def foreground_without_dependents(world: World) -> None:
    await make(world, "owner")
    await delete(world, "owner", "Foreground")
    await until_left(world)


@scenario("ownergc")
async def foreground_waits_for_who_blocks(world: World) -> None:
    owner = await make(world, "owner")
    await make(world, "blocking", to(owner, block=True), finalizers=[HELD])
    await make(world, "other", to(owner, block=True))
    await delete(world, "owner", "Foreground")
    await until_left(world, "owner", "blocking")
    await world.until("it is going", lambda: is_going(world, CMS, "blocking"))


@scenario("ownergc")
async def foreground_goes_when_the_last_goes(world: World) -> None:
    owner = await make(world, "owner")
    await make(world, "blocking", to(owner, block=True), finalizers=[HELD])
    await delete(world, "owner", "Foreground")
    await world.until("it is going", lambda: is_going(world, CMS, "blocking"))
    await world.patch(CMS, "blocking", {"metadata": {"finalizers": None}})
    await until_left(world)


@scenario("ownergc")
async def foreground_does_not_wait_for_others(world: World) -> None:
    owner = await make(world, "owner")
    await make(world, "false", to(owner, block=False), finalizers=[HELD])
    await make(world, "unsaid", to(owner), finalizers=[HELD])
    await delete(world, "owner", "Foreground")
    await until_left(world, "false", "unsaid")
    await world.until(
        "both are going", lambda: all(is_going(world, CMS, each) for each in ("false", "unsaid"))
    )


@scenario("ownergc")
async def foreground_through_a_chain(world: World) -> None:
    await make_chain(world)
    await world.delete(DEPLOYMENTS, "top", cascade="Foreground")
    await world.until_gone(DEPLOYMENTS, "top")


@scenario(
    "ownergc",
    ignoring={
        "Deployment.status": "written by its own controller, which has no part in this",
        "ReplicaSet.status": "written by its own controller, which has no part in this",
    },
)
async def foreground_held_at_the_end_of_a_chain(world: World) -> None:
    """Who has dependents of its own is deleted in the foreground, too: all wait for the pods."""
    await make_chain(world)
    world.node.hold()
    await world.delete(DEPLOYMENTS, "top", cascade="Foreground")
    await world.until("both are going", lambda: len(world.pods()) == 2 and not world.living())


@scenario("ownergc")
async def foreground_let_go_by_a_reference(world: World) -> None:
    """A dependent that stops blocking, and one that loses its reference: neither is waited for any more."""
    owner = await make(world, "owner")
    for name in ("unblocks", "leaves"):
        await make(world, name, to(owner, block=True), finalizers=[HELD])
    await delete(world, "owner", "Foreground")
    await world.until(
        "both are going", lambda: all(is_going(world, CMS, each) for each in ("unblocks", "leaves"))
    )
    await world.patch(CMS, "unblocks", {"metadata": {"ownerReferences": [to(owner, block=False)]}})
    await world.patch(CMS, "leaves", {"metadata": {"ownerReferences": None}})
    await until_left(world, "unblocks", "leaves")


@scenario("ownergc")
async def foreground_and_a_dependent_comes_late(world: World) -> None:
    owner = await make(world, "owner")
    await make(world, "first", to(owner, block=True), finalizers=[HELD])
    await delete(world, "owner", "Foreground")
    await world.until("it is going", lambda: is_going(world, CMS, "first"))
    await make(world, "late", to(owner, block=True))
    await seen(world)
    await world.patch(CMS, "first", {"metadata": {"finalizers": None}})
    await until_left(world)


@scenario("ownergc")
async def foreground_in_a_circle(world: World) -> None:
    first = await make(world, "first")
    second = await make(world, "second", to(first, block=True))
    await world.patch(CMS, "first", {"metadata": {"ownerReferences": [to(second, block=True)]}})
    await delete(world, "first", "Foreground")
    await until_left(world)


@scenario("ownergc")
async def foreground_of_who_owns_itself(world: World) -> None:
    """It waits for itself for ever, as it does upstream."""
    first = await make(world, "first")
    await world.patch(CMS, "first", {"metadata": {"ownerReferences": [to(first, block=True)]}})
    await delete(world, "first", "Foreground")
    await world.until("it is going", lambda: is_going(world, CMS, "first"))


@scenario("ownergc")
async def background_in_a_circle(world: World) -> None:
    first = await make(world, "first")
    second = await make(world, "second", to(first))
    await world.patch(CMS, "first", {"metadata": {"ownerReferences": [to(second)]}})
    await delete(world, "first", "Background")
    await until_left(world)


@scenario("ownergc")
async def orphan(world: World) -> None:
    owner = await make(world, "owner")
    for name, block in (("a", True), ("b", False), ("c", None)):
        await make(world, name, to(owner, block=block))
    await delete(world, "owner", "Orphan")
    await until_left(world, "a", "b", "c")


@scenario(
    "ownergc", ignoring={"ReplicaSet.status": "written by its own controller, which has no part in this"}
)
async def orphan_at_the_top_of_a_chain(world: World) -> None:
    """Only the next in the chain is let go: it stays the owner of its own."""
    await make_chain(world)
    await world.delete(DEPLOYMENTS, "top", cascade="Orphan")
    await world.until_gone(DEPLOYMENTS, "top")


@scenario("ownergc")
async def orphan_of_several_owners(world: World) -> None:
    owners = [await make(world, name) for name in ("stays", "goes")]
    await make(world, "dependent", *(to(owner) for owner in owners))
    await delete(world, "goes", "Orphan")
    await until_left(world, "stays", "dependent")


@scenario("ownergc")
async def several_owners_and_one_stays(world: World) -> None:
    owners = [await make(world, name) for name in ("stays", "goes", "never-mind")]
    await make(world, "dependent", *(to(owner) for owner in owners))
    await delete(world, "goes", "Background")
    await until_left(world, "stays", "never-mind", "dependent")


@scenario("ownergc")
async def several_owners_and_none_stays(world: World) -> None:
    owners = [await make(world, name) for name in ("first", "second")]
    await make(world, "dependent", *(to(owner) for owner in owners))
    await seen(world)
    for name in ("first", "second"):
        await world.delete(CMS, name, cascade="Background")
    await until_left(world)


@scenario("ownergc")
async def several_owners_and_one_waits(world: World) -> None:
    """One that has another owner stays, and whoever waits for it in the foreground goes without it."""
    owners = [await make(world, name) for name in ("stays", "waits")]
    await make(world, "dependent", *(to(owner, block=True) for owner in owners))
    await delete(world, "waits", "Foreground")
    await until_left(world, "stays", "dependent")


@scenario("ownergc")
async def owner_never_was(world: World) -> None:
    nobody = {"metadata": {"name": "nobody", "uid": "11111111-2222-3333-4444-555555555555"}}
    await make(world, "dependent", to(nobody))
    await make_pod(world, "pod", to(nobody))
    await until_left(world)
    await world.until("the pod is gone", lambda: not world.pods())


@scenario("ownergc")
async def owner_never_was_and_another_is(world: World) -> None:
    nobody = {"metadata": {"name": "nobody", "uid": "11111111-2222-3333-4444-555555555555"}}
    owner = await make(world, "owner")
    await make(world, "dependent", to(nobody), to(owner, controller=True))
    await world.until("it has lost it", lambda: len(_references(world, "dependent")) == 1)


@scenario("ownergc")
async def owner_made_again_under_its_name(world: World) -> None:
    """Those of the one before go; those of the new one stay."""
    owner = await make(world, "owner")
    await make(world, "old", to(owner), finalizers=[HELD])
    await delete(world, "owner", "Background")
    await make(world, "new", to(await make(world, "owner")))
    await world.until("the old one is going", lambda: is_going(world, CMS, "old"))


@scenario("ownergc")
async def owner_named_wrongly(world: World) -> None:
    """The UID is right, but name or kind are not: there is no such owner."""
    owner = await make(world, "owner")
    await seen(world)
    await make(world, "by-name", to(owner, name="owne"))
    await make(world, "by-kind", to(owner, kind="Secret"))
    await make(world, "right", to(owner))
    await until_left(world, "owner", "right")


@scenario("ownergc")
async def owner_of_no_known_kind(world: World) -> None:
    """Nothing can be said about it, so its dependents stay."""
    owner = await make(world, "owner")
    await make(world, "unknown-kind", to(owner, kind="Widget"))
    await make(world, "unknown-group", to(owner, apiVersion="widgets.example/v1"))
    await make(world, "both", to(owner), to(owner, kind="Widget", uid="11111111-2222-3333-4444-555555555555"))
    await delete(world, "owner", "Background")
    await until_left(world, "unknown-kind", "unknown-group", "both")


@scenario("ownergc")
async def owner_in_another_namespace(world: World) -> None:
    elsewhere = f"{world.namespace}-else"
    await world.client.create(NAMESPACES, {"metadata": {"name": elsewhere}})
    owner = await world.client.create(CMS, {"metadata": {"name": "owner"}}, elsewhere)
    await seen(world)
    await make(world, "dependent", to(owner))
    await world.until_event("OwnerRefInvalidNamespace")
    await until_left(world)


@scenario("ownergc")
async def owner_without_a_namespace(world: World) -> None:
    name = await world.create_node("owner")
    node = await world.until("the node is seen", lambda: world.find(NODES, name))
    assert node is not None
    await make(world, "dependent", to(node))
    await make_pod(world, "pod", to(node))
    await seen(world)
    await world.delete(NODES, name, cascade="Background")
    await until_left(world)
    await world.until("the pod is gone", lambda: not world.pods())


@scenario("ownergc")
async def owner_with_a_namespace_of_one_without(world: World) -> None:
    """Such a reference means nothing: the node stays, whatever becomes of its owner."""
    owner = await make(world, "owner")
    name = await world.create_node("dependent")
    await world.patch(NODES, name, {"metadata": {"ownerReferences": [to(owner)]}})
    await make(world, "dependent", to(owner))
    await delete(world, "owner", "Background")
    await until_left(world)
    await world.settle()
    assert [node["metadata"]["name"] for node in world.all(NODES)] == [name]
    await world.delete(NODES, name)


@scenario("ownergc")
async def reference_given_later(world: World) -> None:
    owner = await make(world, "owner")
    for name in ("kept", "lost"):
        await make(world, name)
    await seen(world)
    await world.patch(CMS, "lost", {"metadata": {"ownerReferences": [to(owner)]}})
    await world.patch(CMS, "kept", {"metadata": {"ownerReferences": [to(owner)]}})
    await seen(world)
    await world.patch(CMS, "kept", {"metadata": {"ownerReferences": None}})
    await delete(world, "owner", "Background")
    await until_left(world, "kept")


@scenario("ownergc")
async def dependent_with_a_finalizer(world: World) -> None:
    """It is asked to go, and its own dependents stay for as long as it is there."""
    owner = await make(world, "owner")
    middle = await make(world, "middle", to(owner), finalizers=[HELD])
    await make(world, "last", to(middle))
    await delete(world, "owner", "Background")
    await world.until("it is going", lambda: is_going(world, CMS, "middle"))


@scenario("ownergc")
async def dependent_that_orphans_its_own(world: World) -> None:
    """A finalizer that is there already says how it is to be deleted."""
    owner = await make(world, "owner")
    orphaning = await make(world, "orphaning", to(owner), finalizers=["orphan"])
    waiting = await make(world, "waiting", to(owner), finalizers=["foregroundDeletion"])
    await make(world, "orphaned", to(orphaning))
    await make(world, "waited-for", to(waiting, block=True), finalizers=[HELD])
    await delete(world, "owner", "Background")
    await until_left(world, "orphaned", "waiting", "waited-for")
    await world.until("it is going", lambda: is_going(world, CMS, "waited-for"))


@scenario("ownergc")
async def conflict_storm(world: World) -> None:
    """Dependents that somebody writes all the time go, and are let go of, all the same."""
    goes, lets_go = await make(world, "goes"), await make(world, "lets-go")
    await make(world, "deleted", to(goes))
    await make(world, "orphaned", to(lets_go))
    await seen(world)
    async with world.storm(CMS, "deleted"), world.storm(CMS, "orphaned"), world.storm(CMS, "lets-go"):
        await world.delete(CMS, "goes", cascade="Background")
        await world.delete(CMS, "lets-go", cascade="Orphan")
        await until_left(world, "orphaned")


def _references(world: World, name: str) -> list[Object]:
    references: list[Object] = world.get(CMS, name)["metadata"].get("ownerReferences") or []
    return references
