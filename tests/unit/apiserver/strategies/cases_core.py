"""Everything that is neither a pod nor a controller of pods, with answers recorded in `golden/core.json`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.unit.apiserver.strategies.cases_pods import Case


def thing(kind: str, api_version: str = "v1", *, name: str = "x", **fields: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": "default", **fields.pop("meta", {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, **fields}


def cluster_thing(kind: str, *, name: str = "x", **fields: Any) -> dict[str, Any]:
    obj = thing(kind, name=name, **fields)
    del obj["metadata"]["namespace"]
    return obj


def namespaces() -> Iterator[Case]:
    yield "plain", cluster_thing("Namespace")
    yield "labels", cluster_thing("Namespace", meta={"labels": {"a": "b"}})
    yield "finalizers", cluster_thing("Namespace", spec={"finalizers": ["a.b/c"]})
    yield "bad finalizers", cluster_thing("Namespace", spec={"finalizers": ["a b", "x"]})
    yield "status", cluster_thing("Namespace", status={"phase": "Terminating"})
    for name in ("A", "a.b", "a_b", "a" * 64):
        yield f"name {name[:5]} {len(name)}", cluster_thing("Namespace", name=name)


def nodes() -> Iterator[Case]:
    yield "plain", cluster_thing("Node")
    yield (
        "spec",
        cluster_thing("Node", spec={"unschedulable": True, "podCIDR": "10.1.0.0/24", "providerID": "a://b"}),
    )
    yield "falsy", cluster_thing("Node", spec={"unschedulable": False, "podCIDR": "", "taints": []})
    yield "ranges", cluster_thing("Node", spec={"podCIDRs": ["10.1.0.0/24", "fd00::/64"]})
    yield "bad ranges", cluster_thing("Node", spec={"podCIDRs": ["10.1.0.0/24", "10.2.0.0/24"]})
    yield "worse ranges", cluster_thing("Node", spec={"podCIDRs": ["x"]})
    yield (
        "taints",
        cluster_thing("Node", spec={"taints": [{"key": "a", "effect": "NoSchedule", "value": ""}]}),
    )
    yield (
        "bad taints",
        cluster_thing(
            "Node",
            spec={
                "taints": [
                    {"key": "a b", "value": "x y", "effect": "NoSchedule"},
                    {"key": "a", "effect": ""},
                    {"key": "a", "effect": "X"},
                    {"key": "b", "effect": "NoExecute"},
                    {"key": "b", "effect": "NoExecute", "value": "c"},
                ]
            },
        ),
    )
    yield (
        "status",
        cluster_thing(
            "Node",
            status={
                "capacity": {"cpu": "4000m", "memory": "16Gi", "pods": 110},
                "conditions": [{"type": "Ready", "status": "True"}],
                "addresses": [{"type": "InternalIP", "address": "1.2.3.4"}],
                "nodeInfo": {"kubeletVersion": "v1"},
            },
        ),
    )
    yield "bad status", cluster_thing("Node", status={"capacity": {"cpu": "-1", "pods": "1.5"}})
    yield "bad name", cluster_thing("Node", name="A_b")


def config_maps() -> Iterator[Case]:
    yield "plain", thing("ConfigMap")
    yield "data", thing("ConfigMap", data={"a.b": "c", "d": ""}, binaryData={"e": "AAA="})
    yield "empty data", thing("ConfigMap", data={}, binaryData={})
    yield "immutable", thing("ConfigMap", data={"a": "b"}, immutable=True)
    yield "not immutable", thing("ConfigMap", data={"a": "b"}, immutable=False)
    yield "bad keys", thing("ConfigMap", data={"a/b": "", "..": "", ".": "", "..a": ""})
    yield "both", thing("ConfigMap", data={"a": ""}, binaryData={"a": "AAA="})
    yield "large", thing("ConfigMap", data={"a": "x" * 1048577})


def secrets() -> Iterator[Case]:
    yield "plain", thing("Secret")
    yield "data", thing("Secret", data={"a": "AAA="})
    yield "string data", thing("Secret", data={"a": "AAA=", "b": "AAA="}, stringData={"a": "text", "c": "ä"})
    yield "empty", thing("Secret", data={}, stringData={}, type="")
    yield "bad key", thing("Secret", data={"a b": "AAA="})
    yield "large", thing("Secret", stringData={"a": "x" * 1048577})
    for kind in ("service-account-token", "dockercfg", "dockerconfigjson", "basic-auth", "ssh-auth", "tls"):
        yield f"bare {kind}", thing("Secret", type=f"kubernetes.io/{kind}")
    yield "tls", thing("Secret", type="kubernetes.io/tls", stringData={"tls.crt": "", "tls.key": ""})
    yield "basic", thing("Secret", type="kubernetes.io/basic-auth", stringData={"username": "u"})
    yield (
        "docker",
        thing("Secret", type="kubernetes.io/dockerconfigjson", stringData={".dockerconfigjson": "{}"}),
    )
    yield "own type", thing("Secret", type="example.com/x", immutable=True)


def service_accounts() -> Iterator[Case]:
    yield "plain", thing("ServiceAccount")
    yield (
        "full",
        thing(
            "ServiceAccount",
            secrets=[{"name": "s"}],
            imagePullSecrets=[],
            automountServiceAccountToken=False,
        ),
    )
    yield "bad name", thing("ServiceAccount", name="A")


def services() -> Iterator[Case]:
    port = {"port": 80}
    yield "plain", thing("Service", spec={"ports": [port]})
    yield (
        "selector",
        thing(
            "Service", spec={"selector": {"a": "b"}, "ports": [{**port, "targetPort": "http", "name": "w"}]}
        ),
    )
    yield "no ports", thing("Service", spec={})
    yield "no spec", thing("Service")
    yield "headless", thing("Service", spec={"clusterIP": "None", "selector": {"a": "b"}})
    yield "headless without selector", thing("Service", spec={"clusterIP": "None"})
    yield "node port", thing("Service", spec={"type": "NodePort", "ports": [{**port, "nodePort": 30080}]})
    yield (
        "load balancer",
        thing("Service", spec={"type": "LoadBalancer", "ports": [{**port, "nodePort": 30080}]}),
    )
    yield "external name", thing("Service", spec={"type": "ExternalName", "externalName": "a.b"})
    yield "external name missing", thing("Service", spec={"type": "ExternalName"})
    yield (
        "external name with address",
        thing(
            "Service",
            spec={
                "type": "ExternalName",
                "externalName": "A",
                "clusterIPs": ["10.0.0.9"],
                "clusterIP": "10.0.0.9",
            },
        ),
    )
    yield "affinity", thing("Service", spec={"ports": [port], "sessionAffinity": "ClientIP"})
    yield (
        "affinity long",
        thing(
            "Service",
            spec={
                "ports": [port],
                "sessionAffinity": "ClientIP",
                "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 0}},
            },
        ),
    )
    yield "affinity unknown", thing("Service", spec={"ports": [port], "sessionAffinity": "X"})
    yield "type unknown", thing("Service", spec={"ports": [port], "type": "X"})
    yield (
        "bad ports",
        thing(
            "Service",
            spec={
                "ports": [
                    {"port": 0},
                    {"port": 80, "name": "A"},
                    {"port": 80, "name": "b", "protocol": "X"},
                    {"port": 81, "name": "b", "targetPort": 70000, "nodePort": 30000},
                    {"port": 82, "name": "c", "targetPort": "a--b", "appProtocol": "a b"},
                ]
            },
        ),
    )
    yield (
        "same port twice",
        thing("Service", spec={"ports": [{"port": 1, "name": "a"}, {"port": 1, "name": "b"}]}),
    )
    yield (
        "headless node port",
        thing("Service", spec={"type": "NodePort", "clusterIP": "None", "ports": [port]}),
    )
    yield "bad address", thing("Service", spec={"clusterIP": "x", "ports": [port]})
    yield "external addresses", thing("Service", spec={"externalIPs": ["1.2.3.4"], "ports": [port]})
    yield (
        "bad external addresses",
        thing("Service", spec={"externalIPs": ["127.0.0.1", "0.0.0.0", "169.254.1.1", "x"], "ports": [port]}),
    )
    yield (
        "policies",
        thing(
            "Service",
            spec={
                "ports": [port],
                "externalTrafficPolicy": "Local",
                "internalTrafficPolicy": "X",
                "trafficDistribution": "Y",
            },
        ),
    )
    yield "allocate", thing("Service", spec={"ports": [port], "allocateLoadBalancerNodePorts": True})
    yield "bad selector", thing("Service", spec={"ports": [port], "selector": {"a b": "c"}})
    yield "name with a digit first", thing("Service", name="1a", spec={"ports": [port]})
    yield "dotted name", thing("Service", name="a.b", spec={"ports": [port]})
    yield "not ready", thing("Service", spec={"ports": [port], "publishNotReadyAddresses": False})


def endpoints() -> Iterator[Case]:
    yield "plain", thing("Endpoints")
    yield "subset", thing("Endpoints", subsets=[{"addresses": [{"ip": "1.2.3.4"}], "ports": [{"port": 80}]}])
    yield (
        "bad",
        thing(
            "Endpoints",
            subsets=[
                {},
                {"addresses": [{"ip": "x"}, {"ip": "127.0.0.1", "hostname": "A", "nodeName": "B"}]},
                {
                    "notReadyAddresses": [{"ip": "1.2.3.4"}],
                    "ports": [{"port": 0}, {"port": 1, "protocol": "X", "name": "A"}],
                },
            ],
        ),
    )


def claims() -> Iterator[Case]:
    good = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}}
    yield "plain", thing("PersistentVolumeClaim", spec=good)
    yield "nothing", thing("PersistentVolumeClaim")
    yield "class", thing("PersistentVolumeClaim", spec={**good, "storageClassName": "", "volumeName": "v"})
    yield "bad class", thing("PersistentVolumeClaim", spec={**good, "storageClassName": "A b"})
    yield (
        "modes",
        thing(
            "PersistentVolumeClaim", spec={**good, "accessModes": ["ReadWriteOncePod", "ReadOnlyMany", "X"]}
        ),
    )
    yield "volume mode", thing("PersistentVolumeClaim", spec={**good, "volumeMode": "X"})
    yield (
        "no size",
        thing("PersistentVolumeClaim", spec={**good, "resources": {"requests": {"storage": "0"}}}),
    )
    yield "selector", thing("PersistentVolumeClaim", spec={**good, "selector": {"matchLabels": {"a b": "c"}}})
    yield (
        "source",
        thing(
            "PersistentVolumeClaim",
            spec={**good, "dataSource": {"kind": "PersistentVolumeClaim", "name": "y"}},
        ),
    )
    yield "bad source", thing("PersistentVolumeClaim", spec={**good, "dataSource": {"kind": "X", "name": ""}})
    yield "status", thing("PersistentVolumeClaim", spec=good, status={"phase": "Bound"})


def volumes() -> Iterator[Case]:
    good = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1024Mi"}, "hostPath": {"path": "/x"}}
    yield "plain", cluster_thing("PersistentVolume", spec=good)
    yield "nothing", cluster_thing("PersistentVolume")
    yield "policy", cluster_thing("PersistentVolume", spec={**good, "persistentVolumeReclaimPolicy": "X"})
    yield (
        "two sources",
        cluster_thing("PersistentVolume", spec={**good, "nfs": {"server": "s", "path": "/p"}}),
    )
    yield "capacity", cluster_thing("PersistentVolume", spec={**good, "capacity": {"storage": "0"}})
    yield "other capacity", cluster_thing("PersistentVolume", spec={**good, "capacity": {"cpu": "1"}})
    yield "modes", cluster_thing("PersistentVolume", spec={**good, "accessModes": ["X"], "volumeMode": "X"})
    yield "path", cluster_thing("PersistentVolume", spec={**good, "hostPath": {"path": "/a/../b"}})
    yield (
        "recycle root",
        cluster_thing(
            "PersistentVolume",
            spec={**good, "hostPath": {"path": "/"}, "persistentVolumeReclaimPolicy": "Recycle"},
        ),
    )
    local = {key: value for key, value in good.items() if key != "hostPath"}
    yield "local", cluster_thing("PersistentVolume", spec={**local, "local": {"path": "/x"}})
    yield "affinity", cluster_thing("PersistentVolume", spec={**good, "nodeAffinity": {}})
    yield "class", cluster_thing("PersistentVolume", spec={**good, "storageClassName": "A b"})


def leases() -> Iterator[Case]:
    def lease(**spec: Any) -> dict[str, Any]:
        return thing("Lease", "coordination.k8s.io/v1", spec=spec)

    yield "plain", lease(holderIdentity="me", leaseDurationSeconds=40)
    yield "no spec", thing("Lease", "coordination.k8s.io/v1")
    yield "zero", lease(leaseDurationSeconds=0, leaseTransitions=-1)
    yield "preferred", lease(preferredHolder="you")


def budgets() -> Iterator[Case]:
    def budget(**spec: Any) -> dict[str, Any]:
        return thing("PodDisruptionBudget", "policy/v1", spec=spec)

    selector = {"matchLabels": {"a": "b"}}
    yield "plain", budget(minAvailable=1, selector=selector)
    yield "percent", budget(maxUnavailable="50%", selector={})
    yield "nothing", thing("PodDisruptionBudget", "policy/v1")
    yield "both", budget(minAvailable=1, maxUnavailable=1, selector=selector)
    yield "bad", budget(minAvailable="x")
    yield "much", budget(maxUnavailable="101%")
    yield "negative", budget(maxUnavailable=-1)
    yield "policy", budget(unhealthyPodEvictionPolicy="AlwaysAllow")
    yield "policy unknown", budget(unhealthyPodEvictionPolicy="X")
    yield "selector", budget(selector={"matchExpressions": [{"key": "a", "operator": "X"}]})


def events() -> Iterator[Case]:
    about = {"kind": "Pod", "namespace": "default", "name": "p"}
    yield "plain", thing("Event", involvedObject=about, reason="R", message="m", type="Normal")
    yield (
        "with everything",
        thing(
            "Event",
            involvedObject=about,
            reason="R",
            message="m",
            type="Warning",
            count=2,
            source={"component": "c"},
            firstTimestamp="2030-01-01T00:00:00Z",
            lastTimestamp="2030-01-01T00:00:00Z",
        ),
    )
    yield "elsewhere", thing("Event", involvedObject={**about, "namespace": "other"})
    yield "of the cluster", thing("Event", involvedObject={"kind": "Node", "name": "n"})
    yield (
        "exact time",
        thing(
            "Event",
            involvedObject=about,
            eventTime="2030-01-01T00:00:00.000000Z",
            reportingComponent="a.b/c",
            reportingInstance="i",
            action="A",
            reason="R",
        ),
    )
    yield "exact time alone", thing("Event", involvedObject=about, eventTime="2030-01-01T00:00:00.000000Z")
    yield "odd name", thing("Event", name="A b", involvedObject=about)
