"""What a running container lacks of its resources, and what its status shows."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from podlife.kubelet.kuberuntime.resources import reported_resources, resize_of, resources_of
from podlife.kubelet.runtime import ContainerConfig, ContainerState, ContainerStatus, Resources

Object = dict[str, Any]
RESTART = [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]
ACTUAL = Resources(100, 200, 64 << 20, None, 32 << 20)


def container(cpu: str = "100m", limit: str = "64Mi", request: str = "32Mi", **fields: Any) -> Object:
    requests = {"cpu": cpu, "memory": request}
    resources = {"requests": requests, "limits": {"cpu": "200m", "memory": limit, "example.com/x": "1"}}
    return {"name": "main", "resources": resources, **fields}


def known(state: ContainerState = ContainerState.RUNNING, resources: Resources = ACTUAL) -> ContainerStatus:
    config = ContainerConfig("main", resources=resources)
    return ContainerStatus("id", "sandbox", "uid", config, state, datetime(2024, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    ("wanted", "outcome"),
    [
        (container(), None),
        (container(cpu="150m"), False),
        (container(cpu="150m", resizePolicy=RESTART), False),
        (container(limit="96Mi"), False),
        (container(limit="96Mi", resizePolicy=RESTART), True),
        # Nothing enforces a request for memory.
        (container(request="48Mi"), None),
        (container(request="48Mi", resizePolicy=RESTART), True),
    ],
)
def test_a_resize_is_made_in_place_or_by_a_restart(wanted: Object, outcome: bool | None) -> None:
    found = resize_of(wanted, known())
    assert (None if found is None else found.needs_restart) is outcome
    if found is not None:
        assert found.resources == resources_of(wanted)
        assert resize_of(wanted, known(resources=found.resources)) is None
    assert resize_of(wanted, known(ContainerState.EXITED)) is None


def test_other_limits_of_a_running_container_stay() -> None:
    found = resize_of(container(cpu="150m"), known(resources=replace(ACTUAL, pids_limit=7)))
    assert found is not None
    assert found.resources.pids_limit == 7


def test_a_status_shows_what_the_runtime_has_and_otherwise_what_is_allocated() -> None:
    wanted = container(cpu="150m", limit="1Gi", request="48Mi")
    running = reported_resources(wanted, known())
    assert running["requests"] == {"cpu": "100m", "memory": "48Mi"}
    assert running["limits"] == {"cpu": "200m", "memory": "64Mi", "example.com/x": "1"}
    assert reported_resources(wanted, known(ContainerState.EXITED)) == wanted["resources"]
    # What was allocated is not changed by what is shown.
    assert wanted["resources"]["limits"]["memory"] == "1Gi"
