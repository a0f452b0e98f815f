"""What two runs of a scenario are compared by: everything but what must differ."""

from __future__ import annotations

from typing import Any

from podlife.client import EVENTS, PODS, REPLICA_SETS, Client, EventType, Ref
from podlife.testing import virtual_time
from tests.kit.embedded import connect, start
from tests.workloads.observatory import Observatory
from tests.workloads.snapshot import Snapshot, difference, take

Object = dict[str, Any]
UID = "{}2345678-1234-1234-1234-123456789abc"


class Seen(Observatory):
    """Holds what it is told."""

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        self._with_verdict = 0

    def tell(self, ref: Ref, name: str, **rest: Any) -> None:
        self._with_verdict += 1
        metadata = {
            "name": name,
            "namespace": "ns-a",
            "uid": UID.format(self._with_verdict),
            "resourceVersion": str(self._with_verdict),
            **rest.pop("metadata", {}),
        }
        self._apply(ref, EventType.ADDED, {"metadata": metadata, **rest})


async def snapshot(*told: tuple[Ref, str, Object], ignoring: dict[str, str] | None = None) -> Snapshot:
    client = connect(await start())
    seen = Seen(client)
    for ref, name, rest in told:
        seen.tell(ref, name, **rest)
    await client.close()
    return take(seen, "ns-a", ignoring or {})


def event(name: str, type_: str, message: str, count: int = 1) -> tuple[Ref, str, Object]:
    about = {"kind": "ReplicaSet", "name": "web"}
    told = {"involvedObject": about, "type": type_, "reason": "R", "message": message, "count": count}
    return EVENTS, name, told


@virtual_time
async def test_pods_that_differ_in_what_must_differ_are_one_entry_with_a_count() -> None:
    pods = [
        (PODS, f"web-{suffix}", {"status": {"startTime": f"2030-01-01T00:00:0{number}Z"}})
        for number, suffix in enumerate(("x7k2p", "bcdfg"))
    ]
    [entry] = (await snapshot(*pods))["objects"]
    assert (entry["count"], entry["metadata"]["name"]) == (2, "web-<random>")
    assert entry["status"]["startTime"] == "<time>"
    assert "resourceVersion" not in entry["metadata"]


@virtual_time
async def test_pods_that_differ_in_anything_else_are_not() -> None:
    one, other = (
        (PODS, "web-x7k2p", {"spec": {"nodeName": "a"}}),
        (PODS, "web-bcdfg", {"spec": {"nodeName": "b"}}),
    )
    assert [each["count"] for each in (await snapshot(one, other))["objects"]] == [1, 1]


@virtual_time
async def test_an_owner_is_known_by_what_it_is_and_a_namespace_by_its_role() -> None:
    owner = {"metadata": {"ownerReferences": [{"uid": UID.format(1)}, {"uid": UID.format(9)}]}}
    found = await snapshot((REPLICA_SETS, "web", {}), (PODS, "web-x7k2p", owner))
    [pod, _] = found["objects"]
    assert [each["uid"] for each in pod["metadata"]["ownerReferences"]] == [
        "<uid of ReplicaSet web>",
        "<uid>",
    ]
    assert pod["metadata"]["namespace"] == "<namespace>"


@virtual_time
async def test_hashes_are_numbered_by_revision() -> None:
    def revision(hash_: str, number: int) -> tuple[Ref, str, Object]:
        labels, annotations = {"pod-template-hash": hash_}, {"deployment.kubernetes.io/revision": str(number)}
        return REPLICA_SETS, f"web-{hash_}", {"metadata": {"labels": labels, "annotations": annotations}}

    pod = (PODS, "web-6b7c8d9f-x7k2p", {"metadata": {"labels": {"pod-template-hash": "6b7c8d9f"}}})
    found = await snapshot(revision("zzzz4567", 1), revision("6b7c8d9f", 2), pod)
    names = [each["metadata"]["name"] for each in found["objects"]]
    assert names == ["web-<hash-2>-<random>", "web-<hash-1>", "web-<hash-2>"]


@virtual_time
async def test_events_are_a_set_in_which_warnings_have_no_count() -> None:
    found = await snapshot(
        event("a", "Normal", "Created pod: web-x7k2p"),
        event("b", "Normal", "Created pod: web-bcdfg", 2),
        event("c", "Warning", "no", 7),
        event("d", "Warning", "(combined from similar events): no"),
    )
    assert [(each["message"], each.get("count")) for each in found["events"]] == [
        ("Created pod: web-<random>", 3),
        ("no", None),
    ]


@virtual_time
async def test_what_a_scenario_ignores_is_left_out_and_nothing_else() -> None:
    conditions = [{"type": "A", "message": "m"}, {"type": "B"}]
    told = (REPLICA_SETS, "web", {"status": {"replicas": 1, "conditions": conditions}})
    ignoring = {"ReplicaSet.status.conditions.*.message": "why", "Pod.status": "why", "Event.R": "why"}
    found = await snapshot(told, event("a", "Normal", "m"), ignoring=ignoring)
    assert found["objects"][0]["status"] == {"replicas": 1, "conditions": [{"type": "A"}, {"type": "B"}]}
    assert found["events"] == []


@virtual_time
async def test_a_difference_is_shown_line_by_line() -> None:
    one = await snapshot((REPLICA_SETS, "web", {"status": {"replicas": 1}}))
    other = await snapshot((REPLICA_SETS, "web", {"status": {"replicas": 2}}))
    assert difference(one, one) == ""
    lines = difference(one, other).splitlines()
    assert [line.strip("+- ") for line in lines if line[0] in "+-"][2:] == ['"replicas": 1', '"replicas": 2']
