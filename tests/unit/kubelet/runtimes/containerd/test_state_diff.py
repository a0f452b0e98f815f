"""Every step is told once and in order, whoever saw it first and however late a listing arrives."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from podlife.kubelet.runtime import ContainerState, EventKind, RuntimeEvent, SandboxState
from podlife.kubelet.runtimes.containerd.state_diff import SeenContainer, SeenSandbox, StateDiff

CREATED, RUNNING, EXITED = ContainerState.CREATED, ContainerState.RUNNING, ContainerState.EXITED


def filled() -> tuple[StateDiff, list[RuntimeEvent]]:
    told: list[RuntimeEvent] = []
    mirror = StateDiff(told.append)
    mirror.relisted(mirror.known(), [], [])
    told.clear()
    return mirror, told


def sandbox(state: SandboxState = SandboxState.READY) -> SeenSandbox:
    return SeenSandbox("s", "uid", state)


def container(state: ContainerState, name: str = "c") -> SeenContainer:
    return SeenContainer(name, "s", "uid", state)


def kinds(told: list[RuntimeEvent]) -> list[EventKind]:
    return [event.kind for event in told]


def test_what_was_there_before_is_not_told_but_that_something_is() -> None:
    told: list[RuntimeEvent] = []
    mirror = StateDiff(told.append)
    mirror.relisted(mirror.known(), [sandbox()], [container(RUNNING)])
    assert told == [RuntimeEvent(EventKind.RELIST)]
    mirror.saw_container(container(EXITED))
    assert told[1:] == [RuntimeEvent(EventKind.CONTAINER_STOPPED, "uid", "s", "c")]


def test_the_end_of_a_container_that_a_listing_missed_to_see_running_is_told_alone() -> None:
    mirror, told = filled()
    mirror.saw_sandbox(sandbox())
    mirror.saw_container(container(CREATED))
    mirror.saw_container(container(EXITED))
    assert kinds(told)[-1] is EventKind.CONTAINER_STOPPED
    assert EventKind.CONTAINER_STARTED not in kinds(told)


def test_an_end_that_is_seen_before_the_start_is_answered_is_told_after_it() -> None:
    mirror, told = filled()
    mirror.saw_container(container(CREATED))
    mirror.starts("c")
    mirror.saw_container(container(EXITED))
    assert not mirror.has_ended("c")
    mirror.started("c", it_runs=True)
    mirror.saw_container(container(EXITED))
    assert kinds(told)[1:] == [EventKind.CONTAINER_STARTED, EventKind.CONTAINER_STOPPED]


def test_a_listing_that_began_before_something_was_made_does_not_remove_it() -> None:
    mirror, told = filled()
    known = mirror.known()
    mirror.saw_sandbox(sandbox())
    mirror.relisted(known, [], [])
    assert kinds(told) == [EventKind.SANDBOX_STARTED]


def test_a_listing_that_began_before_something_was_removed_does_not_bring_it_back() -> None:
    mirror, told = filled()
    mirror.saw_sandbox(sandbox())
    mirror.saw_container(container(EXITED))
    known = mirror.known()
    mirror.sandbox_is_gone("s")
    before = list(told)
    mirror.relisted(known, [sandbox()], [container(EXITED)])
    assert told == before


def test_a_sandbox_that_is_gone_takes_its_containers_along_each_with_its_end() -> None:
    mirror, told = filled()
    mirror.saw_sandbox(sandbox())
    mirror.saw_container(container(RUNNING))
    told.clear()
    mirror.relisted(mirror.known(), [], [])
    assert kinds(told) == [
        EventKind.CONTAINER_STOPPED,
        EventKind.CONTAINER_REMOVED,
        EventKind.SANDBOX_STOPPED,
        EventKind.SANDBOX_REMOVED,
    ]


def test_a_state_that_nobody_knows_changes_nothing() -> None:
    mirror, told = filled()
    mirror.saw_container(container(RUNNING))
    before = list(told)
    mirror.saw_container(container(ContainerState.UNKNOWN))
    assert told == before


_step = st.one_of(
    st.sampled_from([CREATED, RUNNING, EXITED, ContainerState.UNKNOWN]).map(
        lambda state: ("container", state)
    ),
    st.sampled_from(list(SandboxState)).map(lambda state: ("sandbox", state)),
    st.sampled_from(
        [("starts", None), ("runs", None), ("fails", None), ("gone", None), ("sandbox gone", None)]
    ),
    st.tuples(st.just("list"), st.sampled_from([None, CREATED, RUNNING, EXITED])),
)


@given(st.lists(_step, max_size=25))
def test_whatever_is_seen_in_whatever_order_no_step_is_told_twice_or_before_an_earlier_one(
    steps: list[tuple[str, object]],
) -> None:
    mirror, told = filled()
    for what, state in steps:
        match what:
            case "container":
                mirror.saw_container(container(state))  # type: ignore[arg-type]
            case "sandbox":
                mirror.saw_sandbox(sandbox(state))  # type: ignore[arg-type]
            case "starts":
                mirror.starts("c")
            case "runs" | "fails":
                mirror.started("c", it_runs=what == "runs")
            case "gone":
                mirror.container_is_gone("c")
            case "sandbox gone":
                mirror.sandbox_is_gone("s")
            case _:
                listed = [] if state is None else [container(state)]  # type: ignore[arg-type]
                mirror.relisted(mirror.known(), [sandbox()], listed)
    order = list(EventKind)
    for prefix in ("Container", "Sandbox"):
        seen = [order.index(kind) for kind in kinds(told) if kind.value.startswith(prefix)]
        assert seen == sorted(set(seen))
