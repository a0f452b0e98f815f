"""What belongs to no namespace, and namespaces themselves."""

from __future__ import annotations

from typing import Any

from tests.real.differential.areas.objects import CORE, NODES, PODS, config_map, of, pod
from tests.real.differential.steps import Area

NAMESPACES = Area("namespaces")
SPACES = "/api/v1/namespaces"


def _phase(body: Any) -> Any:
    """What does not depend on how far the clean-up of the namespace has come."""
    return {"phase": body["status"]["phase"], "finalizers": body["metadata"].get("finalizers")}


def _without_age(body: Any) -> Any:
    """The servers started at different times."""
    return {**body, "metadata": {**body["metadata"], "creationTimestamp": ""}}


def _namespace(name: str, **fields: Any) -> dict[str, object]:
    return of("v1", "Namespace", name, **fields)


# Held by a finalizer: podlife's own clean-up would else be faster than the next step.
_held = {"labels": {"a": "b"}, "finalizers": ["example.com/hold"]}
NAMESPACES.post("create", SPACES, _namespace("diff-life", metadata=_held))
NAMESPACES.get("get", SPACES + "/diff-life")
NAMESPACES.post("again", SPACES, _namespace("diff-life"), 409)
NAMESPACES.post(
    "generated", SPACES, {"metadata": {"generateName": "diff-made-"}}, keep={"made": "metadata.name"}
)
NAMESPACES.get("generated-get", SPACES + "/${made}")
NAMESPACES.post("bad-name", SPACES, _namespace("Bad.Name"), 422)
NAMESPACES.get("always-there", SPACES + "/default", pick=_without_age)
NAMESPACES.get("system", SPACES + "/kube-system", pick=_without_age)
NAMESPACES.get("node-leases", SPACES + "/kube-node-lease", pick=_without_age)
NAMESPACES.get("missing", SPACES + "/nowhere", 404)
NAMESPACES.patch("label", "merge", SPACES + "/diff-life", {"metadata": {"labels": {"c": "d"}}})
NAMESPACES.patch(
    "own-label-comes-back",
    "merge",
    SPACES + "/diff-life",
    {"metadata": {"labels": {"kubernetes.io/metadata.name": None}}},
)
NAMESPACES.patch(
    "own-label-cannot-lie",
    "merge",
    SPACES + "/diff-life",
    {"metadata": {"labels": {"kubernetes.io/metadata.name": "other"}}},
)
NAMESPACES.patch("status-by-object", "merge", SPACES + "/diff-life", {"status": {"phase": "Terminating"}})
NAMESPACES.patch("spec-finalizers-by-object", "merge", SPACES + "/diff-life", {"spec": {"finalizers": []}})
NAMESPACES.get("by-phase", SPACES + "?fieldSelector=status.phase%3DActive,metadata.name%3Ddiff-life")
NAMESPACES.post("object-inside", SPACES + "/diff-life/configmaps", config_map("m"))
NAMESPACES.post("object-in-a-missing-one", SPACES + "/nowhere/configmaps", config_map("m"), 404)
NAMESPACES.post("pod-in-a-missing-one", SPACES + "/nowhere/pods", pod("p"), 404)
NAMESPACES.post("invalid-pod-in-a-missing-one", SPACES + "/nowhere/pods", pod("P_"), 404)
NAMESPACES.delete("default-cannot-be-deleted", SPACES + "/default", None, 403)
NAMESPACES.delete("system-cannot-be-deleted", SPACES + "/kube-system", None, 403)
NAMESPACES.delete("dry-run", SPACES + "/diff-life?dryRun=All")
NAMESPACES.get("dry-run-left-it", SPACES + "/diff-life")
NAMESPACES.delete("delete", SPACES + "/diff-life")
NAMESPACES.get("terminating", SPACES + "/diff-life", pick=_phase)
NAMESPACES.delete("delete-again", SPACES + "/diff-life", pick=_phase)
NAMESPACES.post("no-new-objects", SPACES + "/diff-life/configmaps", config_map("late"), 403)
NAMESPACES.post("no-new-pods", SPACES + "/diff-life/pods", pod("late"), 403)
NAMESPACES.put(
    "finalize",
    SPACES + "/diff-life/finalize",
    _namespace("diff-life", metadata=_held, spec={"finalizers": []}),
    pick=_phase,
)
NAMESPACES.get("still-held", SPACES + "/diff-life", pick=_phase)
NAMESPACES.patch("released", "merge", SPACES + "/diff-life", {"metadata": {"finalizers": None}}, pick=_phase)
NAMESPACES.get("gone", SPACES + "/diff-life", 404)
NAMESPACES.put("finalize-missing", SPACES + "/diff-life/finalize", _namespace("diff-life"), 404)
NAMESPACES.delete("collection-is-not-offered", SPACES, None, 405)
NAMESPACES.post("status-sub", SPACES, _namespace("diff-status"))
NAMESPACES.patch("status-patch", "merge", SPACES + "/diff-status/status", {"status": {"phase": "Active"}})
NAMESPACES.put(
    "put", SPACES + "/diff-status", _namespace("diff-status", metadata={"annotations": {"a": "b"}})
)

NODES_AND_VOLUMES = Area("nodes-and-volumes")
NODES_AND_VOLUMES.post("node", NODES, of("v1", "Node", "diff-node", metadata={"labels": {"zone": "a"}}))
NODES_AND_VOLUMES.get("node-get", NODES + "/diff-node", keep={"rv": "metadata.resourceVersion"})
NODES_AND_VOLUMES.post("node-again", NODES, of("v1", "Node", "diff-node"), 409)
NODES_AND_VOLUMES.post("node-bad-name", NODES, of("v1", "Node", "Diff_Node"), 422)
NODES_AND_VOLUMES.post(
    "node-taint-effect",
    NODES,
    of("v1", "Node", "x", spec={"taints": [{"key": "a", "effect": "Explode"}]}),
    422,
)
NODES_AND_VOLUMES.post(
    "node-taint-twice",
    NODES,
    of(
        "v1",
        "Node",
        "x",
        spec={"taints": [{"key": "a", "effect": "NoSchedule"}, {"key": "a", "effect": "NoSchedule"}]},
    ),
    422,
)
NODES_AND_VOLUMES.patch("cordon", "merge", NODES + "/diff-node", {"spec": {"unschedulable": True}})
NODES_AND_VOLUMES.get(
    "cordoned", NODES + "?fieldSelector=spec.unschedulable%3Dtrue,metadata.name%3Ddiff-node"
)
NODES_AND_VOLUMES.patch("uncordon", "merge", NODES + "/diff-node", {"spec": {"unschedulable": None}})
NODES_AND_VOLUMES.patch(
    "taint",
    "strategic",
    NODES + "/diff-node",
    {"spec": {"taints": [{"key": "a", "value": "b", "effect": "NoExecute"}]}},
)
NODES_AND_VOLUMES.patch("pod-range", "merge", NODES + "/diff-node", {"spec": {"podCIDR": "10.1.0.0/24"}})
NODES_AND_VOLUMES.patch(
    "pod-range-is-fixed", "merge", NODES + "/diff-node", {"spec": {"podCIDR": "10.2.0.0/24"}}, 422
)
NODES_AND_VOLUMES.patch("provider-id", "merge", NODES + "/diff-node", {"spec": {"providerID": "p://1"}})
NODES_AND_VOLUMES.patch(
    "provider-id-is-fixed", "merge", NODES + "/diff-node", {"spec": {"providerID": "p://2"}}, 422
)
NODES_AND_VOLUMES.patch(
    "status",
    "strategic",
    NODES + "/diff-node/status",
    {
        "status": {
            "capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True", "reason": "Ok"}],
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        }
    },
)
NODES_AND_VOLUMES.patch(
    "status-condition-by-type",
    "strategic",
    NODES + "/diff-node/status",
    {
        "status": {
            "conditions": [{"type": "Ready", "status": "False"}, {"type": "DiskPressure", "status": "False"}]
        }
    },
)
NODES_AND_VOLUMES.patch("status-by-object", "merge", NODES + "/diff-node", {"status": {"phase": "Running"}})
NODES_AND_VOLUMES.put(
    "stale", NODES + "/diff-node", of("v1", "Node", "diff-node", metadata={"resourceVersion": "${rv}"}), 409
)
NODES_AND_VOLUMES.delete("delete", NODES + "/diff-node")
NODES_AND_VOLUMES.get("gone", NODES + "/diff-node", 404)

VOLUMES = "/api/v1/persistentvolumes"
_volume_spec = {
    "capacity": {"storage": "1Gi"},
    "accessModes": ["ReadWriteOnce"],
    "hostPath": {"path": "/tmp/v"},
}
NODES_AND_VOLUMES.post("volume", VOLUMES, of("v1", "PersistentVolume", "diff-volume", spec=_volume_spec))
NODES_AND_VOLUMES.post("volume-empty", VOLUMES, of("v1", "PersistentVolume", "x", spec={}), 422)
NODES_AND_VOLUMES.post(
    "volume-two-sources",
    VOLUMES,
    of("v1", "PersistentVolume", "x", spec={**_volume_spec, "nfs": {"server": "a", "path": "/b"}}),
    422,
)
NODES_AND_VOLUMES.patch(
    "volume-source-is-fixed",
    "merge",
    VOLUMES + "/diff-volume",
    {"spec": {"hostPath": {"path": "/other"}}},
    422,
)
NODES_AND_VOLUMES.patch(
    "volume-phase", "merge", VOLUMES + "/diff-volume/status", {"status": {"phase": "Available"}}
)
NODES_AND_VOLUMES.get("volumes", VOLUMES + "?fieldSelector=metadata.name%3Ddiff-volume")
NODES_AND_VOLUMES.delete("volume-delete", VOLUMES + "/diff-volume")
NODES_AND_VOLUMES.get("node-in-a-namespace", CORE + "/nodes", 404)
NODES_AND_VOLUMES.get("pods-across", "/api/v1/pods?fieldSelector=metadata.namespace%3D${ns}")
NODES_AND_VOLUMES.post("pod-without-namespace", "/api/v1/pods", pod("p"), 405)
NODES_AND_VOLUMES.get("pods-here", PODS)
