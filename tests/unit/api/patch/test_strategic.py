"""Strategic merge patches, held against the real API server.

`strategic_cases.json` holds objects as kube-apiserver v1.36 served them, patches, and where and how its answer to
each patch (with dryRun=All) differed from the object: `[path, value]`, null where something was gone.
"""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from podlife.api.patch import PatchError, strategic_merge_patch
from podlife.api.schema import check

TABLE = json.loads((Path(__file__).parent / "strategic_cases.json").read_text())


def changed(obj: Any, changes: list[Any]) -> Any:
    expected = copy.deepcopy(obj)
    for path, value in changes:
        holder = expected
        for key in path[:-1]:
            holder = holder[key]
        if value is None:
            del holder[path[-1]]
        else:
            holder[path[-1]] = value
    return expected


@pytest.mark.parametrize(
    "case", TABLE["cases"], ids=[f"{case['object']}: {case['name']}" for case in TABLE["cases"]]
)
def test_the_result_is_that_of_the_real_server(case: Any) -> None:
    obj, patch = TABLE["objects"][case["object"]], case["patch"]
    before = copy.deepcopy([obj, patch])
    result = strategic_merge_patch(obj, patch, obj["apiVersion"], obj["kind"])
    check(obj["apiVersion"], obj["kind"], result)
    assert result == changed(obj, case["changes"])
    assert [obj, patch] == before


POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "finalizers": ["x/a", "x/b"], "labels": {"a": "b"}},
    "spec": {"containers": [{"name": "c", "image": "i"}], "terminationGracePeriodSeconds": 30},
}


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        ([1], "json: cannot unmarshal array into Go value of type map[string]interface {}"),
        (
            {"spec": {"containers": [{"image": "x"}]}},
            "map: map[image:x] does not contain declared merge key: name",
        ),
        (
            {"spec": {"containers": [{"name": "c", "$patch": "merge"}]}},
            "merging lists cannot yet be specified in the patch",
        ),
        (
            {"spec": {"containers": [{"name": "c", "$patch": "foo"}]}},
            "unknown patch type: foo in map: map[$patch:foo name:c]",
        ),
        ({"spec": {"$patch": "foo"}}, "unknown patch type: foo in map: map[$patch:foo]"),
        ({"spec": {"containers": [1]}}, "list element types are not identical: [[map[image:i name:c]] [1]]"),
        ({"metadata": {"finalizers": [1]}}, "list element types are not identical: [[x/a x/b] [1]]"),
        ({"spec": {"$retainKeys": ["a"], "containers": []}}, "invalid patch format of retainKeys"),
        ({"spec": {"$retainKeys": 5}}, "invalid patch format of retainKeys"),
        (
            {"metadata": {"$deleteFromPrimitiveListfinalizers": ["x"]}},
            "invalid patch format of primitive list",
        ),
        (
            {"metadata": {"$setElementOrder/finalizers": "x"}},
            "expected a []interface {}, but received a string",
        ),
        (
            {"spec": {"$setElementOrder/containers": ["c"], "containers": [{"name": "c"}]}},
            "expected a map[string]interface {}, but received a string",
        ),
        (
            {"metadata": {"$setElementOrder/finalizers": ["x/b", "x/q"], "finalizers": ["x/z"]}},
            "The order in patch list:\n[x/z]\n doesn't match $setElementOrder list:\n[x/b x/q]\n",
        ),
        (
            {"spec": {"$setElementOrder/foo": ["x"]}},
            'unable to find api field in struct PodSpec for the json field "foo"',
        ),
    ],
    ids=str,
)
def test_a_malformed_patch_is_refused_in_the_words_of_the_real_server(patch: Any, message: str) -> None:
    """The messages are upstream's. Most of its codes are 500; a mistake of the client is 400 here."""
    with pytest.raises(PatchError) as refused:
        strategic_merge_patch(POD, patch, "v1", "Pod")
    assert refused.value.message == message
    assert (refused.value.code, refused.value.reason) == (400, "BadRequest")


def test_lists_of_lists_are_refused() -> None:
    with pytest.raises(PatchError) as refused:
        strategic_merge_patch(
            {"metadata": {"finalizers": []}}, {"metadata": {"finalizers": [[1]]}}, "v1", "Pod"
        )
    assert refused.value.code == 422


def test_null_changes_nothing() -> None:
    assert strategic_merge_patch(POD, None, "v1", "Pod") == POD


@pytest.mark.parametrize("directive", ["delete", "replace"])
def test_the_whole_object_can_be_given_away(directive: str) -> None:
    assert strategic_merge_patch(POD, {"$patch": directive}, "v1", "Pod") == {}


def test_a_deletion_list_of_another_type_or_for_an_absent_list_is_ignored() -> None:
    for patch in ({"$deleteFromPrimitiveList/finalizers": "x"}, {"$deleteFromPrimitiveList/nope": ["x"]}):
        assert strategic_merge_patch(POD, {"metadata": patch}, "v1", "Pod") == POD


def test_an_unknown_kind_has_no_strategic_patch() -> None:
    with pytest.raises(PatchError) as refused:
        strategic_merge_patch({}, {}, "example.com/v1", "Thing")
    assert refused.value.code == 415
