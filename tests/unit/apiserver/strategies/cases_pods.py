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
    yield "owner", pod(meta={"ownerReferences": [owner]})
    yield "owner without a uid", pod(meta={"ownerReferences": [{**owner, "uid": ""}]})
    yield (
        "owner without anything",
        pod(meta={"ownerReferences": [{"apiVersion": "", "kind": "", "name": "", "uid": ""}]}),
    )
    yield "owner of a bad version", pod(meta={"ownerReferences": [{**owner, "apiVersion": "a/"}]})
    yield "event as owner", pod(meta={"ownerReferences": [{**owner, "apiVersion": "v1", "kind": "Event"}]})
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
    yield "dns config", pod(dnsPolicy="None", dnsConfig={"nameservers": ["1.1.1.1"], "searches": ["a_b.c."]})
    yield (
        "bad dns config",
        pod(
            dnsConfig={
                "nameservers": ["1.1.1.1", "2.2.2.2", "::1", "x"],
                "searches": ["A", "."],
                "options": [{"value": "1"}],
            }
        ),
    )
    yield "no nameservers", pod(dnsPolicy="None", dnsConfig={})
    for seconds in (-1, 0, 30, 3600):
        yield f"terminationGracePeriodSeconds {seconds}", pod(terminationGracePeriodSeconds=seconds)
    for seconds in (-1, 0, 1, 2**31 - 1, 2**31):
        yield f"activeDeadlineSeconds {seconds}", pod(activeDeadlineSeconds=seconds)
    yield "no containers", {**pod(), "spec": {"containers": []}}
    yield "no containers field", {**pod(), "spec": {}}
    yield "no spec", {key: value for key, value in pod().items() if key != "spec"}
    for field in ("hostname", "subdomain", "nodeName", "serviceAccountName", "serviceAccount"):
        yield f"{field} good", pod(**{field: "abc"})
        yield f"{field} bad", pod(**{field: "A_b"})
        yield f"{field} empty", pod(**{field: ""})
    yield "schedulerName", pod(schedulerName="mine")
    yield (
        "falsy fields",
        pod(hostNetwork=False, hostPID=False, hostIPC=False, nodeSelector={}, tolerations=[]),
    )
    yield (
        "pointers to zero",
        pod(
            automountServiceAccountToken=False,
            enableServiceLinks=False,
            shareProcessNamespace=False,
            hostUsers=True,
            setHostnameAsFQDN=False,
            affinity={},
        ),
    )
    yield "host network without host ports", pod(box(ports=[{"containerPort": 80}]), hostNetwork=True)
    yield (
        "host network with another host port",
        pod(box(ports=[{"containerPort": 80, "hostPort": 81}]), hostNetwork=True),
    )
    yield "node selector", pod(nodeSelector={"disk": "ssd"})
    yield "bad node selector", pod(nodeSelector={"disk ": "s sd"})
    yield "image pull secrets", pod(imagePullSecrets=[{"name": "a"}, {}])
    yield (
        "host aliases",
        pod(hostAliases=[{"ip": "1.2.3.4", "hostnames": ["a.b"]}, {"ip": "x", "hostnames": ["B"]}]),
    )
    yield "readiness gates", pod(readinessGates=[{"conditionType": "a.b/c"}, {"conditionType": "a b"}])
    yield "scheduling gates", pod(schedulingGates=[{"name": "a.b/c"}])
    yield "bad scheduling gates", pod(schedulingGates=[{"name": "a"}, {"name": "a"}, {"name": "-"}])
    yield "gates on a bound pod", pod(schedulingGates=[{"name": "a"}], nodeName="n")
    yield "ephemeral containers on create", pod(ephemeralContainers=[box("e")])
    yield "os linux", pod(os={"name": "linux"})
    yield "os unknown", pod(os={"name": "beos"})
    yield "os empty", pod(os={"name": ""})
    yield (
        "os windows with linux options",
        pod(
            box(securityContext={"privileged": False, "runAsUser": 1}),
            os={"name": "windows"},
            securityContext={"runAsUser": 1, "fsGroup": 2},
            hostPID=True,
        ),
    )
    yield "hostname override", pod(hostnameOverride="a.b")
    yield "bad hostname override", pod(hostnameOverride="A" * 65, setHostnameAsFQDN=True)
    yield "host users with host network", pod(hostUsers=False, hostNetwork=True, hostPID=True, hostIPC=True)
    yield (
        "resource claims",
        pod(
            box(resources={"claims": [{"name": "x"}, {"name": "y"}, {"name": "x"}]}),
            resourceClaims=[{"name": "x", "resourceClaimName": "r"}, {"name": ""}, {"name": "x"}],
        ),
    )
    yield "status is not the creator's", {**pod(), "status": {"phase": "Running", "podIP": "1.2.3.4"}}


def scheduling() -> Iterator[Case]:
    yield (
        "tolerations",
        pod(
            tolerations=[
                {"key": "a", "operator": "Exists"},
                {"key": "a", "value": "b", "effect": "NoSchedule"},
                {"operator": "Exists"},
                {"key": "c", "operator": "Equal", "value": "", "effect": "NoExecute", "tolerationSeconds": 0},
            ]
        ),
    )
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
    bad = [
        {
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
    ]
    yield "bad node affinity", pod(affinity={"nodeAffinity": {required: {"nodeSelectorTerms": bad}}})
    yield (
        "bad preferred node affinity",
        pod(affinity={"nodeAffinity": {preferred: [{"weight": 0, "preference": bad[0]}]}}),
    )
    selector = {"matchLabels": {"app": "a"}}
    yield (
        "pod affinity",
        pod(affinity={"podAffinity": {required: [{"labelSelector": selector, "topologyKey": "zone"}]}}),
    )
    yield (
        "bad pod affinity",
        pod(
            affinity={
                "podAntiAffinity": {
                    required: [{"labelSelector": {"matchLabels": {"a b": "c"}}, "namespaces": ["A"]}],
                    preferred: [
                        {
                            "weight": 101,
                            "podAffinityTerm": {
                                "topologyKey": "z",
                                "labelSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]},
                            },
                        }
                    ],
                }
            }
        ),
    )
    yield (
        "match label keys",
        pod(
            meta={"labels": {"app": "a", "v": "1"}},
            affinity={
                "podAffinity": {
                    required: [{"labelSelector": selector, "topologyKey": "z", "matchLabelKeys": ["v", "w"]}],
                    preferred: [
                        {
                            "weight": 1,
                            "podAffinityTerm": {
                                "labelSelector": selector,
                                "topologyKey": "z",
                                "mismatchLabelKeys": ["v"],
                            },
                        }
                    ],
                }
            },
        ),
    )
    yield (
        "match label keys without a selector",
        pod(affinity={"podAffinity": {required: [{"topologyKey": "z", "matchLabelKeys": ["v"]}]}}),
    )
    spread = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    yield (
        "spread",
        pod(
            meta={"labels": {"app": "a"}},
            topologySpreadConstraints=[{**spread, "labelSelector": selector, "matchLabelKeys": ["app"]}],
        ),
    )
    yield (
        "spread over new keys",
        pod(
            meta={"labels": {"v": "1"}},
            topologySpreadConstraints=[{**spread, "labelSelector": selector, "matchLabelKeys": ["v"]}],
        ),
    )
    yield (
        "bad spread",
        pod(
            topologySpreadConstraints=[
                {"maxSkew": 0, "whenUnsatisfiable": "No"},
                {**spread, "minDomains": 0},
                {**spread, "nodeAffinityPolicy": "X", "labelSelector": {"matchLabels": {"-": ""}}},
                {**spread, "whenUnsatisfiable": "ScheduleAnyway", "minDomains": 2},
            ]
        ),
    )


def containers() -> Iterator[Case]:
    yield (
        "ports",
        pod(box(ports=[{"containerPort": 80, "name": "http"}, {"containerPort": 53, "protocol": "UDP"}])),
    )
    yield "zero host port", pod(box(ports=[{"containerPort": 80, "hostPort": 0, "hostIP": "", "name": ""}]))
    yield (
        "bad ports",
        pod(
            box(
                ports=[
                    {"containerPort": 0},
                    {"containerPort": 70000},
                    {"containerPort": 1, "hostPort": -1},
                    {"containerPort": 1, "protocol": "X"},
                    {"containerPort": 1, "name": "A"},
                    {"containerPort": 1, "name": "1"},
                    {"containerPort": 1, "name": "a--b"},
                    {"containerPort": 1, "name": "-a"},
                    {"containerPort": 1, "name": "abcdefghijklmnop"},
                    {"containerPort": 1, "name": "ok"},
                    {"containerPort": 1, "name": "ok"},
                ]
            )
        ),
    )
    yield (
        "host port taken twice",
        pod(
            box("a", ports=[{"containerPort": 1, "hostPort": 9}]),
            box("b", ports=[{"containerPort": 2, "hostPort": 9}]),
        ),
    )
    yield (
        "env",
        pod(
            box(
                env=[
                    {"name": "A", "value": "1"},
                    {"name": "B", "value": ""},
                    {"name": "C", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                    {"name": "D", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
                    {
                        "name": "E",
                        "valueFrom": {"configMapKeyRef": {"name": "m", "key": "k", "optional": False}},
                    },
                    {"name": "F", "valueFrom": {"secretKeyRef": {"name": "m", "key": "k"}}},
                    {"name": "G", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['a']"}}},
                    {
                        "name": "H",
                        "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Mi"}},
                    },
                ],
                envFrom=[{"configMapRef": {"name": "m"}}, {"prefix": "P_", "secretRef": {"name": "s"}}],
            )
        ),
    )
    for index, variable in enumerate(
        (
            {"name": ""},
            {"name": "a=b"},
            {"name": "ä"},
            {"name": "1 a"},
            {"name": "A", "valueFrom": {}},
            {"name": "A", "value": "v", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": ""}}},
            {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "status.phase"}}},
            {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.nope"}}},
            {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['a b']"}}},
            {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name['a']"}}},
            {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name", "apiVersion": "v2"}}},
            {"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.gpu"}}},
            {"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "2"}}},
            {"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "2"}}},
            {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "A", "key": ""}}},
            {"name": "A", "valueFrom": {"secretKeyRef": {"name": "a", "key": "a/b"}}},
            {"name": "A", "valueFrom": {"secretKeyRef": {"name": "a", "key": ".."}}},
            {
                "name": "A",
                "valueFrom": {
                    "fieldRef": {"fieldPath": "metadata.name"},
                    "secretKeyRef": {"name": "a", "key": "b"},
                },
            },
        )
    ):
        yield f"bad env {index}", pod(box(env=[variable]))
    yield (
        "bad envFrom",
        pod(
            box(
                envFrom=[
                    {},
                    {"configMapRef": {"name": ""}},
                    {"configMapRef": {"name": "A"}, "secretRef": {"name": "s"}},
                    {"prefix": "=", "secretRef": {"name": "s"}},
                ]
            )
        ),
    )
    yield (
        "falsy container fields",
        pod(
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
    )
    yield (
        "message policy",
        pod(box(terminationMessagePolicy="FallbackToLogsOnError", terminationMessagePath="/x")),
    )
    yield "bad message policy", pod(box(terminationMessagePolicy="X"))
    yield (
        "security context",
        pod(
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
    )
    yield (
        "bad security contexts",
        pod(
            box(
                securityContext={
                    "runAsUser": -1,
                    "runAsGroup": 2**40,
                    "procMount": "X",
                    "seccompProfile": {"type": "Localhost"},
                    "appArmorProfile": {"type": "X"},
                }
            ),
            box(
                "d",
                securityContext={
                    "procMount": "Unmasked",
                    "seccompProfile": {"type": "", "localhostProfile": "/x"},
                },
            ),
            securityContext={
                "runAsUser": -1,
                "fsGroup": -2,
                "supplementalGroups": [1, -1],
                "fsGroupChangePolicy": "X",
                "supplementalGroupsPolicy": "X",
                "sysctls": [
                    {"name": "A", "value": ""},
                    {"name": "a.b", "value": ""},
                    {"name": "a.b", "value": ""},
                ],
                "appArmorProfile": {"type": "Localhost"},
            },
        ),
    )
    yield (
        "restart policy of a container",
        pod(
            box(
                restartPolicy="Never",
                restartPolicyRules=[{"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}],
            )
        ),
    )
    yield (
        "bad restart policy of a container",
        pod(
            box(
                restartPolicy="X",
                restartPolicyRules=[{"action": "Y"}, {"action": "Restart", "exitCodes": {"operator": "Z"}}],
            ),
            box(
                "d",
                restartPolicyRules=[{"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}],
            ),
        ),
    )
    yield (
        "sidecar",
        pod(
            initContainers=[
                box(
                    "s",
                    restartPolicy="Always",
                    startupProbe={"exec": {"command": ["x"]}},
                    lifecycle={"preStop": {"sleep": {"seconds": 1}}},
                ),
                box("i"),
            ]
        ),
    )
    yield (
        "bad init container",
        pod(
            initContainers=[
                box(
                    "i",
                    livenessProbe={"exec": {"command": ["x"]}},
                    readinessProbe={"exec": {"command": ["x"]}},
                    lifecycle={"preStop": {"exec": {"command": ["x"]}}},
                    resizePolicy=[{"resourceName": "cpu", "restartPolicy": "RestartContainer"}],
                ),
                box("j", restartPolicy="Sometimes"),
                box(""),
            ]
        ),
    )
    yield "resize policy", pod(box(resizePolicy=[{"resourceName": "cpu", "restartPolicy": "NotRequired"}]))
    yield (
        "bad resize policy",
        pod(
            box(
                resizePolicy=[
                    {"resourceName": "gpu", "restartPolicy": "X"},
                    {"resourceName": "gpu", "restartPolicy": "RestartContainer"},
                ]
            ),
            restartPolicy="Never",
        ),
    )


def handlers() -> Iterator[Case]:
    yield (
        "probes",
        pod(
            box(
                livenessProbe={"httpGet": {"port": 80}},
                readinessProbe={
                    "tcpSocket": {"port": "http"},
                    "successThreshold": 2,
                    "initialDelaySeconds": 0,
                },
                startupProbe={
                    "grpc": {"port": 9},
                    "failureThreshold": 30,
                    "terminationGracePeriodSeconds": 5,
                },
            )
        ),
    )
    for index, probe in enumerate(
        (
            {},
            {"exec": {}},
            {"exec": {"command": ["x"]}, "httpGet": {"port": 1}},
            {"httpGet": {"port": 0}},
            {"httpGet": {"port": "No Good"}},
            {"httpGet": {"port": 1, "scheme": "FTP"}},
            {"httpGet": {"port": 1, "httpHeaders": [{"name": "a b", "value": "x"}]}},
            {"tcpSocket": {"port": 99999}},
            {"grpc": {"port": 0}},
            {"exec": {"command": ["x"]}, "timeoutSeconds": -1, "periodSeconds": -1, "failureThreshold": -1},
            {"exec": {"command": ["x"]}, "successThreshold": 2},
            {"exec": {"command": ["x"]}, "successThreshold": -2},
            {"exec": {"command": ["x"]}, "terminationGracePeriodSeconds": 0},
        )
    ):
        yield f"probe {index} for liveness", pod(box(livenessProbe=probe))
        yield f"probe {index} for readiness", pod(box(readinessProbe=probe))
    yield (
        "hooks",
        pod(
            box(
                lifecycle={
                    "postStart": {"httpGet": {"port": 80, "host": ""}},
                    "preStop": {"sleep": {"seconds": 30}},
                }
            )
        ),
    )
    for index, hook in enumerate(
        (
            {},
            {"sleep": {"seconds": -1}},
            {"sleep": {"seconds": 31}},
            {"exec": {"command": []}},
            {"exec": {"command": ["x"]}, "sleep": {"seconds": 1}},
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
    yield (
        "one container guaranteed, one not",
        pod(box("a", resources={"limits": {"cpu": "1", "memory": "1Gi"}}), box("b")),
    )
    yield (
        "pod-level resources",
        pod(box(resources={"requests": {"cpu": "1"}}), resources={"limits": {"cpu": "2", "memory": "1Gi"}}),
    )
    yield "pod-level requests", pod(resources={"requests": {"cpu": "2"}})
    yield "bad pod-level resources", pod(resources={"limits": {"ephemeral-storage": "1Gi", "cpu": "-1"}})


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
    yield (
        "service account token",
        pod(
            serviceAccountName="a",
            volumes=[{"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}],
        ),
    )
    yield "bad volume names", pod(volumes=[{"name": ""}, {"name": "A"}, {"name": "a"}, {"name": "a"}])
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
    yield "one path mounted twice", pod(box(volumeMounts=[mounts[0], mounts[0]]), volumes=volume)
    yield (
        "devices",
        pod(
            box(
                volumeDevices=[{"name": "v", "devicePath": "/d"}, {"name": "x", "devicePath": ""}],
                volumeMounts=[{"name": "v", "mountPath": "/d"}],
            ),
            volumes=volume,
        ),
    )


def cases() -> Iterator[Case]:
    yield "plain", pod()
    for part in (images, names, spec_fields, scheduling, containers, handlers, resources, volumes):
        yield from part()
