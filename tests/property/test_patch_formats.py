"""Properties that hold for every document and every patch."""

import copy
from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from podlife.api.patch import (
    PatchError,
    create_two_way_merge_patch,
    json_patch,
    merge_patch,
    strategic_merge_patch,
)

keys = st.sampled_from(["a", "b", "c", "a/b", "~", "0"])
scalars = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "x", "y"])
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)
documents = st.dictionaries(keys, values, max_size=4)


def code_of(apply: Callable[..., Any], *arguments: Any) -> int:
    """The code with which a server would answer."""
    try:
        apply(*arguments)
    except PatchError as error:
        return error.code
    return 200


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return value


@given(documents, documents)
def test_a_merge_patch_applied_twice_changes_no_more(document: Any, patch: Any) -> None:
    once = merge_patch(document, patch)
    assert merge_patch(once, patch) == once


@given(documents, documents)
def test_a_merge_patch_without_nulls_ends_up_in_the_result(document: Any, patch: Any) -> None:
    patch = without_nulls(patch)
    result = merge_patch(document, patch)
    assert merge_patch(result, patch) == result
    for key, value in patch.items():
        assert isinstance(value, dict) or result[key] == value


@given(documents)
def test_a_merge_patch_of_nulls_empties_the_document(document: Any) -> None:
    assert merge_patch(document, dict.fromkeys(document)) == {}


pointers = st.lists(keys.map(lambda key: key.replace("~", "~0").replace("/", "~1")), max_size=3).map(
    lambda parts: "".join(f"/{part}" for part in parts)
)
operations = st.fixed_dictionaries(
    {"op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test"]), "path": pointers},
    optional={"from": pointers, "value": values},
)


@given(documents, st.lists(operations, max_size=5))
def test_a_json_patch_applies_or_says_why_not_and_leaves_its_input_alone(document: Any, patch: Any) -> None:
    before = copy.deepcopy([document, patch])
    assert code_of(json_patch, document, patch) in (200, 422)
    assert [document, patch] == before


@given(documents, keys, values)
def test_what_a_json_patch_adds_it_can_test_and_remove(document: Any, key: str, value: Any) -> None:
    path = "/" + key.replace("~", "~0").replace("/", "~1")
    add, check, remove = ({"op": op, "path": path, "value": value} for op in ("add", "test", "remove"))
    rest = {name: item for name, item in document.items() if name != key}
    assert json_patch(document, [add, check]) == {**rest, key: value}
    assert json_patch(document, [add, remove]) == rest


names: st.SearchStrategy[Any] = st.sampled_from(["a", "b", "c", "d"])
containers = st.lists(
    st.fixed_dictionaries(
        {"name": names},
        optional={
            "image": st.sampled_from(["i", "j"]),
            "args": st.lists(names, max_size=2),
            "env": st.lists(
                st.fixed_dictionaries({"name": names, "value": names}),
                max_size=3,
                unique_by=lambda e: e["name"],
            ),
        },
    ),
    max_size=4,
    unique_by=lambda container: container["name"],
)
pods = st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries(
            {}, optional={"labels": st.dictionaries(names, names), "finalizers": st.lists(names, unique=True)}
        ),
        "spec": st.fixed_dictionaries({"containers": containers}, optional={"nodeName": names}),
    }
)


@given(pods, pods)
def test_a_two_way_patch_leads_from_one_pod_to_the_other(old: Any, new: Any) -> None:
    before = copy.deepcopy([old, new])
    patch = create_two_way_merge_patch(old, new, "v1", "Pod")
    assert strategic_merge_patch(old, patch, "v1", "Pod") == new
    assert [old, new] == before


@given(pods)
def test_a_pod_patched_with_itself_stays_as_it_is(pod: Any) -> None:
    assert strategic_merge_patch(pod, pod, "v1", "Pod") == pod
    assert create_two_way_merge_patch(pod, pod, "v1", "Pod") == {}


directives = st.sampled_from(
    [
        "$patch",
        "$retainKeys",
        "$setElementOrder/containers",
        "$deleteFromPrimitiveList/finalizers",
        "$setElementOrder",
    ]
)
fields = st.sampled_from(["metadata", "spec", "containers", "finalizers", "labels", "name", "env"])
wild = st.recursive(
    scalars | st.sampled_from(["replace", "delete", "merge"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(directives | fields, inner, max_size=4),
    max_leaves=12,
)


@given(pods, wild)
def test_a_strategic_patch_of_anything_applies_or_is_a_mistake_of_the_client(pod: Any, patch: Any) -> None:
    before = copy.deepcopy([pod, patch])
    assert code_of(strategic_merge_patch, pod, patch, "v1", "Pod") in (200, 400, 422)
    assert [pod, patch] == before
