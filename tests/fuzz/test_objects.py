"""Objects of every kind, changed where no client would: refused with a reason, or stored, shown and removed.

The same for what is only asked or written in part (reviews, bindings, evictions, scales, status), and for what a node
sends: the rules for nodes look into objects before anybody else has.
"""

from __future__ import annotations

import copy
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podlife.apiserver.resource_table import RESOURCES, STORED
from tests.fuzz.conftest import share
from tests.fuzz.objects import NAMESPACE, SEEDS, Object, Seed
from tests.fuzz.values import bodies, mutate, mutated_objects
from tests.fuzz.wire import Wire, judge

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
MERGE = "application/merge-patch+json"


def remove(wire: Wire, path: str) -> None:
    """Whatever it takes: no finalizer and no grace may keep it."""
    if judge(wire.request("DELETE", f"{path}?gracePeriodSeconds=0")).status == 404:
        return
    answer = wire.request("PATCH", path, b'{"metadata":{"finalizers":null}}', Content_Type=MERGE)
    judge(answer)


@pytest.mark.parametrize("seed", SEEDS, ids=repr)
def test_what_the_fuzz_starts_from_is_valid(wire: Wire, seed: Seed) -> None:
    answer = wire.request("POST", seed.collection, msgspec.json.encode(seed.object("seed")))
    assert answer.status == 201, answer.body
    remove(wire, f"{seed.collection}/seed")


@pytest.mark.parametrize("seed", SEEDS, ids=repr)
def test_a_mutated_object_is_refused_or_lives_a_whole_life(wire: Wire, seed: Seed) -> None:
    @share(0.012)
    @given(data=st.data())
    def run(data: st.DataObject) -> None:
        body = data.draw(bodies(data.draw(mutated_objects(seed))))
        answer = judge(wire.request("POST", seed.collection, body))
        if answer.status != 201:
            return
        path = f"{seed.collection}/{quote(answer.json['metadata']['name'], safe='')}"
        try:
            live(wire, seed, path, int(answer.json["metadata"]["resourceVersion"]))
        finally:
            remove(wire, path)

    run()


def live(wire: Wire, seed: Seed, path: str, created: int) -> None:
    """Everything that readers and writers do to an object that stands."""
    whole = judge(wire.request("GET", path))
    assert whole.status == 200
    for accept in (TABLE, METADATA, "application/yaml"):
        assert judge(wire.request("GET", path, Accept=accept)).status == 200
    assert judge(wire.request("GET", seed.collection, Accept=TABLE)).status == 200
    # Not the version that was just read: a controller may have written since.
    before = created - 1
    for accept in ("application/json", TABLE, METADATA):
        event = wire.first_event(f"{seed.collection}?watch=1&resourceVersion={before}", accept)
        assert event["type"] == "ADDED", event
    again = judge(wire.request("PUT", path, whole.body))
    # What the server gave out it takes back, unless the object may not be changed at all.
    assert again.status in (200, 409, 422), again.body
    patched = judge(wire.request("PATCH", path, b'{"metadata":{"labels":{"a":"b"}}}', Content_Type=MERGE))
    assert patched.status in (200, 422), patched.body


_CONTENTS: dict[str, Object] = {
    "bindings": {"target": {"kind": "Node", "name": "somewhere"}},
    "selfsubjectreviews.authentication.k8s.io": {},
    "tokenreviews.authentication.k8s.io": {"spec": {"token": "x"}},
}
_ACCESS = {"resourceAttributes": {"namespace": NAMESPACE, "verb": "get", "resource": "pods"}, "user": "me"}
QUESTIONS = tuple(
    Seed(row, _CONTENTS.get(row.key, {"spec": _ACCESS})) for row in RESOURCES if row not in STORED
)
# The body of these is of another kind than the object that it is about.
OTHERS = {
    "eviction": ("policy/v1", "Eviction"),
    "scale": ("autoscaling/v1", "Scale"),
    "binding": ("v1", "Binding"),
}


@pytest.mark.parametrize("seed", QUESTIONS, ids=repr)
def test_a_mutated_question_is_answered(wire: Wire, seed: Seed) -> None:
    @share(0.004)
    @given(data=st.data())
    def run(data: st.DataObject) -> None:
        judge(wire.request("POST", seed.collection, data.draw(bodies(data.draw(mutated_objects(seed))))))

    run()


# These lead to kubelets and pods.
CONNECTED = ("attach", "exec", "log", "portforward", "proxy")
WRITTEN = tuple(
    (seed, name) for seed in SEEDS for name in seed.resource.subresources if name not in CONNECTED
)


@pytest.mark.parametrize(("seed", "subresource"), WRITTEN, ids=str)
def test_a_mutated_part_is_refused_or_leaves_a_sound_object(wire: Wire, seed: Seed, subresource: str) -> None:
    path = f"{seed.collection}/part"
    method = "POST" if subresource in ("eviction", "binding") else "PUT"

    @share(0.004)
    @given(data=st.data())
    def run(data: st.DataObject) -> None:
        obj = seed.object("part")
        if subresource == "binding":
            obj["spec"] = {key: value for key, value in obj["spec"].items() if key != "nodeName"}
        wire.request("POST", seed.collection, msgspec.json.encode(obj))
        body = data.draw(bodies(data.draw(_parts(seed, subresource))))
        answer = judge(wire.request(method, f"{path}/{subresource}", body))
        if answer.status < 300:
            shown = judge(wire.request("GET", path, Accept=TABLE))
            assert shown.status in (200, 404), shown.body
            remove(wire, path)

    run()
    remove(wire, path)


@st.composite
def _parts(draw: st.DrawFn, seed: Seed, subresource: str) -> Any:
    if subresource not in OTHERS:
        return draw(mutated_objects(seed, name="part"))
    api_version, kind = OTHERS[subresource]
    obj: Object = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "part"}}
    parts: Object = {"scale": {"spec": {"replicas": 2}}, "binding": {"target": {"kind": "Node", "name": "n"}}}
    obj |= parts.get(subresource, {})
    obj = copy.deepcopy(obj)
    for _ in range(draw(st.integers(1, 3))):
        mutate(draw, obj, api_version, kind)
    return obj


# What a node has to do with, and one kind that it has not.
PLURALS = ("nodes", "pods", "leases", "events", "secrets", "persistentvolumeclaims", "deployments")
OWN = tuple(seed for seed in SEEDS if seed.resource.plural in PLURALS)


def test_a_node_is_known_by_its_token(node_wire: Wire) -> None:
    answer = node_wire.request("GET", "/api/v1/nodes/somewhere")
    assert answer.status == 404
    assert node_wire.request("GET", "/api/v1/nodes/elsewhere").status == 403


@share(0.08)
@given(
    seed=st.sampled_from(OWN),
    name=st.sampled_from(["somewhere", "somewhere", "it"]),
    subresource=st.sampled_from(["", "", "/status", "/eviction", "/binding"]),
    method=st.sampled_from(["POST", "PUT", "PATCH", "DELETE", "GET"]),
    data=st.data(),
)
def test_a_mutated_object_from_a_node_is_answered(
    wire: Wire, node_wire: Wire, seed: Seed, name: str, subresource: str, method: str, data: st.DataObject
) -> None:
    path = f"{seed.collection}/{name}"
    stands = data.draw(st.booleans())
    if stands:
        wire.request("POST", seed.collection, msgspec.json.encode(seed.object(name)))
    target = seed.collection if method == "POST" and not subresource else path + subresource
    body = data.draw(bodies(data.draw(mutated_objects(seed, name=name))))
    content_type = MERGE if method == "PATCH" else "application/json"
    is_bare = method in ("GET", "DELETE") and data.draw(st.booleans())
    judge(node_wire.request(method, target, None if is_bare else body, Content_Type=content_type))
    remove(wire, path)
