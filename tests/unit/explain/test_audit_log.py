"""Who ended a pod, from the lines of an audit log: by UID, within its life, and back to whoever asked first."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from podlife.api.codec import format_micro_time
from podlife.cli.commands.explain.output import format_explanation
from podlife.explain import (
    SIMULATED_NODES,
    AuditCollection,
    AuditedRequest,
    PodIdentity,
    explain_absent,
    explain_node,
    explain_pod,
    find_deletion,
    phrase,
)
from podlife.explain.audit_deletion import taint_setter
from podlife.explain.audit_text import sentence
from tests.kit.real_parts import ROOT
from tests.unit.explain.objects import NOW, a_node, a_pod, a_world, ago, an_event, deleted

KUBECTL = "kubectl/v1.36.3 (linux/amd64) kubernetes/4e2c"
MANAGER = "kube-controller-manager/v1.36.3 (linux/amd64) kubernetes/4e2c"
POD = PodIdentity("shop", "web-7d9-abcde", "u-1", NOW - timedelta(hours=1), ("ReplicaSet", "web-7d9"))


def line(verb: str = "delete", name: str = "web-7d9-abcde", *, minutes: float = 5, **more: Any) -> bytes:
    """One event; `more` are fields of it, `resource` and `subresource` those of its object."""
    reference = {
        "resource": more.pop("resource", "pods"),
        "namespace": more.pop("namespace", "shop"),
        "name": name,
        "subresource": more.pop("subresource", ""),
    }
    user = {"username": more.pop("user", "jane"), "groups": ["developers", "system:authenticated"]}
    event = {
        "kind": "Event",
        "stage": "ResponseComplete",
        "verb": verb,
        "user": user,
        "sourceIPs": ["10.0.0.7"],
        "userAgent": more.pop("agent", KUBECTL),
        "objectRef": {key: value for key, value in reference.items() if value},
        "responseStatus": {"metadata": {}, "code": more.pop("code", 200)},
        "requestReceivedTimestamp": format_micro_time(NOW - timedelta(minutes=minutes)),
        "requestURI": "/",
        **more,
    }
    return json.dumps(event).encode() + b"\n"


def controller(name: str) -> dict[str, Any]:
    return {"user": "system:kube-controller-manager", "agent": f"{MANAGER}/{name}"}


def collected(*lines: bytes, pod: str = "web-7d9-abcde") -> AuditCollection:
    found = AuditCollection("shop", pod)
    for each in lines:
        found.add(each)
    return found


def read(*lines: bytes, pod: str = "web-7d9-abcde") -> list[AuditedRequest]:
    return list(collected(*lines, pod=pod).requests)


def told(*lines: bytes, pod: PodIdentity = POD) -> tuple[str, str]:
    found = find_deletion(read(*lines, pod=pod.name), pod)
    return ("", "") if found is None else (sentence(found), phrase(found))


def test_a_person_is_named_with_groups_tool_and_address() -> None:
    assert told(line()) == (
        "at 2030-01-01 11:55:00Z by jane (developers), kubectl/v1.36.3 from 10.0.0.7: delete",
        "deleted by jane (kubectl)",
    )


def test_an_eviction_by_kubectl_is_a_drain() -> None:
    evicted = line("create", subresource="eviction", code=201)
    long, short = told(evicted)
    assert long.endswith("from 10.0.0.7: eviction, as kubectl drain does")
    assert short == "evicted by jane (kubectl drain)"
    assert (
        told(line("create", subresource="eviction", agent="autoscaler/1"))[1]
        == "evicted by jane (autoscaler)"
    )


def test_whoever_acts_as_somebody_else_is_named_too() -> None:
    long, short = told(line(impersonatedUser={"username": "joe"}))
    assert "by jane (developers) acting as joe, kubectl" in long
    assert short == "deleted by jane as joe (kubectl)"


def test_the_garbage_collector_is_followed_to_whoever_deleted_the_owner() -> None:
    long, short = told(
        line("delete", "web", resource="deployments", minutes=6),
        line(
            "delete",
            "web-7d9",
            resource="replicasets",
            minutes=5.5,
            **controller("generic-garbage-collector"),
        ),
        line(**controller("generic-garbage-collector")),
    )
    assert long == (
        "at 2030-01-01 11:55:00Z by the garbage collector: its Deployment web was deleted at 11:54:00Z by "
        "jane (developers), kubectl/v1.36.3 from 10.0.0.7"
    )
    assert short == "jane (kubectl) deleted its Deployment web"


def test_the_owner_of_a_pod_that_is_gone_is_known_by_its_name() -> None:
    gone = PodIdentity("shop", "web-7d9c5b8f6d-abcde")
    lines = [
        line("delete", "web-other", resource="deployments", user="joe"),
        line("delete", "web", resource="deployments"),
        line("delete", gone.name, **controller("garbage-collector-controller")),
    ]
    assert told(*lines, pod=gone)[1] == "jane (kubectl) deleted its Deployment web"


def test_a_controller_is_followed_to_whoever_scaled_the_workload() -> None:
    scaled = line("patch", "web", resource="deployments", subresource="scale", minutes=5.1)
    long, short = told(scaled, line(**controller("replicaset-controller")))
    assert long == (
        "at 2030-01-01 11:55:00Z by ReplicaSet web-7d9, after patch of deployments/web/scale at 11:54:54Z by "
        "jane (developers), kubectl/v1.36.3 from 10.0.0.7"
    )
    assert short == "jane (kubectl) scaled its Deployment web"


@pytest.mark.parametrize(
    ("change", "minutes"),
    [({"resource": "deployments", "subresource": "scale"}, 30), ({"resource": "statefulsets"}, 5.1)],
)
def test_a_change_long_ago_or_of_something_else_led_to_nothing(
    change: dict[str, str], minutes: float
) -> None:
    changed = line("patch", "web", minutes=minutes, **change)
    assert told(changed, line(**controller("replicaset-controller")))[1] == "removed by ReplicaSet web-7d9"


@pytest.mark.parametrize("name", ["taint-eviction-controller", "pod-garbage-collector", "node-controller"])
def test_a_change_of_the_workload_is_no_reason_for_those_who_do_not_look_at_it(name: str) -> None:
    changed = line("patch", "web", resource="deployments", minutes=5.1)
    long, short = told(changed, line(**controller(name)))
    assert "jane" not in long + short


def test_a_controller_with_an_account_of_its_own_is_known_by_it() -> None:
    account = "system:serviceaccount:kube-system:pod-garbage-collector"
    assert told(line(user=account))[1] == "collected by pod GC"


def test_who_deleted_the_namespace_is_named_if_nobody_deleted_the_pod() -> None:
    home = line("delete", "shop", resource="namespaces")
    assert told(home)[1] == "jane (kubectl) deleted its namespace"
    swept = line("deletecollection", "", **controller("namespace-controller"))
    assert told(home, swept)[1] == "jane (kubectl) deleted its namespace"


def test_of_a_pod_that_nothing_shows_to_have_been_nothing_is_told() -> None:
    unknown = PodIdentity("shop", "typo-abcde")
    home, owner = (
        line("delete", "shop", resource="namespaces"),
        line("delete", "typo", resource="statefulsets"),
    )
    assert told(home, owner, pod=unknown) == ("", "")
    found = explain_absent(a_world(audited=read(home, pod="typo")), "shop", "typo", [])
    assert found.stage.startswith("not there, and no event tells of it")
    # With an event it was there, and went with the namespace.
    event = an_event("Scheduled", uid="u-9", name="typo")
    found = explain_absent(a_world(audited=read(home, pod="typo")), "shop", "typo", [event])
    assert "with its namespace" in found.deletion


def test_a_namespace_that_was_deleted_long_before_took_no_pod_of_today() -> None:
    gone = replace(POD, uid="", created_at=None)
    home = line("delete", "shop", resource="namespaces", minutes=200)
    assert told(home, line(user="system:node:n1"), pod=gone)[1] == "removed by its node after it had ended"


def test_the_node_that_ends_a_pod_is_not_who_deleted_it() -> None:
    node = line(user="system:node:n1", minutes=4)
    assert told(line(), node)[1] == "deleted by jane (kubectl)"
    assert told(node)[1] == "removed by its node after it had ended"


def test_of_several_requests_the_first_in_the_life_of_the_pod_counts() -> None:
    assert (
        told(line(user="joe", minutes=90), line(), line(user="late", minutes=1))[1]
        == "deleted by jane (kubectl)"
    )


def test_a_request_that_names_another_uid_is_about_another_pod() -> None:
    options = {"preconditions": {"uid": "u-0"}}
    assert told(line(requestObject=options)) == ("", "")
    assert told(line(requestObject={"preconditions": {"uid": "u-1"}}))[1] == "deleted by jane (kubectl)"
    answered = {"metadata": {"name": "web-7d9-abcde", "uid": "u-0"}}
    assert told(line(responseObject=answered)) == ("", "")
    evicted = {"deleteOptions": options}
    assert told(line("create", subresource="eviction", requestObject=evicted)) == ("", "")


def test_of_two_pods_of_one_name_that_are_gone_the_last_one_counts() -> None:
    first = line(user="joe", minutes=30, requestObject={"preconditions": {"uid": "u-0"}})
    ended = line(user="system:node:n1", minutes=4, requestObject={"preconditions": {"uid": "u-1"}})
    gone = replace(POD, uid="", created_at=None)
    assert told(first, line(), ended, pod=gone)[1] == "deleted by jane (kubectl)"
    assert told(first, ended, pod=gone)[1] == "removed by its node after it had ended"


def test_of_several_requests_about_a_pod_that_is_gone_the_first_with_its_uid_counts() -> None:
    gone, options = replace(POD, uid="", created_at=None), {"preconditions": {"uid": "u-1"}}
    again = line(user="late", minutes=1, requestObject=options)
    assert told(line(requestObject=options), again, pod=gone)[1] == "deleted by jane (kubectl)"
    # What came before its creation was about another pod.
    before, made = line(user="joe", minutes=30), line("create", code=201, minutes=20)
    found = told(before, made, line(), again, pod=replace(gone, uid="u-1"))
    assert found[1] == "deleted by jane (kubectl)"


@pytest.mark.parametrize(
    "agent",
    [
        f"{MANAGER}/replicaset-controller",
        "podlife/1.0/pod-garbage-collector",
        "podlife/1.0/generic-garbage-collector",
        "podlife/1.0/kubelet",
        "system:kube-controller-manager",
    ],
)
def test_whatever_a_client_calls_itself_the_authenticated_user_is_named(agent: str) -> None:
    gone = replace(POD, uid="", created_at=None)
    owner = line("delete", "web", resource="deployments", user="joe", minutes=6)
    for pod in (POD, gone):
        long, short = told(owner, line(agent=agent), pod=pod)
        assert "by jane (developers), " in long
        assert long.endswith("from 10.0.0.7: delete")
        assert short.startswith("deleted by jane")
    # Nor is somebody who only acts as a controller one.
    acting = {"username": "system:kube-controller-manager"}
    assert told(line(agent=agent, impersonatedUser=acting))[1].startswith(
        "deleted by jane as system:kube-controller-manager"
    )


@pytest.mark.parametrize("account", ["podlife-controllers", "podlife-gc"])
def test_the_accounts_of_podlifes_own_manifests_are_controllers(account: str) -> None:
    user = f"system:serviceaccount:podlife-system:{account}"
    assert told(line(user=user, agent="podlife/1.0/pod-garbage-collector"))[1] == "collected by pod GC"


def test_the_agents_of_simulated_nodes_are_known_by_their_user() -> None:
    ended = line(user=SIMULATED_NODES, agent="podlife/1.0/kubelet", minutes=4)
    assert told(ended)[1] == "removed by its node after it had ended"
    gone = replace(POD, uid="", created_at=None)
    # With a user of somebody else's it still comes after the request that it obeys.
    ended = line(user="admin", agent="podlife/1.0/kubelet", minutes=4)
    assert told(line(), ended, pod=gone)[1] == "deleted by jane (kubectl)"


@pytest.mark.parametrize(
    "other",
    [
        {"code": 403},
        {"code": 409},
        {"requestURI": "/api/v1/namespaces/shop/pods/web?dryRun=All"},
        {"requestObject": {"dryRun": ["All"]}},
        {
            "verb": "create",
            "subresource": "eviction",
            "code": 201,
            "requestObject": {"deleteOptions": {"dryRun": ["All"]}},
        },
        {"namespace": "other"},
        {"stage": "RequestReceived"},
        {"subresource": "status", "verb": "patch"},
        {"name": "web-7d9-abcdf"},
    ],
)
def test_what_was_refused_not_meant_or_about_something_else_ended_nothing(other: dict[str, Any]) -> None:
    assert told(line(**other)) == ("", "")


def test_a_collection_is_matched_by_its_selector() -> None:
    labelled = replace(POD, labels={"app": "web"})
    uri = "/api/v1/namespaces/shop/pods?labelSelector=app%3D"
    assert (
        told(line("deletecollection", "", requestURI=f"{uri}web"), pod=labelled)[1]
        == "deleted by jane (kubectl)"
    )
    assert told(line("deletecollection", "", requestURI=f"{uri}db"), pod=labelled) == ("", "")
    assert told(line("deletecollection", "", requestURI=f"{uri}web")) == ("", "")


@pytest.mark.parametrize(
    ("selector", "is_ours"),
    [
        ("spec.nodeName%3Dn1", True),
        ("spec.nodeName%3Dn2", False),
        ("metadata.name%3Dweb-7d9-abcde", True),
        ("metadata.name!%3Dweb-7d9-abcde", False),
        ("spec.nodeName%3Dn1,metadata.name%3Dother", False),
        # Which one it was then nobody knows now: nobody else asked for it.
        ("status.podIP%3D10.1.2.3", True),
        ("status.podIP%3D10.1.2.3,spec.nodeName%3Dn2", False),
        ("nonsense", False),
    ],
)
def test_a_collection_is_matched_by_its_field_selector(selector: str, is_ours: bool) -> None:
    uri = f"/api/v1/namespaces/shop/pods?fieldSelector={selector}"
    found = told(
        line("deletecollection", "", requestURI=uri), pod=replace(POD, fields={"spec.nodeName": "n1"})
    )
    assert found[1] == ("deleted by jane (kubectl)" if is_ours else "")


def test_a_collection_that_may_have_met_it_is_not_preferred_to_a_deletion_that_did() -> None:
    uri = "/api/v1/namespaces/shop/pods?fieldSelector=status.podIP%3D10.1.2.3"
    maybe = line("deletecollection", "", requestURI=uri, user="joe", minutes=6)
    assert told(maybe, line())[1] == "deleted by jane (kubectl)"


def test_a_predecessor_that_was_deleted_within_the_same_second_is_another_pod() -> None:
    def at(seconds: float, verb: str = "delete", **more: Any) -> bytes:
        return line(verb, minutes=60 - seconds / 60, **more)

    # By the UID that its node names when it has ended.
    ended = at(0.3, user="system:node:n1", requestObject={"preconditions": {"uid": "u-0"}})
    assert told(at(0.2), ended) == ("", "")
    # By the creation that came between.
    made = at(0.5, "create", code=201, user="joe")
    assert told(at(0.2), made) == ("", "")
    assert told(at(0.2), made, at(0.8, user="late"))[1] == "deleted by late (kubectl)"
    # Before it was created.
    assert told(at(-1)) == ("", "")
    # What nothing tells apart counts only if nobody else asked, and does not stand in the story of its life.
    assert told(at(0.2), at(9, user="late"))[1] == "deleted by late (kubectl)"
    assert told(at(0.2))[1] == "deleted by jane (kubectl)"
    made_at = NOW - timedelta(hours=1)
    alive = a_pod(uid="u-1", name=POD.name, creationTimestamp=f"{made_at:%Y-%m-%dT%H:%M:%SZ}")
    found = explain_pod(a_world(audited=read(at(0.2))), alive)
    assert [each.what for each in found.timeline if each.who == "audit log"] == []


def test_of_a_pod_that_is_gone_and_was_made_again_only_the_last_one_is_told_of() -> None:
    gone = replace(POD, uid="", created_at=None)
    lines = [line(user="joe", minutes=9), line("create", code=201, minutes=8)]
    assert told(*lines, pod=gone) == ("", "")
    assert told(*lines, line(), pod=gone)[1] == "deleted by jane (kubectl)"


def test_a_time_without_a_zone_is_utc() -> None:
    bare = line(requestReceivedTimestamp="2030-01-01T11:50:00.000000")
    long, _ = told(line(minutes=4, user="late"), bare)
    assert long.startswith("at 2030-01-01 11:50:00Z by jane")


TAINT = {"key": "example.com/repair", "effect": "NoExecute"}


def tainting(*taints: dict[str, str], minutes: float = 6, **more: Any) -> bytes:
    body = more.pop("requestObject", {"spec": {"taints": list(taints)}})
    verb = more.pop("verb", "patch")
    return line(verb, "n1", resource="nodes", namespace="", minutes=minutes, requestObject=body, **more)


def test_taint_eviction_is_followed_to_whoever_tainted_the_node() -> None:
    pod = replace(POD, fields={"spec.nodeName": "n1"})
    evicted = line(**controller("taint-eviction-controller"))
    long, short = told(tainting(TAINT), evicted, pod=pod)
    assert long == (
        "at 2030-01-01 11:55:00Z by taint eviction, after patch of nodes/n1 at 11:54:00Z by jane (developers), "
        "kubectl/v1.36.3 from 10.0.0.7"
    )
    assert short == "jane (kubectl) tainted its node n1"
    # The node of one that is gone is known by its agent, who removed it.
    assert told(tainting(TAINT), evicted, line(user="system:node:n1", minutes=4))[1] == short
    # Not of a pod elsewhere, nor for another effect.
    assert told(tainting(TAINT), evicted)[1] == "removed by taint eviction"
    other = tainting({**TAINT, "effect": "NoSchedule"})
    assert told(other, evicted, pod=pod)[1] == "removed by taint eviction"


@pytest.mark.parametrize(
    ("lines", "who"),
    [
        ((tainting(TAINT),), "jane"),
        # Who writes a node with the taints that it has did not set them.
        ((tainting(TAINT, minutes=9), tainting(TAINT, user="joe", verb="update")), "jane"),
        ((tainting(TAINT, minutes=9), tainting(minutes=8), tainting(TAINT, user="joe")), "joe"),
        ((tainting(TAINT), tainting(minutes=1)), ""),
        ((tainting(TAINT), line("delete", "n1", resource="nodes", namespace="", minutes=1)), ""),
        ((tainting(requestObject=[{"op": "add", "path": "/spec/taints/-", "value": TAINT}]),), "jane"),
        ((tainting(requestObject=[{"op": "add", "path": "/spec/taints", "value": [TAINT]}]),), "jane"),
        ((tainting(requestObject=[{"op": "add", "path": "/spec/taintsy", "value": [TAINT]}]),), ""),
        ((tainting(requestObject=None),), ""),
        ((tainting(requestObject={"spec": {"taints": [1, {"key": 2}]}}),), ""),
        ((tainting(TAINT, code=409),), ""),
    ],
)
def test_who_set_a_taint_is_who_first_wrote_it(lines: tuple[bytes, ...], who: str) -> None:
    found = taint_setter(read(*lines), "n1", "example.com/repair")
    assert ("" if found is None else found.user) == who


def test_explain_node_names_who_tainted_it() -> None:
    taint = {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}
    requests = AuditCollection(node="n1")
    for each in (
        tainting(taint),
        line(namespace="n1", user="another"),
        line("delete", "n2", resource="nodes"),
    ):
        requests.add(each)
    node = a_node(taints=[taint])
    found = explain_node(a_world(audited=requests.requests), node)
    by = "jane (developers), kubectl/v1.36.3 from 10.0.0.7"
    assert (
        f"the taint was set by {by} at 2030-01-01 11:54:00Z, who has to take it off" in found.causes[0].text
    )
    [told] = [each.what for each in found.timeline if each.who == "audit log"]
    assert told == f"patch to taints (node.kubernetes.io/out-of-service:NoExecute) requested by {by}"


@pytest.mark.parametrize(
    "junk",
    [b"garbage\n", b'{"stage":"ResponseComplete","namespace":"shop",\n', b"\xff ResponseComplete shop\n"],
)
def test_a_line_that_is_no_event_is_counted_and_costs_no_other(junk: bytes) -> None:
    found = collected(junk, line(), b"\n")
    assert (found.unreadable, len(found.requests)) == (1, 1)


def test_no_word_of_a_client_hides_its_request() -> None:
    hiding = line(requestURI='/?x="verb":"get"', requestObject={"verb": "get"})
    assert told(hiding)[1] == "deleted by jane (kubectl)"


def test_an_event_with_a_form_of_tomorrow_is_read_as_far_as_it_is_known() -> None:
    event = json.loads(line())
    event["newField"] = {"a": [1]}
    assert told(json.dumps(event).encode())[1] == "deleted by jane (kubectl)"


def test_explain_tells_it_first_and_keeps_what_the_condition_says() -> None:
    target = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "evicting",
    }
    pod = a_pod(status={"conditions": [target]}, **deleted(minutes=5))
    world = a_world(audited=read(line("create", "web", subresource="eviction"), pod="web"))
    assert explain_pod(world, pod).deletion.endswith("eviction, as kubectl drain does; evicting")
    assert "by an eviction: kubectl drain" in explain_pod(a_world(), pod).deletion


def test_a_pod_that_only_the_audit_log_knows_is_gone_and_not_unknown() -> None:
    found = explain_absent(a_world(audited=read(line("delete", "web"), pod="web")), "shop", "web", [])
    assert (found.stage, found.deletion[-8:]) == ("gone", ": delete")
    assert [each.who for each in found.timeline] == ["audit log"]


def test_who_wrote_the_condition_is_told_where_the_server_keeps_that() -> None:
    fields: dict[str, Any] = {"f:status": {"f:conditions": {'k:{"type":"DisruptionTarget"}': {}}}}
    target = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "DeletionByTaintManager",
        "message": "taint",
    }
    managed = [{"manager": "kube-controller-manager", "time": ago(minutes=5), "fieldsV1": fields}]
    pod = a_pod(status={"conditions": [target]}, managedFields=managed, **deleted(minutes=5))
    assert explain_pod(a_world(), pod).deletion.endswith(": taint (written by kube-controller-manager)")


def test_who_set_the_replicas_is_told_with_the_controller_that_obeyed() -> None:
    event = an_event("SuccessfulDelete", "Deleted pod: web", kind="ReplicaSet", name="web")
    world = a_world(events={"u-1": [event]}, replicas_set_by="the replicas were set by kubectl-scale")
    found = explain_pod(world, a_pod(**deleted(minutes=5)))
    assert found.deletion.endswith("Deleted pod: web; the replicas were set by kubectl-scale")


def test_events_without_a_uid_belong_to_the_last_pod_only_from_its_first_event_on() -> None:
    def event(reason: str, uid: str, minutes: float) -> dict[str, Any]:
        return an_event(reason, minutes=minutes, uid=uid)

    events = [
        event("Scheduled", "u-0", 50),
        event("TaintManagerEviction", "", 40),
        event("Scheduled", "u-1", 30),
        event("Killing", "u-1", 20),
    ]
    found = explain_absent(a_world(), "shop", "web", events)
    assert [each.what for each in found.timeline] == ["Scheduled: ", "Killing: "]
    assert "taint" not in found.deletion


def test_the_page_shows_what_is_printed() -> None:
    name = "web-7d9c5b8f6d-x2x5k"
    moved = timedelta(hours=11, minutes=54, seconds=10)
    requests = [
        replace(each, at=each.at - moved, namespace="default")
        for each in read(
            line("delete", "web", resource="deployments", minutes=0),
            line("delete", name, minutes=0, **controller("generic-garbage-collector")),
            pod=name,
        )
    ]
    found = explain_absent(a_world(audited=requests), "default", name, [])
    page = (ROOT / "docs" / "who-deleted-my-pod.md").read_text(encoding="utf-8")
    assert "\n".join(format_explanation(found, "text", NOW).splitlines()[:2]) in page
