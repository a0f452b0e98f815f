"""One small valid object of every kind that is stored: what the fuzz starts from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from podlife.apiserver.resource import Resource
from podlife.apiserver.resource_table import STORED

NAMESPACE = "default"
Object = dict[str, Any]

_CONTAINER = {"name": "main", "image": "registry.example/app:1"}
_LABELS = {"app": "web"}
_SELECTOR = {"matchLabels": _LABELS}
_TEMPLATE = {"metadata": {"labels": _LABELS}, "spec": {"containers": [_CONTAINER]}}
_ONCE = {"metadata": {"labels": _LABELS}, "spec": {"containers": [_CONTAINER], "restartPolicy": "Never"}}
_STORAGE = {"storage": "1Gi"}
_REGARDING = {"kind": "Pod", "namespace": NAMESPACE, "name": "it"}
_RULE = {
    "apiGroups": ["none.example.com"],
    "apiVersions": ["v1"],
    "operations": ["CREATE"],
    "resources": ["nothings"],
}
_WEBHOOK = {
    "name": "a.example.com",
    "clientConfig": {"service": {"namespace": "default", "name": "absent"}},
    "rules": [_RULE],
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
    "failurePolicy": "Ignore",
}

# PEM, in base64.
_SELECTED = {"cel": {"expression": "device.driver == 'gpu.example.com'"}}
_DEVICE_CONFIG = {"opaque": {"driver": "gpu.example.com", "parameters": {"k": "v"}}}
_DEVICE_REQUEST = {
    "deviceClassName": "gpu",
    "selectors": [_SELECTED],
    "tolerations": [{"key": "k", "operator": "Exists"}],
    "capacity": {"requests": {"memory": "1Gi"}},
}
_DEVICE_CLAIM = {
    "devices": {
        "requests": [
            {"name": "a", "exactly": _DEVICE_REQUEST},
            {"name": "b", "firstAvailable": [{"name": "c", **_DEVICE_REQUEST}]},
        ],
        "constraints": [{"requests": ["a"], "matchAttribute": "gpu.example.com/numa"}],
        "config": [{"requests": ["a", "b/c"], **_DEVICE_CONFIG}],
    }
}
_SIGNING_REQUEST = (
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIYk1JR0NBZ0VBTUNBeER6QU5CZ05WQkFvTUJuQmxiM0Jz"
    "WlRFTk1Bc0dBMVVFQXd3RWFtRnVaVEJaTUJNRwpCeXFHU000OUFnRUdDQ3FHU000OUF3RUhBMElBQkxYWU1OOFZINE9lbGhF"
    "blA1aU9JSlpudXNBTkVLOVlHbHlQCm8wcUhLbnR3cEc5ajRQSFFGb3RMSEpGU084OE42ZmhrMEhaZHhsL25TL2lJT3QvSU1R"
    "aWdBREFLQmdncWhrak8KUFFRREFnTklBREJGQWlCSTI2NmgwMzNaK1A3NkdIaTQ3RXEzOWpMVzJQSnlBZktSQkVleVZIS0s2"
    "QUloQUpicQpLWGhKN3dzN2lSL3ZKQ2pQTW5JYitXOGZPWkxaajIyY3pCR01UR3JKCi0tLS0tRU5EIENFUlRJRklDQVRFIFJF"
    "UVVFU1QtLS0tLQo="
)
_CONTENTS: dict[str, Object] = {
    "configmaps": {"data": {"key": "value"}},
    "endpoints": {"subsets": [{"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 80}]}]},
    "events": {
        "involvedObject": _REGARDING,
        "reason": "Because",
        "message": "it happened",
        "type": "Normal",
        "firstTimestamp": "2030-01-01T00:00:00Z",
        "lastTimestamp": "2030-01-01T00:00:00Z",
    },
    "limitranges": {
        "spec": {"limits": [{"type": "Container", "max": {"cpu": "2"}, "default": {"cpu": "1"}}]}
    },
    "namespaces": {},
    "nodes": {"spec": {"podCIDR": "10.1.0.0/24"}},
    "persistentvolumeclaims": {
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": _STORAGE}}
    },
    "persistentvolumes": {
        "spec": {"accessModes": ["ReadWriteOnce"], "capacity": _STORAGE, "hostPath": {"path": "/data"}}
    },
    # Bound, so that a delete has a grace.
    "pods": {"spec": {"nodeName": "somewhere", "containers": [_CONTAINER]}},
    "replicationcontrollers": {"spec": {"replicas": 1, "selector": _LABELS, "template": _TEMPLATE}},
    "resourcequotas": {"spec": {"hard": {"pods": "100000", "requests.cpu": "100000"}}},
    "secrets": {"type": "Opaque", "data": {"key": "dmFsdWU="}},
    "serviceaccounts": {},
    "services": {"spec": {"selector": _LABELS, "ports": [{"port": 80}]}},
    "controllerrevisions.apps": {"revision": 1, "data": {"spec": {}}},
    "daemonsets.apps": {"spec": {"selector": _SELECTOR, "template": _TEMPLATE}},
    "deployments.apps": {"spec": {"selector": _SELECTOR, "template": _TEMPLATE}},
    "replicasets.apps": {"spec": {"selector": _SELECTOR, "template": _TEMPLATE}},
    "statefulsets.apps": {"spec": {"serviceName": "web", "selector": _SELECTOR, "template": _TEMPLATE}},
    "events.events.k8s.io": {
        "regarding": _REGARDING,
        "reason": "Because",
        "action": "Happen",
        "type": "Normal",
        "reportingController": "example.com/fuzz",
        "reportingInstance": "fuzz-1",
        "eventTime": "2030-01-01T00:00:00.000000Z",
    },
    "cronjobs.batch": {
        "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": {"spec": _ONCE["spec"]}}}}
    },
    "jobs.batch": {"spec": {"template": {"spec": _ONCE["spec"]}}},
    "poddisruptionbudgets.policy": {"spec": {"minAvailable": 1, "selector": _SELECTOR}},
    "podtemplates": {"template": _TEMPLATE},
    "clusterrolebindings.rbac.authorization.k8s.io": {
        "roleRef": {"kind": "ClusterRole", "name": "r"},
        "subjects": [{"kind": "User", "name": "u"}],
    },
    "clusterroles.rbac.authorization.k8s.io": {
        "rules": [{"verbs": ["get"], "nonResourceURLs": ["/x"]}],
    },
    "rolebindings.rbac.authorization.k8s.io": {
        "roleRef": {"kind": "Role", "name": "r"},
        "subjects": [{"kind": "ServiceAccount", "name": "s"}],
    },
    "roles.rbac.authorization.k8s.io": {
        "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}],
    },
    "endpointslices.discovery.k8s.io": {
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["172.16.1.1"]}],
        "ports": [{"port": 80}],
    },
    "flowschemas.flowcontrol.apiserver.k8s.io": {
        "spec": {
            "matchingPrecedence": 9000,
            "priorityLevelConfiguration": {"name": "global-default"},
            "distinguisherMethod": {"type": "ByUser"},
            "rules": [
                {
                    "subjects": [{"kind": "User", "user": {"name": "u"}}],
                    "resourceRules": [
                        {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "namespaces": ["*"]}
                    ],
                    "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/x"]}],
                }
            ],
        }
    },
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": {
        "spec": {
            "type": "Limited",
            "limited": {
                "nominalConcurrencyShares": 2,
                "limitResponse": {
                    "type": "Queue",
                    "queuing": {"queues": 16, "handSize": 4, "queueLengthLimit": 5},
                },
            },
        }
    },
    # Rules about a group that is not served: nothing else is affected.
    "mutatingadmissionpolicies.admissionregistration.k8s.io": {
        "spec": {
            "matchConstraints": {"resourceRules": [_RULE]},
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{}]"}}],
            "reinvocationPolicy": "Never",
        }
    },
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io": {"spec": {"policyName": "absent"}},
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": {"webhooks": [_WEBHOOK]},
    "validatingadmissionpolicies.admissionregistration.k8s.io": {
        "spec": {"matchConstraints": {"resourceRules": [_RULE]}, "validations": [{"expression": "true"}]}
    },
    "validatingadmissionpolicybindings.admissionregistration.k8s.io": {
        "spec": {"policyName": "absent", "validationActions": ["Deny"]}
    },
    "validatingwebhookconfigurations.admissionregistration.k8s.io": {"webhooks": [_WEBHOOK]},
    "ingressclasses.networking.k8s.io": {
        "spec": {
            "controller": "example.com/ingress",
            "parameters": {"apiGroup": "k8s.example.com", "kind": "K", "name": "n", "scope": "Cluster"},
        }
    },
    "networkpolicies.networking.k8s.io": {
        "spec": {
            "podSelector": {"matchLabels": {"app": "web"}},
            "ingress": [
                {
                    "ports": [{"port": 80, "endPort": 90}],
                    "from": [
                        {"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}},
                        {"namespaceSelector": {}, "podSelector": {"matchLabels": {"app": "db"}}},
                    ],
                }
            ],
            "egress": [{"to": [{"podSelector": {}}]}],
        }
    },
    "servicecidrs.networking.k8s.io": {"spec": {"cidrs": ["10.0.0.0/24"]}},
    "ingresses.networking.k8s.io": {
        "spec": {
            "rules": [
                {
                    "host": "a.example.com",
                    "http": {
                        "paths": [
                            {
                                "path": "/",
                                "pathType": "Prefix",
                                "backend": {"service": {"name": "web", "port": {"number": 80}}},
                            }
                        ]
                    },
                }
            ],
            "tls": [{"hosts": ["a.example.com"], "secretName": "s"}],
        }
    },
    "priorityclasses.scheduling.k8s.io": {"value": 5},
    "runtimeclasses.node.k8s.io": {
        "handler": "runc",
        "overhead": {"podFixed": {"cpu": "1"}},
        "scheduling": {"nodeSelector": _LABELS, "tolerations": [{"key": "k", "operator": "Exists"}]},
    },
    "csinodes.storage.k8s.io": {
        "spec": {"drivers": [{"name": "csi.example.com", "nodeID": "n", "topologyKeys": ["zone"]}]}
    },
    "csidrivers.storage.k8s.io": {
        "spec": {"tokenRequests": [{"audience": "a", "expirationSeconds": 600}], "fsGroupPolicy": "File"}
    },
    "csistoragecapacities.storage.k8s.io": {
        "storageClassName": "fast",
        "nodeTopology": {"matchLabels": _LABELS},
        "capacity": "1Gi",
        "maximumVolumeSize": "1Gi",
    },
    "storageclasses.storage.k8s.io": {
        "provisioner": "csi.example.com",
        "parameters": {"k": "v"},
        "mountOptions": ["ro"],
        "allowedTopologies": [{"matchLabelExpressions": [{"key": "zone", "values": ["a"]}]}],
    },
    "volumeattachments.storage.k8s.io": {
        "spec": {"attacher": "csi.example.com", "nodeName": "n", "source": {"persistentVolumeName": "v"}}
    },
    "volumeattributesclasses.storage.k8s.io": {"driverName": "csi.example.com", "parameters": {"k": "v"}},
    "deviceclasses.resource.k8s.io": {
        "spec": {
            "selectors": [_SELECTED],
            "config": [_DEVICE_CONFIG],
            "extendedResourceName": "example.com/gpu",
        }
    },
    "resourceclaims.resource.k8s.io": {"spec": _DEVICE_CLAIM},
    "resourceclaimtemplates.resource.k8s.io": {
        "spec": {"metadata": {"labels": _LABELS}, "spec": _DEVICE_CLAIM}
    },
    "resourceslices.resource.k8s.io": {
        "spec": {
            "driver": "gpu.example.com",
            "pool": {"name": "n", "resourceSliceCount": 1, "generation": 1},
            "nodeName": "n",
            "devices": [
                {
                    "name": "gpu",
                    "attributes": {"a": {"string": "b"}, "v": {"version": "1.0.0"}},
                    "allowMultipleAllocations": True,
                    "capacity": {
                        "m": {
                            "value": "4Gi",
                            "requestPolicy": {"default": "1Gi", "validRange": {"min": "1Gi", "step": "1Gi"}},
                        }
                    },
                    "taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}],
                    "consumesCounters": [{"counterSet": "c", "counters": {"m": {"value": "1Gi"}}}],
                    "bindingConditions": ["a"],
                    "bindingFailureConditions": ["b"],
                }
            ],
        }
    },
    "certificatesigningrequests.certificates.k8s.io": {
        "spec": {
            "request": _SIGNING_REQUEST,
            "signerName": "example.com/signer",
            "usages": ["client auth"],
            "expirationSeconds": 3600,
        }
    },
    "leases.coordination.k8s.io": {"spec": {"holderIdentity": "me", "leaseDurationSeconds": 15}},
}


_AUTOSCALER: Object = {
    "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
    "maxReplicas": 5,
}
_METRIC = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 5}},
}
# Kinds that have the same name in several versions.
_BY_VERSION: dict[str, Object] = {
    "autoscaling/v1": {"spec": _AUTOSCALER | {"targetCPUUtilizationPercentage": 50}},
    "autoscaling/v2": {
        "spec": _AUTOSCALER | {"metrics": [_METRIC], "behavior": {"scaleUp": {"selectPolicy": "Max"}}}
    },
}


@dataclass(frozen=True, eq=False)
class Seed:
    """A kind, where its objects are, and one of them."""

    resource: Resource
    content: Object

    @property
    def collection(self) -> str:
        row = self.resource
        prefix = f"/apis/{row.api_version}" if row.group else f"/api/{row.version}"
        return f"{prefix}/namespaces/{NAMESPACE}/{row.plural}" if row.namespaced else f"{prefix}/{row.plural}"

    def object(self, name: str) -> Object:
        row = self.resource
        head = {"apiVersion": row.api_version, "kind": row.kind, "metadata": {"name": name}}
        return {**head, **self.content}

    def __repr__(self) -> str:
        row = self.resource
        return row.key if row.version == "v1" else f"{row.key} {row.version}"


# The names of these are made of their content: `test_custom_resources` makes its own definitions.
_APART = (
    "customresourcedefinitions.apiextensions.k8s.io",
    "apiservices.apiregistration.k8s.io",
    # Its name is an address.
    "ipaddresses.networking.k8s.io",
)
SEEDS = tuple(
    Seed(row, _BY_VERSION.get(row.api_version) or _CONTENTS[row.key])
    for row in STORED
    if row.key not in _APART
)
