"""Objects that say who may do what, and how much of it: roles, bindings, flow schemas, priority levels."""

from __future__ import annotations

from typing import Any

from tests.real.differential.areas.objects import of
from tests.real.differential.steps import Area

Object = dict[str, Any]


def without_status(body: Any) -> Any:
    """What the server says of the object comes a moment later."""
    meta = {key: value for key, value in body.get("metadata", {}).items() if key != "resourceVersion"}
    return {**{key: value for key, value in body.items() if key != "status"}, "metadata": meta}


def without_age(body: Any) -> Any:
    """The servers started at different times."""
    plain = without_status(body)
    return {**plain, "metadata": {**plain["metadata"], "creationTimestamp": "", "uid": ""}}


FLOW_CONTROL = Area("flow-control", namespace=False)
_GROUP = "/apis/flowcontrol.apiserver.k8s.io/v1"
SCHEMAS, LEVELS = f"{_GROUP}/flowschemas", f"{_GROUP}/prioritylevelconfigurations"
_VERSION = "flowcontrol.apiserver.k8s.io/v1"
_EVERYTHING: Object = {"nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}]}
_USER: Object = {"kind": "User", "user": {"name": "diff"}}


def _schema(name: str, **spec: Any) -> Object:
    fields = {
        "matchingPrecedence": 9000,
        "priorityLevelConfiguration": {"name": "global-default"},
        "distinguisherMethod": {"type": "ByUser"},
        "rules": [{"subjects": [_USER], **_EVERYTHING}],
    }
    return of(_VERSION, "FlowSchema", name, spec=fields | spec)


def _level(name: str, **limited: Any) -> Object:
    fields = {"nominalConcurrencyShares": 2, "limitResponse": {"type": "Reject"}} | limited
    return of(_VERSION, "PriorityLevelConfiguration", name, spec={"type": "Limited", "limited": fields})


def _queue(**queuing: int) -> Object:
    return {"type": "Queue", "queuing": queuing}


for _name in ("exempt", "catch-all", "system-nodes", "system-leader-election", "system-node-high", "probes"):
    FLOW_CONTROL.get(f"schema-{_name}", f"{SCHEMAS}/{_name}", pick=without_age)
for _name in ("exempt", "catch-all", "workload-low", "leader-election"):
    FLOW_CONTROL.get(f"level-{_name}", f"{LEVELS}/{_name}", pick=without_age)
FLOW_CONTROL.post("schema", SCHEMAS, _schema("diff"), pick=without_status)
FLOW_CONTROL.post("schema-again", SCHEMAS, _schema("diff"), 409)
FLOW_CONTROL.post(
    "schema-defaults",
    SCHEMAS,
    of(_VERSION, "FlowSchema", "diff-plain", spec={"priorityLevelConfiguration": {"name": "a"}}),
    pick=without_status,
)
FLOW_CONTROL.patch(
    "schema-change", "merge", f"{SCHEMAS}/diff", {"spec": {"matchingPrecedence": 8000}}, pick=without_status
)
_condition = {"type": "Seen", "status": "True", "lastTransitionTime": None}
FLOW_CONTROL.patch(
    "schema-status-twice-the-same",
    "merge",
    f"{SCHEMAS}/diff/status",
    {"status": {"conditions": [_condition, _condition]}},
    422,
)
FLOW_CONTROL.patch(
    "schema-status-without-type",
    "merge",
    f"{SCHEMAS}/diff/status",
    {"status": {"conditions": [{"status": "True"}]}},
    422,
)
_refused_schemas: dict[str, Object] = {
    "precedence-too-low": {"matchingPrecedence": -1},
    "precedence-too-high": {"matchingPrecedence": 10001},
    "precedence-of-exempt": {"matchingPrecedence": 1},
    "no-level": {"priorityLevelConfiguration": {"name": ""}},
    "bad-level": {"priorityLevelConfiguration": {"name": "No Such"}},
    "no-subjects": {"rules": [{**_EVERYTHING}]},
    "no-rules": {"rules": [{"subjects": [_USER]}]},
    "subject-of-no-kind": {"rules": [{"subjects": [{"kind": "Robot"}], **_EVERYTHING}]},
    "subject-without-user": {"rules": [{"subjects": [{"kind": "User"}], **_EVERYTHING}]},
    "subject-without-name": {
        "rules": [{"subjects": [{"kind": "Group", "group": {"name": ""}}], **_EVERYTHING}]
    },
    "subject-of-two-kinds": {
        "rules": [{"subjects": [{**_USER, "group": {"name": "a"}}], **_EVERYTHING}],
    },
    "account-without-namespace": {
        "rules": [
            {
                "subjects": [
                    {"kind": "ServiceAccount", "serviceAccount": {"name": "Bad Name", "namespace": ""}}
                ],
                **_EVERYTHING,
            }
        ]
    },
    "verbs-and-star": {
        "rules": [
            {"subjects": [_USER], "nonResourceRules": [{"verbs": ["*", "get"], "nonResourceURLs": ["*"]}]}
        ]
    },
    "bad-urls": {
        "rules": [
            {
                "subjects": [_USER],
                "nonResourceRules": [
                    {
                        "verbs": ["get"],
                        "nonResourceURLs": ["", "a", "/a b", "/a//b", "/*/b", "/a*", "/", "/ok/*"],
                    }
                ],
            }
        ]
    },
    "empty-resource-rule": {"rules": [{"subjects": [_USER], "resourceRules": [{}]}]},
    "bad-resource-rule": {
        "rules": [
            {
                "subjects": [_USER],
                "resourceRules": [
                    {
                        "verbs": ["get"],
                        "apiGroups": ["*", "a"],
                        "resources": ["*", "b"],
                        "namespaces": ["Bad.Name"],
                    }
                ],
            }
        ]
    },
}
for _name, _spec in _refused_schemas.items():
    FLOW_CONTROL.post(f"schema-{_name}", SCHEMAS, _schema("diff-refused", **_spec), 422)
FLOW_CONTROL.patch(
    "fixed-schema",
    "merge",
    f"{SCHEMAS}/catch-all",
    {"spec": {"matchingPrecedence": 9999}},
    422,
)
FLOW_CONTROL.delete("schema-delete", f"{SCHEMAS}/diff", pick=without_status)
FLOW_CONTROL.delete("schema-delete-too", f"{SCHEMAS}/diff-plain", pick=without_status)

FLOW_CONTROL.post("level", LEVELS, _level("diff"))
FLOW_CONTROL.post("level-queue", LEVELS, _level("diff-queue", limitResponse=_queue()))
FLOW_CONTROL.patch(
    "level-change", "merge", f"{LEVELS}/diff", {"spec": {"limited": {"nominalConcurrencyShares": 4}}}
)
_refused_levels: dict[str, Object] = {
    "no-response": {"limitResponse": {}},
    "bad-response": {"limitResponse": {"type": "Shrug"}},
    "reject-with-queues": {"limitResponse": {**_queue(queues=4), "type": "Reject"}},
    "queue-without-queues": {"limitResponse": {"type": "Queue"}},
    "negative-numbers": {
        "nominalConcurrencyShares": -1,
        "lendablePercent": 101,
        "borrowingLimitPercent": -2,
        "limitResponse": _queue(queues=-1, handSize=-1, queueLengthLimit=-1),
    },
    "hand-too-large": {"limitResponse": _queue(queues=4, handSize=5)},
    "too-many-queues": {"limitResponse": _queue(queues=10_000_001, handSize=1)},
    "too-much-entropy": {"limitResponse": _queue(queues=128, handSize=10)},
}
for _name, _limited in _refused_levels.items():
    FLOW_CONTROL.post(f"level-{_name}", LEVELS, _level("diff-refused", **_limited), 422)
_refused_specs: dict[str, Object] = {
    "no-type": {},
    "bad-type": {"type": "Unlimited"},
    "exempt-by-another-name": {"type": "Exempt"},
    "limited-without-limits": {"type": "Limited"},
    "both": {"type": "Limited", "exempt": {}, "limited": {"limitResponse": {"type": "Reject"}}},
}
for _name, _spec in _refused_specs.items():
    body = of(_VERSION, "PriorityLevelConfiguration", "diff-refused", spec=_spec)
    FLOW_CONTROL.post(f"level-{_name}", LEVELS, body, 422)
FLOW_CONTROL.delete("level-delete", f"{LEVELS}/diff")
FLOW_CONTROL.delete("level-delete-too", f"{LEVELS}/diff-queue")

RBAC = Area("rbac")
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
ROLES, BINDINGS = f"{_RBAC}/namespaces/${{ns}}/roles", f"{_RBAC}/namespaces/${{ns}}/rolebindings"
CLUSTER_ROLES, CLUSTER_BINDINGS = f"{_RBAC}/clusterroles", f"{_RBAC}/clusterrolebindings"
_RBAC_VERSION = "rbac.authorization.k8s.io/v1"
_READ = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
_ROLE_REF = {"kind": "Role", "name": "read"}


def _binding(name: str, kind: str = "RoleBinding", **fields: Any) -> Object:
    subjects = [
        {"kind": "User", "name": "a"},
        {"kind": "ServiceAccount", "name": "b", "namespace": "default"},
    ]
    return of(_RBAC_VERSION, kind, name, **{"roleRef": _ROLE_REF, "subjects": subjects} | fields)


RBAC.post("role", ROLES, of(_RBAC_VERSION, "Role", "read", rules=[_READ]))
RBAC.post("role-without-rules", ROLES, of(_RBAC_VERSION, "Role", "none"))
RBAC.post("role-with-colons", ROLES, of(_RBAC_VERSION, "Role", "diff:a:b", rules=[_READ]))
RBAC.post("role-bad-name", ROLES, of(_RBAC_VERSION, "Role", "a%b", rules=[_READ]), 422)
RBAC.patch("role-change", "strategic", f"{ROLES}/read", {"rules": [{**_READ, "verbs": ["list"]}]})
RBAC.put("role-by-put", f"{ROLES}/fresh", of(_RBAC_VERSION, "Role", "fresh", rules=[_READ]), 201)
for _name, _rule in {
    "empty": {},
    "with-urls": {"verbs": ["get"], "nonResourceURLs": ["/a"]},
    "with-both": {**_READ, "nonResourceURLs": ["/a"]},
}.items():
    RBAC.post(f"role-refused-{_name}", ROLES, of(_RBAC_VERSION, "Role", "refused", rules=[_rule]), 422)
RBAC.post("binding", BINDINGS, _binding("read"))
RBAC.get("binding-get", f"{BINDINGS}/read")
RBAC.patch("binding-subjects", "merge", f"{BINDINGS}/read", {"subjects": [{"kind": "Group", "name": "g"}]})
RBAC.patch("binding-role", "merge", f"{BINDINGS}/read", {"roleRef": {"name": "other"}}, 422)
_refused_bindings: dict[str, Object] = {
    "role-of-another-group": {"roleRef": {**_ROLE_REF, "apiGroup": "apps"}},
    "role-of-another-kind": {"roleRef": {"kind": "Deployment", "name": ""}},
    "bad-role-name": {"roleRef": {"kind": "Role", "name": "a/b"}},
    "bad-subjects": {
        "subjects": [
            {"kind": "Robot", "name": "a"},
            {"kind": "User", "name": "", "apiGroup": "apps"},
            {"kind": "ServiceAccount", "name": "Bad Name", "apiGroup": "apps"},
        ]
    },
}
for _name, _fields in _refused_bindings.items():
    RBAC.post(f"binding-{_name}", BINDINGS, _binding("refused", **_fields), 422)
_aggregated = {"clusterRoleSelectors": [{"matchLabels": {"diff/none": "x"}}]}
RBAC.post("cluster-role", CLUSTER_ROLES, of(_RBAC_VERSION, "ClusterRole", "diff:read", rules=[_READ]))
RBAC.post(
    "cluster-role-aggregated",
    CLUSTER_ROLES,
    of(_RBAC_VERSION, "ClusterRole", "diff:all", aggregationRule=_aggregated),
    pick=without_status,
)
RBAC.post(
    "cluster-role-aggregates-nothing",
    CLUSTER_ROLES,
    of(_RBAC_VERSION, "ClusterRole", "diff:refused", aggregationRule={"clusterRoleSelectors": []}),
    422,
)
_cluster_ref = {"kind": "ClusterRole", "name": "diff:read"}
RBAC.post(
    "cluster-binding",
    CLUSTER_BINDINGS,
    _binding("diff:read", "ClusterRoleBinding", roleRef=_cluster_ref),
)
RBAC.post(
    "cluster-binding-refused",
    CLUSTER_BINDINGS,
    _binding("diff:refused", "ClusterRoleBinding", subjects=[{"kind": "ServiceAccount", "name": "a"}]),
    422,
)
for _name, _path in {
    "cluster-binding": f"{CLUSTER_BINDINGS}/diff:read",
    "cluster-role": f"{CLUSTER_ROLES}/diff:read",
    "cluster-role-aggregated": f"{CLUSTER_ROLES}/diff:all",
    "binding": f"{BINDINGS}/read",
}.items():
    _table = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    RBAC.get(f"{_name}-row", _path, headers=_table)
    RBAC.delete(f"{_name}-delete", _path)

SLICES = Area("endpoint-slices")
_SLICES = "/apis/discovery.k8s.io/v1/namespaces/${ns}/endpointslices"


def _slice(name: str, **fields: Any) -> Object:
    given = {"addressType": "IPv4", "endpoints": [{"addresses": ["172.16.1.1"]}], "ports": [{"port": 80}]}
    return of("discovery.k8s.io/v1", "EndpointSlice", name, **given | fields)


SLICES.post("slice", _SLICES, _slice("a"))
SLICES.post("slice-empty", _SLICES, of("discovery.k8s.io/v1", "EndpointSlice", "empty", addressType="IPv6"))
SLICES.post(
    "slice-of-names", _SLICES, _slice("names", addressType="FQDN", endpoints=[{"addresses": ["a.example"]}])
)
SLICES.patch("slice-change", "merge", f"{_SLICES}/a", {"ports": [{"name": "x", "port": 81}]})
SLICES.patch("slice-label", "merge", f"{_SLICES}/a", {"metadata": {"labels": {"a": "b"}}})
SLICES.patch("slice-annotation", "merge", f"{_SLICES}/a", {"metadata": {"annotations": {"a": "b"}}})
SLICES.patch("slice-type", "merge", f"{_SLICES}/a", {"addressType": "IPv6"}, 422)
_refused_slices: dict[str, Object] = {
    "no-type": {"addressType": ""},
    "bad-type": {"addressType": "IPv5"},
    "no-address": {"endpoints": [{"addresses": []}]},
    "bad-addresses": {"endpoints": [{"addresses": ["a", "127.0.0.1", "0.0.0.0", "169.254.1.1", "fd00::1"]}]},
    "bad-names": {"endpoints": [{"addresses": ["172.16.1.1"], "hostname": "A b", "nodeName": "A b"}]},
    "bad-hints": {
        "endpoints": [
            {
                "addresses": ["172.16.1.1"],
                "hints": {"forZones": [{"name": "a"}, {"name": "a"}, {"name": "-"}]},
            }
        ]
    },
    "bad-ports": {
        "ports": [{"name": "A b"}, {"name": "a", "protocol": "ICMP"}, {"name": "a", "appProtocol": "a b"}]
    },
}
for _name, _fields in _refused_slices.items():
    SLICES.post(f"slice-{_name}", _SLICES, _slice("refused", **_fields), 422)
SLICES.get("rows", _SLICES, headers=_table)
SLICES.delete("slice-delete", f"{_SLICES}/a")
