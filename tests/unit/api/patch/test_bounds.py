"""What a patch may cost: a small request must not keep a server busy, or fill its memory."""

import time
from typing import Any

import pytest

from podlife.api.patch import PatchError, json_patch, strategic_merge_patch

# Far above what the work takes, far below what it takes when every element is compared with every other.
BUSY_SECONDS = 5.0
MANY = 20_000


def test_copies_of_copies_end_at_a_bound() -> None:
    doubling = [{"op": "copy", "from": "/data", "path": f"/data/{step}"} for step in range(64)]
    with pytest.raises(PatchError) as refused:
        json_patch({"data": {"key": "value"}}, doubling)
    assert (refused.value.code, refused.value.reason) == (422, "Invalid")
    assert refused.value.cause.endswith("exceeding the limit 3145728")


def test_copying_over_the_same_place_counts_every_time() -> None:
    again = [{"op": "copy", "from": "/data", "path": "/other"}] * 100
    with pytest.raises(PatchError) as refused:
        json_patch({"data": "x" * 50_000}, again)
    assert refused.value.cause.endswith("exceeding the limit 3145728")


def test_a_few_copies_of_something_large_are_made() -> None:
    twice = [{"op": "copy", "from": "/data", "path": f"/{step}"} for step in range(2)]
    assert json_patch({"data": "x" * 1_000_000}, twice)["1"] == "x" * 1_000_000


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "add", "path": "/list/0", "value": 0},
        {"op": "remove", "path": "/list/0"},
        {"op": "move", "from": "/list/0", "path": "/list/1"},
    ],
)
def test_operations_at_the_beginning_of_a_long_list_end_at_a_bound(operation: dict[str, Any]) -> None:
    with pytest.raises(PatchError, match="may move at most 10000000 elements") as refused:
        json_patch({"list": [0] * 1_000_000}, [operation] * 10_000)
    assert (refused.value.code, refused.value.reason) == (413, "RequestEntityTooLarge")


def test_ten_thousand_operations_on_a_list_of_usual_length_are_done() -> None:
    first = [{"op": "remove", "path": "/list/0"}, {"op": "add", "path": "/list/0", "value": 1}] * 5_000
    assert json_patch({"list": [0] * 500}, first) == {"list": [1] + [0] * 499}


def environment(*values: dict[str, Any]) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "main", "env": list(values)}]}}


def test_merging_two_long_lists_takes_a_moment() -> None:
    began = time.process_time()
    pod = environment(*({"name": f"n{i}", "value": "old"} for i in range(MANY)))
    change = environment(*({"name": f"n{i}", "value": "new"} for i in reversed(range(MANY))))
    after = strategic_merge_patch(pod, change, "v1", "Pod")
    assert {one["value"] for one in after["spec"]["containers"][0]["env"]} == {"new"}
    assert time.process_time() - began < BUSY_SECONDS


def test_deleting_from_a_long_list_one_by_one_takes_a_moment() -> None:
    began = time.process_time()
    pod = environment(*({"name": f"n{i}"} for i in range(MANY)))
    change = environment(*({"name": f"n{i}", "$patch": "delete"} for i in range(1, MANY)))
    after = strategic_merge_patch(pod, change, "v1", "Pod")
    assert after["spec"]["containers"][0]["env"] == [{"name": "n0"}]
    assert time.process_time() - began < BUSY_SECONDS


def test_an_element_that_is_named_again_and_again_ends_at_a_bound() -> None:
    pod = environment(*({"name": f"n{i}"} for i in range(MANY)))
    again = {"spec": {"containers": [{"name": "main", "env": [{"name": "x"}]}] * MANY}}
    with pytest.raises(PatchError, match="may merge at most 300000 fields and elements") as refused:
        strategic_merge_patch(pod, again, "v1", "Pod")
    assert (refused.value.code, refused.value.reason) == (413, "RequestEntityTooLarge")
