"""Patches of all four formats, broken in every way, against objects that stand."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.conftest import share
from tests.fuzz.objects import SEEDS, Object, Seed
from tests.fuzz.test_objects import TABLE, remove
from tests.fuzz.values import anything, bodies, mutated_objects, strange_texts
from tests.fuzz.wire import Wire, judge

APPLY = "application/apply-patch+yaml"
FORMATS = ("application/merge-patch+json", "application/strategic-merge-patch+json", APPLY)
JSON_PATCH = "application/json-patch+json"
DIRECTIVES: dict[str, st.SearchStrategy[Any]] = {
    "$patch": st.sampled_from(["delete", "replace", "merge", "no", 1, None]),
    "$retainKeys": st.one_of(st.lists(strange_texts, max_size=3), st.just(["name", "spec"]), anything),
    "$setElementOrder/containers": st.one_of(st.just([{"name": "main"}]), anything),
    "$deleteFromPrimitiveList/finalizers": st.one_of(st.just(["a/b"]), anything),
    "$setElementOrder/finalizers": anything,
}


@st.composite
def merge_patches(draw: st.DrawFn, seed: Seed) -> Any:
    """Parts of a mutated object, with directives and nulls put in."""
    patch = draw(mutated_objects(seed, name="patched"))
    for field in ("kind", "apiVersion"):
        if draw(st.booleans()):
            patch.pop(field, None)
    for _ in range(draw(st.integers(0, 2))):
        place = draw(st.sampled_from(list(_dictionaries(patch))))
        name = draw(st.sampled_from(sorted(DIRECTIVES)))
        # A copy: some of these are one and the same list for every draw.
        place[name] = copy.deepcopy(draw(DIRECTIVES[name]))
        if draw(st.booleans()):
            place[draw(st.sampled_from(sorted(place)))] = None
    return patch if draw(st.integers(0, 15)) else draw(anything)


def _dictionaries(value: Any) -> list[Object]:
    found: list[Object] = [value] if isinstance(value, dict) else []
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for child in children:
        found += _dictionaries(child)
    return found


@st.composite
def json_patches(draw: st.DrawFn, seed: Seed) -> Any:
    pointers = [
        *_pointers(seed.object("patched")),
        "",
        "/",
        "/-",
        "/metadata/labels",
        "/metadata/finalizers/-",
    ]
    paths = st.one_of(
        st.sampled_from(pointers),
        st.tuples(
            st.sampled_from(pointers),
            st.sampled_from(["/x", "/0", "/-", "/-1", "/99", "/~", "/~1", "/01", "/"]),
        ).map("".join),
        strange_texts,
    )
    names = st.sampled_from(["add", "remove", "replace", "move", "copy", "test", "no", ""])
    operations = st.fixed_dictionaries(
        {}, optional={"op": names, "path": paths, "from": paths, "value": anything, "extra": anything}
    )
    operation = st.one_of(operations, operations, operations, anything)
    return draw(st.one_of(st.lists(operation, max_size=5), anything))


def _pointers(value: Any, at: str = "") -> list[str]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = []
    for name, child in items:
        here = f"{at}/{name}"
        found += [here, *_pointers(child, here)]
    return found


@pytest.mark.parametrize("seed", SEEDS, ids=repr)
def test_a_mutated_patch_is_refused_or_leaves_a_sound_object(wire: Wire, seed: Seed) -> None:
    path = f"{seed.collection}/patched"

    def stand() -> None:
        answer = wire.request("POST", seed.collection, msgspec.json.encode(seed.object("patched")))
        assert answer.status in (201, 409), answer.body

    @share(0.009)
    @given(data=st.data())
    def run(data: st.DataObject) -> None:
        stand()
        subresource = data.draw(st.sampled_from(["", "", "", *(f"/{n}" for n in seed.resource.subresources)]))
        if data.draw(st.integers(0, 2)):
            content_type = data.draw(st.sampled_from(FORMATS))
            patch = data.draw(merge_patches(seed))
        else:
            content_type, patch = JSON_PATCH, data.draw(json_patches(seed))
        query = data.draw(st.sampled_from(["", "", "?fieldValidation=Strict", "?dryRun=All"]))
        if content_type == APPLY:
            manager = data.draw(st.sampled_from(["fieldManager=f", "fieldManager=f&force=true"]))
            query = f"{query}&{manager}" if query else f"?{manager}"
        body = data.draw(bodies(patch))
        answer = judge(wire.request("PATCH", path + subresource + query, body, Content_Type=content_type))
        if answer.status != 200 or "dryRun" in query:
            return
        # What is there now must be readable and removable, and the next patch meets a fresh object.
        shown = judge(wire.request("GET", path, Accept=TABLE))
        assert shown.status in (200, 404), shown.body
        remove(wire, path)

    run()
    remove(wire, path)
