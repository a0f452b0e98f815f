"""Bodies for what is only asked or written in part: reviews, bindings, evictions, scales and status."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podlife.apiserver.resource_table import RESOURCES, STORED
from tests.fuzz.conftest import share
from tests.fuzz.objects import NAMESPACE, SEEDS, Object, Seed
from tests.fuzz.test_objects import remove
from tests.fuzz.values import bodies, mutate, mutated_objects
from tests.fuzz.wire import Wire, judge

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


WRITTEN = tuple(
    (seed, name) for seed in SEEDS for name in seed.resource.subresources if name not in ("log", "exec")
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
            shown = judge(wire.request("GET", path, Accept="application/json;as=Table;v=v1;g=meta.k8s.io"))
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
    obj |= {"scale": {"spec": {"replicas": 2}}, "binding": {"target": {"kind": "Node", "name": "n"}}}.get(
        subresource, {}
    )
    obj = copy.deepcopy(obj)
    for _ in range(draw(st.integers(1, 3))):
        mutate(draw, obj, api_version, kind)
    return obj
