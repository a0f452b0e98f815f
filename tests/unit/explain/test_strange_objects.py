"""Whatever a server gives, an explanation comes of it: the diagnosis is for clusters in which things are wrong."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from podlife.cli.commands.explain.output import format_explanation, format_stuck
from podlife.explain import as_dict, explain_absent, explain_node, explain_pod
from tests.unit.explain.objects import NOW, a_node, a_world, ago, an_event

TIMES = st.sampled_from([ago(hours=1), ago(seconds=5), "soon", "", None])
WORDS = st.sampled_from(["", "True", "False", "Unknown", "Ready", "PodScheduled", "n1", "gone", "x"])
REASONS = st.sampled_from(
    [
        "CrashLoopBackOff",
        "ErrImagePull",
        "CreateContainerConfigError",
        "ContainerCreating",
        "RunContainerError",
        "",
        "?",
    ]
)
STATES = st.one_of(
    st.none(),
    st.fixed_dictionaries({"waiting": st.fixed_dictionaries({"reason": REASONS, "message": WORDS})}),
    st.fixed_dictionaries({"running": st.fixed_dictionaries({"startedAt": TIMES})}),
    st.fixed_dictionaries(
        {"terminated": st.fixed_dictionaries({"finishedAt": TIMES, "exitCode": st.integers(0, 255)})}
    ),
)
STATUSES = st.fixed_dictionaries(
    {}, optional={"name": WORDS, "state": STATES, "lastState": STATES, "ready": st.booleans()}
)
CONDITIONS = st.fixed_dictionaries(
    {}, optional={"type": WORDS, "status": WORDS, "lastTransitionTime": TIMES, "message": WORDS}
)
PHASES = st.sampled_from(["Pending", "Running", "Succeeded", "Failed", "", None])
PODS = st.fixed_dictionaries(
    {},
    optional={
        "metadata": st.fixed_dictionaries(
            {},
            optional={
                "name": WORDS,
                "uid": WORDS,
                "deletionTimestamp": TIMES,
                "deletionGracePeriodSeconds": st.sampled_from([0, 30, None]),
                "creationTimestamp": TIMES,
                "finalizers": st.lists(WORDS, max_size=2),
            },
        ),
        "spec": st.fixed_dictionaries(
            {},
            optional={
                "nodeName": WORDS,
                "containers": st.lists(st.just({"name": "x"}), max_size=1),
                "schedulingGates": st.lists(st.just({"name": "g"}), max_size=1),
                "readinessGates": st.lists(st.just({"conditionType": "x"}), max_size=1),
            },
        ),
        "status": st.fixed_dictionaries(
            {},
            optional={
                "phase": PHASES,
                "reason": WORDS,
                "startTime": TIMES,
                "conditions": st.lists(CONDITIONS, max_size=3),
                "containerStatuses": st.lists(STATUSES, max_size=2),
                "initContainerStatuses": st.lists(STATUSES, max_size=1),
            },
        ),
    },
)


@settings(max_examples=200, deadline=None)
@given(pod=PODS, has_nodes=st.booleans(), has_claims=st.booleans())
def test_any_pod_is_explained(pod: Any, has_nodes: bool, has_claims: bool) -> None:
    world = a_world(nodes={"n1": a_node()} if has_nodes else None, claims={} if has_claims else None)
    found = explain_pod(world, pod)
    shown = format_explanation(found, "text", NOW)
    assert as_dict(found)["stuck"] is found.is_stuck
    for cause in found.causes:
        assert cause.text in shown
    if found.is_stuck:
        assert found.stage in format_stuck([found], "text", NOW, ())


@settings(max_examples=50, deadline=None)
@given(conditions=st.lists(CONDITIONS, max_size=3), pods=st.lists(PODS, max_size=2))
def test_any_node_is_explained(conditions: Any, pods: Any) -> None:
    node = {"metadata": {"name": "n1"}, "status": {"conditions": conditions}}
    found = explain_node(a_world(nodes={"n1": node}, pods=pods), node)
    assert found.stage


def test_events_without_times_or_objects_are_passed_over() -> None:
    for event in (
        {},
        {"involvedObject": None, "message": None},
        an_event("Killing") | {"lastTimestamp": "soon"},
    ):
        assert explain_absent(a_world(), "shop", "web", [event]).timeline == ()
