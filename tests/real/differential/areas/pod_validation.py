"""Pods that are refused, each for one reason; the message names the field and the rule."""

from __future__ import annotations

from typing import Any

from tests.real.differential.areas.objects import PODS, container, pod
from tests.real.differential.steps import Area

VALIDATION = Area("pod-validation")

PROBE = {"httpGet": {"port": 8080}}

_refused: dict[str, Any] = {
    "no-spec": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}},
    "no-containers": pod("x", containers=[]),
    "no-name-at-all": pod(),
    "no-container-name": pod("x", containers=[{"image": "a"}]),
    "no-image": pod("x", containers=[{"name": "a"}]),
    "image-with-space": pod("x", containers=[{"name": "a", "image": " a"}]),
    "same-container-twice": pod("x", containers=[container(), container()]),
    "init-named-as-container": pod("x", initContainers=[container()]),
    "container-name-upper-case": pod("x", containers=[container("Main")]),
    "container-name-too-long": pod("x", containers=[container("a" * 64)]),
    "pod-name-upper-case": pod("Upper"),
    "pod-name-underscore": pod("a_b"),
    "pod-name-too-long": pod("a" * 254),
    "generated-prefix-bad": pod(metadata={"generateName": "Bad_"}),
    "restart-policy-unknown": pod("x", restartPolicy="Sometimes"),
    "dns-policy-unknown": pod("x", dnsPolicy="Magic"),
    "dns-none-without-servers": pod("x", dnsPolicy="None"),
    "pull-policy-unknown": pod("x", containers=[container(imagePullPolicy="Maybe")]),
    "termination-message-policy": pod("x", containers=[container(terminationMessagePolicy="Loud")]),
    "deadline-zero": pod("x", activeDeadlineSeconds=0),
    "deadline-too-large": pod("x", activeDeadlineSeconds=2147483648),
    "port-too-large": pod("x", containers=[container(ports=[{"containerPort": 70000}])]),
    "port-missing": pod("x", containers=[container(ports=[{"name": "web"}])]),
    "port-protocol": pod("x", containers=[container(ports=[{"containerPort": 80, "protocol": "ICMP"}])]),
    "port-name-bad": pod(
        "x", containers=[container(ports=[{"containerPort": 80, "name": "Web_Port_Too_Long"}])]
    ),
    "port-name-twice": pod(
        "x",
        containers=[
            container(ports=[{"containerPort": 80, "name": "w"}, {"containerPort": 81, "name": "w"}])
        ],
    ),
    "host-port-differs-on-host-network": pod(
        "x", hostNetwork=True, containers=[container(ports=[{"containerPort": 80, "hostPort": 81}])]
    ),
    "env-without-name": pod("x", containers=[container(env=[{"value": "1"}])]),
    "env-name-with-equals": pod("x", containers=[container(env=[{"name": "a=b"}])]),
    "env-value-and-source": pod(
        "x",
        containers=[
            container(
                env=[{"name": "A", "value": "1", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]
            )
        ],
    ),
    "env-field-path-unknown": pod(
        "x",
        containers=[container(env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.nothing"}}}])],
    ),
    "request-over-limit": pod(
        "x", containers=[container(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}})]
    ),
    "negative-quantity": pod("x", containers=[container(resources={"requests": {"cpu": "-1"}})]),
    "unknown-resource": pod("x", containers=[container(resources={"requests": {"gpu": "1"}})]),
    "mount-without-volume": pod("x", containers=[container(volumeMounts=[{"name": "v", "mountPath": "/v"}])]),
    "mount-path-twice": pod(
        "x",
        volumes=[{"name": "v"}, {"name": "w"}],
        containers=[
            container(volumeMounts=[{"name": "v", "mountPath": "/v"}, {"name": "w", "mountPath": "/v"}])
        ],
    ),
    "volume-twice": pod("x", volumes=[{"name": "v"}, {"name": "v"}]),
    "volume-with-two-sources": pod("x", volumes=[{"name": "v", "emptyDir": {}, "hostPath": {"path": "/"}}]),
    "volume-name-bad": pod("x", volumes=[{"name": "V_1"}]),
    "probe-without-action": pod("x", containers=[container(livenessProbe={"periodSeconds": 1})]),
    "probe-with-two-actions": pod(
        "x", containers=[container(livenessProbe={"exec": {"command": ["a"]}, "tcpSocket": {"port": 1}})]
    ),
    "probe-negative": pod("x", containers=[container(livenessProbe={**PROBE, "periodSeconds": -1})]),
    "liveness-success-threshold": pod(
        "x", containers=[container(livenessProbe={**PROBE, "successThreshold": 2})]
    ),
    "hook-without-action": pod("x", containers=[container(lifecycle={"preStop": {}})]),
    "sleep-longer-than-grace": pod(
        "x", containers=[container(lifecycle={"preStop": {"sleep": {"seconds": 31}}})]
    ),
    "init-with-probe": pod("x", initContainers=[container("i", livenessProbe=PROBE)]),
    "init-restart-never": pod("x", initContainers=[container("i", restartPolicy="Bogus")]),
    "toleration-operator": pod("x", tolerations=[{"key": "a", "operator": "Like"}]),
    "toleration-value-with-exists": pod("x", tolerations=[{"key": "a", "operator": "Exists", "value": "b"}]),
    "toleration-seconds-without-no-execute": pod(
        "x", tolerations=[{"key": "a", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 1}]
    ),
    "toleration-empty-key": pod("x", tolerations=[{"operator": "Equal"}]),
    "node-selector-bad-label": pod("x", nodeSelector={"a b": "c"}),
    "node-name-bad": pod("x", nodeName="Node_1"),
    "hostname-bad": pod("x", hostname="a.b"),
    "token-volume-without-account": pod(
        "x", volumes=[{"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}]
    ),
    "priority-class-unknown": (pod("x", priorityClassName="nope"), 403),
    "priority-without-class": (pod("x", priority=7), 403),
    "service-account-name-bad": pod("x", serviceAccountName="Robot_1"),
    "gates-with-node": pod("x", nodeName="n", schedulingGates=[{"name": "a.b/c"}]),
    "readiness-gate-bad": pod("x", readinessGates=[{"conditionType": "no good"}]),
    "spread-skew-zero": pod(
        "x",
        topologySpreadConstraints=[{"maxSkew": 0, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}],
    ),
    "label-value-bad": pod("x", metadata={"labels": {"a": "-no-"}}),
    "label-key-bad": pod("x", metadata={"labels": {"a/b/c": "d"}}),
    "annotation-key-bad": pod("x", metadata={"annotations": {"not ok": "d"}}),
    "annotations-too-large": pod("x", metadata={"annotations": {"a": "x" * 262144}}),
    "finalizer-bad": pod("x", metadata={"finalizers": ["no slash"]}),
    "two-controllers": pod(
        "x",
        metadata={
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "A", "name": "a", "uid": "1", "controller": True},
                {"apiVersion": "v1", "kind": "A", "name": "b", "uid": "2", "controller": True},
            ]
        },
    ),
    "owner-without-uid": pod(
        "x", metadata={"ownerReferences": [{"apiVersion": "v1", "kind": "A", "name": "a"}]}
    ),
    "owner-without-version": pod("x", metadata={"ownerReferences": [{"kind": "A", "name": "a", "uid": "1"}]}),
    "windows-with-run-as-user": pod("x", os={"name": "windows"}, securityContext={"runAsUser": 1}),
    "os-unknown": pod("x", os={"name": "plan9"}),
    "share-and-host-pid": pod("x", shareProcessNamespace=True, hostPID=True),
    "many-errors-at-once": pod(
        "Bad_Name",
        restartPolicy="No",
        containers=[{"name": "A"}, {"image": "b"}],
        metadata={"labels": {"a": "-"}},
    ),
    "resource-version-set": (pod("x", metadata={"resourceVersion": "5"}), 500),
    "other-namespace-in-body": (pod("x", metadata={"namespace": "elsewhere"}), 400),
    "other-kind": ({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"}}, 400),
    "other-version": ({"apiVersion": "v2", "kind": "Pod", "metadata": {"name": "x"}}, 400),
    "no-kind-is-the-path's": ({"metadata": {"name": "x"}, "spec": {"containers": []}}, 422),
    "grace-as-text": (pod("x", terminationGracePeriodSeconds="thirty"), 400),
    "grace-as-float": (pod("x", terminationGracePeriodSeconds=1.5), 400),
    "containers-as-object": (pod("x", containers={"name": "a"}), 400),
    "labels-as-list": (pod("x", metadata={"labels": ["a"]}), 400),
    "label-as-number": (pod("x", metadata={"labels": {"a": 1}}), 400),
    "host-network-as-text": (pod("x", hostNetwork="yes"), 400),
    "quantity-unreadable": (pod("x", containers=[container(resources={"limits": {"cpu": "much"}})]), 400),
    "time-unreadable": (pod("x", metadata={"creationTimestamp": "yesterday"}), 400),
}
for name, item in _refused.items():
    sent, code = item if isinstance(item, tuple) else (item, 422)
    VALIDATION.post(
        name, PODS, sent, code, random="Bad_[a-z0-9]{5}" if name == "generated-prefix-bad" else ""
    )
VALIDATION.get("nothing-was-stored", PODS)
