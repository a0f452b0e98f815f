"""What is told of a pod's protection by people who read it."""

from __future__ import annotations

from podlife.podgc.keep_until import KEEP_UNTIL
from podlife.podgc.policy import Policy
from tests.unit.podgc.policy.engine.test_classifier import asked, pod


def test_a_time_that_cannot_be_read_protects_for_ever_and_says_why() -> None:
    told = asked(Policy(), pod("a", annotations={KEEP_UNTIL: "tomorrow"})).protected_by
    assert told == f"annotation {KEEP_UNTIL}, forever: invalid time"
