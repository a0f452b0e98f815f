"""A pod that is not there: told from events, by whole names, and never by guessing."""

from __future__ import annotations

import subprocess
import sys

import pytest

from podlife.explain import explain_absent
from podlife.explain.deleted_by import is_about
from tests.unit.explain.objects import a_world, an_event

QUOTA = (
    'create Pod db-0 in StatefulSet db failed error: pods "db-0" is forbidden: exceeded quota: small, '
    "requested: pods=1, used: pods=2, limited: pods=2"
)


def test_a_quota_is_named_with_the_command_that_raises_it() -> None:
    event = an_event("FailedCreate", QUOTA, kind="StatefulSet", name="db")
    found = explain_absent(a_world(), "shop", "db-0", [event])
    [cause] = found.causes
    assert (cause.name, found.stage) == ("quota", "not there, and cannot be made")
    assert "quota small allows pods=2" in cause.text
    assert cause.remedies[0].command == (
        """kubectl patch resourcequota small -n shop --type=merge -p '{"spec":{"hard":{"pods":"<AMOUNT>"}}}'"""
    )


def test_another_refusal_is_told_in_the_servers_words() -> None:
    message = 'create Pod db-0 in StatefulSet db failed error: admission webhook "w" denied the request: no'
    event = an_event("FailedCreate", message, kind="StatefulSet", name="db")
    [cause] = explain_absent(a_world(), "shop", "db-0", [event]).causes
    assert (cause.name, cause.remedies) == ("creation-refused", ())
    assert "denied the request: no" in cause.text


def test_of_a_pod_that_nothing_tells_of_nothing_is_told() -> None:
    event = an_event("FailedCreate", QUOTA, kind="StatefulSet", name="db")
    found = explain_absent(a_world(), "shop", "cache-0", [event])
    assert (found.causes, found.timeline, found.deletion) == ((), (), "")


def test_the_last_of_many_deletions_that_are_told_in_one_event_is_known() -> None:
    said = "podlife-gc deleted pod web (terminated): too many"
    event = an_event(
        "PodGarbageCollected", f"(combined from similar events): {said}", kind="Namespace", name="shop"
    )
    assert explain_absent(a_world(), "shop", "web", [event]).deletion == f"by podlife gc: {said}"


def test_an_eviction_that_was_called_off_deleted_nobody() -> None:
    called_off = an_event("TaintManagerEviction", "Cancelling deletion of Pod shop/web")
    assert explain_absent(a_world(), "shop", "web", [called_off]).deletion == ""


@pytest.mark.parametrize(
    ("message", "name", "expected"),
    [
        ("Deleted pod: web-abc", "web-abc", True),
        ("Deleted pod: web-abcd", "web-abc", False),
        ("delete Pod db-0 in StatefulSet db successful", "db-0", True),
        ("delete Pod db-01 in StatefulSet db successful", "db-0", False),
        ('create Pod db-0 in StatefulSet db failed error: pods "db-0" is forbidden', "db-0", True),
        ("Marking for deletion Pod shop/web", "web", True),
        ("podlife-gc deleted pod web (orphaned): node n1 no longer exists", "web", True),
        ("podlife-gc deleted pod my-web (orphaned): gone", "web", False),
        ("Scaled down replica set web-1 from 1 to 0", "web-1", False),
    ],
)
def test_a_pods_name_is_found_in_the_words_of_others_only_as_a_whole(
    message: str, name: str, expected: bool
) -> None:
    event = an_event("Any", message, kind="ReplicaSet", name="owner")
    assert is_about(event, name) is expected


def test_a_long_message_is_looked_through_in_the_time_that_its_length_takes() -> None:
    """In a process of its own, which can be ended: with backtracking this takes hours."""
    look = (
        "from podlife.explain.deleted_by import is_about\n"
        "assert not is_about({'message': 'pod:/' * 200_000}, 'web')\n"
        "assert is_about({'message': 'deleted pod: shop/web'}, 'web')\n"
    )
    subprocess.run([sys.executable, "-c", look], check=True, timeout=120)
