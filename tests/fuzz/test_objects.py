"""Objects of every kind, changed where no client would: refused with a reason, or stored, shown and removed."""

from __future__ import annotations

from urllib.parse import quote

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.conftest import share
from tests.fuzz.objects import SEEDS, Seed
from tests.fuzz.values import bodies, mutated_objects
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
            live(wire, seed, path)
        finally:
            remove(wire, path)

    run()


def live(wire: Wire, seed: Seed, path: str) -> None:
    """Everything that readers and writers do to an object that stands."""
    whole = judge(wire.request("GET", path))
    assert whole.status == 200
    for accept in (TABLE, METADATA, "application/yaml"):
        assert judge(wire.request("GET", path, Accept=accept)).status == 200
    assert judge(wire.request("GET", seed.collection, Accept=TABLE)).status == 200
    before = int(whole.json["metadata"]["resourceVersion"]) - 1
    for accept in ("application/json", TABLE, METADATA):
        event = wire.first_event(f"{seed.collection}?watch=1&resourceVersion={before}", accept)
        assert event["type"] == "ADDED", event
    again = judge(wire.request("PUT", path, whole.body))
    # What the server gave out it takes back, unless the object may not be changed at all.
    assert again.status in (200, 409, 422), again.body
    patched = judge(wire.request("PATCH", path, b'{"metadata":{"labels":{"a":"b"}}}', Content_Type=MERGE))
    assert patched.status in (200, 422), patched.body
