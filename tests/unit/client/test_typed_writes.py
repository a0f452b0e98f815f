"""The patch between two typed objects: it has what changed, and loses nothing that the class does not declare."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podlife.aio import cancel_and_wait
from podlife.api.crd import CustomResource, manifest_of
from podlife.api.patch import merge_patch
from podlife.api.views import Metadata
from podlife.client import Ref, save, save_status
from podlife.client.typed_writes import difference
from podlife.errors import ConflictError
from podlife.informer import Informer
from podlife.testing import Cluster, virtual_time


def objects(of: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(st.sampled_from(["name", "a", "b", "c"]), of, max_size=3)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | objects(inner),
    max_leaves=8,
)


class Disk(msgspec.Struct):
    name: str
    size: int = 1


class Status(msgspec.Struct):
    phase: str = ""
    ready: int = 0


class Spec(msgspec.Struct):
    size: int = 1
    note: str | None = None
    labels: dict[str, str] = {}
    disks: list[Disk] = []


@CustomResource("example.com", "v1", "pools")
class Pool(msgspec.Struct):
    metadata: Metadata
    spec: Spec = msgspec.field(default_factory=Spec)
    status: Status = msgspec.field(default_factory=Status)


# As the next release of the operator stores it.
class NextDisk(Disk):
    kind: str = "ssd"


class NextSpec(msgspec.Struct):
    size: int = 1
    note: str | None = None
    labels: dict[str, str] = {}
    disks: list[NextDisk] = []
    colour: str = "red"


@CustomResource("example.com", "v1", "pools", kind="Pool")
class NextPool(msgspec.Struct):
    metadata: Metadata
    spec: NextSpec = msgspec.field(default_factory=NextSpec)
    status: Status = msgspec.field(default_factory=Status)


POOLS = Ref.of(Pool)


def without_nulls(value: Any) -> Any:
    """As `plain` makes objects, and as a merge patch can make them."""
    if isinstance(value, dict):
        return {name: without_nulls(each) for name, each in value.items() if each is not None}
    return [without_nulls(each) for each in value] if isinstance(value, list) else value


@given(objects(JSON), objects(JSON))
def test_patch_leads_from_one_object_to_the_other(old: dict[str, Any], new: dict[str, Any]) -> None:
    old, new = without_nulls(old), without_nulls(new)
    assert merge_patch(old, difference(old, new, old)) == new


def disk(name: str, size: int, **more: Any) -> dict[str, Any]:
    return {"name": name, "size": size, **more}


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        ([disk("a", 1)], [disk("a", 1, kind="x")]),
        ([disk("b", 2), disk("a", 1)], [disk("b", 2, kind="y"), disk("a", 1, kind="x")]),
        ([disk("a", 5), disk("b", 6)], [disk("a", 5, kind="x"), disk("b", 6, kind="y")]),
        (
            [disk("c", 1), disk("a", 1), disk("b", 9)],
            [disk("c", 1), disk("a", 1, kind="x"), disk("b", 9, kind="y")],
        ),
        ([disk("c", 1), disk("d", 2)], [disk("c", 1), disk("d", 2)]),
    ],
)
def test_elements_of_lists_keep_undeclared_fields(new: list[Any], expected: list[Any]) -> None:
    old = [disk("a", 1), disk("b", 2)]
    stored = [disk("a", 1, kind="x"), disk("b", 2, kind="y")]
    assert difference({"disks": old}, {"disks": new}, {"disks": stored}) == {"disks": expected}


def test_elements_without_a_name_are_recognised_by_what_they_have() -> None:
    stored = [{"from": 1, "to": 2, "by": "me"}, {"from": 3, "to": 4, "by": "you"}]
    old, new = [{"from": 1, "to": 2}, {"from": 3, "to": 4}], [{"from": 3, "to": 4}, {"from": 1, "to": 5}]
    patch = difference({"x": old}, {"x": new}, {"x": stored})
    assert patch == {"x": [{"from": 3, "to": 4, "by": "you"}, {"from": 1, "to": 5}]}


@virtual_time
async def test_operator_that_knows_fewer_fields_keeps_the_others() -> None:
    async with Cluster(nodes=0, controllers=(), crds=NextPool) as cluster:
        client = cluster.client
        spec = NextSpec(2, "n", {"a": "b"}, [NextDisk("x", 1, "hdd"), NextDisk("y")], "blue")
        await client.create(POOLS, manifest_of(NextPool(Metadata("p", "default"), spec)))
        old = await client.get(POOLS, "p", "default", view=Pool)
        changed = Spec(3, None, {"c": "d"}, [Disk("y", 7), Disk("x", 1)])
        new = await save(client, old, msgspec.structs.replace(old, spec=changed))
        assert new.spec == changed
        stored = await client.get(POOLS, "p", "default", view=NextPool)
        assert stored.spec == NextSpec(
            3, None, {"c": "d"}, [NextDisk("y", 7), NextDisk("x", 1, "hdd")], "blue"
        )
        new = await save_status(client, new, Status("Ready", 3))
        assert new.status == Status("Ready", 3)
        with pytest.raises(ConflictError):
            await save_status(client, old, Status("Late"))
        assert (await client.get(POOLS, "p", "default", view=Pool)).status.phase == "Ready"


@virtual_time
async def test_no_request_is_sent_for_no_change() -> None:
    async with Cluster(nodes=0, controllers=(), crds=Pool) as cluster:
        made = await cluster.client.create(POOLS, manifest_of(Pool(Metadata("p", "default"))), view=Pool)
        requests = len(cluster.audit.entries)
        assert await save(cluster.client, made, made) is made
        assert await save_status(cluster.client, made, Status()) is made
        assert len(cluster.audit.entries) == requests
        with pytest.raises(ValueError, match="write it with save_status"):
            await save(cluster.client, made, msgspec.structs.replace(made, status=Status("x")))


@virtual_time
async def test_object_created_again_under_the_same_name_is_not_written() -> None:
    async with Cluster(nodes=0, controllers=(), crds=Pool) as cluster:
        client, manifest = cluster.client, manifest_of(Pool(Metadata("p", "default")))
        old = await client.create(POOLS, manifest, view=Pool)
        await client.delete(POOLS, "p", "default")
        await client.create(POOLS, manifest)
        with pytest.raises(ConflictError):
            await save_status(client, old, Status("Ready"))


@virtual_time
async def test_informer_of_a_class_decodes_into_it() -> None:
    async with Cluster(nodes=0, controllers=(), crds=Pool) as cluster:
        await cluster.client.create(POOLS, manifest_of(Pool(Metadata("p", "default"), Spec(5))))
        informer = Informer(cluster.client, Pool)
        running = asyncio.get_running_loop().create_task(informer.run())
        assert await informer.wait_for_sync(seconds=30)
        found = informer.cache.get("default", "p")
        assert found is not None
        assert found.spec == Spec(5)
        await cancel_and_wait(running)


def test_informer_of_a_reference_needs_a_view() -> None:
    with pytest.raises(TypeError, match=r"pools.example.com requires a view"):
        Informer(None, POOLS)  # type: ignore[arg-type]
