"""The time that a container has to end, where the API allows more than a runtime can take."""

from __future__ import annotations

from typing import Any

import pytest

from podlife.kubelet.kuberuntime.kill_container import KillReason, stop_budget

INT32, INT64 = 2**31 - 1, 2**63 - 1
CONTAINER = {"name": "main", "livenessProbe": {"terminationGracePeriodSeconds": INT64}}


@pytest.mark.parametrize(
    ("metadata", "grace", "options"),
    [
        ({}, 300_000_000_000, {}),
        ({}, INT64, {}),
        ({"deletionGracePeriodSeconds": INT64}, 30, {}),
        ({}, 30, {"override_seconds": INT64}),
        ({}, 30, {"reason": KillReason.LIVENESS_PROBE}),
    ],
    ids=["spec", "spec, largest", "deletion", "override", "liveness probe"],
)
def test_the_longest_grace_is_one_that_every_runtime_can_wait_for(
    metadata: dict[str, Any], grace: int, options: dict[str, Any]
) -> None:
    pod = {"metadata": metadata, "spec": {"terminationGracePeriodSeconds": grace}}
    assert stop_budget(pod, CONTAINER, **options).runtime_seconds == INT32
