"""What is told of a pod's protection by people who read it."""

from __future__ import annotations

from podlife.podgc.policy import Policy
from podlife.podgc.policy.model import KEEP_UNTIL
from tests.unit.podgc.policy.engine.test_classifier import asked, pod


def test_a_time_that_cannot_be_read_protects_for_ever_and_says_why() -> None:
    told = asked(Policy(), pod("a", annotations={KEEP_UNTIL: "tomorrow"})).protected_by
    assert told == f"annotation {KEEP_UNTIL}, for ever: its value is no time"
