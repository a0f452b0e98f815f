"""Which revision a set goes to."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from podlife.workloads.controller_revisions import ControllerRevision, template_patch
from podlife.workloads.statefulset.revisions import (
    RevisionChange,
    as_revision,
    current_revision,
    draft_revision,
    find_revision,
)
from tests.unit.workloads.statefulset.objects import OLD_TEMPLATE, TEMPLATE, stateful_set


def revision(number: int, template: Any) -> ControllerRevision:
    data = json.loads(template_patch(template))
    return msgspec.convert(
        {"metadata": {"name": f"web-{number}"}, "revision": number, "data": data}, ControllerRevision
    )


def test_a_new_template_needs_a_new_revision() -> None:
    assert find_revision(stateful_set(), []) == (None, RevisionChange.CREATE)
    assert find_revision(stateful_set(), [revision(1, OLD_TEMPLATE)]) == (None, RevisionChange.CREATE)


def test_the_newest_revision_is_used_as_it_is() -> None:
    newest = revision(2, TEMPLATE)
    assert find_revision(stateful_set(), [revision(1, OLD_TEMPLATE), newest]) == (newest, RevisionChange.NONE)


def test_of_two_that_are_equal_the_newest_is_used() -> None:
    newest = revision(2, TEMPLATE)
    assert find_revision(stateful_set(), [revision(1, TEMPLATE), newest]) == (newest, RevisionChange.NONE)


def test_a_template_that_was_there_before_is_rolled_back_to() -> None:
    first = revision(1, TEMPLATE)
    assert find_revision(stateful_set(), [first, revision(2, OLD_TEMPLATE)]) == (
        first,
        RevisionChange.RENUMBER,
    )


def test_a_revision_that_an_older_server_wrote_in_other_words_is_no_update() -> None:
    written = {**TEMPLATE, "metadata": {**TEMPLATE["metadata"], "creationTimestamp": None}}
    old = revision(1, written)
    assert find_revision(stateful_set(), [old]) == (old, RevisionChange.NONE)


def test_a_draft_has_the_next_number_and_says_why() -> None:
    of = stateful_set()
    of.metadata.annotations = {"kubernetes.io/change-cause": "because"}
    draft = draft_revision(of, [revision(7, OLD_TEMPLATE)])
    assert draft.number == 8
    assert draft.labels == {"app": "web"}
    assert draft.annotations == {"kubernetes.io/change-cause": "because"}
    assert draft.data == template_patch(TEMPLATE)


def test_the_current_revision_is_that_of_the_status_or_the_update() -> None:
    old, new = revision(1, OLD_TEMPLATE), revision(2, TEMPLATE)
    assert current_revision(stateful_set(status={"currentRevision": "web-1"}), [old, new], new) is old
    assert current_revision(stateful_set(status={"currentRevision": "gone"}), [old, new], new) is new
    assert current_revision(stateful_set(), [], new) is new


def test_a_revision_without_a_template_leaves_the_template_of_the_set() -> None:
    strange = ControllerRevision(revision(1, TEMPLATE).metadata, 1, {"spec": {}})
    assert as_revision(strange, stateful_set()).template == TEMPLATE
    assert as_revision(revision(1, OLD_TEMPLATE), stateful_set()).template == OLD_TEMPLATE
