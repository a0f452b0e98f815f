"""Who has set a node out of service: told by what podlife's controller really writes, and never on anybody's word."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from podlife.explain import explain_node
from podlife.explain.out_of_service import who_tainted
from podlife.nodehealth.out_of_service.record import BY, RecordState, TaintRecord, made_taint
from podlife.nodehealth.out_of_service.views import ANNOTATION
from tests.unit.explain.objects import NOW, a_node, a_world

RECORD = TaintRecord(RecordState.TAINTED, NOW - timedelta(minutes=3), "n-1")
OURS = f"{BY} at 2030-01-01 11:57:00Z, who takes it off again"
NOT_KNOWN = "somebody, who has to take it off again"


def node_with(record: TaintRecord | str, *taints: dict[str, Any], ready: str = "Unknown") -> dict[str, Any]:
    node = a_node(ready, taints=[*taints])
    node["metadata"]["annotations"] = {ANNOTATION: record if isinstance(record, str) else record.text()}
    return node


@pytest.mark.parametrize("ready", ["Unknown", "True"])
def test_a_taint_of_the_controller_is_told_with_its_moment(ready: str) -> None:
    node = node_with(RECORD, made_taint(RECORD.at), ready=ready)
    found = explain_node(a_world(nodes={"n1": node}), node)
    assert OURS in found.causes[0].text
    assert [(each.at, each.what) for each in found.timeline if each.who == BY] == [
        (RECORD.at, "set out of service")
    ]


@pytest.mark.parametrize("state", [RecordState.FREED, RecordState.RETURNED])
def test_what_became_of_it_is_told_later(state: RecordState) -> None:
    node = node_with(replace(RECORD, state=state))
    found = explain_node(a_world(nodes={"n1": node}), node)
    assert len([each for each in found.timeline if each.who == BY]) == 1
    assert "out of service" not in found.causes[0].text


@pytest.mark.parametrize(
    "record",
    [
        "",
        "{",
        "[]",
        '{"uid": "n-1"}',
        '{"uid": "n-1", "state": "tainted", "at": 7}',
        replace(RECORD, uid="n-2"),
        RECORD.text().replace(BY, "me"),
    ],
)
def test_what_the_controller_has_not_written_for_this_node_says_nothing(record: TaintRecord | str) -> None:
    node = node_with(record, made_taint(RECORD.at))
    assert who_tainted(node) == NOT_KNOWN
    assert NOT_KNOWN in explain_node(a_world(nodes={"n1": node}), node).causes[0].text


def test_a_taint_of_another_moment_is_somebody_s() -> None:
    by_hand = {key: value for key, value in made_taint(RECORD.at).items() if key != "timeAdded"}
    assert who_tainted(node_with(RECORD, by_hand)) == NOT_KNOWN
    assert who_tainted(node_with(RECORD, made_taint(NOW))) == NOT_KNOWN
