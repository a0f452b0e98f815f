"""Every event is emitted once and in order, however a change is observed and however late a list arrives."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from podlife.kubelet.runtime import ContainerState, EventKind, RuntimeEvent, SandboxState
from podlife.kubelet.runtimes.containerd.state_diff import ObservedContainer, ObservedSandbox, StateDiff

CREATED, RUNNING, EXITED = ContainerState.CREATED, ContainerState.RUNNING, ContainerState.EXITED


def filled() -> tuple[StateDiff, list[RuntimeEvent]]:
    events: list[RuntimeEvent] = []
    state_diff = StateDiff(events.append)
    state_diff.relisted(state_diff.known(), [], [])
    events.clear()
    return state_diff, events


def sandbox(state: SandboxState = SandboxState.READY) -> ObservedSandbox:
    return ObservedSandbox("s", "uid", state)


def container(state: ContainerState, name: str = "c") -> ObservedContainer:
    return ObservedContainer(name, "s", "uid", state)


def kinds(events: list[RuntimeEvent]) -> list[EventKind]:
    return [event.kind for event in events]


def test_the_first_list_emits_one_relist_event() -> None:
    events: list[RuntimeEvent] = []
    state_diff = StateDiff(events.append)
    state_diff.relisted(state_diff.known(), [sandbox()], [container(RUNNING)])
    assert events == [RuntimeEvent(EventKind.RELIST)]
    state_diff.observe_container(container(EXITED))
    assert events[1:] == [RuntimeEvent(EventKind.CONTAINER_STOPPED, "uid", "s", "c")]


def test_the_end_of_a_container_never_observed_running_is_emitted_alone() -> None:
    state_diff, events = filled()
    state_diff.observe_sandbox(sandbox())
    state_diff.observe_container(container(CREATED))
    state_diff.observe_container(container(EXITED))
    assert kinds(events)[-1] is EventKind.CONTAINER_STOPPED
    assert EventKind.CONTAINER_STARTED not in kinds(events)


def test_an_end_observed_before_the_start_returns_is_emitted_after_it() -> None:
    state_diff, events = filled()
    state_diff.observe_container(container(CREATED))
    state_diff.begin_start("c")
    state_diff.observe_container(container(EXITED))
    assert not state_diff.has_ended("c")
    state_diff.finish_start("c", is_running=True)
    state_diff.observe_container(container(EXITED))
    assert kinds(events)[1:] == [EventKind.CONTAINER_STARTED, EventKind.CONTAINER_STOPPED]


def test_a_listing_that_began_before_something_was_made_does_not_remove_it() -> None:
    state_diff, events = filled()
    known = state_diff.known()
    state_diff.observe_sandbox(sandbox())
    state_diff.relisted(known, [], [])
    assert kinds(events) == [EventKind.SANDBOX_STARTED]


def test_a_listing_that_began_before_something_was_removed_does_not_bring_it_back() -> None:
    state_diff, events = filled()
    state_diff.observe_sandbox(sandbox())
    state_diff.observe_container(container(EXITED))
    known = state_diff.known()
    state_diff.sandbox_is_gone("s")
    before = list(events)
    state_diff.relisted(known, [sandbox()], [container(EXITED)])
    assert events == before


def test_a_sandbox_that_is_gone_takes_its_containers_along_each_with_its_end() -> None:
    state_diff, events = filled()
    state_diff.observe_sandbox(sandbox())
    state_diff.observe_container(container(RUNNING))
    events.clear()
    state_diff.relisted(state_diff.known(), [], [])
    assert kinds(events) == [
        EventKind.CONTAINER_STOPPED,
        EventKind.CONTAINER_REMOVED,
        EventKind.SANDBOX_STOPPED,
        EventKind.SANDBOX_REMOVED,
    ]


def test_an_unknown_state_changes_nothing() -> None:
    state_diff, events = filled()
    state_diff.observe_container(container(RUNNING))
    before = list(events)
    state_diff.observe_container(container(ContainerState.UNKNOWN))
    assert events == before


_step = st.one_of(
    st.sampled_from([CREATED, RUNNING, EXITED, ContainerState.UNKNOWN]).map(
        lambda state: ("container", state)
    ),
    st.sampled_from(list(SandboxState)).map(lambda state: ("sandbox", state)),
    st.sampled_from(
        [("begin_start", None), ("runs", None), ("fails", None), ("gone", None), ("sandbox gone", None)]
    ),
    st.tuples(st.just("list"), st.sampled_from([None, CREATED, RUNNING, EXITED])),
)


@given(st.lists(_step, max_size=25))
def test_in_any_order_of_observations_no_event_is_emitted_twice_or_before_an_earlier_one(
    steps: list[tuple[str, Any]],
) -> None:
    state_diff, events = filled()
    for what, state in steps:
        match what:
            case "container":
                state_diff.observe_container(container(state))
            case "sandbox":
                state_diff.observe_sandbox(sandbox(state))
            case "begin_start":
                state_diff.begin_start("c")
            case "runs" | "fails":
                state_diff.finish_start("c", is_running=what == "runs")
            case "gone":
                state_diff.container_is_gone("c")
            case "sandbox gone":
                state_diff.sandbox_is_gone("s")
            case _:
                listed = [] if state is None else [container(state)]
                state_diff.relisted(state_diff.known(), [sandbox()], listed)
    order = list(EventKind)
    for prefix in ("Container", "Sandbox"):
        seen = [order.index(kind) for kind in kinds(events) if kind.value.startswith(prefix)]
        assert seen == sorted(set(seen))
