"""Which revision is current, and which may go."""

from __future__ import annotations

from typing import Any

import pytest

from podlife.workloads.controller_revisions import ControllerRevision
from podlife.workloads.daemonset.pod_template import HASH_LABEL
from podlife.workloads.daemonset.revisions import split, surplus
from podlife.workloads.views import WorkloadMetadata

TEMPLATE: dict[str, Any] = {"metadata": {"labels": {"app": "d"}}, "spec": {"containers": []}}


def revision(number: int, template: dict[str, Any] | None = None) -> ControllerRevision:
    metadata = WorkloadMetadata(name=f"d-{number}", labels={HASH_LABEL: f"h{number}"})
    return ControllerRevision(
        metadata, number, {"spec": {"template": {"$patch": "replace", **(template or {})}}}
    )


def names(revisions: list[ControllerRevision]) -> list[str]:
    return [each.metadata.name for each in revisions]


def test_revision_of_the_template_is_current_and_the_others_are_old_in_order() -> None:
    current, old = split([revision(3), revision(1, TEMPLATE), revision(2)], TEMPLATE)
    assert (names(current), names(old)) == (["d-1"], ["d-2", "d-3"])


def test_revisions_that_say_the_same_are_all_current_the_newest_last() -> None:
    current, old = split([revision(2, TEMPLATE), revision(1, TEMPLATE), revision(3)], TEMPLATE)
    assert (names(current), names(old)) == (["d-1", "d-2"], ["d-3"])


def test_revision_that_is_written_in_another_way_is_current_if_none_is_written_as_ours() -> None:
    null = {"metadata": {"labels": {"app": "d"}, "creationTimestamp": None}, "spec": {"containers": []}}
    assert names(split([revision(1, null), revision(2)], TEMPLATE)[0]) == ["d-1"]
    assert names(split([revision(1, null), revision(2, TEMPLATE)], TEMPLATE)[0]) == ["d-2"]


@pytest.mark.parametrize(
    ("limit", "live", "gone"),
    [
        (4, set(), []),
        (10, set(), []),
        (2, set(), ["d-1", "d-2"]),
        (0, set(), ["d-1", "d-2", "d-3", "d-4"]),
        # A revision that a pod was made of stays, and another goes in its place.
        (2, {"h1"}, ["d-2", "d-3"]),
        (0, {"h2", "h4"}, ["d-1", "d-3"]),
    ],
)
def test_oldest_that_no_pod_was_made_of_go_beyond_the_limit(
    limit: int, live: set[str], gone: list[str]
) -> None:
    assert names(surplus([revision(number) for number in (1, 2, 3, 4)], live, limit)) == gone
