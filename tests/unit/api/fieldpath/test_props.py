"""Merge types of custom kinds: for every part of a structural schema, what owns which fields."""

from __future__ import annotations

from typing import Any

import pytest

from podlife.api.fieldpath import (
    ManagedSet,
    TypedValueError,
    Updater,
    Version,
    check_typed,
    field_set_of,
    merge_type_of_props,
)

TEXT = {"type": "string"}
KEEP = {"x-kubernetes-preserve-unknown-fields": True}
EMBEDDED = {"x-kubernetes-embedded-resource": True}
NAMED = {"type": "object", "properties": {"name": {**TEXT, "default": "x"}, "value": TEXT}}
PROPS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": TEXT,
        "day": {"type": "string", "format": "date"},
        "either": {"x-kubernetes-int-or-string": True},
        "struct": {"type": "object", "properties": {"a": TEXT, "b": TEXT}},
        "whole": {"type": "object", "properties": {"a": TEXT}, "x-kubernetes-map-type": "atomic"},
        "map": {"type": "object", "additionalProperties": TEXT},
        "list": {"type": "array", "items": TEXT},
        "set": {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"},
        "named": {
            "type": "array",
            "items": NAMED,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
        },
        "free": {"type": "object", **KEEP},
        "half": {
            "properties": {"known": TEXT, "deep": {"type": "object", "properties": {"a": TEXT}}},
            **KEEP,
        },
        "closed": {"type": "object", "properties": {"a": TEXT}, "additionalProperties": False},
        "embedded": {"type": "object", "properties": {"spec": {"type": "object"}}, **EMBEDDED},
    },
}
KIND = merge_type_of_props(PROPS)


@pytest.mark.parametrize(
    ("value", "fields"),
    [
        ({"metadata": {"labels": {"a": "b"}}}, {"f:metadata": {"f:labels": {"f:a": {}}}}),
        ({"either": 1}, {"f:either": {}}),
        ({"either": "50%"}, {"f:either": {}}),
        ({"struct": {"a": "x"}}, {"f:struct": {"f:a": {}}}),
        ({"struct": {}}, {"f:struct": {}}),
        ({"whole": {"a": "x"}}, {"f:whole": {}}),
        ({"map": {"k": "x"}}, {"f:map": {"f:k": {}}}),
        ({"list": ["x"]}, {"f:list": {}}),
        ({"set": ["x"]}, {"f:set": {'v:"x"': {}}}),
        ({"named": [{"value": "v"}]}, {"f:named": {'k:{"name":"x"}': {".": {}, "f:value": {}}}}),
        ({"free": {"a": {"b": [1]}}}, {"f:free": {"f:a": {".": {}, "f:b": {".": {}}}}}),
        ({"half": {"known": "x", "more": 1}}, {"f:half": {"f:known": {}, "f:more": {}}}),
        ({"half": {"deep": {"a": "x", "b": 1}}}, {"f:half": {"f:deep": {"f:a": {}, "f:b": {}}}}),
        ({"embedded": {"metadata": {"name": "n"}}}, {"f:embedded": {"f:metadata": {"f:name": {}}}}),
    ],
)
def test_fields_of_a_value(value: Any, fields: Any) -> None:
    check_typed(value, KIND)
    assert _plain(field_set_of(value, KIND)) == _plain(fields)


def _plain(fields: Any) -> Any:
    """A member with nothing below it may be written in two ways."""
    left = {name: _plain(node) for name, node in fields.items()}
    return {} if left == {".": {}} else left


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"nope": 1}, ".nope: field not declared in schema"),
        ({"struct": {"nope": 1}}, ".struct.nope: field not declared in schema"),
        ({"closed": {"nope": 1}}, ".closed.nope: field not declared in schema"),
        ({"metadata": {"nope": 1}}, ".metadata.nope: field not declared in schema"),
        ({"embedded": {"metadata": {"nope": 1}}}, ".embedded.metadata.nope: field not declared in schema"),
        ({"half": {"known": 1}}, ".half.known: expected string, got &value.valueUnstructured{Value:1}"),
        ({"set": ["a", "a"]}, '.set: duplicate entries for key [="a"]'),
    ],
)
def test_what_does_not_fit(value: Any, message: str) -> None:
    with pytest.raises(TypedValueError) as refused:
        check_typed(value, KIND)
    assert str(refused.value) == message


def test_live_values_may_repeat() -> None:
    check_typed({"set": ["a", "a"]}, KIND, may_repeat=True)


def version(**properties: Any) -> Version:
    return Version(merge_type_of_props({"type": "object", "properties": properties}), may_change=True)


def test_an_applier_that_changes_its_version_prunes_what_it_applied_before() -> None:
    versions = {"v1": version(a=TEXT, b=TEXT), "v2": version(a=TEXT, b=TEXT)}
    live, managers = Updater(versions, "v1").apply({}, {"a": "1", "b": "1"}, {}, "me", force=False)
    live, managers = Updater(versions, "v2").apply(live, {"a": "1"}, managers, "me", force=False)
    assert (live, managers) == ({"a": "1"}, {"me": ManagedSet({"f:a": {}}, "v2", applied=True)})


def test_a_field_that_a_manager_of_another_version_owns_is_not_pruned() -> None:
    versions = {"v1": version(a=TEXT, b=TEXT), "v2": version(a=TEXT, b=TEXT)}
    live, managers = Updater(versions, "v1").apply({}, {"a": "1", "b": "1"}, {}, "me", force=False)
    live, managers = Updater(versions, "v2").apply(live, {"b": "1"}, managers, "other", force=False)
    live, managers = Updater(versions, "v1").apply(live, {"a": "1"}, managers, "me", force=False)
    assert live == {"a": "1", "b": "1"}


def test_a_manager_whose_version_does_not_know_a_field_is_an_error() -> None:
    versions = {"v1": version(a=TEXT, b=TEXT), "v2": version(a=TEXT)}
    managers = {"two": ManagedSet({"f:a": {}}, "v2")}
    with pytest.raises(TypedValueError, match="field not declared in schema"):
        Updater(versions, "v1").update({"a": "1"}, {"a": "1", "b": "1"}, managers, "one")


def test_a_manager_of_a_version_that_is_gone_is_an_error() -> None:
    managers = {"old": ManagedSet({"f:a": {}}, "v0")}
    with pytest.raises(TypedValueError, match="invalid group/version: v0"):
        Updater({"v1": version(a=TEXT)}, "v1").update({"a": "1"}, {"a": "2"}, managers, "one")


def test_a_value_of_the_wrong_type_is_an_error_not_a_failure() -> None:
    updater = Updater({"v1": version(a={"type": "object", "properties": {"b": TEXT}})}, "v1")
    with pytest.raises(TypedValueError, match="expected map"):
        updater.update({"a": {"b": "x"}}, {"a": "text"}, {}, "one")
