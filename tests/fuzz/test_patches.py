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
from tests.fuzz.test_objects import CONNECTED, TABLE, remove
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


# What a client may claim about owners of fields: paths of every form, of real fields and of none, and entries that no
# server has written.
_PATHS = st.sampled_from(
    [
        *(".", "f:spec", "f:metadata", "f:labels", "f:data", "f:containers", "f:replicas", "f:status", "f:"),
        *(
            'k:{"name":"main"}',
            'k:{"port":80,"protocol":"TCP"}',
            "k:{",
            "k:{}",
            "k:[]",
            'v:"a/b"',
            "v:",
            "v:{}",
        ),
        *("i:0", "i:-1", "i:x", "x:y", "", "f:a.b", "f:\u0000"),
    ]
)
_FIELDS: st.SearchStrategy[Any] = st.recursive(
    st.just({}), lambda inner: st.dictionaries(_PATHS, inner, max_size=3), max_leaves=8
)
_ENTRIES = st.fixed_dictionaries(
    {},
    optional={
        "manager": st.one_of(st.sampled_from(["f", "forged", ""]), strange_texts),
        "operation": st.sampled_from(["Apply", "Update", "Replace", "", 1]),
        "apiVersion": st.sampled_from(["v1", "apps/v1", "none/v9", "a/b/c", "", None]),
        "time": st.sampled_from(["2030-01-01T00:00:00Z", "never", None]),
        "fieldsType": st.sampled_from(["FieldsV1", "FieldsV2", "", None]),
        "fieldsV1": st.one_of(_FIELDS, _FIELDS, anything),
        "subresource": st.sampled_from(["", "status", "scale", "none"]),
    },
)
forged_managers = st.one_of(st.lists(_ENTRIES, max_size=4), st.just([{}]), anything)


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
    if isinstance(patch.get("metadata"), dict) and draw(st.integers(0, 3)) == 0:
        patch["metadata"]["managedFields"] = draw(forged_managers)
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


def test_forged_managers_are_refused_or_the_object_can_still_be_applied(wire: Wire) -> None:
    """For every verb that can write managers: a later apply gets its owners from the server, not from them."""
    seed = next(each for each in SEEDS if each.resource.key == "deployments.apps")
    path = f"{seed.collection}/forged"
    obj = seed.object("forged")

    @share(0.05)
    @given(data=st.data())
    def run(data: st.DataObject) -> None:
        forged = {**obj, "metadata": {"name": "forged", "managedFields": data.draw(forged_managers)}}
        body = msgspec.json.encode(forged)
        verb, kind = data.draw(st.sampled_from([("POST", ""), ("PUT", ""), *(("PATCH", f) for f in FORMATS)]))
        target = seed.collection if verb == "POST" else path
        query = "?fieldManager=forger&force=true" if kind == APPLY else "?fieldManager=forger"
        headers = {"Content_Type": kind} if kind else {}
        wire.request("POST", seed.collection, msgspec.json.encode(obj))
        judge(wire.request(verb, target + query, body, **headers))
        applied = wire.request(
            "PATCH", f"{path}?fieldManager=f&force=true", msgspec.json.encode(obj), Content_Type=APPLY
        )
        assert applied.status in (200, 201), applied.body
        managers = {each["manager"] for each in applied.json["metadata"]["managedFields"]}
        assert "f" in managers, managers
        remove(wire, path)

    run()


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
        parts = [f"/{name}" for name in seed.resource.subresources if name not in CONNECTED]
        subresource = data.draw(st.sampled_from(["", "", "", *parts]))
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
