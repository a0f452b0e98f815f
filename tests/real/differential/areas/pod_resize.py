"""What may change through `pods/resize`, on a node and without one."""

from __future__ import annotations

from typing import Any

from tests.real.differential.areas.objects import PODS, Object, container, pod
from tests.real.differential.steps import Area

RESIZE = Area("pod-resize")
_SMALL = {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "200m", "memory": "128Mi"}}
_NODE = "diff-resize"


def _spec(*containers: Object, **more: Any) -> Object:
    return {"spec": {**({"containers": list(containers)} if containers else {}), **more}}


def _resources(name: str = "main", **sides: Object) -> Object:
    return {"name": name, "resources": sides}


def _resize(name: str, of: str, body: Any, code: int = 200, kind: str = "strategic", **more: Any) -> None:
    RESIZE.patch(name, kind, f"{PODS}/{of}/resize", body, code, **more)


RESIZE.post(
    "node",
    "/api/v1/nodes",
    {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": _NODE, "labels": {"kubernetes.io/os": "linux"}},
    },
)
RESIZE.patch(
    "node-status",
    "merge",
    f"/api/v1/nodes/{_NODE}/status",
    {"status": {"allocatable": {"cpu": "2", "memory": "1Gi", "pods": "10"}}},
)
_sidecar = container("side", restartPolicy="Always", resources=_SMALL)
_policy = [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]
RESIZE.post(
    "create",
    PODS,
    pod(
        "p",
        containers=[
            container(resources=_SMALL, resizePolicy=_policy),
            container("plain", resources={"limits": {"ephemeral-storage": "1Gi"}}),
        ],
        initContainers=[container("first", resources=_SMALL), _sidecar],
    ),
)
RESIZE.post("best-effort", PODS, pod("best-effort"))
RESIZE.get("get", f"{PODS}/p/resize")
RESIZE.get("get-missing", f"{PODS}/none/resize", 404)
RESIZE.post("post", f"{PODS}/p/resize", pod("p"), 405)
RESIZE.delete("delete", f"{PODS}/p/resize", code=405)
_resize("cpu", "p", _spec(_resources(requests={"cpu": "150m"})))
_resize("same", "p", _spec(_resources(requests={"cpu": "150m"})))
_resize("memory-merge", "p", {"metadata": {"labels": {"ignored": "yes"}}}, kind="merge")
_resize(
    "json",
    "p",
    [{"op": "replace", "path": "/spec/containers/0/resources/limits/memory", "value": "256Mi"}],
    kind="json",
)
_resize("sidecar", "p", _spec(initContainers=[_resources("side", limits={"cpu": "300m"})]))
_resize("init-container", "p", _spec(initContainers=[_resources("first", limits={"cpu": "300m"})]))
_resize("image-is-ignored", "p", _spec({"name": "main", "image": "other:2"}))
_resize("more-than-the-limit", "p", _spec(_resources(requests={"cpu": "5"})), 422)
_resize("negative", "p", _spec(_resources(requests={"cpu": "-1"})), 422)
_resize("request-removed", "p", _spec(_resources(requests={"memory": None})))
_resize("limit-removed", "p", _spec(_resources(limits={"memory": None})), 422)
_resize("both-removed", "p", _spec(_resources(limits={"cpu": None}, requests={"cpu": None})), 422)
_resize(
    "sidecar-removed",
    "p",
    _spec(initContainers=[_resources("side", limits={"cpu": None}, requests={"cpu": None})]),
    422,
)
_resize("other-resource", "p", _spec(_resources("plain", limits={"ephemeral-storage": "2Gi"})), 422)
_resize("other-added", "p", _spec(_resources(limits={"ephemeral-storage": "2Gi"})), 422)
_resize("other-same-value", "p", _spec(_resources("plain", limits={"ephemeral-storage": "1024Mi"})))
_resize("sidecar-other", "p", _spec(initContainers=[_resources("side", limits={"example.com/x": "1"})]), 422)
_cpu_policy = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]
_resize("policy", "p", _spec({"name": "main", "resizePolicy": _cpu_policy}), 422)
_resize("init-policy", "p", _spec(initContainers=[{"name": "first", "resizePolicy": _cpu_policy}]), 422)
_resize("sidecar-policy", "p", _spec(initContainers=[{"name": "side", "resizePolicy": _cpu_policy}]), 422)
_resize("added", "p", _spec(container("b")), 422)
_resize("removed", "p", {"spec": {"containers": [{"$patch": "delete", "name": "plain"}]}}, 422)
_resize(
    "renamed",
    "p",
    [{"op": "replace", "path": "/spec/containers/0/name", "value": "x"}],
    422,
    kind="json",
)
_resize(
    "init-renamed",
    "p",
    [{"op": "replace", "path": "/spec/initContainers/0/name", "value": "x"}],
    422,
    kind="json",
)
_resize("init-removed", "p", {"spec": {"initContainers": None}}, 422, kind="merge")
_resize("pod-level-added", "p", _spec(resources={"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}))
_resize("pod-level-empty", "best-effort", _spec(resources={}), 422)
RESIZE.put("put", f"{PODS}/p/resize", pod("p"), 422)
RESIZE.get("get-again", f"{PODS}/p")
_applied = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
RESIZE.patch(
    "apply",
    "apply",
    f"{PODS}/p/resize?fieldManager=sizer",
    {**_applied, **_spec(_resources(requests={"cpu": "160m"}))},
    409,
)
RESIZE.patch(
    "apply-forced",
    "apply",
    f"{PODS}/p/resize?fieldManager=sizer&force=true",
    {**_applied, **_spec({**_resources(requests={"cpu": "160m"}), "image": "other:3"})},
)
RESIZE.get("get-managers", f"{PODS}/p")

# The class of service stays.
_resize("best-effort-burstable", "best-effort", _spec(_resources(requests={"cpu": "1"})), 422)
RESIZE.post(
    "guaranteed",
    PODS,
    pod("guaranteed", containers=[container(resources={"limits": {"cpu": "1", "memory": "1Gi"}})]),
)
_resize("guaranteed-burstable", "guaranteed", _spec(_resources(requests={"cpu": "500m"})), 422)
_both = {"requests": {"cpu": "2", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "1Gi"}}
_resize("guaranteed-grown", "guaranteed", _spec({"name": "main", "resources": _both}))

# Resources of the pod as a whole.
RESIZE.post(
    "pod-level",
    PODS,
    pod(
        "level",
        resources={"requests": {"cpu": "1"}, "limits": {"cpu": "2"}},
        containers=[container()],
        initContainers=[container("first", resources=_SMALL)],
    ),
)
_resize("pod-level-grown", "level", _spec(resources={"requests": {"cpu": "1500m"}}))
_resize("pod-level-request-defaulted", "level", _spec(resources={"requests": None}))
_resize("pod-level-limit-removed", "level", _spec(resources={"limits": None}), 422)
_resize("pod-level-removed", "level", _spec(resources=None), 422)
_resize("pod-level-other", "level", _spec(resources={"limits": {"hugepages-2Mi": "2Mi"}}), 422)

# Static and Windows pods.
_mirror = {"annotations": {"kubernetes.io/config.mirror": "x", "kubernetes.io/config.hash": "x"}}
RESIZE.post(
    "mirror",
    PODS,
    pod("static", metadata=_mirror, nodeName=_NODE, containers=[container(resources=_SMALL)]),
    0,
)
_resize("mirror-resized", "static", _spec(_resources(requests={"cpu": "150m"})), 0)
RESIZE.post("windows", PODS, pod("win", os={"name": "windows"}, containers=[container(resources=_SMALL)]))
_resize("windows-resized", "win", _spec(_resources(requests={"cpu": "150m"})), 422)

# On a node: its capacity, its features, what it reports.
_on_node = pod(
    "on-node",
    nodeName=_NODE,
    containers=[container(resources={"requests": {"cpu": "100m", "memory": "64Mi"}})],
    initContainers=[container("first", resources=_SMALL)],
)
RESIZE.post("on-node", PODS, _on_node)
_resize("on-node-grown", "on-node", _spec(_resources(requests={"cpu": "2"})))
_resize("on-node-too-large", "on-node", _spec(_resources(requests={"cpu": "2001m"})), 403)
_resize("on-node-both", "on-node", _spec(_resources(requests={"cpu": "3", "memory": "2Gi"})), 403)
_resize("on-node-init", "on-node", _spec(initContainers=[_resources("first", limits={"cpu": "1"})]), 403)
_resize("on-node-pod-level", "on-node", _spec(resources={"requests": {"cpu": "2", "memory": "70Mi"}}), 403)
RESIZE.patch(
    "node-features",
    "merge",
    f"/api/v1/nodes/{_NODE}/status",
    {"status": {"declaredFeatures": ["InPlacePodVerticalScalingInitContainers"]}},
)
_resize("on-node-init-supported", "on-node", _spec(initContainers=[_resources("first", limits={"cpu": "1"})]))
_running = {
    "name": "main",
    "image": "x",
    "imageID": "x",
    "ready": True,
    "restartCount": 0,
    "state": {"running": {}},
}
RESIZE.patch(
    "status-without-resources",
    "merge",
    f"{PODS}/on-node/status",
    {"status": {"containerStatuses": [_running]}},
)
_resize("without-support", "on-node", _spec(_resources(requests={"cpu": "1"})), 422)
RESIZE.patch(
    "status-with-resources",
    "merge",
    f"{PODS}/on-node/status",
    {"status": {"containerStatuses": [{**_running, "resources": {}}]}},
)
_resize("with-support", "on-node", _spec(_resources(requests={"cpu": "1"})))
RESIZE.post("node-gone", PODS, pod("lost", nodeName="diff-none", containers=[container(resources=_SMALL)]))
_resize("node-gone-resized", "lost", _spec(_resources(requests={"cpu": "150m"})), 403)
RESIZE.patch(
    "node-windows",
    "merge",
    f"/api/v1/nodes/{_NODE}",
    {"metadata": {"labels": {"kubernetes.io/os": "windows"}}},
)
_resize("on-windows", "on-node", _spec(_resources(requests={"cpu": "500m"})), 403)
RESIZE.delete("node-deleted", f"/api/v1/nodes/{_NODE}")
