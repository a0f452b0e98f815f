"""Which revision a set goes to."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from podlife.workloads.controller_revisions import ControllerRevision, template_patch
from podlife.workloads.statefulset.revisions import (
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


WITH_NULL = {**TEMPLATE, "metadata": {**TEMPLATE["metadata"], "creationTimestamp": None}}


@pytest.mark.parametrize(
    ("known", "found"),
    [
        pytest.param([], None, id="there is none"),
        pytest.param([OLD_TEMPLATE], None, id="the template is new"),
        pytest.param([OLD_TEMPLATE, TEMPLATE], 2, id="it is the newest"),
        pytest.param([TEMPLATE, TEMPLATE], 2, id="of two that are equal the newest"),
        pytest.param([TEMPLATE, OLD_TEMPLATE], 1, id="the template was there before"),
        pytest.param([WITH_NULL], 1, id="an older server wrote it in other words"),
    ],
)
def test_the_revision_of_the_template_is_found(known: list[Any], found: int | None) -> None:
    revisions = [revision(number, template) for number, template in enumerate(known, 1)]
    assert find_revision(stateful_set(), revisions) is (None if found is None else revisions[found - 1])


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
