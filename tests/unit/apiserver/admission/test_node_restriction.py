"""NodeRestriction: what a node may change depends on the object."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from podlife.api.codec import encode
from podlife.apiserver.admission import AdmissionRequest, Operation
from podlife.apiserver.admission.node_restriction import restrict_nodes
from podlife.apiserver.authn import ADMIN, UserInfo
from podlife.apiserver.resource import Resource
from podlife.apiserver.storage import Key, Record
from podlife.errors import ForbiddenError, NotFoundError

NODE = UserInfo("system:node:n1", groups=("system:nodes", "system:authenticated"))
PODS = Resource("", "v1", "Pod", "pods")
NODES = Resource("", "v1", "Node", "nodes", namespaced=False)
LEASES = Resource("coordination.k8s.io", "v1", "Lease", "leases")
CLAIMS = Resource("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")
CSI_NODES = Resource("storage.k8s.io", "v1", "CSINode", "csinodes", namespaced=False)

Obj = dict[str, Any]


def pod(node: str = "n1", **metadata: Any) -> Obj:
    return {"metadata": {"name": "p", "namespace": "default", **metadata}, "spec": {"nodeName": node}}


def mirror(**spec: Any) -> Obj:
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "u1", "controller": True}
    made = pod(annotations={"kubernetes.io/config.mirror": "x"}, ownerReferences=[owner])
    made["spec"] |= spec
    return made


STORED = {
    Key("nodes", "", "n1"): {"metadata": {"name": "n1", "uid": "u1"}},
    Key("pods", "default", "mine"): pod("n1"),
    Key("pods", "default", "theirs"): pod("n2"),
}


def read(key: Key) -> Record | None:
    return Record(key, 1, encode(STORED[key])) if key in STORED else None


def admit(
    operation: Operation,
    resource: Resource,
    name: str = "p",
    subresource: str = "",
    new: Obj | None = None,
    old: Obj | None = None,
    *,
    user: UserInfo = NODE,
    namespace: str = "default",
) -> None:
    where = namespace if resource.namespaced else ""
    restrict_nodes(AdmissionRequest(operation, user, resource, where, name, subresource, new, old), read)


def refusal(*arguments: Any, **more: Any) -> str:
    with pytest.raises(ForbiddenError) as caught:
        admit(*arguments, **more)
    return caught.value.message


CREATE, UPDATE, DELETE = Operation.CREATE, Operation.UPDATE, Operation.DELETE


def test_only_nodes_are_restricted() -> None:
    admit(CREATE, PODS, new=pod("elsewhere"), user=ADMIN)
    admit(UPDATE, NODES, "n2", new={}, old={}, user=ADMIN)


def test_a_node_may_change_what_is_its_own() -> None:
    admit(CREATE, PODS, new=mirror())
    admit(DELETE, PODS, "mine")
    admit(CREATE, PODS, "mine", "eviction")
    admit(UPDATE, PODS, "mine", "status", pod() | {"status": {"phase": "Running"}}, pod())
    admit(CREATE, NODES, "n1", new={"metadata": {"name": "n1"}})
    admit(UPDATE, NODES, "n1", "status", {"status": {"phase": "x"}}, {})
    admit(CREATE, LEASES, "n1", new={"metadata": {"name": "n1"}}, namespace="kube-node-lease")
    admit(UPDATE, LEASES, "n1", new={}, old={}, namespace="kube-node-lease")
    admit(CREATE, CSI_NODES, "n1", new={})


def test_a_refusal_names_the_object_and_its_kind() -> None:
    with pytest.raises(ForbiddenError) as caught:
        admit(UPDATE, LEASES, "n2", namespace="kube-node-lease")
    assert caught.value.message == (
        'leases.coordination.k8s.io "n2" is forbidden: can only access node lease with the same name as the '
        "requesting node"
    )
    assert caught.value.details == {"name": "n2", "group": "coordination.k8s.io", "kind": "leases"}


def changed(obj: Obj, **owner: Any) -> Obj:
    made = deepcopy(obj)
    made["metadata"]["ownerReferences"][0] |= owner
    return made


TWO_OWNERS = mirror()
TWO_OWNERS["metadata"]["ownerReferences"] *= 2
ONLY_ITSELF = 'node "n1" can only create pods with an owner reference set to itself'


@pytest.mark.parametrize(
    ("new", "reason"),
    [
        (
            pod(),
            'pod does not have "kubernetes.io/config.mirror" annotation, node "n1" can only create mirror pods',
        ),
        (mirror(nodeName="n2"), 'node "n1" can only create pods with spec.nodeName set to itself'),
        (TWO_OWNERS, 'node "n1" can only create pods with a single owner reference set to itself'),
        (pod(annotations={"kubernetes.io/config.mirror": ""}), ONLY_ITSELF),
        (changed(mirror(), kind="Pod"), ONLY_ITSELF),
        (changed(mirror(), name="n2"), ONLY_ITSELF),
        (
            changed(mirror(), controller=False),
            'node "n1" can only create pods with a controller owner reference set to itself',
        ),
        (
            changed(mirror(), blockOwnerDeletion=True),
            'node "n1" must not set blockOwnerDeletion on an owner reference',
        ),
        (changed(mirror(), uid="u2"), "node n1 UID mismatch: expected u2 got u1"),
    ],
)
def test_a_node_creates_only_mirror_pods_of_its_own(new: Obj, reason: str) -> None:
    assert refusal(CREATE, PODS, new=new) == f'pods "p" is forbidden: {reason}'


@pytest.mark.parametrize(
    ("spec", "named"),
    [
        ({"serviceAccountName": "default"}, "serviceaccounts"),
        ({"imagePullSecrets": [{"name": "s"}]}, "secrets"),
        ({"containers": [{"envFrom": [{"configMapRef": {"name": "c"}}]}]}, "configmaps"),
        ({"resourceClaims": [{"name": "gpu"}]}, "resourceclaims"),
        ({"volumes": [{"persistentVolumeClaim": {"claimName": "c"}}]}, "persistentvolumeclaims"),
        ({"volumes": [{"ephemeral": {}}]}, "persistentvolumeclaims (via ephemeral volumes)"),
        ({"volumes": [{"csi": {"driver": "d"}}]}, "csidrivers (via CSI volumes)"),
        (
            {"volumes": [{"projected": {"sources": [{"serviceAccountToken": {}}]}}]},
            "serviceaccounts (via projected volumes)",
        ),
    ],
)
def test_a_mirror_pod_needs_no_other_api_object(spec: Obj, named: str) -> None:
    wanted = f'pods "p" is forbidden: node "n1" can not create pods that reference {named}'
    assert refusal(CREATE, PODS, new=mirror(**spec)) == wanted


def test_a_mirror_pod_may_have_volumes_that_need_no_api_object() -> None:
    sources: list[Obj] = [{"downwardAPI": {}}]
    volumes = [{"hostPath": {"path": "/"}}, {"emptyDir": {}}, {"projected": {"sources": sources}}]
    admit(CREATE, PODS, new=mirror(volumes=volumes))


def test_a_mirror_pod_of_a_node_that_is_not_there_is_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(STORED, Key("nodes", "", "n1"))
    with pytest.raises(NotFoundError, match='nodes "n1" not found'):
        admit(CREATE, PODS, new=mirror())


def test_a_node_deletes_and_evicts_only_its_own_pods() -> None:
    assert refusal(DELETE, PODS, "theirs").endswith(
        'node "n1" can only delete pods with spec.nodeName set to itself'
    )
    assert refusal(CREATE, PODS, "theirs", "eviction").endswith(
        "node n1 can only evict pods with spec.nodeName set to itself"
    )
    with pytest.raises(NotFoundError):
        admit(DELETE, PODS, "gone")


def test_a_node_does_not_update_pods_but_their_status() -> None:
    assert refusal(UPDATE, PODS, new=pod(), old=pod()).endswith(
        'unexpected operation "UPDATE", node "n1" can only create and delete mirror pods'
    )
    assert refusal(CREATE, PODS, "p", "binding").endswith(
        "unexpected pod subresource \"binding\", only 'status' and 'eviction' are allowed"
    )


@pytest.mark.parametrize(
    ("new", "old", "reason"),
    [
        (pod("n2"), pod("n2"), "can only update pod status for pods with spec.nodeName set to itself"),
        (pod(labels={"a": "b"}), pod(), "cannot update labels through pod status"),
        (
            pod() | {"status": {"resourceClaimStatuses": [{"name": "a"}]}},
            pod(),
            "cannot update resource claim statues",
        ),
        (
            pod() | {"status": {"extendedResourceClaimStatus": {"resourceClaimName": "a"}}},
            pod(),
            "cannot update extended resource claim status",
        ),
    ],
)
def test_a_node_reports_only_the_status_of_its_own_pods(new: Obj, old: Obj, reason: str) -> None:
    assert refusal(UPDATE, PODS, "p", "status", new, old) == f'pods "p" is forbidden: node "n1" {reason}'


def node(spec: Obj | None = None, **metadata: Any) -> Obj:
    return {"metadata": {"name": "n1", **metadata}, "spec": spec or {}}


def test_a_node_may_not_touch_another_node() -> None:
    for operation in (CREATE, UPDATE, DELETE):
        assert refusal(operation, NODES, "n2", new={}, old={}) == (
            'nodes "n2" is forbidden: node "n1" is not allowed to modify node "n2"'
        )


@pytest.mark.parametrize(
    ("new", "old", "reason"),
    [
        (node({"taints": []}), node({"taints": [{"key": "a"}]}), 'node "n1" is not allowed to modify taints'),
        (node(ownerReferences=[{}]), node(), 'node "n1" is not allowed to modify ownerReferences'),
        (
            node({"configSource": {"x": 1}}),
            node(),
            'node "n1" is not allowed to update configSource to a new non-nil configSource',
        ),
        (
            node(labels={"node-restriction.kubernetes.io/x": "1", "x.k8s.io/y": ""}),
            node(),
            "is not allowed to modify labels: node-restriction.kubernetes.io/x, x.k8s.io/y",
        ),
        (
            node(),
            node(labels={"node-role.kubernetes.io/control-plane": ""}),
            "is not allowed to modify labels: node-role.kubernetes.io/control-plane",
        ),
    ],
)
def test_a_node_may_not_make_itself_more_than_it_is(new: Obj, old: Obj, reason: str) -> None:
    assert refusal(UPDATE, NODES, "n1", "", new, old) == f'nodes "n1" is forbidden: {reason}'


def test_a_node_may_set_its_own_kinds_of_labels() -> None:
    labels = {
        "kubernetes.io/hostname": "n1",
        "topology.kubernetes.io/zone": "z",
        "node.kubernetes.io/x": "",
        "sub.kubelet.kubernetes.io/x": "",
        "example.com/x": "",
        "plain": "",
    }
    admit(CREATE, NODES, "n1", new=node(labels=labels))
    admit(UPDATE, NODES, "n1", new=node(labels=labels), old=node())
    assert refusal(CREATE, NODES, "n1", new=node(labels={"x.kubernetes.io/y": ""})) == (
        'nodes "n1" is forbidden: node "n1" is not allowed to set the following labels: x.kubernetes.io/y'
    )


def test_an_own_taint_and_label_that_stays_is_no_change() -> None:
    kept = node({"taints": [{"key": "a"}]}, labels={"node-role.kubernetes.io/x": ""})
    admit(UPDATE, NODES, "n1", new=deepcopy(kept), old=kept)


def test_a_lease_outside_the_leases_namespace_is_refused() -> None:
    assert refusal(CREATE, LEASES, "n1", new={}).endswith(
        'can only access leases in the "kube-node-lease" system namespace'
    )


def claim(**status: Any) -> Obj:
    return {"metadata": {"name": "p", "resourceVersion": "1"}, "spec": {}, "status": status}


def test_of_a_claim_a_node_reports_capacity_and_conditions_alone() -> None:
    new = claim(capacity={"storage": "2Gi"}, conditions=[{}])
    new["metadata"]["resourceVersion"] = ""
    new["metadata"].pop("resourceVersion")
    admit(UPDATE, CLAIMS, "p", "status", new, claim())
    assert refusal(UPDATE, CLAIMS, "p", "status", claim(phase="Bound"), claim()).endswith(
        "is not allowed to update fields other than status.quantity and status.conditions"
    )
    assert refusal(UPDATE, CLAIMS, new=claim(), old=claim()).endswith("may only update PVC status")
    assert refusal(CREATE, CLAIMS, "p", "status").endswith('unexpected operation "CREATE"')


def test_another_nodes_csi_node_is_refused() -> None:
    assert refusal(UPDATE, CSI_NODES, "n2").endswith(
        "can only access CSINode with the same name as the requesting node"
    )
