"""Whether an owner has seen a pod's end, from what pod and owner say."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from podlife.podgc.owner_wait.status import (
    EndedPod,
    ended_at,
    is_acknowledged,
    outlook_of,
    owner_to_ask,
    pending_on,
    still_waiting,
)

Object = dict[str, Any]

START = datetime(2030, 1, 1, tzinfo=UTC)


def pod(**metadata: Any) -> EndedPod:
    fields = {"name": "p", "namespace": "default", "uid": "u", **metadata}
    return msgspec.convert({"metadata": fields, "status": {"phase": "Succeeded"}}, EndedPod)


def owner(api_version: str, kind: str, status: Object, **metadata: Any) -> Object:
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "status": status}


def waiting(obj: Object, found: EndedPod | None = None) -> str:
    return still_waiting(outlook_of(obj), found or pod())


def condition(type_: str, status: str, reason: str = "") -> Object:
    return {"conditions": [{"type": type_, "status": status, "reason": reason}]}


def test_a_job_that_still_has_the_pod_to_count_has_not_seen_it_and_one_that_has_not_has() -> None:
    uncounted = {"uncountedTerminatedPods": {"failed": ["x"], "succeeded": ["u"]}}
    assert waiting(owner("batch/v1", "Job", uncounted)) == "has not counted it yet"
    assert waiting(owner("batch/v1", "Job", {"uncountedTerminatedPods": {"failed": ["x"]}})) == ""
    assert waiting(owner("batch/v1", "Job", {**uncounted, **condition("Complete", "True")})) == ""
    assert waiting(owner("batch/v1", "Job", {**uncounted, **condition("Failed", "True")})) == ""
    # What it has decided to come to is no end yet.
    assert waiting(owner("batch/v1", "Job", {**uncounted, **condition("SuccessCriteriaMet", "True")}))


def test_a_workflow_has_seen_what_it_has_noted_by_the_names_that_it_gives_its_nodes() -> None:
    nodes: dict[str, Any] = {"p": {"phase": "Succeeded"}, "wf-123": {"phase": "Running"}, "odd": None}
    workflow = owner("argoproj.io/v1alpha1", "Workflow", {"phase": "Running", "nodes": nodes})
    assert waiting(workflow) == ""
    named = pod(annotations={"workflows.argoproj.io/node-id": "wf-123"})
    assert waiting(workflow, named) == "has not recorded its end yet"
    nodes["wf-123"]["phase"] = "Error"
    assert waiting(workflow, named) == ""
    packed = owner("argoproj.io/v1alpha1", "Workflow", {"phase": "Running", "compressedNodes": "H4s"})
    assert waiting(packed) == "has not recorded its end yet"
    assert waiting(owner("argoproj.io/v1alpha1", "Workflow", {"phase": "Error"})) == ""


ENDED = {
    "a word": {"phase": "Completed"},
    "a state": {"state": {"phase": "Aborted"}},
    "Spark": {"applicationState": {"state": "COMPLETED"}},
    "Ray": {"jobStatus": "SUCCEEDED"},
    "a time": {"completionTime": "2030-01-01T00:00:00Z"},
    "a condition": condition("Succeeded", "True"),
    "a failure": condition("Failed", "True"),
    "not ready any more": condition("Ready", "False", "Completed"),
    "of this generation": {"phase": "Failed", "observedGeneration": 2},
}
GOING_ON = {
    "nothing": {},
    "a phase": {"phase": "Running"},
    "a condition that says no": condition("Succeeded", "False"),
    "ready": condition("Ready", "True", "Running"),
    "not ready, and may try again": condition("Ready", "False", "Failed"),
    "of an older generation": {"phase": "Failed", "observedGeneration": 1},
    "an empty time": {"completionTime": None},
}


@pytest.mark.parametrize("status", ENDED.values(), ids=ENDED)
def test_any_other_owner_that_has_ended_has_seen_the_end(status: Object) -> None:
    assert waiting(owner("example.com/v1", "Run", status, generation=2)) == ""


@pytest.mark.parametrize("status", GOING_ON.values(), ids=GOING_ON)
def test_any_other_owner_that_goes_on_has_not(status: Object) -> None:
    assert waiting(owner("example.com/v1", "Run", status, generation=2)) == "has not ended yet"


@pytest.mark.parametrize(("status", "has_ended"), [("True", True), ("False", True), ("Unknown", False)])
def test_a_taskrun_has_ended_when_its_condition_is_decided(status: str, has_ended: bool) -> None:
    found = waiting(owner("tekton.dev/v1", "TaskRun", condition("Succeeded", status)))
    assert (found == "") is has_ended


def test_the_finalizers_of_those_who_track_their_pods_say_that_they_have_not_seen_the_end() -> None:
    assert "Job" in pending_on(pod(finalizers=["example.com/x", "batch.kubernetes.io/job-tracking"]))
    completed = {"workflows.argoproj.io/completed": "true"}
    held = pod(finalizers=["workflows.argoproj.io/status"], labels=completed)
    assert "Workflow" in pending_on(held)
    assert pending_on(pod(finalizers=["example.com/x"])) == ""
    assert is_acknowledged(pod(labels=completed))


@pytest.mark.parametrize(
    ("value", "is_seen"), [("", True), ("yes", True), ("false", False), ("False", False)]
)
def test_the_annotation_on_the_pod_goes_before_everything(value: str, is_seen: bool) -> None:
    held = pod(
        annotations={"podlife.dev/owner-has-seen": value}, finalizers=["batch.kubernetes.io/job-tracking"]
    )
    assert is_acknowledged(held) is is_seen
    assert (pending_on(held) == "") is is_seen


@pytest.mark.parametrize(
    ("api_version", "kind", "is_asked"),
    [
        ("apps/v1", "ReplicaSet", False),
        ("apps/v1", "StatefulSet", False),
        ("apps/v1", "DaemonSet", False),
        ("v1", "ReplicationController", False),
        ("v1", "Node", False),
        ("batch/v1", "Job", True),
        ("example.com/v1", "ReplicaSet", True),
    ],
)
def test_who_counts_only_the_living_is_not_asked(api_version: str, kind: str, is_asked: bool) -> None:
    reference = {"apiVersion": api_version, "kind": kind, "name": "o", "uid": "x", "controller": True}
    assert (owner_to_ask(pod(ownerReferences=[reference])) is not None) is is_asked


def test_a_pod_that_no_controller_owns_has_nobody_to_wait_for() -> None:
    reference = {"apiVersion": "batch/v1", "kind": "Job", "name": "o", "uid": "x"}
    assert owner_to_ask(pod(ownerReferences=[reference])) is None
    assert owner_to_ask(pod()) is None


def test_waiting_runs_from_the_latest_moment_at_which_the_pod_may_have_ended() -> None:
    def at(seconds: int) -> str:
        return (START + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")

    def ended(status: Object, **metadata: Any) -> int:
        found = msgspec.convert({"metadata": {"name": "p", **metadata}, "status": status}, EndedPod)
        return round((ended_at(found) - START).total_seconds())

    def containers(*seconds: int) -> list[Object]:
        return [{"state": {"terminated": {"finishedAt": at(each)}}} for each in seconds]

    ready = [{"type": "Ready", "status": "False", "lastTransitionTime": at(70)}]
    statuses = {"initContainerStatuses": containers(9), "containerStatuses": containers(60, 50)}
    assert ended(statuses, creationTimestamp=at(1)) == 60
    assert ended({**statuses, "conditions": ready}, creationTimestamp=at(1)) == 70
    restarted = [{"state": {"running": {}}, "lastState": {"terminated": {"finishedAt": at(80)}}}]
    assert ended({"containerStatuses": restarted}, creationTimestamp=at(1)) == 80
    assert ended({"conditions": ready}, creationTimestamp=at(1)) == 70
    assert ended({"containerStatuses": [{"state": None}, {}]}, creationTimestamp=at(1)) == 1
    assert ended({}, creationTimestamp=at(1), deletionTimestamp=at(2)) == 2
    assert ended({"startTime": at(40)}, creationTimestamp=at(1)) == 40


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "phase",
                    "state",
                    "conditions",
                    "type",
                    "status",
                    "nodes",
                    "uncountedTerminatedPods",
                    "failed",
                    "reason",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(
    status=JSON,
    named=st.sampled_from(
        [("batch/v1", "Job"), ("argoproj.io/v1alpha1", "Workflow"), ("tekton.dev/v1", "TaskRun")]
    ),
)
@example({"uncountedTerminatedPods": {"failed": 3}}, ("batch/v1", "Job"))
@example({"nodes": [], "conditions": {"type": 1}}, ("argoproj.io/v1alpha1", "Workflow"))
def test_an_owner_may_say_anything_at_all(status: Any, named: tuple[str, str]) -> None:
    found = outlook_of({"apiVersion": named[0], "kind": named[1], "metadata": None, "status": status})
    assert still_waiting(found, pod()) in (
        "",
        "has not counted it yet",
        "has not recorded its end yet",
        "has not ended yet",
    )


@given(status=JSON)
def test_a_job_that_names_the_pod_as_uncounted_and_has_no_end_is_always_waited_for(status: Any) -> None:
    said = {**(status if isinstance(status, dict) else {}), "conditions": []}
    said["uncountedTerminatedPods"] = {"succeeded": ["u"]}
    assert waiting(owner("batch/v1", "Job", said)) == "has not counted it yet"
