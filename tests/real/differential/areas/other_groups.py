"""Kinds of the smaller groups: autoscalers in both versions, ingresses, classes of pods, CSI nodes, APIServices."""

from __future__ import annotations

from typing import Any

from tests.real.differential.areas.objects import of, pod
from tests.real.differential.steps import Area

Object = dict[str, Any]

_TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}

AUTOSCALERS = Area("autoscalers")
_V1, _V2 = (
    f"/apis/autoscaling/{version}/namespaces/${{ns}}/horizontalpodautoscalers" for version in ("v1", "v2")
)
_TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}


def _v2(name: str, **spec: Any) -> Object:
    given = {"scaleTargetRef": _TARGET, "maxReplicas": 5}
    return of("autoscaling/v2", "HorizontalPodAutoscaler", name, spec=given | spec)


def _v1(name: str, metadata: Object | None = None, **spec: Any) -> Object:
    given = {"scaleTargetRef": _TARGET, "maxReplicas": 5}
    return of("autoscaling/v1", "HorizontalPodAutoscaler", name, metadata=metadata, spec=given | spec)


_METRIC = {"name": "queue", "selector": {"matchLabels": {"a": "<b>"}}}
_METRICS: list[Object] = [
    {
        "type": "Resource",
        "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1000Mi"}},
    },
    {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 40}},
    },
    {
        "type": "Pods",
        "pods": {"metric": {"name": "m"}, "target": {"type": "AverageValue", "averageValue": "0.5"}},
    },
    {
        "type": "Object",
        "object": {
            "describedObject": {"kind": "Service", "name": "s", "apiVersion": "v1"},
            "metric": _METRIC,
            "target": {"type": "Value", "value": "10k"},
        },
    },
    {
        "type": "Object",
        "object": {
            "describedObject": {"kind": "Service", "name": "s"},
            "metric": _METRIC,
            "target": {"type": "AverageValue", "averageValue": "3"},
        },
    },
    {"type": "External", "external": {"metric": _METRIC, "target": {"type": "Value", "value": "1"}}},
    {
        "type": "ContainerResource",
        "containerResource": {
            "name": "cpu",
            "container": "main",
            "target": {"type": "Utilization", "averageUtilization": 50},
        },
    },
]
_BEHAVIOR = {
    "scaleUp": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}], "tolerance": "0.05"},
    "scaleDown": {"stabilizationWindowSeconds": 0, "selectPolicy": "Disabled"},
}
AUTOSCALERS.post("v2", _V2, _v2("plain"))
AUTOSCALERS.get("v2-as-v1", f"{_V1}/plain")
AUTOSCALERS.post("v2-metrics", _V2, _v2("full", metrics=_METRICS, behavior=_BEHAVIOR, minReplicas=2))
AUTOSCALERS.get("v2-metrics-as-v1", f"{_V1}/full", keep={"annotations": "metadata.annotations"})
AUTOSCALERS.patch("v1-keeps-what-it-cannot-show", "merge", f"{_V1}/full", {"spec": {"maxReplicas": 9}})
AUTOSCALERS.get("v2-after-v1", f"{_V2}/full")
AUTOSCALERS.post("v1", _V1, _v1("old", targetCPUUtilizationPercentage=70))
AUTOSCALERS.get("v1-as-v2", f"{_V2}/old")
AUTOSCALERS.post("v1-plain", _V1, _v1("older"))
AUTOSCALERS.post(
    "v1-nonsense-in-annotations",
    _V1,
    _v1(
        "odd",
        {
            "annotations": {
                "autoscaling.alpha.kubernetes.io/metrics": "[1]",
                "autoscaling.alpha.kubernetes.io/behavior": "{",
                "autoscaling.alpha.kubernetes.io/conditions": '{"a":1}',
                "mine": "kept",
            }
        },
    ),
)
AUTOSCALERS.get("v1-nonsense-as-v2", f"{_V2}/odd")
AUTOSCALERS.post(
    "v2-drops-annotations-of-v1",
    _V2,
    {
        **_v2("dropped"),
        "metadata": {"name": "dropped", "annotations": {"autoscaling.alpha.kubernetes.io/metrics": "x"}},
    },
)
AUTOSCALERS.put("v1-replace", f"{_V1}/old", _v1("old", minReplicas=2, maxReplicas=3))
_CONDITION = {
    "type": "AbleToScale",
    "status": "True",
    "lastTransitionTime": "2020-01-01T00:00:00Z",
    "reason": "r",
}
_STATE = {
    "type": "Resource",
    "resource": {"name": "cpu", "current": {"averageUtilization": 33, "averageValue": "5m"}},
}
AUTOSCALERS.patch(
    "status",
    "merge",
    f"{_V2}/full/status",
    {
        "status": {
            "currentReplicas": 2,
            "desiredReplicas": 3,
            "conditions": [_CONDITION],
            "currentMetrics": [_STATE],
            "observedGeneration": 1,
            "lastScaleTime": "2020-01-01T00:00:00Z",
        }
    },
)
AUTOSCALERS.get("status-as-v1", f"{_V1}/full/status")
AUTOSCALERS.patch("status-by-v1", "merge", f"{_V1}/full/status", {"status": {"desiredReplicas": 4}})
AUTOSCALERS.patch("status-negative", "merge", f"{_V2}/full/status", {"status": {"desiredReplicas": -4}}, 422)
# With a label, so that both write: of a patch without effect kube-apiserver writes the time, if a second has passed.
_NOT_BY_OBJECT = {"metadata": {"labels": {"a": "b"}}, "status": {"desiredReplicas": 7}}
AUTOSCALERS.patch("status-not-by-object", "merge", f"{_V2}/full", _NOT_BY_OBJECT)
AUTOSCALERS.get("v1-list", _V1)
AUTOSCALERS.get("v2-list", _V2)
AUTOSCALERS.get("v2-rows", _V2, headers=_TABLE)
AUTOSCALERS.get("v1-rows", _V1, headers=_TABLE)
AUTOSCALERS.watch("v1-watch", f"{_V1}?fieldSelector=metadata.name%3Dold")


def _target(**target: Any) -> list[Object]:
    return [{"type": "External", "external": {"metric": {"name": "m"}, "target": target}}]


_refused: dict[str, Object] = {
    "empty": {"scaleTargetRef": {}, "maxReplicas": 0},
    "negative": {"maxReplicas": -1, "minReplicas": 0},
    "min-above-max": {"minReplicas": 6},
    "no-group": {"scaleTargetRef": {"kind": "Pod", "name": "a/b", "apiVersion": "v1"}},
    "bad-version": {"scaleTargetRef": {"kind": "Pod", "name": "a", "apiVersion": "a/b/c"}},
    "metric-without-type": {"metrics": [{}]},
    "metric-of-no-type": {"metrics": [{"type": "Nothing"}]},
    "metric-without-source": {"metrics": [{"type": "Pods"}]},
    "metric-with-two-sources": {"metrics": [{**_METRICS[1], "pods": _METRICS[2]["pods"]}]},
    "metric-of-another-type": {"metrics": [{"type": "Resource", "pods": _METRICS[2]["pods"]}]},
    "external-without-target": {"metrics": _target()},
    "external-with-both": {"metrics": _target(type="Value", value="1", averageValue="1")},
    "external-not-positive": {"metrics": _target(type="Sum", value="0")},
    "resource-without-name": {"metrics": [{"type": "Resource", "resource": {"name": ""}}]},
    "resource-with-both": {
        "metrics": [
            {
                "type": "Resource",
                "resource": {
                    "name": "cpu",
                    "target": {"type": "Utilization", "averageUtilization": 0, "averageValue": "1"},
                },
            }
        ]
    },
    "container-without-name": {"metrics": [{"type": "ContainerResource", "containerResource": {"name": ""}}]},
    "container-with-odd-names": {
        "metrics": [{"type": "ContainerResource", "containerResource": {"name": "odd", "container": "A b"}}]
    },
    "object-without-anything": {"metrics": [{"type": "Object", "object": {}}]},
    "pods-without-anything": {"metrics": [{"type": "Pods", "pods": {}}]},
    "no-policies": {"behavior": {"scaleUp": {"policies": []}, "scaleDown": {"policies": None}}},
    "bad-behavior": {
        "behavior": {
            "scaleUp": {"stabilizationWindowSeconds": -1, "selectPolicy": "Best", "tolerance": "-1"},
            "scaleDown": {
                "stabilizationWindowSeconds": 3601,
                "policies": [
                    {"type": "Nodes", "value": 0, "periodSeconds": 0},
                    {"type": "Pods", "value": 1, "periodSeconds": 1801},
                ],
            },
        }
    },
}
for _name, _spec in _refused.items():
    AUTOSCALERS.post(f"refused-{_name}", _V2, _v2(f"refused-{_name}", **_spec), 422, unordered=True)
_NO_POLICIES: Object = {"spec": {"behavior": {"scaleDown": {"policies": []}}}}
AUTOSCALERS.patch("refused-policies-taken-away", "merge", f"{_V2}/full", _NO_POLICIES, 422)
AUTOSCALERS.post("refused-v1", _V1, _v1("refused", maxReplicas=-1, targetCPUUtilizationPercentage=0), 422)
AUTOSCALERS.delete("delete-v1", f"{_V1}/old")
AUTOSCALERS.get("gone-from-v2", f"{_V2}/old", 404)

INGRESSES = Area("ingresses")
_INGRESSES = "/apis/networking.k8s.io/v1/namespaces/${ns}/ingresses"
_BACKEND = {"service": {"name": "web", "port": {"number": 80}}}


def _ingress(name: str, metadata: Object | None = None, **spec: Any) -> Object:
    return of("networking.k8s.io/v1", "Ingress", name, metadata=metadata, spec=spec)


def _paths(*paths: Object, **rule: Any) -> Object:
    return {"rules": [{**rule, "http": {"paths": list(paths)}}]}


_PATH: Object = {"path": "/a", "pathType": "Prefix", "backend": _BACKEND}
_CLASS = {"annotations": {"kubernetes.io/ingress.class": "nginx"}}
INGRESSES.post("plain", _INGRESSES, _ingress("plain", defaultBackend=_BACKEND))
INGRESSES.post(
    "full",
    _INGRESSES,
    _ingress(
        "full",
        **_paths(_PATH, {**_PATH, "pathType": "ImplementationSpecific", "path": ""}, host="*.example.com"),
        tls=[{"hosts": ["a.example.com", "*.example.com"], "secretName": "s"}],
        ingressClassName="nginx",
    ),
)
INGRESSES.post("class-by-annotation", _INGRESSES, _ingress("old", _CLASS, defaultBackend=_BACKEND))
INGRESSES.post(
    "resource",
    _INGRESSES,
    _ingress("resource", defaultBackend={"resource": {"apiGroup": "example.com", "kind": "K", "name": "n"}}),
)
INGRESSES.patch("change", "merge", f"{_INGRESSES}/plain", {"spec": {"ingressClassName": "other"}})
INGRESSES.patch("label", "merge", f"{_INGRESSES}/plain", {"metadata": {"labels": {"a": "b"}}})
INGRESSES.patch(
    "status",
    "merge",
    f"{_INGRESSES}/plain/status",
    {"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}, {"hostname": "a.example.com"}]}}},
)
INGRESSES.patch(
    "status-refused",
    "merge",
    f"{_INGRESSES}/plain/status",
    {"status": {"loadBalancer": {"ingress": [{"ip": "a"}, {"hostname": "A b"}, {"hostname": "192.0.2.1"}]}}},
    422,
)
INGRESSES.get("rows", _INGRESSES, headers=_TABLE)
_refused_ingresses: dict[str, Object] = {
    "empty": {},
    "no-backend": {"defaultBackend": {}},
    "both-backends": {"defaultBackend": {**_BACKEND, "resource": {"kind": "K", "name": "n"}}},
    "bad-resource": {"defaultBackend": {"resource": {"apiGroup": "A b", "kind": "", "name": "a/b"}}},
    "no-service": {"defaultBackend": {"service": {}}},
    "both-ports": {"defaultBackend": {"service": {"name": "A b", "port": {"name": "a", "number": 1}}}},
    "bad-port-name": {"defaultBackend": {"service": {"name": "a", "port": {"name": "A--b"}}}},
    "bad-port": {"defaultBackend": {"service": {"name": "a", "port": {"number": 70000}}}},
    "no-paths": {"rules": [{"http": {"paths": []}}]},
    "no-path-type": _paths({"path": "/a", "backend": _BACKEND}),
    "bad-path-type": _paths({**_PATH, "pathType": "Any"}),
    "bad-paths": _paths(
        {**_PATH, "path": "a//b/./c%2f/.."}, {**_PATH, "pathType": "ImplementationSpecific", "path": "a"}
    ),
    "hosts": {
        "rules": [{"host": "192.0.2.1"}, {"host": "*.*.com"}, {"host": "A b"}],
        "defaultBackend": _BACKEND,
    },
    "tls": {"tls": [{"hosts": ["*", "A b"], "secretName": "A b"}], "defaultBackend": _BACKEND},
    "bad-class": {"ingressClassName": "A b", "defaultBackend": _BACKEND},
}
for _name, _spec in _refused_ingresses.items():
    INGRESSES.post(f"refused-{_name}", _INGRESSES, _ingress("refused", **_spec), 422)
INGRESSES.post(
    "refused-two-classes",
    _INGRESSES,
    _ingress("refused", _CLASS, defaultBackend=_BACKEND, ingressClassName="other"),
    422,
)
INGRESSES.delete("delete", f"{_INGRESSES}/plain")

CLASSES = Area("classes")
_PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"
_RUNTIMES = "/apis/node.k8s.io/v1/runtimeclasses"
_CSI_NODES = "/apis/storage.k8s.io/v1/csinodes"
_PODS = "/api/v1/namespaces/${ns}/pods"


def _priority(name: str, value: int, **fields: Any) -> Object:
    return of("scheduling.k8s.io/v1", "PriorityClass", name, value=value, **fields)


def _without_age(body: Any) -> Any:
    """The servers started at different times."""
    metadata = {**body["metadata"], "creationTimestamp": "", "uid": "", "resourceVersion": ""}
    return {**body, "metadata": metadata}


for _name in ("system-node-critical", "system-cluster-critical"):
    CLASSES.get(_name, f"{_PRIORITIES}/{_name}", pick=_without_age)
CLASSES.post("priority", _PRIORITIES, _priority("diff-high", 1000, description="high"))
CLASSES.post("priority-never", _PRIORITIES, _priority("diff-never", -5, preemptionPolicy="Never"))
CLASSES.post("pod-of-a-class", _PODS, pod("of-a-class", priorityClassName="diff-high"))
CLASSES.post("pod-of-another", _PODS, pod("of-another", priorityClassName="diff-never"))
CLASSES.post("pod-with-its-value", _PODS, pod("with-its-value", priorityClassName="diff-high", priority=1000))
CLASSES.post("pod-with-another-value", _PODS, pod("refused", priorityClassName="diff-high", priority=1), 403)
CLASSES.post(
    "pod-with-another-policy",
    _PODS,
    pod("refused", priorityClassName="diff-never", preemptionPolicy="PreemptLowerPriority"),
    403,
)
CLASSES.post("pod-of-no-class", _PODS, pod("refused", priorityClassName="nothing"), 403)
CLASSES.post("priority-default", _PRIORITIES, _priority("diff-default", 7, globalDefault=True))
CLASSES.post("priority-second-default", _PRIORITIES, _priority("diff-second", 8, globalDefault=True), 403)
CLASSES.patch("priority-becomes-default", "merge", f"{_PRIORITIES}/diff-high", {"globalDefault": True}, 403)
CLASSES.patch("priority-stays-default", "merge", f"{_PRIORITIES}/diff-default", {"description": "x"})
CLASSES.delete("priority-default-delete", f"{_PRIORITIES}/diff-default")
CLASSES.post("pod-after-it", _PODS, pod("after-it"))
CLASSES.post("priority-too-high", _PRIORITIES, _priority("diff-refused", 1000000001), 422)
CLASSES.post("priority-system", _PRIORITIES, _priority("system-diff", 1), 422)
CLASSES.post("priority-policy", _PRIORITIES, _priority("diff-refused", 1, preemptionPolicy="Maybe"), 422)
CLASSES.patch(
    "priority-value", "merge", f"{_PRIORITIES}/diff-high", {"value": 5, "preemptionPolicy": "Never"}, 422
)
CLASSES.patch("priority-description", "merge", f"{_PRIORITIES}/diff-high", {"description": "low"})
CLASSES.get("priority-rows", f"{_PRIORITIES}?fieldSelector=metadata.name%3Ddiff-high", headers=_TABLE)
CLASSES.delete("priority-delete", f"{_PRIORITIES}/diff-high")
CLASSES.delete("priority-never-delete", f"{_PRIORITIES}/diff-never")


def _runtime(name: str, handler: str = "runc", **fields: Any) -> Object:
    return of("node.k8s.io/v1", "RuntimeClass", name, handler=handler, **fields)


_SCHEDULING = {
    "nodeSelector": {"a": "b"},
    "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoSchedule"}],
}
CLASSES.post("runtime", _RUNTIMES, _runtime("diff-runc"))
CLASSES.post(
    "runtime-full",
    _RUNTIMES,
    _runtime("diff-full", overhead={"podFixed": {"cpu": "0.25", "memory": "100Mi"}}, scheduling=_SCHEDULING),
)
CLASSES.put("runtime-by-update", f"{_RUNTIMES}/diff-put", _runtime("diff-put"), 201)
CLASSES.put("runtime-without-version", f"{_RUNTIMES}/diff-put", _runtime("diff-put"), 422)
CLASSES.patch("runtime-handler", "merge", f"{_RUNTIMES}/diff-runc", {"handler": "other"}, 422)
CLASSES.patch("runtime-label", "merge", f"{_RUNTIMES}/diff-runc", {"metadata": {"labels": {"a": "b"}}})
_refused_runtimes: dict[str, Object] = {
    "no-handler": {"handler": ""},
    "bad-handler": {"handler": "A.b"},
    "overhead": {"overhead": {"podFixed": {"cpu": "-1", "odd": "1"}}},
    "selector": {"scheduling": {"nodeSelector": {"a b": "c d"}}},
    "tolerations": {
        "scheduling": {
            "tolerations": [
                {"key": "k", "operator": "Maybe"},
                {"key": "k", "operator": "Exists"},
                {"key": "k", "operator": "Exists", "tolerationSeconds": 1},
            ]
        }
    },
}
for _name, _fields in _refused_runtimes.items():
    CLASSES.post(f"runtime-{_name}", _RUNTIMES, _runtime("diff-refused", **_fields), 422, unordered=True)
CLASSES.get("runtime-rows", f"{_RUNTIMES}?fieldSelector=metadata.name%3Ddiff-runc", headers=_TABLE)
for _name in ("runc", "full", "put"):
    CLASSES.delete(f"runtime-{_name}-delete", f"{_RUNTIMES}/diff-{_name}")


def _csi_node(name: str, *drivers: Object) -> Object:
    return of("storage.k8s.io/v1", "CSINode", name, spec={"drivers": list(drivers)})


_DRIVER = {
    "name": "csi.example.com",
    "nodeID": "n1",
    "topologyKeys": ["example.com/zone"],
    "allocatable": {"count": 5},
}
CLASSES.post("csi", _CSI_NODES, _csi_node("diff-node", _DRIVER))
CLASSES.post("csi-empty", _CSI_NODES, of("storage.k8s.io/v1", "CSINode", "diff-empty", spec={}))
CLASSES.post("csi-plain", _CSI_NODES, _csi_node("diff-plain", {"name": "csi.example.com", "nodeID": "n"}))
CLASSES.patch(
    "csi-count",
    "merge",
    f"{_CSI_NODES}/diff-node",
    {"spec": {"drivers": [{**_DRIVER, "allocatable": {"count": 6}}]}},
)
CLASSES.patch(
    "csi-change",
    "merge",
    f"{_CSI_NODES}/diff-node",
    {"spec": {"drivers": [{**_DRIVER, "nodeID": "n2"}]}},
    422,
)
CLASSES.patch(
    "csi-strategic",
    "strategic",
    f"{_CSI_NODES}/diff-node",
    {"spec": {"drivers": [{"name": "b", "nodeID": "n"}]}},
)
_refused_drivers: dict[str, list[Object]] = {
    "nothing": [{}],
    "bad-name": [{**_DRIVER, "name": "A b"}],
    "long-name": [{**_DRIVER, "name": "a" * 64, "nodeID": "n" * 257}],
    "twice": [_DRIVER, _DRIVER],
    "keys": [{**_DRIVER, "topologyKeys": ["", "a", "a", "a b"], "allocatable": {"count": -1}}],
}
for _name, _drivers in _refused_drivers.items():
    CLASSES.post(f"csi-{_name}", _CSI_NODES, _csi_node("diff-refused", *_drivers), 422)
CLASSES.get("csi-rows", f"{_CSI_NODES}?fieldSelector=metadata.name%3Ddiff-node", headers=_TABLE)
for _name in ("node", "empty", "plain"):
    CLASSES.delete(f"csi-{_name}-delete", f"{_CSI_NODES}/diff-{_name}")

API_SERVICES = Area("api-services")
_API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"


def _api_service(name: str, **spec: Any) -> Object:
    given = {
        "group": "remote.example.com",
        "version": "v1",
        "groupPriorityMinimum": 100,
        "versionPriority": 10,
        "service": {"namespace": "${ns}", "name": "nowhere"},
        "insecureSkipTLSVerify": True,
    }
    kept = {key: value for key, value in (given | spec).items() if value is not None}
    return of("apiregistration.k8s.io/v1", "APIService", name, spec=kept)


def _without_status(body: Any) -> Any:
    """The condition comes a moment later, and with it another version."""
    metadata = {**body["metadata"], "resourceVersion": ""}
    return {**{key: value for key, value in body.items() if key != "status"}, "metadata": metadata}


_NAME = "v1.remote.example.com"
_HERE = f"{_API_SERVICES}/{_NAME}"


def _has(reason: str) -> Any:
    return lambda body: reason in str(body.get("status"))


API_SERVICES.post("create", _API_SERVICES, _api_service(_NAME), pick=_without_status)
API_SERVICES.get("no-service", _HERE, until=_has("ServiceNotFound"), pick=lambda body: body["status"])
API_SERVICES.get(
    "not-served", "/apis/remote.example.com/v1/things", 503, pick=lambda body: "unavailable" in str(body)
)
_SERVICES = "/api/v1/namespaces/${ns}/services"
_service = of("v1", "Service", "nowhere", spec={"ports": [{"port": 80}]})
API_SERVICES.post("service", _SERVICES, _service)
API_SERVICES.get("wrong-port", _HERE, until=_has("ServicePortError"), pick=lambda body: body["status"])
API_SERVICES.patch("service-port", "merge", f"{_SERVICES}/nowhere", {"spec": {"ports": [{"port": 443}]}})
API_SERVICES.get("no-endpoints", _HERE, until=_has("EndpointsNotFound"), pick=lambda body: body["status"])
_slice = of(
    "discovery.k8s.io/v1",
    "EndpointSlice",
    "nowhere",
    metadata={"labels": {"kubernetes.io/service-name": "nowhere"}},
    addressType="IPv4",
    ports=[{"name": "", "port": 1}],
)
API_SERVICES.post("slice", "/apis/discovery.k8s.io/v1/namespaces/${ns}/endpointslices", _slice)
API_SERVICES.get("no-addresses", _HERE, until=_has("MissingEndpoints"), pick=lambda body: body["status"])
API_SERVICES.get("group", "/apis/remote.example.com")
API_SERVICES.get(
    "status-row", _HERE, headers=_TABLE, pick=lambda body: [row["cells"][:3] for row in body["rows"]]
)
API_SERVICES.delete("delete", _HERE, pick=lambda body: body["status"])
_bundle = "QUJD"
_refused_services: dict[str, Object] = {
    "name": {"version": "v2"},
    "group": {"group": "Bad Group"},
    "version": {"version": "1a"},
    "priorities": {"groupPriorityMinimum": 0, "versionPriority": 1001},
    "service": {"service": {}},
    "port": {"service": {"namespace": "a", "name": "b", "port": 70000}},
    "insecure-with-bundle": {"caBundle": _bundle},
    "local-with-bundle": {"service": None, "caBundle": _bundle},
}
for _name, _spec in _refused_services.items():
    API_SERVICES.post(f"refused-{_name}", _API_SERVICES, _api_service(_NAME, **_spec), 422)
API_SERVICES.post(
    "local",
    _API_SERVICES,
    _api_service("v9.remote.example.com", version="v9", service=None, insecureSkipTLSVerify=None),
)
API_SERVICES.delete(
    "local-delete", f"{_API_SERVICES}/v9.remote.example.com", pick=lambda body: body["status"]
)
_SERVED = ("", "apps", "autoscaling", "batch", "events.k8s.io", "policy", "rbac.authorization.k8s.io")
for _group in _SERVED:
    API_SERVICES.get(f"local-{_group or 'core'}", f"{_API_SERVICES}/v1.{_group}", pick=_without_status)


def _priorities(body: Any) -> Any:
    """Of the groups and versions that both serve: kube-apiserver has more of them."""
    ours = ("v1", "v2")
    return {
        each["metadata"]["name"]: each["spec"] for each in body["items"] if each["spec"]["version"] in ours
    }


_LOCAL = "labelSelector=kube-aggregator.kubernetes.io%2Fautomanaged%3Donstart"
API_SERVICES.get("local-list", f"{_API_SERVICES}?{_LOCAL}", pick=_priorities)
_RESOURCE = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_definition = of(
    "apiextensions.k8s.io/v1",
    "CustomResourceDefinition",
    "nets.fishery.example.com",
    spec={
        "group": "fishery.example.com",
        "scope": "Namespaced",
        "names": {"plural": "nets", "kind": "Net"},
        "versions": [_RESOURCE, {**_RESOURCE, "name": "v2", "storage": False, "served": False}],
    },
)
API_SERVICES.post("definition", _DEFINITIONS, _definition, pick=lambda body: body["spec"])
_FISHERY = f"{_API_SERVICES}/v1.fishery.example.com"
API_SERVICES.get("local-of-a-definition", _FISHERY, until=_has("Local"))
API_SERVICES.get("local-of-an-unserved-version", f"{_API_SERVICES}/v2.fishery.example.com", 404)
API_SERVICES.delete(
    "definition-delete", f"{_DEFINITIONS}/nets.fishery.example.com", pick=lambda body: body["status"]
)
API_SERVICES.get("local-gone", _FISHERY, 404, until=lambda body: body["kind"] == "Status")
