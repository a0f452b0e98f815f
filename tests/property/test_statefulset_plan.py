"""What holds for a StatefulSet's plan whatever its pods are; and that, plan after plan, it gets where it should."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from podlife.workloads.statefulset.identity import ordinal_of, pod_name, revision_of
from podlife.workloads.statefulset.plan import CreatePod, StatefulSetPlan, StatefulSetState, make_plan
from podlife.workloads.statefulset.views import StatefulSet
from podlife.workloads.views import WorkloadPod
from tests.unit.workloads.statefulset.objects import NEW, OLD, pod, state, stateful_set

PHASES = st.sampled_from(["Running", "Running", "Running", "Pending", "Failed", "Succeeded", "Unknown"])


@st.composite
def sets(draw: st.DrawFn) -> StatefulSet:
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"partition": draw(st.integers(0, 5))}}
    return stateful_set(
        draw(st.integers(0, 5)),
        podManagementPolicy=draw(st.sampled_from(["OrderedReady", "Parallel"])),
        updateStrategy=draw(st.sampled_from([rolling, {"type": "OnDelete"}])),
        ordinals={"start": draw(st.integers(0, 3))},
        minReadySeconds=draw(st.sampled_from([0, 10])),
    )


@st.composite
def states(draw: st.DrawFn) -> StatefulSetState:
    of = draw(sets())
    pods = [
        pod(
            of,
            ordinal,
            phase=draw(PHASES),
            ready=draw(st.booleans()),
            ready_for_seconds=draw(st.sampled_from([5, 60])),
            going=draw(st.booleans()) and draw(st.booleans()),
            revision=draw(st.sampled_from([OLD.name, NEW.name, "web-between"])),
        )
        for ordinal in draw(st.sets(st.integers(0, 9), max_size=8))
    ]
    return state(of, *pods, current=draw(st.sampled_from([OLD, NEW])))


def created(plan: StatefulSetPlan) -> list[CreatePod]:
    return [step for stage in plan.stages for step in stage if isinstance(step, CreatePod)]


@given(states())
def test_a_pod_is_only_made_for_an_ordinal_that_is_wanted_and_has_none(of: StatefulSetState) -> None:
    names = [step.name for step in created(make_plan(of))]
    wanted = {pod_name("web", ordinal) for ordinal in of.stateful_set.wanted_ordinals}
    assert {*names} <= wanted - {each.metadata.name for each in of.pods}
    assert len(names) == len({*names})


@given(states())
def test_an_ordered_set_touches_one_pod_at_a_time(of: StatefulSetState) -> None:
    plan = make_plan(of)
    if of.stateful_set.is_ordered:
        assert len(created(plan)) + len(list(plan.deletions())) <= 1


@given(states())
def test_an_ordered_set_makes_a_pod_only_behind_pods_that_are_well(of: StatefulSetState) -> None:
    if not of.stateful_set.is_ordered:
        return
    for step in created(make_plan(of)):
        ordinal = int(step.name.rpartition("-")[2])
        before = range(of.stateful_set.wanted_ordinals.start, ordinal)
        well = {
            ordinal_of(each)
            for each in of.pods
            if each.status.phase == "Running"
            and each.status.conditions[0].status == "True"
            and each.metadata.deletion_timestamp is None
        }
        assert {*before} <= well


@given(states())
def test_a_pod_is_only_deleted_for_a_reason_and_once(of: StatefulSetState) -> None:
    stateful_set, plan = of.stateful_set, make_plan(of)
    going = list(plan.deletions())
    assert len(going) == len({each.metadata.uid for each in going})
    for each in going:
        assert each.metadata.deletion_timestamp is None
        index = ordinal_of(each) - stateful_set.wanted_ordinals.start
        is_surplus = ordinal_of(each) not in stateful_set.wanted_ordinals
        is_over = each.status.phase in ("Failed", "Succeeded")
        is_outdated = (
            stateful_set.is_rolling
            and revision_of(each) != of.update.name
            and index >= stateful_set.partition
        )
        assert is_surplus or is_over or (is_outdated and each is plan.updated)


@settings(max_examples=60)
@given(states())
def test_with_nodes_that_do_their_work_every_set_gets_where_it_should(of: StatefulSetState) -> None:
    """Pods that are made run, and those that are asked to go are gone by the next look."""
    pods = list(of.pods)
    for _ in range(60):
        now = StatefulSetState(of.stateful_set, of.owner, pods, of.current, of.update, of.claims, of.now)
        plan = make_plan(now)
        gone = {each.metadata.uid for each in plan.deletions()} | {
            each.metadata.uid for each in pods if each.metadata.deletion_timestamp is not None
        }
        made = [_run(of.stateful_set, step) for step in created(plan)]
        if not gone and not made and all(_is_well(each) for each in pods):
            break
        pods = [_heal(of.stateful_set, each) for each in pods if each.metadata.uid not in gone] + made
    else:
        raise AssertionError(f"it never comes to an end: {of}")
    assert sorted(map(ordinal_of, pods)) == list(of.stateful_set.wanted_ordinals)
    if of.stateful_set.is_rolling:
        updated = of.stateful_set.wanted_ordinals[of.stateful_set.partition :]
        assert {revision_of(each) for each in pods if ordinal_of(each) in updated} <= {of.update.name}


def _is_well(each: WorkloadPod) -> bool:
    return (
        each.status.phase in ("Running", "Failed", "Succeeded") and each.status.conditions[0].status == "True"
    )


def _run(of: StatefulSet, step: CreatePod) -> WorkloadPod:
    revision = step.pod["metadata"]["labels"]["controller-revision-hash"]
    return pod(of, int(step.name.rpartition("-")[2]), revision=revision, uid=f"made-{step.name}-{revision}")


def _heal(of: StatefulSet, each: WorkloadPod) -> WorkloadPod:
    if each.status.phase in ("Failed", "Succeeded"):
        return each
    how: dict[str, Any] = {"revision": revision_of(each), "uid": each.metadata.uid}
    return pod(of, ordinal_of(each), **how)
