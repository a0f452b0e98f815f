"""Which taint is ours: the one that our annotation names, and no other."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podlife.nodehealth.out_of_service.record import (
    OUT_OF_SERVICE,
    RecordState,
    TaintOwner,
    TaintRecord,
    made_taint,
    read_record,
    taint_owner,
)
from podlife.nodehealth.views import NodeTaint

AT = datetime(2030, 1, 1, tzinfo=UTC)
OURS = TaintRecord(RecordState.TAINTED, AT, "u1")
TAINT = NodeTaint(OUT_OF_SERVICE, "nodeshutdown", "NoExecute", "2030-01-01T00:00:00Z")


def test_what_is_written_is_read_again_for_that_node_alone() -> None:
    for state in RecordState:
        record = TaintRecord(state, AT, "u1")
        assert read_record(record.text(), "u1") == record
        assert read_record(record.text(), "u2") is None, "it came with a backup of another node"


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "tainted",
        "[]",
        "{}",
        '{"by":"me","state":"tainted","at":"2030-01-01T00:00:00Z","uid":"u1"}',
        '{"by":"podlife-out-of-service","state":"odd","at":"2030-01-01T00:00:00Z","uid":"u1"}',
        '{"by":"podlife-out-of-service","state":["tainted"],"at":"2030-01-01T00:00:00Z","uid":"u1"}',
        '{"by":"podlife-out-of-service","state":"tainted","at":"yesterday","uid":"u1"}',
        '{"by":"podlife-out-of-service","state":"tainted","at":7,"uid":"u1"}',
        '{"by":"podlife-out-of-service","state":"tainted","uid":"u1"}',
    ],
)
def test_what_we_did_not_write_says_nothing(text: str | None) -> None:
    assert read_record(text, "u1") is None


@given(st.text())
def test_no_annotation_at_all_is_too_odd_to_be_read(text: str) -> None:
    assert read_record(text, "u1") is None


@pytest.mark.parametrize(
    ("taint", "record", "expected"),
    [
        (TAINT, OURS, TaintOwner.OURS),
        (TAINT, None, TaintOwner.OTHER),
        (TAINT, TaintRecord(RecordState.FREED, AT, "u1"), TaintOwner.OTHER),
        (TAINT, TaintRecord(RecordState.RETURNED, AT, "u1"), TaintOwner.OTHER),
        # As kubectl sets it: after ours was taken off by hand.
        (NodeTaint(OUT_OF_SERVICE, "nodeshutdown", "NoExecute"), OURS, TaintOwner.OTHER),
        (
            NodeTaint(OUT_OF_SERVICE, "nodeshutdown", "NoExecute", "2030-01-01T00:00:01Z"),
            OURS,
            TaintOwner.OTHER,
        ),
        (NodeTaint(OUT_OF_SERVICE, "nodeshutdown", "NoExecute", "soon"), OURS, TaintOwner.OTHER),
        (NodeTaint(OUT_OF_SERVICE, "other", "NoExecute", "2030-01-01T00:00:00Z"), OURS, TaintOwner.OTHER),
        (
            NodeTaint(OUT_OF_SERVICE, "nodeshutdown", "NoSchedule", "2030-01-01T00:00:00Z"),
            OURS,
            TaintOwner.OTHER,
        ),
        (NodeTaint("other", "nodeshutdown", "NoExecute", "2030-01-01T00:00:00Z"), OURS, TaintOwner.NONE),
    ],
)
def test_a_taint_is_ours_only_if_the_record_names_its_moment(
    taint: NodeTaint, record: TaintRecord | None, expected: TaintOwner
) -> None:
    assert taint_owner([taint], record) is expected


def test_ours_is_seen_beside_somebody_elses() -> None:
    other = NodeTaint(OUT_OF_SERVICE, "", "NoSchedule")
    assert taint_owner([other, TAINT], OURS) is TaintOwner.OURS
    assert taint_owner([], OURS) is TaintOwner.NONE


def test_the_taint_has_the_moment_of_the_record() -> None:
    assert made_taint(AT) == {
        "key": OUT_OF_SERVICE,
        "value": "nodeshutdown",
        "effect": "NoExecute",
        "timeAdded": "2030-01-01T00:00:00Z",
    }
