"""Pods that are accepted: what the server fills in, resets and warns of."""

from __future__ import annotations

from typing import Any

from tests.real.differential.areas.objects import PODS, container, pod
from tests.real.differential.steps import Area

CREATION = Area("pod-creation")

PROBE = {"httpGet": {"port": 8080}}

_accepted: dict[str, Any] = {
    "minimal": pod("minimal"),
    "tag-latest-pulls-always": pod("latest", containers=[{"name": "a", "image": "busybox:latest"}]),
    "no-tag-pulls-always": pod("no-tag", containers=[{"name": "a", "image": "busybox"}]),
    "digest-pulls-if-absent": pod(
        "digest", containers=[{"name": "a", "image": f"busybox@sha256:{'0' * 64}"}]
    ),
    "pull-policy-kept": pod("pull", containers=[container(imagePullPolicy="Never")]),
    "restart-never": pod("never", restartPolicy="Never"),
    "grace-zero": pod("grace-zero", terminationGracePeriodSeconds=0),
    "grace-5": pod("grace-5", terminationGracePeriodSeconds=5),
    "negative-grace-becomes-one": pod("grace-negative", terminationGracePeriodSeconds=-1),
    "ports": pod(
        "ports",
        containers=[container(ports=[{"containerPort": 80}, {"containerPort": 53, "protocol": "UDP"}])],
    ),
    "host-network-copies-ports": pod(
        "host-network", hostNetwork=True, containers=[container(ports=[{"containerPort": 8081}])]
    ),
    "requests-from-limits": pod(
        "guaranteed", containers=[container(resources={"limits": {"cpu": "1", "memory": "64Mi"}})]
    ),
    "burstable": pod(
        "burstable", containers=[container(resources={"requests": {"cpu": "100m"}, "limits": {"cpu": "1"}})]
    ),
    "quantities-as-numbers": pod(
        "numbers", containers=[container(resources={"requests": {"cpu": 1, "memory": 1048576}})]
    ),
    "quantities-canonical": pod(
        "canonical",
        containers=[
            container(resources={"requests": {"cpu": "0.5", "memory": "1024Ki"}, "limits": {"cpu": "1000m"}})
        ],
    ),
    "probes": pod(
        "probes",
        containers=[
            container(
                livenessProbe=PROBE,
                readinessProbe={"tcpSocket": {"port": 80}},
                startupProbe={"exec": {"command": ["true"]}, "periodSeconds": 3},
            )
        ],
    ),
    "grpc-probe": pod("grpc", containers=[container(livenessProbe={"grpc": {"port": 9000}})]),
    "hooks": pod(
        "hooks",
        containers=[
            container(
                lifecycle={
                    "preStop": {"exec": {"command": ["sh", "-c", "true"]}},
                    "postStart": {"httpGet": {"port": 80}},
                }
            )
        ],
    ),
    "sleep-hook": pod("sleep-hook", containers=[container(lifecycle={"preStop": {"sleep": {"seconds": 3}}})]),
    "environment": pod(
        "environment",
        containers=[
            container(
                env=[
                    {"name": "PLAIN", "value": "x"},
                    {"name": "EMPTY"},
                    {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
                    {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
                    {"name": "KEY", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}},
                    {
                        "name": "SECRET",
                        "valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": True}},
                    },
                ],
                envFrom=[{"configMapRef": {"name": "c"}}, {"prefix": "P_", "secretRef": {"name": "s"}}],
            )
        ],
    ),
    "volumes": pod(
        "volumes",
        volumes=[
            {"name": "nothing"},
            {"name": "empty", "emptyDir": {}},
            {"name": "memory", "emptyDir": {"medium": "Memory", "sizeLimit": "64Mi"}},
            {"name": "host", "hostPath": {"path": "/tmp"}},
            {"name": "secret", "secret": {"secretName": "s"}},
            {"name": "config", "configMap": {"name": "c", "items": [{"key": "a", "path": "b"}]}},
            {
                "name": "downward",
                "downwardAPI": {"items": [{"path": "l", "fieldRef": {"fieldPath": "metadata.labels"}}]},
            },
            {"name": "claim", "persistentVolumeClaim": {"claimName": "data"}},
            {
                "name": "projected",
                "projected": {"sources": [{"configMap": {"name": "c"}}, {"secret": {"name": "s"}}]},
            },
        ],
        containers=[
            container(
                volumeMounts=[
                    {"name": "empty", "mountPath": "/e"},
                    {"name": "host", "mountPath": "/h", "readOnly": True},
                ]
            )
        ],
    ),
    "init-containers": pod(
        "inits",
        initContainers=[container("first"), container("sidecar", restartPolicy="Always")],
    ),
    "tolerations-kept": pod(
        "tolerations",
        tolerations=[
            {
                "key": "node.kubernetes.io/not-ready",
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": 5,
            }
        ],
    ),
    "toleration-of-everything": pod("tolerate-all", tolerations=[{"operator": "Exists"}]),
    "scheduled-at-birth": pod("scheduled", nodeName="node-x"),
    "priority-class-of-the-system": pod("critical", priorityClassName="system-node-critical"),
    "security-context": pod(
        "secure",
        securityContext={"runAsUser": 1000, "fsGroup": 2000},
        containers=[container(securityContext={"capabilities": {"drop": ["ALL"]}, "privileged": False})],
    ),
    "affinity": pod(
        "affinity",
        affinity={
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
                    ]
                }
            }
        },
        nodeSelector={"disk": "ssd"},
    ),
    "topology-spread": pod(
        "spread",
        topologySpreadConstraints=[
            {
                "maxSkew": 1,
                "topologyKey": "zone",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": "a"}},
            }
        ],
    ),
    "scheduling-gates": pod("gated", schedulingGates=[{"name": "example.com/wait"}]),
    "readiness-gates": pod("readiness-gates", readinessGates=[{"conditionType": "example.com/ok"}]),
    "host-aliases-and-dns": pod(
        "dns",
        hostAliases=[{"ip": "127.0.0.1", "hostnames": ["a.example"]}],
        dnsPolicy="None",
        dnsConfig={
            "nameservers": ["1.1.1.1"],
            "searches": ["example"],
            "options": [{"name": "ndots", "value": "2"}],
        },
        hostname="h",
        subdomain="s",
    ),
    "service-account-named": pod("account", serviceAccountName="robot", automountServiceAccountToken=False),
    "old-service-account-field": pod("account-old", serviceAccount="robot"),
    "status-is-not_taken": {**pod("status"), "status": {"phase": "Running", "podIP": "1.2.3.4"}},
    "labels-and-annotations": pod(
        "labels",
        metadata={"labels": {"a": "b", "example.com/x": ""}, "annotations": {"note": "anything at all!"}},
    ),
    "finalizers-and-owners": pod(
        "owned",
        metadata={
            "finalizers": ["example.com/hold"],
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": "r",
                    "uid": "11111111-1111-1111-1111-111111111111",
                    "controller": True,
                }
            ],
        },
    ),
    "own-uid-and-times-are-replaced": pod(
        "own-uid",
        metadata={"uid": "22222222-2222-2222-2222-222222222222", "creationTimestamp": "2001-01-01T00:00:00Z"},
    ),
    "deletion-marks-are-removed": pod(
        "born-deleted",
        metadata={
            "deletionTimestamp": "2001-01-01T00:00:00Z",
            "deletionGracePeriodSeconds": 9,
            "generation": 7,
        },
    ),
    "nulls-are-as-if-absent": pod("nulls", nodeName=None, tolerations=None, metadata={"labels": None}),
    "empty-lists": pod("empties", volumes=[], initContainers=[], imagePullSecrets=[]),
    "active-deadline": pod("deadline", activeDeadlineSeconds=60),
    "duplicate-env-warns": pod(
        "twice", containers=[container(env=[{"name": "A", "value": "1"}, {"name": "A", "value": "2"}])]
    ),
    "deprecated-annotation-warns": pod(
        "deprecated", metadata={"annotations": {"seccomp.security.alpha.kubernetes.io/pod": "unconfined"}}
    ),
    "name-that-is-no-hostname-warns": pod("dotted.name"),
    "deprecated-node-label-warns": pod("old-label", nodeSelector={"beta.kubernetes.io/arch": "amd64"}),
}
for name, body in _accepted.items():
    CREATION.post(name, PODS, body)
CREATION.get("all-of-them", PODS)
CREATION.post("same-name-again", PODS, pod("minimal"), 409)
CREATION.post("generated-name", PODS, pod(metadata={"generateName": "made-"}), keep={"made": "metadata.name"})
CREATION.get("generated-name-is-there", PODS + "/${made}")
CREATION.post("name-wins-over-generated", PODS, pod("chosen", metadata={"generateName": "made-"}))
CREATION.post("dry-run-answers-with-an-object", PODS + "?dryRun=All", pod("dry"))
CREATION.get("dry-run-stored-nothing", PODS + "/dry", 404)
CREATION.post("dry-run-finds-the-name-taken", PODS + "?dryRun=All", pod("minimal"), 409)
CREATION.post(
    "dry-run-of-a-version",
    PODS + "?dryRun=All",
    pod("dry", metadata={"resourceVersion": "5"}),
    pick=lambda b: b["kind"],
)
CREATION.post(
    "version-of-an-invalid-object", PODS, pod("x", containers=[], metadata={"resourceVersion": "5"}), 422
)
CREATION.post("dry-run-with-another-value", PODS + "?dryRun=Some", pod("dry"), 422)
CREATION.post("ephemeral-containers-refused", PODS, pod("eph", ephemeralContainers=[container("debug")]), 422)
