"""The flow control objects that kube-apiserver creates: mandatory ones, whose spec is fixed, and suggested ones."""

from __future__ import annotations

from typing import Any

from podlife.api.codec import Object

_ALL = ["*"]
_EVERYTHING: Object = {
    "resourceRules": [
        {"verbs": _ALL, "apiGroups": _ALL, "resources": _ALL, "clusterScope": True, "namespaces": _ALL}
    ],
    "nonResourceRules": [{"verbs": _ALL, "nonResourceURLs": _ALL}],
}


def _subjects(kind: str, *names: str) -> list[Object]:
    return [{"kind": kind, kind.lower(): {"name": name}} for name in names]


_EVERYBODY = _subjects("Group", "system:unauthenticated", "system:authenticated")
_NODES = _subjects("Group", "system:nodes")
_SYSTEM_ACCOUNTS: list[Object] = [
    {"kind": "ServiceAccount", "serviceAccount": {"namespace": "kube-system", "name": "*"}}
]
_MANAGER, _SCHEDULER = "system:kube-controller-manager", "system:kube-scheduler"
_LEASES: Object = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "namespaces": _ALL}


def _object(name: str, spec: Object) -> Object:
    annotations = {"apf.kubernetes.io/autoupdate-spec": "true"}
    return {"metadata": {"name": name, "annotations": annotations}, "spec": spec}


def _level(name: str, shares: int, lendable_percent: int, queues: int = 0, hand_size: int = 0) -> Object:
    response: Object = {"type": "Reject"}
    if queues:
        queuing = {"queues": queues, "handSize": hand_size, "queueLengthLimit": 50}
        response = {"type": "Queue", "queuing": queuing}
    limited = {
        "nominalConcurrencyShares": shares,
        "limitResponse": response,
        "lendablePercent": lendable_percent,
    }
    return _object(name, {"type": "Limited", "limited": limited})


def _schema(
    name: str, level: str, precedence: int, by: str, subjects: list[Object], rules: Object = _EVERYTHING
) -> Object:
    spec: dict[str, Any] = {
        "priorityLevelConfiguration": {"name": level},
        "matchingPrecedence": precedence,
        "rules": [{"subjects": subjects, **rules}],
    }
    if by:
        spec["distinguisherMethod"] = {"type": by}
    return _object(name, spec)


MANDATORY_LEVELS: tuple[Object, ...] = (
    _object("exempt", {"type": "Exempt", "exempt": {"nominalConcurrencyShares": 0, "lendablePercent": 0}}),
    _level("catch-all", 5, 0),
)
LEVELS: tuple[Object, ...] = (
    *MANDATORY_LEVELS,
    _level("system", 30, 33, 64, 6),
    _level("node-high", 40, 25, 64, 6),
    _level("leader-election", 10, 0, 16, 4),
    _level("workload-high", 40, 50, 128, 6),
    _level("workload-low", 100, 90, 128, 6),
    _level("global-default", 20, 50, 128, 6),
)
MANDATORY_SCHEMAS: tuple[Object, ...] = (
    _schema("exempt", "exempt", 1, "", _subjects("Group", "system:masters")),
    _schema("catch-all", "catch-all", 10000, "ByUser", _EVERYBODY),
)
SCHEMAS: tuple[Object, ...] = (
    *MANDATORY_SCHEMAS,
    _schema(
        "probes",
        "exempt",
        2,
        "",
        _EVERYBODY,
        {"nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/healthz", "/readyz", "/livez"]}]},
    ),
    _schema(
        "system-leader-election",
        "leader-election",
        100,
        "ByUser",
        [*_subjects("User", _MANAGER, _SCHEDULER), *_SYSTEM_ACCOUNTS],
        {"resourceRules": [{"verbs": ["get", "create", "update"], **_LEASES}]},
    ),
    _schema(
        "system-node-high",
        "node-high",
        400,
        "ByUser",
        _NODES,
        {
            "resourceRules": [
                {
                    "verbs": _ALL,
                    "apiGroups": [""],
                    "resources": ["nodes", "nodes/status"],
                    "clusterScope": True,
                    "namespaces": _ALL,
                },
                {"verbs": _ALL, **_LEASES},
            ]
        },
    ),
    _schema("system-nodes", "system", 500, "ByUser", _NODES),
    _schema("kube-controller-manager", "workload-high", 800, "ByNamespace", _subjects("User", _MANAGER)),
    _schema("kube-scheduler", "workload-high", 800, "ByNamespace", _subjects("User", _SCHEDULER)),
    _schema("kube-system-service-accounts", "workload-high", 900, "ByNamespace", _SYSTEM_ACCOUNTS),
    _schema("service-accounts", "workload-low", 9000, "ByUser", _subjects("Group", "system:serviceaccounts")),
    _schema("global-default", "global-default", 9900, "ByUser", _EVERYBODY),
)
