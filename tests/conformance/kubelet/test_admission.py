"""What becomes of pods that a node does not take; the checks themselves have tests of their own."""

from __future__ import annotations

from podlife.kubelet.admission import AdmissionFailure, in_order_of_admission, rejected_status
from tests.conformance.kubelet.kit import pod


def test_a_rejected_pod_has_failed_with_the_reason() -> None:
    """ST-18"""
    assert rejected_status(AdmissionFailure("OutOfcpu", "Node didn't have enough resource: cpu")) == {
        "phase": "Failed",
        "reason": "OutOfcpu",
        "message": "Pod was rejected: Node didn't have enough resource: cpu",
    }


def test_pods_are_admitted_in_the_order_of_their_creation() -> None:
    """ST-19"""
    pods = [
        pod(metadata={"name": name, "creationTimestamp": f"2030-01-01T00:00:0{second}Z"})
        for name, second in (("c", 3), ("a", 1), ("b", 2))
    ]
    assert [each["metadata"]["name"] for each in in_order_of_admission(pods)] == ["a", "b", "c"]
