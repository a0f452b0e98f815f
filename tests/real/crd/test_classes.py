"""The definition of a class that uses every feature, and objects of it: kube-apiserver, podlife and msgspec agree."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from podlife.api.crd import definition_of, manifest_of
from podlife.api.views import Metadata
from podlife.client import CUSTOM_RESOURCE_DEFINITIONS, Client, Ref, WriteOptions, save, save_status
from podlife.errors import ConflictError, InvalidError, NotFoundError
from tests.kit.gadget import Condition, Gadget, GadgetSpec, GadgetStatus, Port
from tests.kit.real_parts import Server
from tests.kit.wait import until
from tests.real.test_client_on_both_servers import connect

GADGETS = Ref.of(Gadget)
STRICT = WriteOptions(field_validation="Strict")
DRY_RUN = WriteOptions(dry_run=True)

# Each is the rest of a spec that has an image, and whether it is valid to all three.
SPECS: list[tuple[dict[str, Any], bool]] = [
    ({}, True),
    ({"image": ""}, False),
    ({"image": "a" * 65}, False),
    ({"image": "No"}, False),
    ({"image": 1}, False),
    ({"image": None}, False),
    ({"replicas": 0}, True),
    ({"replicas": 100}, True),
    ({"replicas": 101}, False),
    ({"replicas": -1}, False),
    ({"replicas": "1"}, False),
    ({"replicas": 1.5}, False),
    ({"ratio": 0.25}, True),
    ({"ratio": 0}, False),
    ({"ratio": 1}, False),
    ({"step": 10}, True),
    ({"step": 11}, False),
    ({"step": None}, True),
    ({"paused": "yes"}, False),
    ({"mode": "fast"}, True),
    ({"mode": "faster"}, False),
    ({"level": 2}, True),
    ({"level": 3}, False),
    ({"strategy": "Recreate"}, True),
    ({"strategy": "recreate"}, False),
    ({"priority": "low"}, True),
    ({"priority": "lower"}, False),
    ({"priority": None}, True),
    ({"surge": 3}, True),
    ({"surge": "30%"}, True),
    ({"surge": True}, False),
    ({"surge": [1]}, False),
    ({"limits": {"cpu": "500m", "memory": "1Gi"}}, True),
    ({"limits": {"cpu": 2, "memory": "1.5e3"}}, True),
    ({"limits": {"cpu": None}}, True),
    ({"limits": {"memory": "much"}}, False),
    ({"labels": {"a": "b"}}, True),
    ({"labels": {"a": 1}}, False),
    ({"labels": {str(number): "" for number in range(6)}}, False),
    ({"weights": {"a": -1}}, False),
    ({"ports": [{"name": "http", "number": 80}]}, True),
    ({"ports": [{"name": "http"}]}, False),
    ({"ports": [{"name": "http", "number": 0}]}, False),
    ({"ports": [{"name": "http", "number": 80, "targetPort": "web", "protocol": "ICMP"}]}, False),
    ({"ports": {}}, False),
    ({"tags": ["a", "b"]}, True),
    ({"tags": ["a" * 21]}, False),
    ({"zones": ["a", "b", "c", "d", "e"]}, False),
    ({"arguments": ["a", 1]}, False),
    ({"notBefore": "2026-01-01T00:00:00Z"}, True),
    ({"notBefore": "2026-01-01T00:00:00.5+01:00"}, True),
    ({"notBefore": "yesterday"}, False),
    ({"notBefore": None}, True),
    ({"birthday": "2026-02-28"}, True),
    ({"birthday": "2026-02-30"}, False),
    ({"token": "6ba7b810-9dad-11d1-80b4-00c04fd430c8"}, True),
    ({"token": "6ba7b810"}, False),
    ({"owner": {"name": "me"}}, True),
    ({"owner": {"mail": "me@example.com"}}, False),
    ({"options": {"verbose": True, "depth": 1}}, True),
    ({"options": {"depth": -1}}, False),
    ({"open": {"known": 1, "other": [1]}}, True),
    ({"open": {"known": "1"}}, False),
    ({"anything": [1, {"a": None}]}, True),
    ({"anything": None}, True),
    ({"free": {"a": {"b": [1]}}}, True),
    ({"free": []}, False),
    ({"template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"x": 1}}}, True),
    ({"window": [1, 2]}, True),
    ({"window": [1, 2, 3]}, False),
    ({"unknown": 1}, True),
]
# What only servers know: unique elements, rules, embedded objects.
ONLY_SERVERS_REFUSE: list[dict[str, Any]] = [
    {"ports": [{"name": "a", "number": 1}, {"name": "a", "number": 2}]},
    {"tags": ["a", "a"]},
    {"zones": ["a", "a"]},
    {"window": [2, 1]},
    {"paused": True},
    {"template": {"kind": "Pod"}},
]
# Servers take a whole number with a fraction for an integer, and null for a field that has a default for absent.
ONLY_MSGSPEC_REFUSES: list[dict[str, Any]] = [{"step": 10.0}, {"mode": None}]


@pytest.fixture(params=["kube", "podlife_server"])
async def client(request: pytest.FixtureRequest) -> AsyncIterator[Client]:
    server: Server = request.getfixturevalue(request.param)
    async with connect(server) as client:
        await client.create(CUSTOM_RESOURCE_DEFINITIONS, definition_of(Gadget), options=STRICT)

        async def is_established() -> bool:
            stored = await client.get(CUSTOM_RESOURCE_DEFINITIONS, "gadgets.example.com")
            found = {each["type"]: each["status"] for each in stored["status"].get("conditions") or ()}
            served = (
                await client.request("GET", "/apis/example.com/v1")
                if found.get("Established") == "True"
                else None
            )
            return served is not None

        await until(is_established)
        yield client
        await client.delete(CUSTOM_RESOURCE_DEFINITIONS, "gadgets.example.com")

        async def is_gone() -> bool:
            left = (await client.list(CUSTOM_RESOURCE_DEFINITIONS)).items
            return "gadgets.example.com" not in {each["metadata"]["name"] for each in left}

        await until(is_gone)


def gadget(spec: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": "a", "namespace": "default"}
    return {
        "apiVersion": "example.com/v1",
        "kind": "Gadget",
        "metadata": metadata,
        "spec": {"image": "app", **spec},
    }


async def is_accepted(client: Client, obj: dict[str, Any]) -> bool:
    try:
        await client.create(GADGETS, obj, options=DRY_RUN)
    except InvalidError:
        return False
    return True


def is_decoded(obj: dict[str, Any]) -> bool:
    try:
        msgspec.json.decode(json.dumps(obj), type=Gadget)
    except msgspec.ValidationError:
        return False
    return True


async def test_servers_and_msgspec_give_the_same_verdicts(client: Client) -> None:
    objects = [(gadget(spec), verdict) for spec, verdict in SPECS]
    expected = [(obj["spec"], verdict, verdict) for obj, verdict in objects]
    assert [(obj["spec"], await is_accepted(client, obj), is_decoded(obj)) for obj, _ in objects] == expected
    for specs, by_server in ((ONLY_SERVERS_REFUSE, False), (ONLY_MSGSPEC_REFUSES, True)):
        for obj in map(gadget, specs):
            assert (obj["spec"], await is_accepted(client, obj), is_decoded(obj)) == (
                obj["spec"],
                by_server,
                not by_server,
            )


async def test_server_fills_in_the_defaults_of_the_class(client: Client) -> None:
    stored = await client.create(GADGETS, gadget({"ports": [{"name": "a", "number": 1}]}), options=DRY_RUN)
    decoded = msgspec.convert(stored, Gadget, strict=False)
    assert decoded.spec == GadgetSpec("app", ports=[Port("a", 1)])
    assert "status" not in stored
    assert stored["spec"]["limits"] == {"memory": "64Mi"}
    assert stored["spec"]["ports"] == [{"name": "a", "number": 1, "targetPort": 80, "protocol": "TCP"}]


async def test_typed_writes_keep_what_the_class_does_not_have(client: Client) -> None:
    class Narrow(msgspec.Struct):
        """Fewer fields than the stored objects have."""

        metadata: Metadata
        spec: NarrowSpec
        status: GadgetStatus = msgspec.field(default_factory=GadgetStatus)

    Narrow.__custom_resource__ = Gadget.__custom_resource__  # type: ignore[attr-defined]
    made = await client.create(
        GADGETS,
        manifest_of(
            Gadget(
                Metadata("a", "default"),
                GadgetSpec("app", labels={"x": "y"}, ports=[Port("a", 1, "t"), Port("b", 2)]),
            )
        ),
    )
    assert made["spec"]["ports"][0]["targetPort"] == "t"
    old = await client.get(GADGETS, "a", "default", view=Narrow)
    changed = NarrowSpec(old.spec.replicas + 1, [NarrowPort("c", 3), NarrowPort("a", 7)])
    new = await save(client, old, msgspec.structs.replace(old, spec=changed))
    stored = await client.get(GADGETS, "a", "default")
    assert stored["spec"]["labels"] == {"x": "y"}
    assert [(each["name"], each["number"], each["targetPort"]) for each in stored["spec"]["ports"]] == [
        ("c", 3, 80),
        ("a", 7, "t"),
    ]
    assert new.spec == changed
    with pytest.raises(ConflictError):
        await save_status(client, old, GadgetStatus(1))
    status = GadgetStatus(2, conditions=[Condition("Ready", "True")])
    assert (await save_status(client, new, status)).status == status
    stored = await client.get(GADGETS, "a", "default")
    assert stored["status"]["conditions"] == [{"type": "Ready", "status": "True", "message": ""}]
    await client.delete(GADGETS, "a", "default")


class NarrowPort(msgspec.Struct):
    name: str
    number: int


class NarrowSpec(msgspec.Struct):
    replicas: int = 1
    ports: list[NarrowPort] = []


async def test_null_is_in_no_enum(client: Client) -> None:
    field = {"type": "string", "nullable": True, "enum": ["x", None]}
    schema = {"type": "object", "properties": {"a": field}}
    definition = definition_of(Gadget)
    definition["metadata"]["name"] = "cups.example.com"
    definition["spec"]["names"] = {"plural": "cups", "singular": "cup", "kind": "Cup", "listKind": "CupList"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    definition["spec"]["versions"] = [version]
    await client.create(CUSTOM_RESOURCE_DEFINITIONS, definition)
    cups = Ref("example.com", "v1", "cups", kind="Cup")
    made = {"apiVersion": "example.com/v1", "kind": "Cup", "metadata": {"name": "c"}, "a": "x"}

    async def is_created() -> bool:
        try:
            await client.create(cups, made, "default")
        except NotFoundError:
            return False
        return True

    await until(is_created)
    with pytest.raises(InvalidError, match='a: Unsupported value: null: supported values: "x", "null"'):
        await client.create(cups, {**made, "metadata": {"name": "d"}, "a": None}, "default")
    await client.delete(CUSTOM_RESOURCE_DEFINITIONS, "cups.example.com")
