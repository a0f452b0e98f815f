"""Pods to create, with the answers of kube-apiserver recorded in `golden/pods.json`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Case = tuple[str, dict[str, Any]]


def pod(*containers: dict[str, Any], meta: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    metadata = {"name": "p", "namespace": "default", **(meta or {})}
    body = {"containers": list(containers) or [box()], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": body}


def box(name: str = "c", image: str | None = "busybox:1.36", **fields: Any) -> dict[str, Any]:
    container = {"name": name, **fields}
    if image is not None:
        container["image"] = image
    return container


def images() -> Iterator[Case]:
    for image in (
        "nginx",
        "nginx:latest",
        "nginx:1.25",
        "reg.example.com:5000/a/b",
        "reg.example.com:5000/a/b:v1",
        "nginx@sha256:" + "a" * 64,
        "nginx:latest@sha256:" + "a" * 64,
        "Nginx",
        "localhost/x",
        "UP/x",
        "a b",
        " nginx",
        "nginx ",
        "a" * 300,
        "foo__bar",
        "foo---bar:latest",
        "foo..bar",
    ):
        yield f"image {image[:40]}", pod(box(image=image))
    yield "no image", pod(box(image=None))
    yield "empty image", pod(box(image=""))
    yield "pull policy unknown", pod(box(imagePullPolicy="Sometimes"))
    yield "pull policy empty", pod(box(imagePullPolicy=""))


def names() -> Iterator[Case]:
    for name in ("", "A", "a.b", "a_b", "-a", "a-", "a" * 64, "ok-1", "1", "ä"):
        yield f"container name {name[:8]!r} {len(name)}", pod(box(name))
    yield "two containers of one name", pod(box("a"), box("a"))
    yield "init container named as a container", pod(box("a"), initContainers=[box("a")])
    for name in ("A", "a.b", "a_b", "a" * 254, "a..b", "-a", "x/y", "a%b", "...", "a-"):
        yield f"pod name {name[:8]!r} {len(name)}", pod(meta={"name": name})
    yield "bad labels", pod(meta={"labels": {"-a": "b"}})
    yield "bad label value", pod(meta={"labels": {"a": "b c"}})
    yield "label key with two slashes", pod(meta={"labels": {"a/b/c": "d"}})
    yield "label key with a bad prefix", pod(meta={"labels": {"A_/c": "d"}})
    yield "label key without a name", pod(meta={"labels": {"a.b/": "d"}})
    yield "label key without a prefix", pod(meta={"labels": {"/d": "d"}})
    yield "long label", pod(meta={"labels": {"k": "v" * 64}})
    yield "long label key", pod(meta={"labels": {"k" * 64: "v"}})
    yield "annotation key with capitals", pod(meta={"annotations": {"A.B/c": "d"}})
    yield "bad annotation key", pod(meta={"annotations": {"a b": "d"}})
    yield "huge annotations", pod(meta={"annotations": {"k": "v" * 262144}})
    yield "empty maps", pod(meta={"labels": {}, "annotations": {}, "finalizers": [], "ownerReferences": []})
    yield "finalizers", pod(meta={"finalizers": ["a.b/c", "orphan"]})
    yield "unqualified finalizer", pod(meta={"finalizers": ["a b"]})
    yield "both propagation finalizers", pod(meta={"finalizers": ["orphan", "foregroundDeletion"]})
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u"}
    yield from {
        "owner": pod(meta={"ownerReferences": [owner]}),
        "owner without a uid": pod(meta={"ownerReferences": [{**owner, "uid": ""}]}),
        "owner without anything": pod(
            meta={"ownerReferences": [{"apiVersion": "", "kind": "", "name": "", "uid": ""}]}
        ),
        "owner of a bad version": pod(meta={"ownerReferences": [{**owner, "apiVersion": "a/"}]}),
        "event as owner": pod(meta={"ownerReferences": [{**owner, "apiVersion": "v1", "kind": "Event"}]}),
    }.items()
    two = [{**owner, "controller": True}, {**owner, "controller": True, "name": "s", "uid": "v"}]
    yield "two controllers", pod(meta={"ownerReferences": two})
    yield "deletion cost", pod(meta={"annotations": {"controller.kubernetes.io/pod-deletion-cost": "12"}})
    yield "bad deletion cost", pod(meta={"annotations": {"controller.kubernetes.io/pod-deletion-cost": "+1"}})
    yield "mirror pod", pod(meta={"annotations": {"kubernetes.io/config.mirror": "x"}})


def spec_fields() -> Iterator[Case]:
    for policy in ("Always", "OnFailure", "Never", "", "Maybe"):
        yield f"restartPolicy {policy}", pod(restartPolicy=policy)
    for policy in ("ClusterFirst", "Default", "None", "X", "ClusterFirstWithHostNet"):
        yield f"dnsPolicy {policy}", pod(dnsPolicy=policy)
    yield from {
        "dns config": pod(dnsPolicy="None", dnsConfig={"nameservers": ["1.1.1.1"], "searches": ["a_b.c."]}),
        "bad dns config": pod(
            dnsConfig={
                "nameservers": ["1.1.1.1", "2.2.2.2", "::1", "x"],
                "searches": ["A", "."],
                "options": [{"value": "1"}],
            }
        ),
        "no nameservers": pod(dnsPolicy="None", dnsConfig={}),
    }.items()
    for seconds in (-1, 0, 30, 3600):
        yield f"terminationGracePeriodSeconds {seconds}", pod(terminationGracePeriodSeconds=seconds)
    for seconds in (-1, 0, 1, 2**31 - 1, 2**31):
        yield f"activeDeadlineSeconds {seconds}", pod(activeDeadlineSeconds=seconds)
    yield "no containers", {**pod(), "spec": {"containers": []}}
    yield "no containers field", {**pod(), "spec": {}}
    yield "no spec", {key: value for key, value in pod().items() if key != "spec"}
    for field in ("hostname", "subdomain", "nodeName", "serviceAccountName", "serviceAccount"):
        for how, text in (("good", "abc"), ("bad", "A_b"), ("empty", "")):
            named: dict[str, Any] = {field: text}
            yield f"{field} {how}", pod(**named)
    yield from {
        "schedulerName": pod(schedulerName="mine"),
        "falsy fields": pod(hostNetwork=False, hostPID=False, hostIPC=False, nodeSelector={}, tolerations=[]),
        "pointers to zero": pod(
            automountServiceAccountToken=False,
            enableServiceLinks=False,
            shareProcessNamespace=False,
            hostUsers=True,
            setHostnameAsFQDN=False,
            affinity={},
        ),
        "host network without host ports": pod(box(ports=[{"containerPort": 80}]), hostNetwork=True),
        "host network with another host port": pod(
            box(ports=[{"containerPort": 80, "hostPort": 81}]), hostNetwork=True
        ),
        "node selector": pod(nodeSelector={"disk": "ssd"}),
        "bad node selector": pod(nodeSelector={"disk ": "s sd"}),
        "image pull secrets": pod(imagePullSecrets=[{"name": "a"}, {}]),
        "host aliases": pod(
            hostAliases=[{"ip": "1.2.3.4", "hostnames": ["a.b"]}, {"ip": "x", "hostnames": ["B"]}]
        ),
        "readiness gates": pod(readinessGates=[{"conditionType": "a.b/c"}, {"conditionType": "a b"}]),
        "scheduling gates": pod(schedulingGates=[{"name": "a.b/c"}]),
        "bad scheduling gates": pod(schedulingGates=[{"name": "a"}, {"name": "a"}, {"name": "-"}]),
        "gates on a bound pod": pod(schedulingGates=[{"name": "a"}], nodeName="n"),
        "ephemeral containers on create": pod(ephemeralContainers=[box("e")]),
        "os linux": pod(os={"name": "linux"}),
        "os unknown": pod(os={"name": "beos"}),
        "os empty": pod(os={"name": ""}),
        "os windows with linux options": pod(
            box(securityContext={"privileged": False, "runAsUser": 1}),
            os={"name": "windows"},
            securityContext={"runAsUser": 1, "fsGroup": 2},
            hostPID=True,
        ),
        "hostname override": pod(hostnameOverride="a.b"),
        "bad hostname override": pod(hostnameOverride="A" * 65, setHostnameAsFQDN=True),
        "host users with host network": pod(hostUsers=False, hostNetwork=True, hostPID=True, hostIPC=True),
        "resource claims": pod(
            box(resources={"claims": [{"name": "x"}, {"name": "y"}, {"name": "x"}]}),
            resourceClaims=[{"name": "x", "resourceClaimName": "r"}, {"name": ""}, {"name": "x"}],
        ),
        "status is not the creator's": {**pod(), "status": {"phase": "Running", "podIP": "1.2.3.4"}},
    }.items()


def scheduling() -> Iterator[Case]:
    tolerations = [
        {"key": "a", "operator": "Exists"},
        {"key": "a", "value": "b", "effect": "NoSchedule"},
        {"operator": "Exists"},
        {"key": "c", "operator": "Equal", "value": "", "effect": "NoExecute", "tolerationSeconds": 0},
    ]
    yield "tolerations", pod(tolerations=tolerations)
    for index, toleration in enumerate(
        (
            {"key": "a", "operator": "Is"},
            {"key": "a", "operator": "Lt", "value": "1"},
            {"value": "b"},
            {"key": "a", "operator": "Exists", "value": "b"},
            {"key": "a", "value": "b c"},
            {"key": "a", "effect": "Sometimes"},
            {"key": "a", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 3},
            {"key": "a b", "operator": "Exists"},
        )
    ):
        yield f"bad toleration {index}", pod(tolerations=[toleration])
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    terms = [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}]
    yield "node affinity", pod(affinity={"nodeAffinity": {required: {"nodeSelectorTerms": terms}}})
    yield "node affinity without terms", pod(affinity={"nodeAffinity": {required: {"nodeSelectorTerms": []}}})
    bad = {
        "matchExpressions": [
            {"key": "a", "operator": "In"},
            {"key": "a b", "operator": "Exists", "values": ["x"]},
            {"key": "a", "operator": "Gt", "values": ["1", "2"]},
            {"key": "a", "operator": "Is", "values": ["a b"]},
        ],
        "matchFields": [
            {"key": "metadata.name", "operator": "In", "values": ["n", "m"]},
            {"key": "metadata.uid", "operator": "Exists"},
            {"key": "metadata.name", "operator": "In", "values": ["N"]},
        ],
    }
    yield "bad node affinity", pod(affinity={"nodeAffinity": {required: {"nodeSelectorTerms": [bad]}}})
    bad_preference = {preferred: [{"weight": 0, "preference": bad}]}
    yield "bad preferred node affinity", pod(affinity={"nodeAffinity": bad_preference})
    selector = {"matchLabels": {"app": "a"}}
    term: dict[str, Any] = {"labelSelector": selector, "topologyKey": "z"}
    incomplete = {**term, "labelSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}
    bad_terms = {
        required: [{"labelSelector": {"matchLabels": {"a b": "c"}}, "namespaces": ["A"]}],
        preferred: [{"weight": 101, "podAffinityTerm": incomplete}],
    }
    by_keys = {
        required: [{**term, "matchLabelKeys": ["v", "w"]}],
        preferred: [{"weight": 1, "podAffinityTerm": {**term, "mismatchLabelKeys": ["v"]}}],
    }
    no_selector = {required: [{"topologyKey": "z", "matchLabelKeys": ["v"]}]}
    yield "pod affinity", pod(affinity={"podAffinity": {required: [{**term, "topologyKey": "zone"}]}})
    yield "bad pod affinity", pod(affinity={"podAntiAffinity": bad_terms})
    yield "match label keys", pod(meta={"labels": {"app": "a", "v": "1"}}, affinity={"podAffinity": by_keys})
    yield "match label keys without a selector", pod(affinity={"podAffinity": no_selector})
    spread = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    for label, key, value in (("spread", "app", "a"), ("spread over new keys", "v", "1")):
        constraint = {**spread, "labelSelector": selector, "matchLabelKeys": [key]}
        yield label, pod(meta={"labels": {key: value}}, topologySpreadConstraints=[constraint])
    bad_constraints = [
        {"maxSkew": 0, "whenUnsatisfiable": "No"},
        {**spread, "minDomains": 0},
        {**spread, "nodeAffinityPolicy": "X", "labelSelector": {"matchLabels": {"-": ""}}},
        {**spread, "whenUnsatisfiable": "ScheduleAnyway", "minDomains": 2},
    ]
    yield "bad spread", pod(topologySpreadConstraints=bad_constraints)


def containers() -> Iterator[Case]:
    bad_ports: list[dict[str, Any]] = [
        {"containerPort": 0},
        {"containerPort": 70000},
        {"containerPort": 1, "hostPort": -1},
        {"containerPort": 1, "protocol": "X"},
    ]
    bad_names = ("A", "1", "a--b", "-a", "abcdefghijklmnop", "ok", "ok")
    bad_ports += [{"containerPort": 1, "name": name} for name in bad_names]
    yield from {
        "ports": pod(
            box(ports=[{"containerPort": 80, "name": "http"}, {"containerPort": 53, "protocol": "UDP"}])
        ),
        "zero host port": pod(box(ports=[{"containerPort": 80, "hostPort": 0, "hostIP": "", "name": ""}])),
        "bad ports": pod(box(ports=bad_ports)),
        "host port taken twice": pod(
            box("a", ports=[{"containerPort": 1, "hostPort": 9}]),
            box("b", ports=[{"containerPort": 2, "hostPort": 9}]),
        ),
    }.items()
    name = {"fieldRef": {"fieldPath": "metadata.name"}}
    key: dict[str, Any] = {"name": "m", "key": "k"}
    sources: dict[str, dict[str, Any]] = {
        "C": name,
        "D": {"resourceFieldRef": {"resource": "limits.cpu"}},
        "E": {"configMapKeyRef": {**key, "optional": False}},
        "F": {"secretKeyRef": key},
        "G": {"fieldRef": {"fieldPath": "metadata.labels['a']"}},
        "H": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Mi"}},
    }
    env: list[dict[str, Any]] = [{"name": "A", "value": "1"}, {"name": "B", "value": ""}]
    env += [{"name": variable, "valueFrom": source} for variable, source in sources.items()]
    env_from = [{"configMapRef": {"name": "m"}}, {"prefix": "P_", "secretRef": {"name": "s"}}]
    yield "env", pod(box(env=env, envFrom=env_from))
    bad_sources: list[dict[str, Any]] = [
        *({"fieldRef": {"fieldPath": path}} for path in ("", "status.phase", "metadata.nope")),
        *({"fieldRef": {"fieldPath": path}} for path in ("metadata.labels['a b']", "metadata.name['a']")),
        {"fieldRef": {"fieldPath": "metadata.name", "apiVersion": "v2"}},
        {"resourceFieldRef": {"resource": "limits.gpu"}},
        {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "2"}},
        {"resourceFieldRef": {"resource": "limits.memory", "divisor": "2"}},
        {"configMapKeyRef": {"name": "A", "key": ""}},
        {"secretKeyRef": {"name": "a", "key": "a/b"}},
        {"secretKeyRef": {"name": "a", "key": ".."}},
        {**name, "secretKeyRef": {"name": "a", "key": "b"}},
    ]
    for index, variable in enumerate(
        (
            *({"name": bad} for bad in ("", "a=b", "ä", "1 a")),
            {"name": "A", "valueFrom": {}},
            {"name": "A", "value": "v", "valueFrom": name},
            *({"name": "A", "valueFrom": source} for source in bad_sources),
        )
    ):
        yield f"bad env {index}", pod(box(env=[variable]))
    unplaced = {"type": "", "localhostProfile": "/x"}
    restart: list[dict[str, Any]] = [{"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}]
    bad_restart = [{"action": "Y"}, {"action": "Restart", "exitCodes": {"operator": "Z"}}]
    run = {"exec": {"command": ["x"]}}
    yield from {
        "bad envFrom": pod(
            box(
                envFrom=[
                    {},
                    {"configMapRef": {"name": ""}},
                    {"configMapRef": {"name": "A"}, "secretRef": {"name": "s"}},
                    {"prefix": "=", "secretRef": {"name": "s"}},
                ]
            )
        ),
        "falsy container fields": pod(
            box(
                command=[],
                args=[],
                env=[],
                ports=[],
                workingDir="",
                tty=False,
                stdin=False,
                securityContext={},
            )
        ),
        "message policy": pod(
            box(terminationMessagePolicy="FallbackToLogsOnError", terminationMessagePath="/x")
        ),
        "bad message policy": pod(box(terminationMessagePolicy="X")),
        "security context": pod(
            box(
                securityContext={
                    "runAsUser": 1,
                    "procMount": "Default",
                    "capabilities": {"add": ["NET_ADMIN"]},
                }
            ),
            securityContext={
                "runAsUser": 0,
                "fsGroup": 3,
                "fsGroupChangePolicy": "Always",
                "seccompProfile": {"type": "RuntimeDefault"},
                "sysctls": [{"name": "net.core.somaxconn", "value": "1"}],
            },
        ),
        "bad security contexts": pod(
            box(
                securityContext={
                    "runAsUser": -1,
                    "runAsGroup": 2**40,
                    "procMount": "X",
                    "seccompProfile": {"type": "Localhost"},
                    "appArmorProfile": {"type": "X"},
                }
            ),
            box("d", securityContext={"procMount": "Unmasked", "seccompProfile": unplaced}),
            securityContext={
                "runAsUser": -1,
                "fsGroup": -2,
                "supplementalGroups": [1, -1],
                "fsGroupChangePolicy": "X",
                "supplementalGroupsPolicy": "X",
                "sysctls": [{"name": name, "value": ""} for name in ("A", "a.b", "a.b")],
                "appArmorProfile": {"type": "Localhost"},
            },
        ),
        "restart policy of a container": pod(box(restartPolicy="Never", restartPolicyRules=restart)),
        "bad restart policy of a container": pod(
            box(restartPolicy="X", restartPolicyRules=bad_restart), box("d", restartPolicyRules=restart)
        ),
        "sidecar": pod(
            initContainers=[
                box(
                    "s",
                    restartPolicy="Always",
                    startupProbe=run,
                    lifecycle={"preStop": {"sleep": {"seconds": 1}}},
                ),
                box("i"),
            ]
        ),
        "bad init container": pod(
            initContainers=[
                box(
                    "i",
                    livenessProbe=run,
                    readinessProbe=run,
                    lifecycle={"preStop": run},
                    resizePolicy=[{"resourceName": "cpu", "restartPolicy": "RestartContainer"}],
                ),
                box("j", restartPolicy="Sometimes"),
                box(""),
            ]
        ),
        "resize policy": pod(box(resizePolicy=[{"resourceName": "cpu", "restartPolicy": "NotRequired"}])),
        "bad resize policy": pod(
            box(
                resizePolicy=[
                    {"resourceName": "gpu", "restartPolicy": "X"},
                    {"resourceName": "gpu", "restartPolicy": "RestartContainer"},
                ]
            ),
            restartPolicy="Never",
        ),
    }.items()


def handlers() -> Iterator[Case]:
    live = {"httpGet": {"port": 80}}
    ready = {"tcpSocket": {"port": "http"}, "successThreshold": 2, "initialDelaySeconds": 0}
    startup = {"grpc": {"port": 9}, "failureThreshold": 30, "terminationGracePeriodSeconds": 5}
    yield "probes", pod(box(livenessProbe=live, readinessProbe=ready, startupProbe=startup))
    run: dict[str, Any] = {"exec": {"command": ["x"]}}
    for index, probe in enumerate(
        (
            {},
            {"exec": {}},
            {**run, "httpGet": {"port": 1}},
            {"httpGet": {"port": 0}},
            {"httpGet": {"port": "No Good"}},
            {"httpGet": {"port": 1, "scheme": "FTP"}},
            {"httpGet": {"port": 1, "httpHeaders": [{"name": "a b", "value": "x"}]}},
            {"tcpSocket": {"port": 99999}},
            {"grpc": {"port": 0}},
            {**run, "timeoutSeconds": -1, "periodSeconds": -1, "failureThreshold": -1},
            {**run, "successThreshold": 2},
            {**run, "successThreshold": -2},
            {**run, "terminationGracePeriodSeconds": 0},
        )
    ):
        yield f"probe {index} for liveness", pod(box(livenessProbe=probe))
        yield f"probe {index} for readiness", pod(box(readinessProbe=probe))
    hooks = {"postStart": {"httpGet": {"port": 80, "host": ""}}, "preStop": {"sleep": {"seconds": 30}}}
    yield "hooks", pod(box(lifecycle=hooks))
    for index, hook in enumerate(
        (
            {},
            {"sleep": {"seconds": -1}},
            {"sleep": {"seconds": 31}},
            {"exec": {"command": []}},
            {**run, "sleep": {"seconds": 1}},
        )
    ):
        yield f"bad hook {index}", pod(box(lifecycle={"preStop": hook}))
    yield "stop signal", pod(box(lifecycle={"stopSignal": "SIGTERM"}), os={"name": "linux"})


def resources() -> Iterator[Case]:
    for index, amounts in enumerate(
        (
            {"requests": {"cpu": "1000m", "memory": "1024Mi"}},
            {"limits": {"cpu": 1, "memory": 1073741824}},
            {"limits": {"cpu": 0.5, "memory": "0.5Gi"}},
            {"limits": {"cpu": "1.234", "memory": "1e3"}},
            {"limits": {"cpu": "0.0001", "memory": "100k"}},
            {"requests": {"cpu": "100n", "memory": "1500Mi"}},
            {"requests": {"cpu": "1"}, "limits": {"cpu": "500m"}},
            {"requests": {"cpu": "-1"}},
            {"requests": {"gpu": "1"}},
            {"requests": {"example.com/gpu": "1"}},
            {"limits": {"example.com/gpu": "1"}},
            {"limits": {"example.com/gpu": "1500m"}},
            {"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "2"}},
            {"limits": {"hugepages-2Mi": "4Mi"}},
            {"limits": {"hugepages-2Mi": "4Mi", "cpu": "1"}},
            {"requests": {"storage": "1"}},
            {"requests": {"ephemeral-storage": "1G"}},
            {"requests": {"a b": "1"}},
            {"requests": {"kubernetes.io/x": "1"}},
            {"requests": {}, "limits": {}, "claims": []},
            {"requests": {"cpu": "0"}},
            {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}},
            {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1000m", "memory": "1024Mi"}},
            {"limits": {"cpu": "1"}},
            {"requests": {"memory": "128974848"}},
            {"requests": {"memory": "129e6"}},
            {"requests": {"memory": "123Mi"}},
            {"requests": {"memory": "1.5G"}},
            {"requests": {"cpu": "+1"}},
            {"requests": {"cpu": "01"}},
            {"requests": {"cpu": "1."}},
            {"requests": {"cpu": ".5"}},
            {"requests": {"cpu": "12E"}},
            {"requests": {"cpu": "12e-1"}},
            {"requests": {"memory": "10000000000000000000"}},
            {"requests": {"memory": "9000Ei"}},
        )
    ):
        yield f"resources {index}", pod(box(resources=amounts))
    yield from {
        "one container guaranteed, one not": pod(
            box("a", resources={"limits": {"cpu": "1", "memory": "1Gi"}}), box("b")
        ),
        "pod-level resources": pod(
            box(resources={"requests": {"cpu": "1"}}), resources={"limits": {"cpu": "2", "memory": "1Gi"}}
        ),
        "pod-level requests": pod(resources={"requests": {"cpu": "2"}}),
        "bad pod-level resources": pod(resources={"limits": {"ephemeral-storage": "1Gi", "cpu": "-1"}}),
    }.items()


def volumes() -> Iterator[Case]:
    sources: tuple[dict[str, Any], ...] = (
        {},
        {"emptyDir": {}},
        {"emptyDir": {"medium": "Memory", "sizeLimit": "1024Mi"}},
        {"emptyDir": {"sizeLimit": "-1"}},
        {"hostPath": {"path": "/x"}},
        {"hostPath": {"path": "/x", "type": "Directory"}},
        {"hostPath": {"path": "/x/../y", "type": "X"}},
        {"hostPath": {"path": ""}},
        {"secret": {"secretName": "s"}},
        {"secret": {"secretName": "s", "defaultMode": 256, "optional": False}},
        {"secret": {"secretName": "", "defaultMode": 512}},
        {"configMap": {"name": "m", "items": [{"key": "k", "path": "p"}]}},
        {
            "configMap": {
                "name": "m",
                "items": [{"key": "", "path": "/p"}, {"key": "k", "path": "../p", "mode": -1}],
            }
        },
        {"configMap": {"name": "m", "items": [{"key": "k", "path": "..p"}, {"key": "k", "path": ""}]}},
        {"downwardAPI": {"items": [{"path": "a", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
        {
            "downwardAPI": {
                "items": [{"path": "a", "resourceFieldRef": {"containerName": "c", "resource": "limits.cpu"}}]
            }
        },
        {"downwardAPI": {"items": [{"path": ""}, {"path": "a", "fieldRef": {"fieldPath": "spec.nodeName"}}]}},
        {"projected": {"sources": [{"configMap": {"name": "m"}}, {"secret": {"name": "s"}}]}},
        {
            "projected": {
                "sources": [
                    {"downwardAPI": {"items": [{"path": "n", "fieldRef": {"fieldPath": "metadata.name"}}]}}
                ]
            }
        },
        {
            "projected": {
                "sources": [
                    {"configMap": {"name": "", "items": [{"key": "k", "path": "p"}]}},
                    {"secret": {"name": "s", "items": [{"key": "k", "path": "p"}]}},
                    {"serviceAccountToken": {"path": "", "expirationSeconds": 1}},
                ]
            }
        },
        {"projected": {"sources": [{"configMap": {"name": "m"}, "secret": {"name": "s"}}]}},
        {"persistentVolumeClaim": {"claimName": "c", "readOnly": False}},
        {"persistentVolumeClaim": {"claimName": ""}},
        {"nfs": {"server": "s", "path": "/p"}},
        {"nfs": {"server": "", "path": "p"}},
        {"csi": {"driver": "d.example.com"}},
        {"csi": {"driver": ""}},
        {"image": {"reference": "nginx:latest"}},
        {"image": {"reference": ""}},
        {"ephemeral": {}},
        {
            "ephemeral": {
                "volumeClaimTemplate": {
                    "spec": {
                        "accessModes": ["ReadWriteOnce"],
                        "resources": {"requests": {"storage": "1024Mi"}},
                    }
                }
            }
        },
        {"ephemeral": {"volumeClaimTemplate": {"metadata": {"name": "x"}, "spec": {"accessModes": ["X"]}}}},
        {"emptyDir": {}, "hostPath": {"path": "/x"}},
        {"iscsi": {"targetPortal": "1.2.3.4:1", "iqn": "iqn.2001-04.com.example:x", "lun": 0}},
    )
    for index, source in enumerate(sources):
        yield f"volume {index}", pod(volumes=[{"name": "v", **source}])
    yield from {
        "service account token": pod(
            serviceAccountName="a",
            volumes=[{"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}],
        ),
        "bad volume names": pod(volumes=[{"name": ""}, {"name": "A"}, {"name": "a"}, {"name": "a"}]),
    }.items()
    volume = [{"name": "v"}]
    mounts: tuple[dict[str, Any], ...] = (
        {"name": "v", "mountPath": "/v"},
        {"name": "v", "mountPath": "/v", "readOnly": False, "subPath": ""},
        {"name": "w", "mountPath": "/v"},
        {"name": "", "mountPath": ""},
        {"name": "v", "mountPath": "/v", "subPath": "/a"},
        {"name": "v", "mountPath": "/v", "subPath": "a/../b"},
        {"name": "v", "mountPath": "/v", "subPath": "a", "subPathExpr": "../b"},
        {"name": "v", "mountPath": "/v", "mountPropagation": "X"},
        {"name": "v", "mountPath": "/v", "mountPropagation": "Bidirectional"},
        {"name": "v", "mountPath": "/v", "recursiveReadOnly": "Enabled"},
        {"name": "v", "mountPath": "/v", "recursiveReadOnly": "X"},
        {"name": "v", "mountPath": "/v", "readOnly": True, "recursiveReadOnly": "IfPossible"},
    )
    for index, mount in enumerate(mounts):
        yield f"mount {index}", pod(box(volumeMounts=[mount]), volumes=volume)
    yield from {
        "one path mounted twice": pod(box(volumeMounts=[mounts[0], mounts[0]]), volumes=volume),
        "devices": pod(
            box(
                volumeDevices=[{"name": "v", "devicePath": "/d"}, {"name": "x", "devicePath": ""}],
                volumeMounts=[{"name": "v", "mountPath": "/d"}],
            ),
            volumes=volume,
        ),
    }.items()


def cases() -> Iterator[Case]:
    yield "plain", pod()
    for part in (images, names, spec_fields, scheduling, containers, handlers, resources, volumes):
        yield from part()
