"""RBAC beside kube-apiserver with `--authorization-mode=Node,RBAC`: the same roles and bindings, the same answers."""

from __future__ import annotations

import http.client
import json
import re
import ssl
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from podlife.api.codec import Object
from tests.kit.real_parts import Server, controller_manager
from tests.kit.wait import until_blocking
from tests.real.conftest import Kubectl, require
from tests.real.rbac.scenario import (
    GROUP,
    OBJECTS,
    binding,
    paths,
    questions,
    role,
    rule,
    subjects,
)

API = f"/apis/{GROUP}/v1"
ROLES, BINDINGS = f"{API}/clusterroles", f"{API}/clusterrolebindings"
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
PLURALS = ("clusterroles", "clusterrolebindings", "roles", "rolebindings")
SECONDS = 120.0

_CONNECTIONS: list[http.client.HTTPSConnection] = []


@pytest.fixture(autouse=True, scope="module")
def close_connections() -> Iterator[None]:
    yield
    while _CONNECTIONS:
        _CONNECTIONS.pop().close()


@dataclass
class Caller:
    """One connection to a server, as its administrator, who may be anyone."""

    server: Server
    connection: http.client.HTTPSConnection = field(init=False)

    def __post_init__(self) -> None:
        tls = ssl.create_default_context(cafile=str(self.server.ca_file))
        self.connection = http.client.HTTPSConnection(
            self.server.host, self.server.port, context=tls, timeout=SECONDS
        )
        _CONNECTIONS.append(self.connection)

    def __call__(
        self, method: str, path: str, body: object = None, user: str = "", media: str = "application/json"
    ) -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {self.server.tokens['admin']}", "Content-Type": media}
        if user:
            headers["Impersonate-User"] = user
        self.connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = self.connection.getresponse()
        return response.status, json.loads(response.read())

    def wait_until_may(self, user: str, verb: str, group: str, resource: str, namespace: str = "") -> None:
        asked = {"verb": verb, "group": group, "resource": resource, "namespace": namespace}
        until_blocking(lambda: self.may({"user": user, "resourceAttributes": asked})["allowed"])

    def may(self, spec: Object) -> Object:
        body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        code, review = self("POST", REVIEWS, body)
        assert code == 201, review
        status: Object = review["status"]
        return status


def collection(obj: Object) -> str:
    plural = obj["kind"].lower() + "s"
    namespace = obj["metadata"].get("namespace")
    root = "/api/v1" if obj["apiVersion"] == "v1" else API
    return f"{root}/namespaces/{namespace}/{plural}" if namespace else f"{root}/{plural}"


@pytest.fixture(scope="module")
def both(
    kube: Server, podlife_server: Server, parts_folder: Path, close_connections: None
) -> Iterator[tuple[Server, Server]]:
    """Both servers with the same objects, which both know; they are removed again."""
    require("kube-controller-manager")
    servers = kube, podlife_server
    with controller_manager(parts_folder / "rbac-kcm", kube, ["clusterrole-aggregation-controller"]):
        for server in servers:
            call = Caller(server)
            for obj in OBJECTS:
                code, answer = call("POST", collection(obj), obj)
                assert code == 201, answer
            call.wait_until_may("last", "get", "example.com", "lasts")
            call.wait_until_may("last-here", "get", "example.com", "lasts", "rbac-b")
            for user in ("sum", "viewer"):
                call.wait_until_may(user, "get", "example.com", "widgets")
            call.wait_until_may("editor", "create", "apps", "deployments", "rbac-a")
            call.wait_until_may("boss", "create", GROUP, "roles", "rbac-a")
        yield servers
        for server in servers:
            call = Caller(server)
            for obj in OBJECTS:
                call("DELETE", f"{collection(obj)}/{obj['metadata']['name']}")


def answers(server: Server) -> list[Object]:
    """To all questions of all subjects, in order."""
    asked = list(questions())

    def of(who: Object) -> list[Object]:
        call = Caller(server)
        return [call.may({**who, **question}) for question in asked]

    with ThreadPoolExecutor(4) as pool:
        return [each for found in pool.map(of, subjects()) for each in found]


def comparable(status: Object) -> Object:
    """Which of several bindings allows it is chance on kube-apiserver, and so is the order of missing roles."""
    if status["allowed"]:
        return {"allowed": True}
    reason = status.get("reason", "")
    return {**status, "reason": sorted(re.findall(r'\w+\.rbac\S+ "[^"]+" not found', reason)) or reason}


def test_40_subjects_get_the_same_answers_to_200_questions(both: tuple[Server, Server]) -> None:
    kube, ours = (answers(server) for server in both)
    asked = [{**who, **question} for who in subjects() for question in questions()]
    assert len(asked) == len(kube) == 40 * 200
    differences = [
        (what, theirs, mine)
        for what, theirs, mine in zip(asked, kube, ours, strict=True)
        if comparable(theirs) != comparable(mine)
    ]
    assert differences == []
    allowed = sum(each["allowed"] for each in kube)
    assert 800 < allowed < 7200, "the questions say something"
    reasons = {each.get("reason", "") for each in kube} & {each.get("reason", "") for each in ours}
    assert any(reason.startswith("RBAC: allowed by RoleBinding") for reason in reasons)
    assert any(reason.startswith("RBAC: allowed by ClusterRoleBinding") for reason in reasons)


def bootstrap_objects(server: Server) -> dict[tuple[str, ...], Object]:
    call = Caller(server)
    found: dict[tuple[str, ...], Object] = {}
    for plural in PLURALS:
        for obj in call("GET", f"{API}/{plural}?labelSelector=kubernetes.io/bootstrapping")[1]["items"]:
            meta = obj.pop("metadata")
            kept = {name: meta[name] for name in ("labels", "annotations") if name in meta}
            found[plural, meta.get("namespace", ""), meta["name"]] = {**obj, **kept}
    return found


def test_the_bootstrap_policy_is_that_of_kube_apiserver_and_of_our_own_components(
    both: tuple[Server, Server],
) -> None:
    kube, ours = (bootstrap_objects(server) for server in both)
    assert len(kube) > 120
    assert sorted(ours.keys() - kube.keys()) == [
        ("clusterrolebindings", "", "podlife:controllers"),
        ("clusterrolebindings", "", "podlife:node"),
        ("clusterrolebindings", "", "podlife:node-bootstrapper"),
        ("clusterroles", "", "podlife:controllers"),
        ("clusterroles", "", "podlife:node"),
        ("rolebindings", "kube-public", "podlife:cluster-info"),
        ("roles", "kube-public", "podlife:cluster-info"),
    ]
    assert {key: ours.get(key) for key in kube} == kube


CAN_I = [
    ("reader", "list", "pods", "-A"),
    ("reader", "delete", "pods", "-n", "rbac-a"),
    ("viewer", "get", "widgets.example.com"),
    ("boss", "create", "deployments.apps", "-n", "rbac-a"),
    ("boss", "create", "deployments.apps", "-n", "rbac-b"),
    ("lost", "get", "pods"),
    ("local", "create", "secrets", "-n", "rbac-a"),
    ("mapper", "get", "configmaps/one", "-n", "rbac-b"),
    ("mapper", "get", "configmaps/three", "-n", "rbac-b"),
    ("status", "patch", "pods", "--subresource=status", "-n", "rbac-b"),
    ("paths", "get", "/logs/x"),
    ("paths", "get", "/nothing"),
    ("king", "*", "*", "-n", "rbac-b"),
    ("wide", "*", "*"),
    ("system:serviceaccount:rbac-a:robot", "update", "deployments.apps", "-n", "rbac-a"),
]


@pytest.mark.parametrize("asked", CAN_I, ids=" ".join)
def test_kubectl_auth_can_i_answers_the_same(
    both: tuple[Server, Server], kubectl: Kubectl, asked: tuple[str, ...]
) -> None:
    user, *question = asked

    def ask(server: Server) -> tuple[int, str, list[str]]:
        run = kubectl("auth", "can-i", *question, f"--as={user}", kubeconfig=server.kubeconfig)
        # A line about a resource type that is not served comes from kubectl itself.
        return (
            run.returncode,
            run.stdout.split(" - ")[0].strip(),
            sorted(re.findall(r'"(t-\S+)" not found', run.stdout)),
        )

    kube, ours = (ask(server) for server in both)
    assert kube == ours


@pytest.mark.parametrize("user", ["reader", "boss", "local", "lost", "sum", "paths", "jane"])
def test_kubectl_auth_can_i_list_shows_the_same_rules(
    both: tuple[Server, Server], kubectl: Kubectl, user: str
) -> None:
    def ask(server: Server) -> tuple[int, list[str]]:
        run = kubectl("auth", "can-i", "--list", f"--as={user}", "-n", "rbac-a", kubeconfig=server.kubeconfig)
        lines = [" ".join(line.split()) for line in run.stdout.splitlines()]
        # What is public in kube-public shows in that namespace only.
        return run.returncode, sorted(lines)

    kube, ours = (ask(server) for server in both)
    assert kube == ours
    assert len(kube[1]) > 5


AUTHOR = [
    role(
        "e-author",
        rule("*", "roles,clusterroles,rolebindings,clusterrolebindings", GROUP),
        rule("get,list", "pods"),
    ),
    role("e-escalator", rule("*", "clusterroles", GROUP, "")),
    role(
        "e-binder",
        rule("create,update,get", "clusterrolebindings,rolebindings", GROUP),
        rule("bind", "clusterroles", GROUP, "e-big"),
    ),
    role("e-big", rule("get,delete,create", "secrets,pods"), paths("get,post", "/x/*")),
    role("e-small", rule("get", "pods")),
    role(
        "e-writer",
        rule("create,update,patch,get", "roles,clusterroles,rolebindings,clusterrolebindings", GROUP),
        rule("get,list", "pods"),
        rule("get", "configmaps", names="one,two"),
        paths("get", "/x*"),
    ),
    binding("e-author", "e-author", "User/author"),
    binding("e-binder", "e-binder", "User/binder"),
    binding("e-writer", "e-writer", "User/writer", "User/confused"),
    binding("e-confused", "e-is-gone", "User/confused"),
    role("e-own", rule("get", "pods")),
    role("e-sum", aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"e": "f"}}]}),
]
_MERGE = "application/merge-patch+json"


def step(
    user: str, method: str, path: str, body: object = None, media: str = "application/json"
) -> tuple[Any, ...]:
    return method, path, body, user, media


def create(user: str, obj: Object) -> tuple[Any, ...]:
    return step(user, "POST", collection(obj), obj)


# Who, and what they try; in this order.
_LABEL = {"metadata": {"labels": {"a": "b"}}}
ESCALATIONS: dict[str, tuple[Any, ...]] = {
    "a role within one's rights": create("writer", role("e-1", rule("get", "pods"))),
    "a name within one's names": create("writer", role("e-2", rule("get", "configmaps", names="two"))),
    "all names, with rights to two": create("writer", role("e-3", rule("get", "configmaps"))),
    "a role with more verbs": create(
        "writer", role("e-4", rule("get,delete,create", "pods,secrets", ",apps"))
    ),
    "a role with everything": create("writer", role("e-5", rule("*", "*", "*"), paths("*", "*"))),
    "a path within one's paths": create("writer", role("e-6", paths("get", "/x/y,/xy*"))),
    "a path beyond": create("writer", role("e-7", paths("get,post", "/x,/y"))),
    "names beyond": create("writer", role("e-8", rule("get,list", "configmaps", names="one,three"))),
    "a role in a namespace": create("writer", role("e-9", rule("get", "secrets"), namespace="rbac-a")),
    "a generated name": create(
        "writer", {**role("", rule("get", "nodes")), "metadata": {"generateName": "e-"}}
    ),
    "an aggregated role": create("writer", AUTHOR[-1] | {"metadata": {"name": "e-10"}}),
    "escalate": create("author", role("e-11", rule("*", "*", "*"))),
    "no right to create": create("jane", role("e-12", rule("get", "pods"))),
    "a role that grows by update": step(
        "writer", "PUT", f"{ROLES}/e-1", role("e-1", rule("get,watch", "pods"))
    ),
    "a role that shrinks": step("writer", "PUT", f"{ROLES}/e-1", role("e-1")),
    "a role that grows by patch": step(
        "writer", "PATCH", f"{ROLES}/e-1", {"rules": [rule("watch", "pods")]}, _MERGE
    ),
    "labels of a role one does not have": step("writer", "PATCH", f"{ROLES}/e-big", _LABEL, _MERGE),
    "only what the collector needs": step(
        "writer", "PATCH", f"{ROLES}/e-big", {"metadata": {"finalizers": []}}, _MERGE
    ),
    "labels of an aggregated role": step("writer", "PATCH", f"{ROLES}/e-sum", _LABEL, _MERGE),
    "a role made by update": step("writer", "PUT", f"{ROLES}/e-13", role("e-13", rule("get", "nodes"))),
    "a binding to a role within one's rights": create("writer", binding("e-1", "e-small", "User/x")),
    "a binding to a role with more": create("writer", binding("e-2", "e-big", "User/x")),
    "a binding in a namespace to a role with more": create(
        "writer", binding("e-2", "e-big", "User/x", namespace="rbac-a")
    ),
    "a binding to a role that is gone": create("writer", binding("e-3", "e-is-gone", "User/x")),
    "a binding to a local role that is gone": create(
        "writer", binding("e-3", "Role/e-is-gone", "User/x", namespace="rbac-a")
    ),
    "a binding to a kind that is none": create("writer", binding("e-4", "Rule/e-small", "User/x")),
    "the verb bind": create("binder", binding("e-5", "e-big", "User/x")),
    "the verb bind, of another role": create("binder", binding("e-6", "e-small", "User/x")),
    "a subject more": step("writer", "PUT", f"{BINDINGS}/e-1", binding("e-1", "e-small", "User/x", "User/y")),
    "a subject more, of a role with more": step(
        "writer", "PUT", f"{BINDINGS}/e-5", binding("e-5", "e-big", "User/y")
    ),
    "another role": step("", "PUT", f"{BINDINGS}/e-1", binding("e-1", "e-big", "User/x")),
    "with a role of one's own that is gone": create("confused", role("e-14", rule("get", "nodes"))),
    "a local role in one's namespace": create(
        "boss", role("e-15", rule("get", "secrets"), namespace="rbac-a")
    ),
    "a local role in another": create("boss", role("e-15", rule("get", "secrets"), namespace="rbac-b")),
    "admin binds admin where it is admin": create(
        "boss", binding("e-7", "admin", "User/x", namespace="rbac-a")
    ),
    "admin binds cluster-admin": create(
        "boss", binding("e-8", "cluster-admin", "User/x", namespace="rbac-a")
    ),
}


def test_attempts_to_escalate_end_the_same(both: tuple[Server, Server]) -> None:
    played: list[dict[str, tuple[int, Object]]] = []
    for server in both:
        call = Caller(server)
        found: dict[str, tuple[int, Object]] = {}
        for obj in AUTHOR:
            assert call("POST", collection(obj), obj)[0] == 201
        for user, what in (("author", "get"), ("writer", "get"), ("binder", "create"), ("confused", "get")):
            call.wait_until_may(user, what, GROUP, "clusterrolebindings")
        for name, attempt in ESCALATIONS.items():
            code, body = call(*attempt)
            seen = {key: body.get(key) for key in ("reason", "message", "details")} if code >= 400 else {}
            found[name] = (code, seen)
        played.append(found)
        for plural in ("clusterroles", "clusterrolebindings"):
            for obj in call("GET", f"{API}/{plural}")[1]["items"]:
                if obj["metadata"]["name"].startswith("e-"):
                    call("DELETE", f"{API}/{plural}/{obj['metadata']['name']}")
    kube, ours = played
    assert ours == kube
    codes = [found[0] for found in kube.values()]
    assert codes.count(403) > 12
    assert codes.count(201) > 5


REQUESTS = {
    "by name": "/api/v1/namespaces/rbac-a/configmaps/one",
    "all": "/api/v1/namespaces/rbac-a/configmaps",
    "the one by selector": "/api/v1/namespaces/rbac-a/configmaps?fieldSelector=metadata.name%3Done",
    "another by selector": "/api/v1/namespaces/rbac-a/configmaps?fieldSelector=metadata.name%3Dthree",
    "not one": "/api/v1/namespaces/rbac-a/configmaps?fieldSelector=metadata.name!%3Done",
    "a subresource": "/api/v1/namespaces/rbac-a/pods/x/log",
    "namespaces": "/api/v1/namespaces",
    "a namespace": "/api/v1/namespaces/rbac-a",
    "a namespace by selector": "/api/v1/namespaces?fieldSelector=metadata.name%3Drbac-a",
    "another namespace": "/api/v1/namespaces/rbac-b",
    "a namespace's status": "/api/v1/namespaces/rbac-a/status",
    "a namespace's finalizers": "/api/v1/namespaces/rbac-a/finalize",
    "a path": "/logs/x",
    "another path": "/apis",
}


@pytest.mark.parametrize("method", ["GET", "DELETE"])
@pytest.mark.parametrize("user", ["mapper", "lost", "paths", "local", "boss", "system:anonymous"])
def test_requests_are_refused_in_the_same_words(both: tuple[Server, Server], user: str, method: str) -> None:
    def send(server: Server) -> dict[str, object]:
        call = Caller(server)
        found: dict[str, object] = {}
        for name, path in REQUESTS.items():
            try:
                code, body = call(method, path, user=user)
            except json.JSONDecodeError:
                code, body = 0, {}
            message = body.get("message", "") if code == 403 else ""
            missing = sorted(re.findall(r'\w+\.rbac\S+ "[^"]+" not found', message))
            found[name] = (code == 403, message.split(": RBAC")[0], missing)
        return found

    kube, ours = (send(server) for server in both)
    assert kube == ours


def test_kubectl_auth_reconcile_adds_what_is_missing(both: tuple[Server, Server], kubectl: Kubectl) -> None:
    wanted = role("t-reconciled", rule("get,list", "pods"), rule("get", "nodes"))
    more = binding("t-reconciled", "t-reconciled", "User/x", "User/y")
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [wanted, more]})
    played = []
    for server in both:
        call = Caller(server)
        call(
            "POST",
            collection(wanted),
            role("t-reconciled", rule("get", "pods"), rule("watch", "jobs", "batch")),
        )
        call("POST", collection(more), binding("t-reconciled", "t-read-pods", "User/z"))
        run = kubectl("auth", "reconcile", "-f", "-", kubeconfig=server.kubeconfig, stdin=text)
        found = [call("GET", f"{collection(obj)}/t-reconciled")[1] for obj in (wanted, more)]
        played.append(
            (run.returncode, run.stdout, found[0]["rules"], found[1]["roleRef"], found[1]["subjects"])
        )
        for obj in (wanted, more):
            call("DELETE", f"{collection(obj)}/t-reconciled")
    assert played[0] == played[1]
    assert played[0][0] == 0
