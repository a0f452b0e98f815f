"""Explanations of pods from objects alone: what only old servers leave, what could not be read, what tells nothing."""

from __future__ import annotations

import json
import math
import shlex
from datetime import timedelta

import pytest

from podlife.cli.commands.explain.output import format_explanation
from podlife.diagnosis import acting_rules
from podlife.explain import ActionRules, as_dict, explain_pod
from podlife.explain.finalizers import owner_of
from tests.unit.explain.objects import NOW, Object, a_node, a_pod, a_world, ago, an_event, deleted


def causes(pod: Object, **world: object) -> list[str]:
    return [cause.name for cause in explain_pod(a_world(**world), pod).causes]


def test_a_pod_that_is_well_has_no_cause_and_is_not_stuck() -> None:
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    found = explain_pod(a_world(), a_pod(status=ready))
    assert (found.stage, found.causes, found.is_stuck) == ("running and ready", (), False)


def test_one_deleted_before_it_had_a_node_is_the_collectors_as_gc_80_has_it() -> None:
    pod = a_pod(spec={"nodeName": ""}, **deleted(minutes=5))
    found = explain_pod(a_world(rules=acting_rules()), pod)
    assert [cause.name for cause in found.causes] == ["never-scheduled"]
    [coming] = found.causes[0].upcoming
    assert coming.who == "pod GC"
    assert "unscheduled" in coming.what


def test_a_node_that_may_not_be_read_is_never_called_gone() -> None:
    found = explain_pod(a_world(nodes=None, unread=("nodes (403 Forbidden)",)), a_pod(**deleted(minutes=5)))
    assert [cause.name for cause in found.causes] == ["node-unread"]
    assert "nodes (403 Forbidden)" in format_explanation(found, "text", NOW)
    assert causes(a_pod(), nodes=None) == []


def test_without_leases_a_ready_node_is_not_called_silent() -> None:
    assert causes(a_pod(**deleted(grace=60, seconds=10)), leases=None) == ["grace"]


@pytest.mark.parametrize(("seconds", "expected"), [(39, ["grace"]), (41, ["kubelet-silent"])])
def test_a_lease_tells_after_40_seconds(seconds: int, expected: list[str]) -> None:
    lease = {"spec": {"renewTime": ago(seconds=seconds)}}
    assert causes(a_pod(**deleted(grace=600, minutes=1)), leases={"n1": lease}) == expected


def test_a_node_has_a_little_time_after_the_grace_before_it_is_blamed() -> None:
    assert causes(a_pod(**deleted(grace=30, seconds=50))) == []
    assert causes(a_pod(**deleted(grace=30, seconds=70))) == ["agent-does-not-end-it"]


def test_a_finalizer_behind_a_dead_node_comes_second() -> None:
    pod = a_pod(finalizers=["example.com/x"], **deleted(minutes=5))
    assert causes(pod, nodes={"n1": a_node("Unknown")}) == ["taint-missing", "finalizer"]


def test_the_commands_for_several_finalizers_can_be_typed_in_the_order_they_are_printed_in() -> None:
    left = ["example.com/a", "example.com/b", "example.com/c"]
    pod = a_pod(finalizers=list(left), **deleted(grace=0, minutes=5))
    for cause in explain_pod(a_world(), pod).causes:
        steps = json.loads(shlex.split(cause.remedies[0].command)[-1])
        place = int(steps[1]["path"].rpartition("/")[2])
        assert left[place] == steps[1]["value"]
        del left[place]
    assert left == []


def test_room_that_is_being_made_is_waited_for() -> None:
    told = {
        "type": "PodScheduled",
        "status": "False",
        "message": "0/1 nodes are available: 1 Insufficient cpu.",
    }
    status = {"phase": "Pending", "nominatedNodeName": "n1", "conditions": [told]}
    [cause] = explain_pod(a_world(), a_pod(spec={"nodeName": ""}, status=status)).causes
    assert (cause.name, cause.is_stuck) == ("preempting", False)


def test_the_reason_of_the_nodes_that_come_nearest_is_told_first() -> None:
    message = (
        "0/3 nodes are available: 1 node(s) had untolerated taint {dedicated: x}, 1 node(s) were unschedulable, "
        "1 Insufficient cpu."
    )
    told = {"type": "PodScheduled", "status": "False", "message": message}
    nodes = {
        "a": a_node(taints=[{"key": "dedicated", "effect": "NoSchedule"}]),
        "b": a_node(unschedulable=True),
    }
    pod = a_pod(spec={"nodeName": ""}, status={"conditions": [told]})
    causes = [each.name for each in explain_pod(a_world(nodes=nodes), pod).causes]
    assert causes == ["insufficient-resources", "untolerated-taint", "cordoned"]


def test_a_pod_that_came_after_the_taint_bears_it_from_then_on() -> None:
    taint = {"key": "maintenance", "effect": "NoExecute", "timeAdded": ago(minutes=10)}
    bound = {"type": "PodScheduled", "status": "True", "lastTransitionTime": ago(seconds=10)}
    pod = a_pod(status={"conditions": [bound]})
    world = a_world(nodes={"n1": a_node(taints=[taint])}, rules=ActionRules(bears=lambda pod, node: 60.0))
    [moved] = explain_pod(world, pod).causes[0].upcoming
    assert moved.at == NOW + timedelta(seconds=50)


def test_what_the_scheduler_tells_in_words_of_its_own_is_passed_on() -> None:
    message = "0/3 nodes are available: 3 node(s) didn't match pod topology spread constraints."
    told = {"type": "PodScheduled", "status": "False", "message": message}
    [cause] = explain_pod(a_world(), a_pod(spec={"nodeName": ""}, status={"conditions": [told]})).causes
    assert (cause.name, cause.text, cause.remedies) == ("unschedulable", message, ())


def test_out_of_service_and_ready_is_left_to_the_agent_as_gc_42_has_it() -> None:
    taint = {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}
    pod = a_pod(**deleted(minutes=5))
    found = explain_pod(a_world(nodes={"n1": a_node(taints=[taint])}, rules=acting_rules()), pod)
    assert [cause.name for cause in found.causes] == ["agent-does-not-end-it"]
    assert found.upcoming == ()


def test_when_an_eviction_comes_is_counted_from_the_taint() -> None:
    taint = {"key": "example.com/t", "effect": "NoExecute", "timeAdded": ago(seconds=100)}
    rules = ActionRules(bears=lambda pod, node: 300.0)
    [cause] = explain_pod(a_world(nodes={"n1": a_node(taints=[taint])}, rules=rules), a_pod()).causes
    assert (cause.name, cause.is_stuck) == ("taint-eviction", False)
    assert cause.upcoming[0].at == NOW + timedelta(seconds=200)


def test_one_that_bears_a_taint_for_ever_is_not_told_to_go() -> None:
    taint = {"key": "example.com/t", "effect": "NoExecute"}
    rules = ActionRules(bears=lambda pod, node: math.inf)
    found = explain_pod(a_world(nodes={"n1": a_node(taints=[taint])}, rules=rules), a_pod())
    assert found.causes == ()
    assert [(each.who, each.at) for each in found.upcoming] == [("taint eviction", None)]


def test_a_kept_pod_is_no_longer_protected_when_its_time_is_over() -> None:
    for noted, expected in (
        (ago(minutes=1), []),
        ("2999-01-01T00:00:00Z", ["protected"]),
        ("for ever", ["protected"]),
    ):
        assert causes(a_pod(annotations={"podlife.dev/keep-until": noted})) == expected


def test_who_set_a_finalizer_is_in_managed_fields() -> None:
    fields: Object = {"f:metadata": {"f:finalizers": {".": {}, 'v:"example.com/x"': {}}}}
    entries = [
        {"manager": "kubectl", "time": ago(hours=2), "fieldsV1": {"f:spec": {}}},
        {"manager": "backup-operator", "time": ago(hours=1), "fieldsV1": fields},
    ]
    manager, at = owner_of(a_pod(managedFields=entries), "example.com/x")
    assert (manager, at) == ("backup-operator", NOW - timedelta(hours=1))
    assert owner_of(a_pod(managedFields=entries), "example.com/other") == ("", None)


def test_the_timeline_is_in_order_and_has_state_conditions_events_and_the_deletion() -> None:
    status = {
        "conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": ago(minutes=3)}],
        "containerStatuses": [
            {"name": "main", "state": {"terminated": {"exitCode": 3, "finishedAt": ago(minutes=2)}}},
        ],
    }
    pod = a_pod(status=status, **deleted(minutes=1))
    found = explain_pod(a_world(events={"u-1": [an_event("Killing", "Stopping", minutes=0.5)]}), pod)
    assert [each.what.split(" ")[0] for each in found.timeline] == [
        "created",
        "Ready",
        "container",
        "deletion",
        "Killing:",
    ]
    assert found.timeline[-1].who == "somebody"


def test_what_programs_get_has_what_people_see() -> None:
    found = explain_pod(a_world(), a_pod(finalizers=["example.com/x"], **deleted(grace=0, minutes=5)))
    told = as_dict(found)
    assert (told["kind"], told["namespace"], told["name"], told["uid"], told["stuck"]) == (
        "Pod",
        "shop",
        "web",
        "u-1",
        True,
    )
    [cause] = told["causes"]
    assert (cause["cause"], cause["since"]) == ("finalizer", ago(minutes=5))
    [command] = cause["commands"]
    assert "u-1" in command["command"]
    shown = format_explanation(found, "text", NOW)
    for text in (command["command"], command["risk"], cause["text"], "STUCK, finalizer (for 5m)"):
        assert text in shown


@pytest.mark.parametrize(
    ("owner", "command"),
    [
        ([], "kubectl delete --raw /api/v1/namespaces/shop/pods/web -f -"),
        (
            [{"kind": "StatefulSet", "name": "web", "uid": "s-1", "controller": True}],
            "kubectl edit statefulset/web -n shop",
        ),
    ],
)
def test_a_container_without_a_command_is_not_helped_by_another_image(
    owner: list[Object], command: str
) -> None:
    message = "container 'main' has no command: this node runs commands of its own machine, not the image 'i'"
    waiting = {"name": "main", "state": {"waiting": {"reason": "CreateContainerError", "message": message}}}
    pod = a_pod(status={"phase": "Pending", "containerStatuses": [waiting]}, ownerReferences=owner)
    [cause] = explain_pod(a_world(), pod).causes
    assert cause.name == "container-error"
    [remedy] = cause.remedies
    assert remedy.command.endswith(command)


@pytest.mark.parametrize(
    ("message", "what", "seconds"),
    [
        ("back-off 40s restarting failed container=main pod=web_shop(u-1)", "starts it again", 40),
        ("back-off 2m40s restarting failed container=main pod=web_shop(u-1)", "starts it again", 160),
        ("back-off 9999h restarting failed container=main", "starts it again, at the latest", 300),
        ("", "starts it again, at the latest", 300),
    ],
)
def test_a_crash_loop_goes_on_when_the_back_off_ends_that_the_kubelet_reports(
    message: str, what: str, seconds: int
) -> None:
    waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": message}}
    last = {"terminated": {"exitCode": 1, "finishedAt": ago(seconds=10)}}
    container = {"name": "main", "restartCount": 3, "state": waiting, "lastState": last}
    [cause] = explain_pod(a_world(), a_pod(status={"containerStatuses": [container]})).causes
    [coming] = cause.upcoming
    assert (coming.what, coming.at) == (what, NOW + timedelta(seconds=seconds - 10))


def test_an_eviction_that_came_after_the_deletion_is_not_blamed_for_it() -> None:
    target = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"}
    conditions = [{**target, "lastTransitionTime": ago(minutes=1)}]
    assert (
        "taint"
        not in explain_pod(a_world(), a_pod(status={"conditions": conditions}, **deleted(minutes=5))).deletion
    )
    assert (
        "taint"
        in explain_pod(a_world(), a_pod(status={"conditions": conditions}, **deleted(seconds=60))).deletion
    )
