"""The patch that brings a status to the API server."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from podlife.api.patch import strategic_merge_patch
from podlife.kubelet.status.normalize import has_same_meaning
from podlife.kubelet.status.patch import status_patch
from tests.conformance.kubelet.kit import Object

texts = st.sampled_from(["", "x", "y"])
conditions = st.lists(
    st.fixed_dictionaries(
        {
            "type": st.sampled_from(["Ready", "Initialized", "other"]),
            "status": st.sampled_from(["True", "False"]),
        },
        optional={"reason": texts, "lastProbeTime": st.none()},
    ),
    unique_by=lambda each: str(each["type"]),
)
containers = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from(["a", "b"]), "state": st.sampled_from([{"waiting": {}}, {"running": {}}])},
        optional={"restartCount": st.integers(0, 1), "started": st.booleans(), "ready": st.booleans()},
    ),
    unique_by=lambda each: str(each["name"]),
)
addresses = st.lists(st.sampled_from(["10.0.0.1", "10.0.0.2"]).map(lambda ip: {"ip": ip}), unique_by=str)
statuses = st.fixed_dictionaries(
    {},
    optional={
        "phase": st.sampled_from(["Pending", "Running", "Failed"]),
        "reason": texts,
        "conditions": conditions,
        "containerStatuses": containers,
        "podIPs": addresses,
    },
)


def sorted_conditions(status: Object) -> Object:
    told = sorted(status.get("conditions") or (), key=lambda each: str(each["type"]))
    addresses = sorted(status.get("podIPs") or (), key=str)
    return {**status, "conditions": told, "podIPs": addresses}


def patched(old: Object, new: Object) -> tuple[Any, Object]:
    before = copy.deepcopy((old, new))
    patch = status_patch("u", old, new)
    assert (old, new) == before
    pod = {"metadata": {"uid": "u"}, "status": copy.deepcopy(old)}
    return patch, strategic_merge_patch(pod, patch, "v1", "Pod").get("status") or {}


@given(statuses, statuses)
def test_with_the_patch_the_server_says_what_the_node_does(old: Object, new: Object) -> None:
    patch, result = patched(old, new)
    assert has_same_meaning(sorted_conditions(result), sorted_conditions(new))
    if patch is not None:
        assert patch["metadata"] == {"uid": "u"}
    else:
        assert has_same_meaning(sorted_conditions(old), sorted_conditions(new))


@given(statuses)
def test_what_is_the_same_is_not_patched(status: Object) -> None:
    assert status_patch("u", status, status) is None
    filled = {"reason": "", "podIPs": [], **status}
    assert status_patch("u", status, filled) is None
    assert status_patch("u", filled, status) is None


def test_what_is_over_is_taken_back() -> None:
    patch, result = patched({"phase": "Failed", "reason": "Evicted"}, {"phase": "Failed"})
    assert patch == {"metadata": {"uid": "u"}, "status": {"reason": None}}
    assert result == {"phase": "Failed"}
