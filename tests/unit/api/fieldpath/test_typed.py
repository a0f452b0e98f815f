"""Values and their types: for every type of list and map what is compared, merged, removed and refused."""

from __future__ import annotations

from typing import Any

import pytest

from podlife.api.fieldpath import (
    MergeType,
    TypedValueError,
    check_typed,
    compare,
    field_set_of,
    merge,
    merge_type_of_kind,
    remove_items,
    zero_object,
)
from podlife.api.fieldpath.merge_type import DEDUCED, LIST, MAP, SCALAR

TEXT, NUMBER = MergeType(SCALAR, scalar="string"), MergeType(SCALAR, scalar="numeric")
PORT = MergeType(MAP, fields={"port": NUMBER, "protocol": TEXT, "name": TEXT})
KIND = MergeType(
    MAP,
    fields={
        "text": TEXT,
        "number": NUMBER,
        "flag": MergeType(SCALAR, scalar="boolean"),
        "any": MergeType(SCALAR),
        "struct": PORT,
        "whole": MergeType(MAP, atomic=True, fields={"a": TEXT, "b": TEXT}),
        "map": MergeType(MAP, element=TEXT),
        "wholeMap": MergeType(MAP, atomic=True, element=TEXT),
        "list": MergeType(LIST, atomic=True, element=TEXT),
        "set": MergeType(LIST, element=TEXT),
        "ports": MergeType(LIST, element=PORT, keys=("port", "protocol"), key_defaults={"protocol": "TCP"}),
        "free": MergeType(DEDUCED),
    },
)
P80, P81 = 'k:{"port":80,"protocol":"TCP"}', 'k:{"port":81,"protocol":"TCP"}'


@pytest.mark.parametrize(
    ("value", "fields"),
    [
        ({"text": "x"}, {"f:text": {}}),
        ({"text": None}, {"f:text": {}}),
        ({"struct": {"port": 1}}, {"f:struct": {"f:port": {}}}),
        ({"struct": {}}, {"f:struct": {}}),
        ({"struct": None}, {"f:struct": {}}),
        ({"whole": {"a": "1"}}, {"f:whole": {}}),
        ({"map": {"k": "v"}}, {"f:map": {"f:k": {}}}),
        ({"wholeMap": {"k": "v"}}, {"f:wholeMap": {}}),
        ({"list": ["a"]}, {"f:list": {}}),
        ({"set": ["a", "b"]}, {"f:set": {'v:"a"': {}, 'v:"b"': {}}}),
        ({"set": []}, {}),
        ({"set": ["a", "a"]}, {"f:set": {'v:"a"': {}}}),
        ({"ports": [{"port": 80}]}, {"f:ports": {P80: {".": {}, "f:port": {}}}}),
        ({"free": {"a": {"b": [1]}}}, {"f:free": {"f:a": {".": {}, "f:b": {}}}}),
    ],
)
def test_fields_of_an_applied_value(value: Any, fields: Any) -> None:
    assert field_set_of(value, KIND) == fields


@pytest.mark.parametrize(
    ("old", "new", "added", "modified", "removed"),
    [
        ({}, {"text": "x"}, {"f:text": {}}, {}, {}),
        ({"text": "x"}, {"text": "y"}, {}, {"f:text": {}}, {}),
        ({"text": "x"}, {}, {}, {}, {"f:text": {}}),
        ({"text": "x"}, {"text": "x"}, {}, {}, {}),
        ({}, {"struct": {"port": 1}}, {"f:struct": {".": {}, "f:port": {}}}, {}, {}),
        ({"struct": {}}, {"struct": {"port": 1}}, {"f:struct": {"f:port": {}}}, {}, {}),
        ({"struct": None}, {"struct": {}}, {}, {"f:struct": {}}, {}),
        ({"whole": {"a": "1"}}, {"whole": {"a": "1", "b": "2"}}, {}, {"f:whole": {}}, {}),
        ({"map": {"a": "1"}}, {"map": {"b": "2"}}, {"f:map": {"f:b": {}}}, {}, {"f:map": {"f:a": {}}}),
        ({"wholeMap": {"a": "1"}}, {"wholeMap": {}}, {}, {"f:wholeMap": {}}, {}),
        ({"list": ["a"]}, {"list": ["b"]}, {}, {"f:list": {}}, {}),
        ({"set": ["a"]}, {"set": ["b"]}, {"f:set": {'v:"b"': {}}}, {}, {"f:set": {'v:"a"': {}}}),
        ({"set": ["a", "b"]}, {"set": ["b", "a"]}, {}, {}, {}),
        (
            {"ports": [{"port": 80, "name": "a"}]},
            {"ports": [{"port": 80, "protocol": "TCP", "name": "b"}, {"port": 81}]},
            {"f:ports": {P80: {"f:protocol": {}}, P81: {".": {}, "f:port": {}}}},
            {"f:ports": {P80: {"f:name": {}}}},
            {},
        ),
        ({"set": ["a"]}, {"set": ["a", "a"]}, {"f:set": {'v:"a"': {}}}, {}, {"f:set": {'v:"a"': {}}}),
        ({"set": ["a", "a"]}, {"set": ["a"]}, {"f:set": {'v:"a"': {}}}, {}, {"f:set": {'v:"a"': {}}}),
        ({"set": ["a", "a"]}, {"set": ["a", "a", "a"]}, {}, {"f:set": {'v:"a"': {}}}, {}),
        ({"free": {"a": 1}}, {"free": 5}, {}, {"f:free": {}}, {"f:free": {"f:a": {}}}),
        ({"free": 5}, {"free": {"a": 1}}, {"f:free": {"f:a": {}}}, {"f:free": {}}, {}),
    ],
)
def test_comparison(old: Any, new: Any, added: Any, modified: Any, removed: Any) -> None:
    found = compare(old, new, KIND)
    assert (found.added, found.modified, found.removed) == (added, modified, removed)
    assert found.is_same is not bool(added or modified or removed)


@pytest.mark.parametrize(
    ("live", "applied", "merged"),
    [
        ({"text": "x", "number": 1}, {"text": "y"}, {"text": "y", "number": 1}),
        ({"map": {"a": "1"}}, {"map": {"b": "2"}}, {"map": {"a": "1", "b": "2"}}),
        ({"map": {"a": "1"}}, {"map": None}, {"map": {"a": "1"}}),
        ({}, {"map": {}}, {"map": {}}),
        ({"whole": {"a": "1"}}, {"whole": {"b": "2"}}, {"whole": {"b": "2"}}),
        ({"list": ["a"]}, {"list": ["b"]}, {"list": ["b"]}),
        ({"set": ["a", "b", "c"]}, {"set": ["c", "a"]}, {"set": ["b", "c", "a"]}),
        ({"set": ["a", "b"]}, {"set": ["x", "a"]}, {"set": ["x", "a", "b"]}),
        ({"set": ["a", "b"]}, {"set": ["b", "x"]}, {"set": ["a", "b", "x"]}),
        ({"set": ["a", "a", "b"]}, {"set": ["a"]}, {"set": ["a", "b"]}),
        (
            {"ports": [{"port": 80, "name": "a"}]},
            {"ports": [{"port": 80}]},
            {"ports": [{"port": 80, "name": "a"}]},
        ),
        ({"free": {"a": 1}}, {"free": {"b": 2}}, {"free": {"a": 1, "b": 2}}),
        ({"free": {"a": 1}}, {"free": [1]}, {"free": [1]}),
    ],
)
def test_merge(live: Any, applied: Any, merged: Any) -> None:
    assert merge(live, applied, KIND) == merged


@pytest.mark.parametrize(
    ("value", "fields", "left"),
    [
        ({"text": "x", "number": 1}, {"f:text": {}}, {"number": 1}),
        ({"map": {"a": "1", "b": "2"}}, {"f:map": {"f:a": {}}}, {"map": {"b": "2"}}),
        ({"map": {"a": "1"}}, {"f:map": {"f:a": {}}}, {"map": None}),
        ({"set": ["a", "b"]}, {"f:set": {'v:"a"': {}}}, {"set": ["b"]}),
        (
            {"ports": [{"port": 80, "name": "a"}]},
            {"f:ports": {P80: {"f:name": {}}}},
            {"ports": [{"port": 80}]},
        ),
        ({"ports": [{"port": 80}]}, {"f:ports": {P80: {}}}, {"ports": None}),
    ],
)
def test_items_are_removed(value: Any, fields: Any, left: Any) -> None:
    assert remove_items(value, fields, KIND) == left


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"nope": 1}, ".nope: field not declared in schema"),
        ({"struct": {"nope": 1}}, ".struct.nope: field not declared in schema"),
        ({"number": "1"}, ".number: expected numeric (int or float), got string"),
        ({"number": True}, ".number: expected numeric (int or float), got bool"),
        ({"text": 1}, ".text: expected string, got &value.valueUnstructured{Value:1}"),
        (
            {"text": ["a", None]},
            '.text: expected string, got &value.valueUnstructured{Value:[]interface {}{"a", interface {}(nil)}}',
        ),
        (
            {"text": {"b": 1, "a": 0}},
            '.text: expected string, got &value.valueUnstructured{Value:map[string]interface {}{"a":0, "b":1}}',
        ),
        ({"flag": "x"}, ".flag: expected boolean, got &{x}"),
        ({"any": []}, ".any: expected any scalar, got &{[]}"),
        ({"map": ["x"]}, ".map: expected map, got &{[x]}"),
        ({"list": "x"}, ".list: expected list, got &{x}"),
        ({"set": ["a", "a"]}, '.set: duplicate entries for key [="a"]'),
        ({"set": [{}]}, ".set: element 0: associative list without keys has an element that's a map type"),
        ({"ports": ["x"]}, ".ports: element 0: associative list with keys may not have non-map elements"),
        ({"ports": [None]}, ".ports: element 0: associative list with keys may not have a null element"),
        (
            {"number": "1", "flag": 2},
            "errors:\n  .number: expected numeric (int or float), got string\n  .flag: expected boolean, got &{2}",
        ),
    ],
)
def test_what_does_not_fit_is_refused_in_upstreams_words(value: Any, message: str) -> None:
    with pytest.raises(TypedValueError) as refused:
        check_typed(value, KIND)
    assert str(refused.value) == message


def test_what_fits_is_not_refused() -> None:
    check_typed({"text": None, "free": {"x": [1]}, "any": 1.5, "ports": [{"port": 80}], "list": None}, KIND)


def test_built_in_kinds_have_the_types_of_the_schema() -> None:
    pod = merge_type_of_kind("v1", "Pod").fields["spec"]
    assert pod.fields["containers"].keys == ("name",)
    assert pod.fields["nodeSelector"].atomic
    assert not pod.fields["tolerations"].keys
    ports = pod.fields["containers"].element
    assert ports is not None
    assert ports.fields["ports"].keys == ("containerPort", "protocol")
    assert ports.fields["ports"].key_defaults == {"containerPort": 0, "protocol": "TCP"}
    volume = merge_type_of_kind("v1", "PersistentVolume").fields["spec"]
    assert not volume.fields["claimRef"].atomic
    assert merge_type_of_kind("v1", "Event").fields["involvedObject"].atomic
    assert zero_object("v1", "Pod") == {"metadata": {}, "spec": {"containers": None}, "status": {}}
    with pytest.raises(KeyError):
        merge_type_of_kind("v9", "Pod")
