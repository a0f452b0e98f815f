"""Everything that is neither a pod nor a controller of pods, with answers recorded in `golden/core.json`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.unit.apiserver.strategies.cases_pods import Case

Object = dict[str, Any]


def thing(kind: str, api_version: str = "v1", *, name: str = "x", **fields: Any) -> Object:
    meta = {"name": name, "namespace": "default", **fields.pop("meta", {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, **fields}


def cluster_thing(kind: str, *, name: str = "x", **fields: Any) -> Object:
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
    bad_taints = [
        {"key": "a b", "value": "x y", "effect": "NoSchedule"},
        {"key": "a", "effect": ""},
        {"key": "a", "effect": "X"},
        {"key": "b", "effect": "NoExecute"},
        {"key": "b", "effect": "NoExecute", "value": "c"},
    ]
    specs: dict[str, Object] = {
        "spec": {"unschedulable": True, "podCIDR": "10.1.0.0/24", "providerID": "a://b"},
        "falsy": {"unschedulable": False, "podCIDR": "", "taints": []},
        "ranges": {"podCIDRs": ["10.1.0.0/24", "fd00::/64"]},
        "bad ranges": {"podCIDRs": ["10.1.0.0/24", "10.2.0.0/24"]},
        "worse ranges": {"podCIDRs": ["x"]},
        "taints": {"taints": [{"key": "a", "effect": "NoSchedule", "value": ""}]},
        "bad taints": {"taints": bad_taints},
    }
    for label, spec in specs.items():
        yield label, cluster_thing("Node", spec=spec)
    status = {
        "capacity": {"cpu": "4000m", "memory": "16Gi", "pods": 110},
        "conditions": [{"type": "Ready", "status": "True"}],
        "addresses": [{"type": "InternalIP", "address": "1.2.3.4"}],
        "nodeInfo": {"kubeletVersion": "v1"},
    }
    yield "status", cluster_thing("Node", status=status)
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
    docker = {".dockerconfigjson": "{}"}
    yield "docker", thing("Secret", type="kubernetes.io/dockerconfigjson", stringData=docker)
    yield "own type", thing("Secret", type="example.com/x", immutable=True)


def service_accounts() -> Iterator[Case]:
    yield "plain", thing("ServiceAccount")
    full: Object = {"secrets": [{"name": "s"}], "imagePullSecrets": [], "automountServiceAccountToken": False}
    yield "full", thing("ServiceAccount", **full)
    yield "bad name", thing("ServiceAccount", name="A")


def services() -> Iterator[Case]:
    yield "no spec", thing("Service")
    port = {"port": 80}
    ports = {"ports": [port]}
    on_node = {"ports": [{**port, "nodePort": 30080}]}
    bad_ports = [
        {"port": 0},
        {"port": 80, "name": "A"},
        {"port": 80, "name": "b", "protocol": "X"},
        {"port": 81, "name": "b", "targetPort": 70000, "nodePort": 30000},
        {"port": 82, "name": "c", "targetPort": "a--b", "appProtocol": "a b"},
    ]
    external = {
        "type": "ExternalName",
        "externalName": "A",
        "clusterIPs": ["10.0.0.9"],
        "clusterIP": "10.0.0.9",
    }
    by_client = {**ports, "sessionAffinity": "ClientIP"}
    policies = {"externalTrafficPolicy": "Local", "internalTrafficPolicy": "X", "trafficDistribution": "Y"}
    specs: dict[str, Object] = {
        "plain": ports,
        "selector": {"selector": {"a": "b"}, "ports": [{**port, "targetPort": "http", "name": "w"}]},
        "no ports": {},
        "headless": {"clusterIP": "None", "selector": {"a": "b"}},
        "headless without selector": {"clusterIP": "None"},
        "node port": {"type": "NodePort", **on_node},
        "load balancer": {"type": "LoadBalancer", **on_node},
        "external name": {"type": "ExternalName", "externalName": "a.b"},
        "external name missing": {"type": "ExternalName"},
        "external name with address": external,
        "affinity": by_client,
        "affinity long": {**by_client, "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 0}}},
        "affinity unknown": {**ports, "sessionAffinity": "X"},
        "type unknown": {**ports, "type": "X"},
        "bad ports": {"ports": bad_ports},
        "same port twice": {"ports": [{"port": 1, "name": "a"}, {"port": 1, "name": "b"}]},
        "headless node port": {**ports, "type": "NodePort", "clusterIP": "None"},
        "bad address": {**ports, "clusterIP": "x"},
        "external addresses": {**ports, "externalIPs": ["1.2.3.4"]},
        "bad external addresses": {**ports, "externalIPs": ["127.0.0.1", "0.0.0.0", "169.254.1.1", "x"]},
        "policies": {**ports, **policies},
        "allocate": {**ports, "allocateLoadBalancerNodePorts": True},
        "bad selector": {**ports, "selector": {"a b": "c"}},
        "not ready": {**ports, "publishNotReadyAddresses": False},
    }
    for label, spec in specs.items():
        yield label, thing("Service", spec=spec)
    yield "name with a digit first", thing("Service", name="1a", spec=ports)
    yield "dotted name", thing("Service", name="a.b", spec=ports)


def endpoints() -> Iterator[Case]:
    yield "plain", thing("Endpoints")
    yield "subset", thing("Endpoints", subsets=[{"addresses": [{"ip": "1.2.3.4"}], "ports": [{"port": 80}]}])
    bad = [
        {},
        {"addresses": [{"ip": "x"}, {"ip": "127.0.0.1", "hostname": "A", "nodeName": "B"}]},
        {
            "notReadyAddresses": [{"ip": "1.2.3.4"}],
            "ports": [{"port": 0}, {"port": 1, "protocol": "X", "name": "A"}],
        },
    ]
    yield "bad", thing("Endpoints", subsets=bad)


def claims() -> Iterator[Case]:
    good = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}}
    yield "plain", thing("PersistentVolumeClaim", spec=good)
    yield "nothing", thing("PersistentVolumeClaim")
    changes: dict[str, Object] = {
        "class": {"storageClassName": "", "volumeName": "v"},
        "bad class": {"storageClassName": "A b"},
        "modes": {"accessModes": ["ReadWriteOncePod", "ReadOnlyMany", "X"]},
        "volume mode": {"volumeMode": "X"},
        "no size": {"resources": {"requests": {"storage": "0"}}},
        "selector": {"selector": {"matchLabels": {"a b": "c"}}},
        "source": {"dataSource": {"kind": "PersistentVolumeClaim", "name": "y"}},
        "bad source": {"dataSource": {"kind": "X", "name": ""}},
    }
    for label, change in changes.items():
        yield label, thing("PersistentVolumeClaim", spec={**good, **change})
    yield "status", thing("PersistentVolumeClaim", spec=good, status={"phase": "Bound"})


def volumes() -> Iterator[Case]:
    bare = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1024Mi"}}
    good = {**bare, "hostPath": {"path": "/x"}}
    yield "plain", cluster_thing("PersistentVolume", spec=good)
    yield "nothing", cluster_thing("PersistentVolume")
    yield "local", cluster_thing("PersistentVolume", spec={**bare, "local": {"path": "/x"}})
    changes: dict[str, Object] = {
        "policy": {"persistentVolumeReclaimPolicy": "X"},
        "two sources": {"nfs": {"server": "s", "path": "/p"}},
        "capacity": {"capacity": {"storage": "0"}},
        "other capacity": {"capacity": {"cpu": "1"}},
        "modes": {"accessModes": ["X"], "volumeMode": "X"},
        "path": {"hostPath": {"path": "/a/../b"}},
        "recycle root": {"hostPath": {"path": "/"}, "persistentVolumeReclaimPolicy": "Recycle"},
        "affinity": {"nodeAffinity": {}},
        "class": {"storageClassName": "A b"},
    }
    for label, change in changes.items():
        yield label, cluster_thing("PersistentVolume", spec={**good, **change})


def leases() -> Iterator[Case]:
    def lease(**spec: Any) -> Object:
        return thing("Lease", "coordination.k8s.io/v1", spec=spec)

    yield "plain", lease(holderIdentity="me", leaseDurationSeconds=40)
    yield "no spec", thing("Lease", "coordination.k8s.io/v1")
    yield "zero", lease(leaseDurationSeconds=0, leaseTransitions=-1)
    yield "preferred", lease(preferredHolder="you")


def budgets() -> Iterator[Case]:
    def budget(**spec: Any) -> Object:
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
    text: Object = {"involvedObject": about, "reason": "R", "message": "m"}
    then, exactly = "2030-01-01T00:00:00Z", "2030-01-01T00:00:00.000000Z"
    seen: Object = {"count": 2, "source": {"component": "c"}, "firstTimestamp": then, "lastTimestamp": then}
    report = {"reportingComponent": "a.b/c", "reportingInstance": "i", "action": "A", "reason": "R"}
    yield "plain", thing("Event", **text, type="Normal")
    yield "with everything", thing("Event", **text, type="Warning", **seen)
    yield "elsewhere", thing("Event", involvedObject={**about, "namespace": "other"})
    yield "of the cluster", thing("Event", involvedObject={"kind": "Node", "name": "n"})
    yield "exact time", thing("Event", involvedObject=about, eventTime=exactly, **report)
    yield "exact time alone", thing("Event", involvedObject=about, eventTime=exactly)
    yield "odd name", thing("Event", name="A b", involvedObject=about)
