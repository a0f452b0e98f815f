"""Every answer recorded from kube-apiserver v1.36 (see `record_golden.py`) is the answer a strategy gives."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from podlife.apiserver.resource import Resource
from tests.unit.apiserver.strategies.cases_updates import Update, updates
from tests.unit.apiserver.strategies.strategy_replay import comparable, create, update
from tests.unit.apiserver.strategies.strategy_table import CREATES, RESOURCES

_ANSWERS: dict[str, dict[str, Any]] = {
    file.stem: json.loads(file.read_text()) for file in (Path(__file__).parent / "golden").glob("*.json")
}


def _creates() -> Iterator[Any]:
    for file, resource, cases in CREATES:
        for label, obj in cases():
            name = f"{resource.key}: {label}"
            yield pytest.param(resource, obj, _ANSWERS[file].get(name), id=name)


@pytest.mark.parametrize(("resource", "obj", "recorded"), list(_creates()))
def test_a_create_is_answered_as_by_the_real_server(
    resource: Resource, obj: dict[str, Any], recorded: dict[str, Any]
) -> None:
    assert comparable(create(resource, obj)) == recorded


def _updates() -> Iterator[Any]:
    for case in updates():
        name = f"{case.resource}: {case.label}"
        yield pytest.param(case, _ANSWERS["updates"].get(name), id=name)


@pytest.mark.parametrize(("case", "recorded"), list(_updates()))
def test_an_update_is_answered_as_by_the_real_server(case: Update, recorded: dict[str, Any]) -> None:
    old = copy.deepcopy(recorded["old"])
    old["metadata"] |= {"uid": "uid", "resourceVersion": "1", "creationTimestamp": "2030-01-01T00:00:00Z"}
    new = copy.deepcopy(old)
    case.change(new)
    answer = comparable(update(RESOURCES[case.resource], old, new, case.subresource))
    assert answer == {"code": recorded["code"], "body": recorded["body"]}
