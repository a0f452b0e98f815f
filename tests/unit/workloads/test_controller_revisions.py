"""What revisions say, how they are named and numbered, and which may go."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from podlife.podcontrol import Owner
from podlife.workloads.controller_revisions import (
    HASH_LABEL,
    ControllerRevision,
    RevisionDraft,
    canonical_json,
    in_order,
    is_revision_of,
    is_written_as,
    next_number,
    revision_hash,
    revision_name,
    surplus,
    template_of,
    template_patch,
)
from tests.kit import objects

# A template as kube-apiserver 1.34 shows it; the name that kube-controller-manager gave its revision ends in this hash.
TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"app": "foo"}, "annotations": {"test": "value"}},
    "spec": {
        "containers": [
            {
                "name": "test",
                "image": "test",
                "resources": {},
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
                "imagePullPolicy": "Always",
            }
        ],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "securityContext": {},
        "schedulerName": "default-scheduler",
    },
}
KNOWN_HASH = "776999688b"
# The same as 1.33 wrote it.
OLD_TEMPLATE = {**TEMPLATE, "metadata": {**TEMPLATE["metadata"], "creationTimestamp": None}}
OLD_KNOWN_HASH = "c77f6d978"

EPOCH = datetime(2030, 1, 1, tzinfo=UTC)
OWNER = Owner("apps/v1", "StatefulSet", "web", "uid-1", "default")


def revision(name: str, number: int, template: Any = None, *, age_seconds: int = 0) -> ControllerRevision:
    return msgspec.convert(
        {
            "metadata": {
                "name": name,
                "namespace": "default",
                "uid": f"uid-of-{name}",
                "creationTimestamp": (EPOCH - timedelta(seconds=age_seconds)).isoformat(),
            },
            "revision": number,
            "data": json.loads(template_patch(template if template is not None else {"of": name})),
        },
        ControllerRevision,
    )


@pytest.mark.parametrize(
    ("template", "known"), [(TEMPLATE, KNOWN_HASH), (OLD_TEMPLATE, OLD_KNOWN_HASH)], ids=["1.34", "1.33"]
)
def test_a_revision_has_the_hash_that_kube_controller_manager_gave_it(template: Any, known: str) -> None:
    assert revision_hash(template_patch(template), 0) == known


def test_a_collision_gives_another_hash() -> None:
    data = template_patch(TEMPLATE)
    hashes = {revision_hash(data, count) for count in (None, 0, 1, 2, 10)}
    assert len(hashes) == 5


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (
            {"b": 1, "a": {"d": [1, {"z": None, "y": True}], "c": ""}},
            b'{"a":{"c":"","d":[1,{"y":true,"z":null}]},"b":1}',
        ),
        ({"command": "a < b && c > d"}, b'{"command":"a \\u003c b \\u0026\\u0026 c \\u003e d"}'),
        ({"text": "one\u2028two\u2029\u00fc"}, '{"text":"one\\u2028two\\u2029ü"}'.encode()),
        ({"text": 'tab\t quote" slash\\ bell\x07'}, b'{"text":"tab\\t quote\\" slash\\\\ bell\\u0007"}'),
        # Go reads every number of plain JSON as a float.
        ({"seconds": 9223372036854775807}, b'{"seconds":9223372036854776000}'),
        ({"seconds": 9007199254740993}, b'{"seconds":9007199254740992}'),
        ({"digits": "9223372036854775807", "yes": True}, b'{"digits":"9223372036854775807","yes":true}'),
    ],
    ids=[
        "keys in order",
        "for HTML",
        "separators",
        "control characters",
        "int64",
        "past 2^53",
        "only a text",
    ],
)
def test_json_is_written_as_go_writes_it(value: object, written: bytes) -> None:
    assert canonical_json(value) == written


def test_a_patch_restores_the_template_it_was_made_of() -> None:
    made = revision("web-1", 1, TEMPLATE)
    assert template_of(made) == TEMPLATE
    assert is_written_as(made, template_patch(TEMPLATE))
    assert "$patch" not in TEMPLATE


@pytest.mark.parametrize("data", [None, [], "text", {}, {"spec": None}, {"spec": {"template": 1}}])
def test_data_that_holds_no_template_restores_none(data: Any) -> None:
    strange = ControllerRevision(revision("web-1", 1).metadata, 1, data)
    assert template_of(strange) is None
    assert not is_revision_of(strange, TEMPLATE)


def test_a_revision_from_before_1_34_is_still_that_of_its_template() -> None:
    old = revision("web-1", 1, OLD_TEMPLATE)
    assert not is_written_as(old, template_patch(TEMPLATE))
    assert is_revision_of(old, TEMPLATE)


def test_a_true_is_no_one_and_another_image_is_another_revision() -> None:
    assert not is_revision_of(revision("web-1", 1, {"spec": {"a": True}}), {"spec": {"a": 1}})
    assert not is_revision_of(revision("web-1", 1, TEMPLATE), {**TEMPLATE, "spec": {}})


def test_revisions_are_ordered_by_number_then_age_then_name() -> None:
    given = [
        revision("e", 3),
        revision("d", 2, age_seconds=1),
        revision("c", 2, age_seconds=9),
        revision("b", 1),
        revision("a", 1),
    ]
    assert [each.metadata.name for each in in_order(given)] == ["a", "b", "c", "d", "e"]
    assert next_number(given) == 4
    assert next_number([]) == 1


@pytest.mark.parametrize(
    ("live", "limit", "gone"),
    [
        (set(), 10, []),
        (set(), 2, ["a", "b"]),
        ({"a"}, 2, ["b"]),
        ({"a", "c"}, 0, ["b", "d"]),
        ({"a", "b", "c", "d"}, 0, []),
        (set(), -1, []),
    ],
)
def test_the_oldest_that_nobody_uses_go_first(live: set[str], limit: int, gone: list[str]) -> None:
    revisions = [revision(name, number) for number, name in enumerate("abcd", start=1)]
    assert [each.metadata.name for each in surplus(revisions, live, limit)] == gone


def test_a_long_name_leaves_room_for_the_hash() -> None:
    assert revision_name("web", "abc") == "web-abc"
    assert revision_name("w" * 250, "abc") == "w" * 223 + "-abc"


def test_a_draft_is_owned_labelled_and_carries_the_very_bytes() -> None:
    data = template_patch(TEMPLATE)
    draft = RevisionDraft(data, 7, {"app": "foo"}, {"kubernetes.io/change-cause": "because"})
    written = json.loads(msgspec.json.encode(draft.to_object(OWNER, 0)))
    assert written["metadata"] == {
        "name": f"web-{KNOWN_HASH}",
        "namespace": "default",
        "labels": {"app": "foo", HASH_LABEL: KNOWN_HASH},
        "annotations": {"kubernetes.io/change-cause": "because"},
        "ownerReferences": [{**objects.owner("StatefulSet", "web", uid="uid-1"), "blockOwnerDeletion": True}],
    }
    assert written["revision"] == 7
    assert data in msgspec.json.encode(draft.to_object(OWNER, 0))


def test_number_that_no_float_holds_is_written_as_it_is() -> None:
    """Anybody may make a revision, and one that is adopted must not stop its owner for ever."""
    assert canonical_json({"a": 10**400}) == b'{"a":1' + b"0" * 400 + b"}"
