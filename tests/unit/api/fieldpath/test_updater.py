"""Who owns what after updates and applies."""

from __future__ import annotations

from typing import Any

import pytest

from podlife.api.fieldpath import (
    FieldConflictError,
    ManagedSet,
    MergeType,
    Updater,
    Version,
    merge_type_of_kind,
    show_path,
    updater_of_kind,
    with_atomics,
)
from podlife.api.fieldpath.merge_type import MAP, SCALAR

KIND = merge_type_of_kind("v1", "ConfigMap")
UPDATER = updater_of_kind("v1", "ConfigMap")


def data(**values: str) -> dict[str, Any]:
    return {"data": values}


def owned(managers: dict[Any, ManagedSet]) -> dict[str, list[str]]:
    return {
        name: sorted(managed.fields.get("f:data", {}).keys() - {"."}) for name, managed in managers.items()
    }


def test_an_update_owns_what_it_changes_and_takes_it_from_others() -> None:
    managers = UPDATER.update({}, data(a="1", b="1"), {}, "one")
    managers = UPDATER.update(data(a="1", b="1"), data(a="1", b="2", c="2"), managers, "two")
    assert owned(managers) == {"one": ["f:a"], "two": ["f:b", "f:c"]}
    managers = UPDATER.update(data(a="1", b="2", c="2"), data(b="2", c="2"), managers, "two")
    assert owned(managers) == {"one": [], "two": ["f:b", "f:c"]}


def test_an_update_that_changes_nothing_owns_nothing() -> None:
    managers = UPDATER.update({}, data(a="1"), {}, "one")
    assert UPDATER.update(data(a="1"), data(a="1"), managers, "two") == managers


def test_an_apply_owns_all_that_it_mentions_and_shares_equal_values() -> None:
    live, managers = UPDATER.apply({}, data(a="1"), {}, "one", force=False)
    live, managers = UPDATER.apply(live, data(a="1", b="2"), managers, "two", force=False)
    assert (live, owned(managers)) == (data(a="1", b="2"), {"one": ["f:a"], "two": ["f:a", "f:b"]})


def test_an_apply_of_another_value_conflicts_unless_forced() -> None:
    live, managers = UPDATER.apply({}, data(a="1"), {}, "one", force=False)
    with pytest.raises(FieldConflictError) as refused:
        UPDATER.apply(live, data(a="2"), managers, "two", force=False)
    assert [(name, show_path(path)) for name, path in refused.value.conflicts()] == [("one", ".data.a")]
    live, managers = UPDATER.apply(live, data(a="2"), managers, "two", force=True)
    assert (live, owned(managers)) == (data(a="2"), {"two": ["f:a"]})


def test_what_an_applier_stops_mentioning_goes_unless_another_owns_it() -> None:
    live, managers = UPDATER.apply({}, data(a="1", b="1", c="1"), {}, "one", force=False)
    live, managers = UPDATER.apply(live, data(b="1"), managers, "two", force=False)
    managers = UPDATER.update(live, data(a="1", b="1", c="edited"), managers, "three")
    live, managers = UPDATER.apply(data(a="1", b="1", c="edited"), data(), managers, "one", force=False)
    assert live == data(b="1", c="edited")
    assert owned(managers)["two"] == ["f:b"]
    live, managers = UPDATER.apply(live, {}, managers, "two", force=False)
    assert live == data(c="edited")


def test_reset_fields_are_owned_by_nobody() -> None:
    updater = Updater({"v1": Version(KIND)}, "v1", {"v1": {"f:data": {}}})
    assert updater.update({}, {**data(a="1"), "immutable": True}, {}, "one")["one"].fields == {
        "f:immutable": {}
    }
    _, managers = updater.apply({}, data(a="1"), {}, "one", force=False)
    assert managers == {}


def test_managers_of_versions_that_are_gone_are_forgotten() -> None:
    managers = {"old": ManagedSet({"f:data": {"f:a": {}}}, "v0")}
    assert UPDATER.update(data(a="1"), data(a="2"), managers, "new").keys() == {"new"}


def test_each_manager_is_compared_in_its_own_version() -> None:
    """The other version calls the same field by another name."""

    def renamed(obj: dict[str, Any]) -> dict[str, Any]:
        return {"texts": obj["data"]} if "data" in obj else {}

    other = MergeType(MAP, fields={"texts": MergeType(MAP, element=MergeType(SCALAR, scalar="string"))})
    updater = Updater({"v1": Version(KIND), "v2": Version(other, renamed)}, "v1")
    managers = {"two": ManagedSet({"f:texts": {"f:a": {}, "f:b": {}}}, "v2")}
    managers = updater.update(data(a="1", b="1"), data(a="2", b="1"), managers, "one")
    assert managers["two"].fields == {"f:texts": {"f:b": {}}}


def test_a_field_that_became_atomic_is_owned_as_a_whole() -> None:
    pod = merge_type_of_kind("v1", "Pod")
    fields: dict[str, Any] = {"f:spec": {"f:nodeSelector": {".": {}, "f:zone": {}}, "f:hostname": {}}}
    assert with_atomics(fields, pod) == {"f:spec": {"f:nodeSelector": {}, "f:hostname": {}}}
    same: dict[str, Any] = {"f:spec": {"f:hostname": {}}}
    assert with_atomics(same, pod) is same
    updater = Updater({"v1": Version(pod, may_change=True)}, "v1")
    managers = updater.update({}, {"kind": "Pod"}, {"one": ManagedSet(fields, "v1")}, "two")
    assert managers["one"].fields == {"f:spec": {"f:nodeSelector": {}, "f:hostname": {}}}
