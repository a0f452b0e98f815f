"""What changed between two looks at a runtime."""

from __future__ import annotations

import pytest

from podlife.kubelet.pleg.events import (
    PodLifecycleEvent,
    PodLifecycleEventType,
    compute_events,
    ips_after,
    is_healthy,
    running_pods,
    states_of,
)
from podlife.kubelet.runtime import ContainerStatus, SandboxConfig, SandboxState, SandboxStatus
from tests.conformance.kubelet.kit import START, instance

STARTED, DIED = PodLifecycleEventType.STARTED, PodLifecycleEventType.DIED
REMOVED, CHANGED = PodLifecycleEventType.REMOVED, PodLifecycleEventType.CHANGED


def box(state: SandboxState, id_: str = "s", uid: str = "u") -> SandboxStatus:
    return SandboxStatus(id_, SandboxConfig(uid, "ns", "p"), state, START)


def listed(state: str | None) -> list[ContainerStatus]:
    return [] if state is None else [instance("a", state)]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param("created", "running", [STARTED], id="PL-01 running"),
        pytest.param("running", "exited", [DIED], id="PL-01 exited"),
        pytest.param("created", "exited", [DIED], id="PL-01 exited without being seen to run"),
        pytest.param("exited", None, [REMOVED], id="PL-01 gone after exited"),
        pytest.param("running", None, [DIED, REMOVED], id="PL-01 gone after running"),
        pytest.param("unknown", None, [DIED, REMOVED], id="PL-01 gone after unknown"),
        pytest.param("running", "unknown", [CHANGED], id="PL-01 unknown"),
        pytest.param("created", "unknown", [], id="PL-01 created is unknown"),
        pytest.param("running", "running", [], id="PL-01 the same"),
        pytest.param(None, "running", [STARTED], id="PL-02 running"),
        pytest.param(None, "exited", [DIED], id="PL-02 exited"),
    ],
)
def test_from_one_state_to_another(
    old: str | None, new: str | None, expected: list[PodLifecycleEventType]
) -> None:
    found = compute_events(states_of([], listed(old)), states_of([], listed(new)))
    assert list(found) == [PodLifecycleEvent(kind, "u", "a-0") for kind in expected]


def test_the_first_look_tells_nothing_of_what_is_not_known() -> None:
    """PL-02"""
    first = states_of([], [instance("a", "unknown"), instance("b", "created")])
    assert [each.kind for each in compute_events({}, first)] == [CHANGED, CHANGED]
    assert not CHANGED.is_sync_due


def test_sandboxes_are_like_containers() -> None:
    """PL-03"""
    ready, ended = states_of([box(SandboxState.READY)], []), states_of([box(SandboxState.NOT_READY)], [])
    assert [each.kind for each in compute_events({}, ready)] == [STARTED]
    assert [each.kind for each in compute_events(ready, ended)] == [DIED]
    assert [each.kind for each in compute_events(ended, {})] == [REMOVED]


@pytest.mark.parametrize(
    ("new", "state", "expected"),
    [
        ((), SandboxState.NOT_READY, ("10.0.0.1",)),
        ((), SandboxState.READY, ()),
        (("10.0.0.2",), SandboxState.NOT_READY, ("10.0.0.2",)),
        (("10.0.0.2",), SandboxState.READY, ("10.0.0.2",)),
    ],
)
def test_addresses_are_kept_when_the_sandbox_is_gone(
    new: tuple[str, ...], state: SandboxState, expected: tuple[str, ...]
) -> None:
    """PL-08"""
    assert ips_after(("10.0.0.1",), new, [box(state)]) == expected


@pytest.mark.parametrize(("seconds", "expected"), [(0, True), (180, True), (180.5, False)])
def test_a_runtime_that_was_not_listed_for_three_minutes_is_not_well(seconds: float, expected: bool) -> None:
    """PL-09"""
    assert is_healthy(1000.0, 1000.0 + seconds) is expected
    assert not is_healthy(None, 1000.0)


def test_running_pods_are_counted_once_each_and_containers_by_state() -> None:
    """PL-10"""
    boxes = [
        box(SandboxState.READY, "1", "u"),
        box(SandboxState.READY, "2", "u"),
        box(SandboxState.NOT_READY, "3", "v"),
    ]
    containers = [instance("a", "running"), instance("b", "running"), instance("c", "exited", 1)]
    assert running_pods(boxes, containers) == (1, {"running": 2, "exited": 1})


def test_what_is_removed_needs_no_sync() -> None:
    """PL-13"""
    assert {kind for kind in PodLifecycleEventType if kind.is_sync_due} == {STARTED, DIED}
