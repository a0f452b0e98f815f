"""What a node sends, mutated: the rules for nodes look into objects before anybody else has."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.conftest import share
from tests.fuzz.objects import SEEDS, Seed
from tests.fuzz.test_objects import remove
from tests.fuzz.values import bodies, mutated_objects
from tests.fuzz.wire import Wire, judge

# What a node has to do with, and one kind that it has not.
PLURALS = ("nodes", "pods", "leases", "events", "secrets", "persistentvolumeclaims", "deployments")
OWN = tuple(seed for seed in SEEDS if seed.resource.plural in PLURALS)
MERGE = "application/merge-patch+json"


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
