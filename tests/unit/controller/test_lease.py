"""A lease as somebody may have left it, at the ends of what the API holds: it can still be taken and renewed."""

from __future__ import annotations

from datetime import UTC, datetime

from podlife.controller.lease import claim, renew

NOW = datetime(2030, 1, 1, tzinfo=UTC)
LAST = "9999-12-31T23:59:59.999999Z"


def test_a_lease_that_changed_hands_as_often_as_can_be_counted_is_taken() -> None:
    old = {"holderIdentity": "b", "leaseTransitions": 2**31 - 1}
    assert claim(old, "a", 15.0, NOW)["leaseTransitions"] == 2**31 - 1


def test_a_lease_renewed_at_the_end_of_time_is_renewed_with_another_time() -> None:
    renewed = renew({"holderIdentity": "a", "renewTime": LAST}, NOW)
    assert renewed["renewTime"] != LAST
    assert renew(renewed, NOW)["renewTime"] != renewed["renewTime"]
