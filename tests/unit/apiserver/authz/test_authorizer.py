"""What each user may do, and the error otherwise."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from podlife.api import status
from podlife.api.codec import encode
from podlife.apiserver.authn import ADMIN, ANONYMOUS, CONTROLLERS, UserInfo
from podlife.apiserver.authz import Attributes, Authorizer, Decision, RbacPolicy, forbidden
from podlife.apiserver.authz.node_authorizer import StoreNodeView
from podlife.apiserver.storage import Delete, Key, MemoryStore, Put

NODE = UserInfo("system:node:n1", groups=("system:nodes", "system:authenticated"))
SOMEBODY = UserInfo("eve", groups=("system:authenticated",))


class Related:
    """Knows of one pod, `here`, that needs everything called `needed`."""

    def is_related(self, node_name: str, resource: str, namespace: str, name: str) -> bool:
        return node_name == "n1" and namespace in ("default", "") and name in ("here", "needed")


def authorize(user: UserInfo, asked: Attributes) -> Decision:
    """The decision of a server that stores no roles: the bootstrap policy applies."""
    return Authorizer(Related(), RbacPolicy(MemoryStore())).authorize(user, asked)


pods = partial(Attributes, resource="pods", namespace="default")
secrets = partial(Attributes, resource="secrets", namespace="default")
claims = partial(Attributes, resource="persistentvolumeclaims", namespace="default")
accounts = partial(Attributes, resource="serviceaccounts", namespace="default")
csi_nodes = partial(Attributes, group="storage.k8s.io", resource="csinodes")


def is_allowed(user: UserInfo, asked: Attributes) -> bool:
    return authorize(user, asked).allowed


ANYTHING = [
    Attributes("deletecollection", "apps", "deployments", namespace="x"),
    Attributes("create", "", "pods", "exec", "default", "a"),
    Attributes("impersonate", "", "users", name="root"),
    Attributes("*", "*", "*"),
    Attributes("get", path="/metrics"),
    Attributes("post", path="/anything"),
]


@pytest.mark.parametrize("asked", ANYTHING)
def test_a_member_of_masters_may_do_everything(asked: Attributes) -> None:
    assert is_allowed(ADMIN, asked)


@pytest.mark.parametrize(
    "asked",
    [
        Attributes("create", "", "pods", namespace="x"),
        Attributes("update", "", "pods", "status", "x", "y"),
        Attributes("create", "", "pods", "binding", "x", "y"),
        Attributes("update", "coordination.k8s.io", "leases", "", "kube-system", "podlife-controllers"),
        Attributes("delete", "example.com", "widgets", "", "x", "y"),
    ],
)
def test_the_controllers_may_do_what_upstreams_controllers_may(asked: Attributes) -> None:
    assert is_allowed(CONTROLLERS, asked)


@pytest.mark.parametrize(
    "asked",
    [
        *ANYTHING[1:],
        Attributes("escalate", "rbac.authorization.k8s.io", "clusterroles"),
        Attributes("bind", "rbac.authorization.k8s.io", "clusterroles"),
        Attributes("create", "rbac.authorization.k8s.io", "clusterrolebindings"),
    ],
)
def test_the_controllers_may_not_become_somebody_else(asked: Attributes) -> None:
    assert not is_allowed(CONTROLLERS, asked)


@pytest.mark.parametrize("user", [SOMEBODY, NODE])
@pytest.mark.parametrize(
    "asked",
    [
        *[Attributes("get", path=p) for p in ("/api", "/apis/apps/v1", "/openapi/v3", "/version", "/livez")],
        Attributes("create", "authorization.k8s.io", "selfsubjectaccessreviews"),
        Attributes("create", "authentication.k8s.io", "selfsubjectreviews"),
    ],
)
def test_everybody_may_look_around_and_ask_about_themselves(user: UserInfo, asked: Attributes) -> None:
    assert is_allowed(user, asked)


@pytest.mark.parametrize(
    "asked", [pods("list"), Attributes("get", path="/metrics"), Attributes("post", path="/api")]
)
def test_somebody_without_rights_may_do_nothing_else(asked: Attributes) -> None:
    assert not is_allowed(SOMEBODY, asked)


def test_anonymous_sees_health_alone() -> None:
    assert is_allowed(ANONYMOUS, Attributes("get", path="/readyz"))
    assert not is_allowed(ANONYMOUS, Attributes("get", path="/api"))
    assert not is_allowed(ANONYMOUS, Attributes("create", "authorization.k8s.io", "selfsubjectaccessreviews"))


def leases(verb: str, name: str = "", namespace: str = "kube-node-lease") -> Attributes:
    return Attributes(verb, "coordination.k8s.io", "leases", namespace=namespace, name=name)


def nodes(verb: str, name: str = "", subresource: str = "", **more: str) -> Attributes:
    return Attributes(verb, resource="nodes", subresource=subresource, name=name, **more)


@pytest.mark.parametrize(
    "asked",
    [
        pods("list", field_selector="spec.nodeName=n1"),
        pods("watch", namespace="", field_selector="status.phase!=Failed,spec.nodeName=n1"),
        pods("list", field_selector="metadata.name=here"),
        pods("get", name="here"),
        pods("create"),
        pods("delete", name="any"),
        pods("patch", name="any", subresource="status"),
        pods("create", name="any", subresource="eviction"),
        nodes("get", "n1"),
        nodes("watch", field_selector="metadata.name=n1"),
        nodes("create"),
        nodes("patch", "n1", "status"),
        leases("create"),
        leases("update", "n1"),
        secrets("get", name="needed"),
        secrets("watch", field_selector="metadata.name=needed"),
        Attributes("get", resource="configmaps", namespace="default", name="needed"),
        claims("get", name="needed"),
        claims("patch", name="needed", subresource="status"),
        Attributes("get", resource="persistentvolumes", name="needed"),
        accounts("create", name="needed", subresource="token"),
        accounts("get", name="needed"),
        Attributes("list", resource="services"),
        Attributes("create", "events.k8s.io", "events", namespace="default"),
        Attributes("create", "authentication.k8s.io", "tokenreviews"),
        csi_nodes("patch", name="n1"),
        Attributes("get", "storage.k8s.io", "volumeattachments", name="needed"),
    ],
    ids=str,
)
def test_a_node_may_do_what_running_its_pods_takes(asked: Attributes) -> None:
    assert authorize(NODE, asked).allowed


BY_NODE = "can only list/watch pods with spec.nodeName field selector"
NO_RELATION = "no relationship found between node 'n1' and this object"


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (pods("list"), BY_NODE),
        (pods("list", field_selector="spec.nodeName=n2"), BY_NODE),
        (pods("list", field_selector="spec.nodeName!=n1"), BY_NODE),
        (pods("get", name="elsewhere"), NO_RELATION),
        (pods("update", name="here"), ""),
        (pods("create", name="here", subresource="binding"), ""),
        (pods("get", name="here", subresource="log"), ""),
        (pods("deletecollection"), ""),
        (nodes("list"), "node 'n1' cannot read all nodes, only its own Node object"),
        (nodes("get", "n2"), "node 'n1' cannot read 'n2', only its own Node object"),
        (nodes("delete", "n1"), ""),
        (nodes("get", "n1", "status"), ""),
        (leases("list"), "can only get, create, update, patch, or delete a node lease"),
        (leases("get", "n1", "default"), 'can only access leases in the "kube-node-lease" system namespace'),
        (leases("update", "n2"), "can only access node lease with the same name as the requesting node"),
        (secrets("get", name="other"), NO_RELATION),
        (secrets("list"), "No Object name found"),
        (secrets("list", namespace=""), "can only read namespaced object of this type"),
        (secrets("update", name="needed"), "can only read resources of this type"),
        (secrets("get", name="needed", subresource="x"), "cannot read subresource"),
        (claims("list"), "can only get individual resources of this type"),
        (claims("get", name="needed", subresource="status"), "can only get/update/patch this type"),
        (Attributes("get", "", "persistentvolumes", "x", "", "needed"), "cannot get subresource"),
        (accounts("create", subresource="token"), "can only create tokens for individual service accounts"),
        (accounts("create", name="needed"), "can only create token subresource of serviceaccount"),
        (csi_nodes("list"), "can only get, create, update, patch, or delete a CSINode"),
        (csi_nodes("get", name="n1", subresource="x"), "cannot authorize CSINode subresources"),
        (csi_nodes("get", name="n2"), "can only access CSINode with the same name as the requesting node"),
        (Attributes("list", "apps", "deployments"), ""),
    ],
    ids=str,
)
def test_a_node_is_refused_the_rest_with_the_real_reason(asked: Attributes, reason: str) -> None:
    decision = authorize(NODE, asked)
    assert (decision.allowed, decision.reason) == (False, reason)


def test_the_refusal_says_who_what_and_where_in_the_real_words() -> None:
    asked = pods("list")
    error = forbidden(NODE, asked, authorize(NODE, asked))
    assert status.failure(error) == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'pods is forbidden: User "system:node:n1" cannot list resource "pods" in API group "" in the '
        'namespace "default": can only list/watch pods with spec.nodeName field selector',
        "reason": "Forbidden",
        "details": {"kind": "pods"},
        "code": 403,
    }


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (
            Attributes("delete", "apps", "deployments", "scale", "", "web"),
            (
                'deployments.apps "web" is forbidden: User "eve" cannot delete resource "deployments/scale" '
                'in API group "apps" at the cluster scope'
            ),
        ),
        (Attributes("get", path="/metrics"), 'forbidden: User "eve" cannot get path "/metrics"'),
        (Attributes("get", path="/<script>"), 'forbidden: User "eve" cannot get path "/&lt;script&gt;"'),
    ],
)
def test_the_refusal_names_the_object_or_the_path(asked: Attributes, message: str) -> None:
    assert forbidden(SOMEBODY, asked, authorize(SOMEBODY, asked)).message == message


# --- which objects a node's pods need, from the store ----------------------------------------------------


def always(data: bytes) -> Callable[[int], bytes]:
    return lambda revision: data


async def stored(*objects: tuple[str, dict[str, Any]]) -> StoreNodeView:
    store = MemoryStore()
    for resource, obj in objects:
        meta = obj["metadata"]
        key = Key(resource, meta.get("namespace", ""), meta["name"])
        await store.commit(Put(key, always(encode(obj)), 0))
    return StoreNodeView(store)


def pod(name: str, node: str, **spec: Any) -> tuple[str, dict[str, Any]]:
    return "pods", {"metadata": {"namespace": "default", "name": name}, "spec": {"nodeName": node, **spec}}


async def test_a_node_is_related_to_what_its_pods_name_and_to_nothing_of_others() -> None:
    containers = [
        {
            "env": [
                {"valueFrom": {"secretKeyRef": {"name": "key"}}},
                {"valueFrom": {"configMapKeyRef": {"name": "map"}}},
            ],
            "envFrom": [{"secretRef": {"name": "all"}}, {"configMapRef": {"name": "all"}}],
        }
    ]
    volumes = [
        {"name": "v", "secret": {"secretName": "volume"}},
        {
            "name": "p",
            "projected": {"sources": [{"secret": {"name": "part"}}, {"configMap": {"name": "part"}}]},
        },
        {"name": "c", "persistentVolumeClaim": {"claimName": "claim"}},
        {"name": "e", "ephemeral": {}},
        {"name": "csi", "csi": {"driver": "d", "nodePublishSecretRef": {"name": "publish"}}},
    ]
    view = await stored(
        pod(
            "here",
            "n1",
            serviceAccountName="robot",
            imagePullSecrets=[{"name": "pull"}],
            initContainers=containers,
            containers=[{"name": "c"}],
            volumes=volumes,
            resourceClaims=[{"name": "g", "resourceClaimName": "gpu"}],
        ),
        pod("there", "n2", imagePullSecrets=[{"name": "theirs"}]),
        pod("named", "n2", nodeSelector={"nodeName": "n1"}, imagePullSecrets=[{"name": "theirs"}]),
        (
            "persistentvolumes",
            {"metadata": {"name": "pv"}, "spec": {"claimRef": {"namespace": "default", "name": "claim"}}},
        ),
        ("persistentvolumes", {"metadata": {"name": "free"}, "spec": {}}),
        ("volumeattachments.storage.k8s.io", {"metadata": {"name": "va"}, "spec": {"nodeName": "n1"}}),
        ("resourceslices.resource.k8s.io", {"metadata": {"name": "rs"}, "spec": {"nodeName": "n1"}}),
    )
    needed = {
        "secrets": ["key", "all", "volume", "part", "publish", "pull"],
        "configmaps": ["map", "all", "part"],
        "persistentvolumeclaims": ["claim", "here-e"],
        "serviceaccounts": ["robot"],
        "resourceclaims": ["gpu"],
        "pods": ["here"],
    }
    for resource, names in needed.items():
        for name in names:
            assert view.is_related("n1", resource, "default", name), (resource, name)
            assert not view.is_related("n2", resource, "default", name), (resource, name)
            assert not view.is_related("n1", resource, "other", name), (resource, name)
    assert view.is_related("n1", "persistentvolumes", "", "pv")
    assert view.is_related("n1", "volumeattachments", "", "va")
    assert view.is_related("n1", "resourceslices", "", "rs")
    assert not view.is_related("n2", "resourceslices", "", "rs")
    for resource, name in [("secrets", "theirs"), ("pods", "there"), ("pods", "gone"), ("secrets", "claim")]:
        assert not view.is_related("n1", resource, "default", name)
    for name in ("free", "gone"):
        assert not view.is_related("n1", "persistentvolumes", "", name)


async def test_what_a_node_may_read_follows_its_pods() -> None:
    store = MemoryStore()
    view = StoreNodeView(store)

    async def write(name: str, node: str, *, secret: str, **metadata: Any) -> None:
        resource, obj = pod(name, node, imagePullSecrets=[{"name": secret}])
        key = Key(resource, "default", name)
        obj["metadata"] |= metadata
        record = store.get(key)
        await store.commit(Put(key, always(encode(obj)), record.revision if record else 0))

    async def delete(name: str) -> None:
        key = Key("pods", "default", name)
        record = store.get(key)
        assert record is not None
        await store.commit(Delete(key, always(record.value), record.revision))

    def readers(secret: str) -> list[str]:
        return [node for node in ("n1", "n2") if view.is_related(node, "secrets", "default", secret)]

    await write("a", "", secret="s")
    assert readers("s") == []
    await write("a", "n1", secret="s")
    await write("b", "n1", secret="s")
    await write("b", "n1", secret="s", labels={"x": "y"})
    assert readers("s") == ["n1"]
    await delete("a")
    assert readers("s") == ["n1"]
    assert not view.is_related("n1", "pods", "default", "a")
    await write("b", "n1", secret="other")
    assert (readers("s"), readers("other")) == ([], ["n1"])
    await write("mirror", "n2", secret="other", annotations={"kubernetes.io/config.mirror": "x", "y": "z"})
    assert readers("other") == ["n1"], "a node cannot give itself rights"
    assert view.is_related("n2", "pods", "default", "mirror")
    for name in ("b", "mirror"):
        await delete(name)
    assert (view._pods, view._needed) == ({}, {}), "nothing is left behind"


@pytest.mark.parametrize(
    "spec", [{"imagePullSecrets": [None]}, {"volumes": 1}, {"serviceAccountName": ["x"]}]
)
async def test_a_pod_that_cannot_be_read_gives_a_node_nothing(spec: dict[str, Any]) -> None:
    view = await stored(pod("odd", "n1", **spec), pod("fine", "n1", imagePullSecrets=[{"name": "s"}]))
    assert not view.is_related("n1", "pods", "default", "odd")
    assert view.is_related("n1", "secrets", "default", "s")


async def test_a_decision_about_a_node_reads_none_of_its_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    view = await stored(*(pod(f"p{number}", "n1") for number in range(50)))
    reads: list[object] = []
    for method in ("get", "list"):
        monkeypatch.setattr(view._store, method, lambda *args: reads.append(args))
    assert not view.is_related("n1", "secrets", "default", "nope")
    assert view.is_related("n1", "pods", "default", "p7")
    assert reads == []
