"""The patch that takes finalizers off: it takes these and nothing else, and fits no pod but the one it is for."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podlife.api.managed_fields import finalizer_setter
from podlife.api.patch.errors import PatchError
from podlife.api.patch.json_patch import json_patch
from podlife.podgc.finalizers.remover import patch_for

Object = dict[str, Any]

NAMES = st.sampled_from(["a.b/one", "a.b/two", "c.d/one", "orphan", "e.f/x~y"])
LISTS = st.lists(NAMES, min_size=1, max_size=5, unique=True)


def pod(finalizers: list[str], uid: str = "u", version: str = "7") -> Object:
    return {
        "metadata": {"uid": uid, "resourceVersion": version, "finalizers": finalizers, "labels": {"a": "b"}}
    }


@given(finalizers=LISTS, chosen=st.sets(NAMES))
def test_what_is_chosen_goes_and_all_else_stays_as_it_is(finalizers: list[str], chosen: set[str]) -> None:
    before = pod(finalizers)
    after = json_patch(copy.deepcopy(before), patch_for(before, sorted(chosen)))
    assert after == pod([each for each in finalizers if each not in chosen])


@given(finalizers=LISTS, others=LISTS, chosen=st.sets(NAMES, min_size=1))
def test_it_does_not_fit_where_a_chosen_finalizer_is_in_another_place(
    finalizers: list[str], others: list[str], chosen: set[str]
) -> None:
    patch, other = patch_for(pod(finalizers), sorted(chosen)), pod(others)
    places = {place: name for place, name in enumerate(finalizers) if name in chosen}
    if all(place < len(others) and others[place] == name for place, name in places.items()):
        left = [each for place, each in enumerate(others) if place not in places]
        assert json_patch(other, patch)["metadata"]["finalizers"] == left
    else:
        with pytest.raises(PatchError):
            json_patch(other, patch)


@pytest.mark.parametrize(("uid", "version"), [("another", "7"), ("u", "8")])
def test_it_does_not_fit_another_pod_or_another_version(uid: str, version: str) -> None:
    with pytest.raises(PatchError):
        json_patch(pod(["a.b/one"], uid, version), patch_for(pod(["a.b/one"]), ["a.b/one"]))


def test_who_set_a_finalizer_is_found_where_the_server_has_noted_it() -> None:
    fields: dict[str, Any] = {"f:metadata": {"f:finalizers": {".": {}, 'v:"a.b/one"': {}}}}
    noted = [{"manager": "x"}, {"manager": "backup", "time": "2030-01-01T00:00:00Z", "fieldsV1": fields}]
    assert finalizer_setter({"managedFields": noted}, "a.b/one") == ("backup", "2030-01-01T00:00:00Z")
    assert finalizer_setter({"managedFields": noted}, "a.b/two") == ("", "")
    assert finalizer_setter({"managedFields": [{"fieldsV1": None}]}, "a.b/one") == ("", "")
    assert finalizer_setter({}, "a.b/one") == ("", "")
