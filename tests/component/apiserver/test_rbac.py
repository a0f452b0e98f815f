"""Roles on a server: who may write them, how they aggregate, and how the bootstrap policy is kept."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from podlife.aio import cancel_and_wait
from podlife.apiserver.endpoints import ApiHandler
from podlife.apiserver.role_aggregation import RoleAggregationController
from podlife.apiserver.role_reconciliation import reconcile_roles
from podlife.wire import Peer, Query, Request
from tests.kit import embedded
from tests.kit.wait import until

API = "/apis/rbac.authorization.k8s.io/v1"
GROUP = "rbac.authorization.k8s.io"
ADMIN = Peer("admin", ("system:masters",))
AUTHOR = Peer("author")
AUTO_UPDATE = "rbac.authorization.kubernetes.io/autoupdate"


class World:
    def __init__(self, handler: ApiHandler) -> None:
        self.handler = handler

    async def ask(
        self, method: str, path: str, body: Any = None, *, peer: Peer = ADMIN, media: str = "application/json"
    ) -> tuple[int, Any]:
        data = b"" if body is None else json.dumps(body).encode()
        headers = {"Content-Type": media}
        path, _, query = path.partition("?")
        request = Request(method, path, Query(query), headers=headers, body=data, peer=peer)
        response = await self.handler(request)
        # A list comes in pieces.
        return response.status, json.loads(response.body) if isinstance(response.body, bytes) else None

    async def role(self, name: str, *rules: Any, peer: Peer = ADMIN, **more: Any) -> tuple[int, Any]:
        meta = {"name": name, "labels": more.pop("labels", {})}
        return await self.ask(
            "POST", f"{API}/clusterroles", {"metadata": meta, "rules": rules, **more}, peer=peer
        )

    async def bind(self, name: str, role: str, *users: str, peer: Peer = ADMIN) -> tuple[int, Any]:
        ref = {"apiGroup": GROUP, "kind": "ClusterRole", "name": role}
        body = {"metadata": {"name": name}, "roleRef": ref}
        subjects = [{"kind": "User", "apiGroup": GROUP, "name": user} for user in users]
        return await self.ask("POST", f"{API}/clusterrolebindings", {**body, "subjects": subjects}, peer=peer)

    async def get(self, plural: str, name: str) -> Any:
        code, found = await self.ask("GET", f"{API}/{plural}/{name}")
        assert code == 200, found
        return found


@pytest.fixture
async def world() -> World:
    """Where AUTHOR may write roles and bindings, and read pods."""
    world = World(await embedded.start())
    writes = rule("*", "clusterroles,clusterrolebindings", GROUP) | {"verbs": ["create", "update", "patch"]}
    await world.role("author", writes, rule("get,list", "pods"))
    await world.bind("author", "author", "author")
    return world


def rule(verbs: str, resources: str, group: str = "") -> dict[str, Any]:
    return {"verbs": verbs.split(","), "apiGroups": [group], "resources": resources.split(",")}


async def test_a_role_that_grants_more_than_its_author_has_is_refused(world: World) -> None:
    assert (await world.role("mine", rule("get", "pods"), peer=AUTHOR))[0] == 201
    code, answer = await world.role("more", rule("get,delete", "pods,nodes"), peer=AUTHOR)
    assert code == 403
    assert answer["message"] == (
        f'clusterroles.{GROUP} "more" is forbidden: user "author" (groups=["system:authenticated"]) is attempting to '
        "grant RBAC permissions not currently held:\n"
        '{APIGroups:[""], Resources:["nodes"], Verbs:["get" "delete"]}\n'
        '{APIGroups:[""], Resources:["pods"], Verbs:["delete"]}'
    )
    grown = {"metadata": {"name": "mine"}, "rules": [rule("*", "*", "*")]}
    assert (await world.ask("PUT", f"{API}/clusterroles/mine", grown, peer=AUTHOR))[0] == 403
    assert (await world.get("clusterroles", "mine"))["rules"] == [rule("get", "pods")]


async def test_the_verb_escalate_lets_an_author_grant_anything(world: World) -> None:
    await world.role("escalator", rule("escalate", "clusterroles", GROUP))
    await world.bind("escalator", "escalator", "author")
    assert (await world.role("more", rule("*", "*", "*"), peer=AUTHOR))[0] == 201


async def test_a_binding_to_more_rights_than_ones_own_needs_the_verb_bind(world: World) -> None:
    await world.role("big", rule("delete", "nodes"))
    assert (await world.bind("mine", "author", "joe", peer=AUTHOR))[0] == 201
    code, answer = await world.bind("more", "big", "author", peer=AUTHOR)
    assert code == 403
    assert "permissions not currently held" in answer["message"]
    await world.role("binder", rule("bind", "clusterroles", GROUP) | {"resourceNames": ["big"]})
    await world.bind("binder", "binder", "author")
    assert (await world.bind("more", "big", "author", peer=AUTHOR))[0] == 201


async def test_a_binding_to_a_role_that_is_gone_is_refused_to_all_but_masters(world: World) -> None:
    code, answer = await world.bind("b", "gone", "author", peer=AUTHOR)
    assert (code, answer["message"]) == (404, f'clusterrolebindings.{GROUP} "gone" not found')
    assert (await world.bind("b", "gone", "author"))[0] == 201
    code, answer = await world.ask("GET", "/api/v1/nodes", peer=AUTHOR)
    assert code == 403
    assert answer["message"].endswith(f'at the cluster scope: RBAC: clusterrole.{GROUP} "gone" not found')


async def test_only_a_cluster_admin_may_aggregate(world: World) -> None:
    aggregation = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}
    code, answer = await world.role("sum", peer=AUTHOR, aggregationRule=aggregation)
    assert code == 403
    assert answer["message"].endswith("must have cluster-admin privileges to use the aggregationRule")


async def test_a_role_with_more_permissions_than_can_be_compared_is_refused(world: World) -> None:
    many = [f"r{number}" for number in range(300)]
    huge = {"verbs": ["get"], "apiGroups": many, "resources": many, "resourceNames": many}
    code, answer = await world.role("huge", huge, peer=AUTHOR)
    assert code == 403
    assert "its rules grant 27000000 permissions, which exceeds the maximum (10000)" in answer["message"]


async def test_permissions_times_rules_of_the_author_are_bounded(world: World) -> None:
    await world.role("held", *(rule("get", f"h{number}") for number in range(4000)))
    await world.bind("held", "held", "author")
    few, many = (
        rule("get", "pods") | {"resourceNames": [f"n{number}" for number in range(count)]}
        for count in (10, 9000)
    )
    assert (await world.role("few", few, peer=AUTHOR))[0] == 201
    code, answer = await world.role("many", many, peer=AUTHOR)
    assert code == 403
    assert "grant 9000 permissions, which are too many to compare with the 40" in answer["message"]


async def test_permissions_are_compared_in_a_thread(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison waits until the event loop has answered another request."""
    policy, answered = world.handler.authorizer.policy, threading.Event()
    compare = policy.missing_permissions

    def compare_later(*args: Any) -> Any:
        assert answered.wait(10), "the event loop is blocked"
        return compare(*args)

    monkeypatch.setattr(policy, "missing_permissions", compare_later)
    for writing in (
        world.role("mine", rule("get", "pods"), peer=AUTHOR),
        world.ask("PUT", f"{API}/clusterroles/mine", {"metadata": {"name": "mine"}}, peer=AUTHOR),
        world.bind("mine", "mine", "joe", peer=AUTHOR),
    ):
        answered.clear()
        async with asyncio.TaskGroup() as group:
            written = group.create_task(writing)
            assert (await world.ask("GET", "/api/v1/namespaces/default"))[0] == 200
            answered.set()
        assert written.result()[0] in (200, 201), written.result()


async def test_rules_are_listed_once_for_each_role_and_in_a_thread(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(10):
        await world.bind(f"more{number}", "author", "author")
    policy, threads = world.handler.authorizer.policy, []
    list_rules = policy.rules_for

    def listed(*args: Any) -> Any:
        threads.append(threading.current_thread())
        return list_rules(*args)

    monkeypatch.setattr(policy, "rules_for", listed)
    path, review = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", {"spec": {"namespace": "default"}}
    code, answer = await world.ask("POST", path, review, peer=AUTHOR)
    assert (code, answer["status"]["incomplete"]) == (201, False)
    assert answer["status"]["resourceRules"].count(rule("get,list", "pods")) == 1
    assert threading.main_thread() not in threads
    monkeypatch.setattr("podlife.apiserver.authz.rbac._MOST_LISTED_BYTES", 100)
    status = (await world.ask("POST", path, review, peer=AUTHOR))[1]["status"]
    assert status["incomplete"]
    assert status["evaluationError"].startswith("too many rules: those of ")


async def test_what_a_policy_makes_of_a_role_is_compared_in_a_thread_too(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    policies, every = (
        "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies",
        {"apiVersions": ["v1"]},
    )
    matched = every | {"apiGroups": [GROUP], "resources": ["clusterroles"], "operations": ["CREATE"]}
    patch = "[JSONPatch{op: 'add', path: '/metadata/labels/x', value: 'y'}]"
    spec = {
        "matchConstraints": {"resourceRules": [matched]},
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}],
        "reinvocationPolicy": "Never",
    }
    code, answer = await world.ask("POST", policies, {"metadata": {"name": "label"}, "spec": spec})
    assert code == 201, answer
    binding = {"metadata": {"name": "label"}, "spec": {"policyName": "label"}}
    assert (await world.ask("POST", f"{policies[:-3]}ybindings", binding))[0] == 201
    policy, on_loop = world.handler.authorizer.policy, []
    compare = policy.missing_permissions

    def noted(*args: Any) -> Any:
        on_loop.append(threading.current_thread() is threading.main_thread())
        return compare(*args)

    monkeypatch.setattr(policy, "missing_permissions", noted)
    code, made = await world.role("mine", rule("get", "pods"), peer=AUTHOR, labels={"a": "b"})
    assert (code, made["metadata"]["labels"]) == (201, {"a": "b", "x": "y"})
    assert on_loop == [False, False], "as it was sent, and as it is stored"


async def test_a_decision_about_a_user_with_large_roles_is_made_in_a_thread(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    authorizer, on_loop = world.handler.authorizer, []
    authorize = authorizer.authorize

    def decide(*args: Any) -> Any:
        on_loop.append(threading.current_thread() is threading.main_thread())
        return authorize(*args)

    monkeypatch.setattr(authorizer, "authorize", decide)
    assert (await world.ask("GET", "/api/v1/pods", peer=AUTHOR))[0] == 200
    assert on_loop.pop()
    await world.role("large", *(rule("get", f"resource-{number}") for number in range(5000)))
    await world.bind("large", "large", "author")
    on_loop.clear()
    assert (await world.ask("GET", "/api/v1/pods", peer=AUTHOR))[0] == 200
    assert (await world.ask("GET", "/api/v1/nodes", peer=AUTHOR))[0] == 403
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    review = {"spec": {"resourceAttributes": {"verb": "get", "resource": "nodes"}}}
    code, answer = await world.ask("POST", path, review, peer=AUTHOR)
    assert (code, answer["status"]["allowed"]) == (201, False)
    assert on_loop == [False] * 4, "the requests and the question of the review"
    assert (await world.ask("GET", "/api/v1/nodes"))[0] == 200
    assert on_loop.pop(), "other users do not wait for threads"


async def test_a_garbage_collector_may_remove_finalizers_of_any_role(world: World) -> None:
    await world.role("big", rule("*", "*", "*"))
    path, merge = f"{API}/clusterroles/big", "application/merge-patch+json"
    held = {"metadata": {"finalizers": ["example.com/x"]}}
    assert (await world.ask("PATCH", path, held, peer=AUTHOR, media=merge))[0] == 200
    labelled = {"metadata": {"labels": {"a": "b"}}}
    assert (await world.ask("PATCH", path, labelled, peer=AUTHOR, media=merge))[0] == 403


async def test_a_viewer_of_a_namespace_may_read_its_object(world: World) -> None:
    role = {"apiGroup": GROUP, "kind": "ClusterRole", "name": "view-namespaces"}
    subjects = [{"kind": "User", "apiGroup": GROUP, "name": "viewer"}]
    await world.role("view-namespaces", rule("get", "namespaces"))
    body = {"metadata": {"name": "b"}, "roleRef": role, "subjects": subjects}
    assert (await world.ask("POST", f"{API}/namespaces/default/rolebindings", body))[0] == 201
    viewer = Peer("viewer")
    assert (await world.ask("GET", "/api/v1/namespaces/default", peer=viewer))[0] == 200
    code, answer = await world.ask("GET", "/api/v1/namespaces/kube-system", peer=viewer)
    assert code == 403
    assert answer["message"] == (
        'namespaces "kube-system" is forbidden: User "viewer" cannot get resource "namespaces" in API group "" '
        'in the namespace "kube-system"'
    )


async def test_a_list_of_one_name_needs_rights_to_that_name_alone(world: World) -> None:
    await world.role("one", rule("list", "configmaps") | {"resourceNames": ["one"]})
    await world.bind("one", "one", "author")
    path = "/api/v1/namespaces/default/configmaps"
    assert (await world.ask("GET", f"{path}?fieldSelector=metadata.name%3Done", peer=AUTHOR))[0] == 200
    assert (await world.ask("GET", f"{path}?fieldSelector=metadata.name%3Dtwo", peer=AUTHOR))[0] == 403
    assert (await world.ask("GET", path, peer=AUTHOR))[0] == 403


@asynccontextmanager
async def aggregating(world: World) -> AsyncIterator[None]:
    controller = RoleAggregationController(world.handler.registry)
    task = asyncio.get_running_loop().create_task(controller.run())
    try:
        yield
    finally:
        await cancel_and_wait(task)


async def test_an_aggregated_role_has_the_rules_of_those_it_selects(world: World) -> None:
    aggregation = {"clusterRoleSelectors": [{"matchLabels": {"to": "sum"}}]}
    await world.role("sum", aggregationRule=aggregation)
    await world.role("b", rule("get", "pods"), rule("get", "nodes"), labels={"to": "sum"})

    async def rules() -> Any:
        return (await world.get("clusterroles", "sum"))["rules"]

    async def has(*wanted: Any) -> None:
        async def is_so() -> bool:
            return bool((await rules() or []) == list(wanted))

        await until(is_so)

    async with aggregating(world):
        await has(rule("get", "pods"), rule("get", "nodes"))
        managers = (await world.get("clusterroles", "sum"))["metadata"]["managedFields"]
        assert "clusterrole-aggregation-controller" in {each["manager"] for each in managers}
        await world.role("a", rule("list", "jobs", "batch"), rule("get", "pods"), labels={"to": "sum"})
        await has(rule("list", "jobs", "batch"), rule("get", "pods"), rule("get", "nodes"))
        await world.ask("DELETE", f"{API}/clusterroles/b")
        await has(rule("list", "jobs", "batch"), rule("get", "pods"))
        await world.ask("DELETE", f"{API}/clusterroles/a")
        await has()


async def test_the_bootstrap_policy_is_stored_and_completed(world: World) -> None:
    registry = world.handler.registry
    await reconcile_roles(registry)
    before = registry.store.revision
    await reconcile_roles(registry)
    assert registry.store.revision == before, "nothing to do"
    path, merge = f"{API}/clusterroles/system:basic-user", "application/merge-patch+json"
    original = await world.get("clusterroles", "system:basic-user")
    extra = rule("get", "extras", "example.com")
    await world.ask("PATCH", path, {"metadata": {"labels": None}, "rules": [extra]}, media=merge)
    discovery = await world.get("clusterroles", "system:discovery")
    kept = {"metadata": {"annotations": {AUTO_UPDATE: "false"}}, "rules": [extra]}
    await world.ask("PATCH", f"{API}/clusterroles/system:discovery", kept, media=merge)
    await world.ask("DELETE", f"{API}/clusterroles/system:node-proxier")
    other = {"metadata": {"name": "system:basic-user"}, "roleRef": {"kind": "ClusterRole", "name": "view"}}
    await world.ask("DELETE", f"{API}/clusterrolebindings/system:basic-user")
    await world.ask("POST", f"{API}/clusterrolebindings", other)
    await world.ask("PATCH", f"{API}/clusterrolebindings/system:discovery", {"subjects": []}, media=merge)
    await reconcile_roles(registry)
    completed = await world.get("clusterroles", "system:basic-user")
    assert completed["rules"][0] == extra
    assert completed["metadata"]["labels"] == original["metadata"]["labels"]
    assert len(completed["rules"]) == 4, "one for each permission that was missing"
    assert (await world.get("clusterroles", "system:discovery"))["rules"] == [extra] != discovery["rules"]
    assert (await world.get("clusterroles", "system:node-proxier"))["rules"]
    binding = await world.get("clusterrolebindings", "system:basic-user")
    assert binding["roleRef"]["name"] == "system:basic-user"
    assert (await world.get("clusterrolebindings", "system:discovery"))["subjects"]
