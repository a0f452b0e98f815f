"""Strategies accept every object that passes the schema, with any field missing or empty."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from podlife.api.codec import decode_object, encode
from podlife.apiserver.resource import Resource
from tests.unit.apiserver.strategies.cases_updates import updates
from tests.unit.apiserver.strategies.strategy_replay import create, update
from tests.unit.apiserver.strategies.strategy_table import CREATES, RESOURCES


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict):
        for key in value:
            yield (*path, key)
            yield from _paths(value[key], (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _paths(item, (*path, index))


def _mutants(obj: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for path in _paths(obj):
        if path[0] in ("kind", "apiVersion") or path == ("metadata",):
            continue
        for make in (None, lambda value: type(value)()):
            mutant = decode_object(encode(obj))
            holder: Any = mutant
            for step in path[:-1]:
                holder = holder[step]
            if make is None:
                del holder[path[-1]]
            else:
                holder[path[-1]] = make(holder[path[-1]])
            yield mutant


@pytest.mark.parametrize(
    ("resource", "cases"), [pytest.param(resource, cases, id=resource.key) for _, resource, cases in CREATES]
)
def test_a_create_with_anything_missing_or_empty_is_answered(resource: Resource, cases: Any) -> None:
    for _, obj in cases():
        for mutant in _mutants(obj):
            assert create(resource, mutant)["code"] in (201, 400, 422)


@pytest.mark.parametrize("case", [pytest.param(case, id=case.label) for case in updates()])
def test_an_update_with_anything_missing_or_empty_is_answered(case: Any) -> None:
    resource = RESOURCES[case.resource]
    old = create(resource, case.created)["body"]
    old["metadata"]["resourceVersion"] = "1"
    if case.status is not None:
        old["status"] = copy.deepcopy(case.status)
    new = copy.deepcopy(old)
    case.change(new)
    for mutant in _mutants(new):
        assert update(resource, old, mutant, case.subresource)["code"] in (200, 400, 422)
