"""Every other kind: created, changed, refused, selected."""

from __future__ import annotations

from typing import Any

from tests.real.differential.areas.objects import (
    APPS,
    BATCH,
    CORE,
    EVENTS,
    LEASES,
    POLICY,
    container,
    of,
    template,
    workload,
)
from tests.real.differential.steps import Area

PLAIN = Area("plain-kinds")

# path, the object, a merge patch that is fine
_plain: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "configmap": (
        CORE + "/configmaps",
        of("v1", "ConfigMap", "a", data={"k": "v"}, binaryData={"b": "AAE="}),
        {"data": {"k": "w"}},
    ),
    "secret": (
        CORE + "/secrets",
        of("v1", "Secret", "a", stringData={"k": "v"}, data={"d": "dg=="}),
        {"stringData": {"k": "w"}},
    ),
    "service": (
        CORE + "/services",
        of("v1", "Service", "a", spec={"selector": {"a": "b"}, "ports": [{"port": 80}]}),
        {"spec": {"selector": {"a": "c"}}},
    ),
    "headless-service": (
        CORE + "/services",
        of("v1", "Service", "headless", spec={"clusterIP": "None", "selector": {"a": "b"}}),
        {"spec": {"publishNotReadyAddresses": True}},
    ),
    "external-name": (
        CORE + "/services",
        of("v1", "Service", "external", spec={"type": "ExternalName", "externalName": "a.example"}),
        {"spec": {"externalName": "b.example"}},
    ),
    "endpoints": (
        CORE + "/endpoints",
        of("v1", "Endpoints", "a", subsets=[{"addresses": [{"ip": "172.16.1.1"}], "ports": [{"port": 80}]}]),
        {"metadata": {"labels": {"a": "b"}}},
    ),
    "podtemplate": (
        CORE + "/podtemplates",
        of("v1", "PodTemplate", "a", template=template()),
        {"template": {"spec": {"terminationGracePeriodSeconds": 5}}},
    ),
    "serviceaccount": (
        CORE + "/serviceaccounts",
        of("v1", "ServiceAccount", "a"),
        {"automountServiceAccountToken": False},
    ),
    "claim": (
        CORE + "/persistentvolumeclaims",
        of(
            "v1",
            "PersistentVolumeClaim",
            "a",
            spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        ),
        {"metadata": {"labels": {"a": "b"}}},
    ),
    "event": (
        CORE + "/events",
        of(
            "v1",
            "Event",
            "a",
            involvedObject={"kind": "Pod", "name": "p", "namespace": "${ns}"},
            reason="Because",
            message="it was so",
            type="Normal",
            count=1,
        ),
        {"count": 2},
    ),
    "lease": (
        LEASES,
        of(
            "coordination.k8s.io/v1",
            "Lease",
            "a",
            spec={
                "holderIdentity": "me",
                "leaseDurationSeconds": 40,
                "renewTime": "2020-01-01T00:00:00.500000Z",
            },
        ),
        {"spec": {"holderIdentity": "you"}},
    ),
    "budget": (
        POLICY + "/poddisruptionbudgets",
        of(
            "policy/v1",
            "PodDisruptionBudget",
            "a",
            spec={"maxUnavailable": "50%", "selector": {"matchLabels": {"a": "b"}}},
        ),
        {"spec": {"maxUnavailable": 1}},
    ),
    "new-event": (
        EVENTS,
        of(
            "events.k8s.io/v1",
            "Event",
            "b",
            eventTime="2020-01-01T00:00:00.000000Z",
            reportingController="example.com/c",
            reportingInstance="c-1",
            action="Doing",
            reason="Because",
            regarding={"kind": "Pod", "name": "p", "namespace": "${ns}"},
            note="it was so",
            type="Normal",
        ),
        {"series": {"count": 2, "lastObservedTime": "2020-01-01T00:00:01.000000Z"}},
    ),
    "controllerrevision": (
        APPS + "/controllerrevisions",
        of("apps/v1", "ControllerRevision", "a", revision=1, data={"spec": {"x": 1}}),
        {"metadata": {"labels": {"a": "b"}}},
    ),
}
for name, (path, body, change) in _plain.items():
    one = f"{path}/{body['metadata']['name']}"
    PLAIN.post(f"{name}-create", path, body)
    PLAIN.get(f"{name}-get", one, keep={"rv": "metadata.resourceVersion"})
    PLAIN.patch(f"{name}-change", "merge", one, change)
    PLAIN.put(
        f"{name}-stale", one, {**body, "metadata": {**body["metadata"], "resourceVersion": "${rv}"}}, 409
    )
    PLAIN.get(f"{name}-list", path)
    PLAIN.post(f"{name}-again", path, body, 409)
PLAIN.get("old-event-seen-as-new", EVENTS + "/a")
PLAIN.get("new-event-seen-as-old", CORE + "/events/b")
PLAIN.get("events-by-object", CORE + "/events?fieldSelector=involvedObject.name%3Dp,type%3DNormal")
PLAIN.get("events-by-new-field", EVENTS + "?fieldSelector=regarding.name%3Dp")
PLAIN.get("secrets-by-type", CORE + "/secrets?fieldSelector=type%3DOpaque")
PLAIN.get("services-by-type", CORE + "/services?fieldSelector=spec.type%3DExternalName")

_refused: dict[str, tuple[str, dict[str, Any]]] = {
    "configmap-key": (CORE + "/configmaps", of("v1", "ConfigMap", "x", data={"a b": "c"})),
    "configmap-both": (
        CORE + "/configmaps",
        of("v1", "ConfigMap", "x", data={"a": "c"}, binaryData={"a": "AA=="}),
    ),
    "secret-key": (CORE + "/secrets", of("v1", "Secret", "x", data={"a b": "AA=="})),
    "secret-tls-without-keys": (CORE + "/secrets", of("v1", "Secret", "x", type="kubernetes.io/tls")),
    "service-without-ports": (CORE + "/services", of("v1", "Service", "x", spec={"selector": {"a": "b"}})),
    "service-port": (CORE + "/services", of("v1", "Service", "x", spec={"ports": [{"port": 0}]})),
    "service-name": (CORE + "/services", of("v1", "Service", "a.b", spec={"ports": [{"port": 80}]})),
    "service-type": (
        CORE + "/services",
        of("v1", "Service", "x", spec={"type": "Tunnel", "ports": [{"port": 80}]}),
    ),
    "service-two-unnamed-ports": (
        CORE + "/services",
        of("v1", "Service", "x", spec={"ports": [{"port": 80}, {"port": 81}]}),
    ),
    "claim-empty": (CORE + "/persistentvolumeclaims", of("v1", "PersistentVolumeClaim", "x")),
    "claim-mode": (
        CORE + "/persistentvolumeclaims",
        of(
            "v1",
            "PersistentVolumeClaim",
            "x",
            spec={"accessModes": ["Sometimes"], "resources": {"requests": {"storage": "1Gi"}}},
        ),
    ),
    "event-other-namespace": (
        CORE + "/events",
        of("v1", "Event", "x", involvedObject={"namespace": "elsewhere"}),
    ),
    "new-event-empty": (EVENTS, of("events.k8s.io/v1", "Event", "x")),
    "lease-duration": (LEASES, of("coordination.k8s.io/v1", "Lease", "x", spec={"leaseDurationSeconds": 0})),
    "revision-negative": (
        APPS + "/controllerrevisions",
        of("apps/v1", "ControllerRevision", "x", revision=-1, data={}),
    ),
    "endpoints-address": (
        CORE + "/endpoints",
        of("v1", "Endpoints", "x", subsets=[{"addresses": [{"ip": "nowhere"}], "ports": [{"port": 80}]}]),
    ),
}
for name, (path, body) in _refused.items():
    PLAIN.post(f"{name}-refused", path, body, 422)
PLAIN.patch("revision-number", "merge", APPS + "/controllerrevisions/a", {"revision": 2})
PLAIN.patch(
    "revision-data-is-fixed", "merge", APPS + "/controllerrevisions/a", {"data": {"spec": {"x": 2}}}, 422
)
PLAIN.post(
    "immutable-map", CORE + "/configmaps", of("v1", "ConfigMap", "fixed", data={"a": "b"}, immutable=True)
)
PLAIN.patch("immutable-map-change", "merge", CORE + "/configmaps/fixed", {"data": {"a": "c"}}, 422)
PLAIN.patch("immutable-map-label", "merge", CORE + "/configmaps/fixed", {"metadata": {"labels": {"a": "b"}}})
PLAIN.patch("secret-type-change", "merge", CORE + "/secrets/a", {"type": "other"}, 422)
PLAIN.patch(
    "service-address-change", "merge", CORE + "/services/a", {"spec": {"clusterIP": "10.0.0.250"}}, 422
)
PLAIN.patch(
    "claim-gets-its-volume",
    "merge",
    CORE + "/persistentvolumeclaims/a",
    {"spec": {"volumeName": "v", "storageClassName": "c"}},
    200,
)
PLAIN.patch("claim-is-fixed", "merge", CORE + "/persistentvolumeclaims/a", {"spec": {"volumeName": "w"}}, 422)
PLAIN.patch("claim-bound", "merge", CORE + "/persistentvolumeclaims/a/status", {"status": {"phase": "Bound"}})
PLAIN.put("lease-put-creates", LEASES + "/made", of("coordination.k8s.io/v1", "Lease", "made", spec={}), 201)
PLAIN.put("map-put-does-not-create", CORE + "/configmaps/made", of("v1", "ConfigMap", "made"), 404)
PLAIN.put(
    "service-put-creates",
    CORE + "/services/made",
    of("v1", "Service", "made", spec={"ports": [{"port": 1}]}),
    201,
)
PLAIN.put(
    "event-put-creates",
    CORE + "/events/made",
    of("v1", "Event", "made", involvedObject={"namespace": "${ns}"}),
    201,
)
PLAIN.put("map-unconditional", CORE + "/configmaps/a", of("v1", "ConfigMap", "a", data={"new": "x"}))

WORKLOADS = Area("workloads")
_workloads = {
    "deployments": "Deployment",
    "replicasets": "ReplicaSet",
    "statefulsets": "StatefulSet",
    "daemonsets": "DaemonSet",
}
for plural, kind in _workloads.items():
    path = f"{APPS}/{plural}"
    WORKLOADS.post(f"{plural}-create", path, workload(kind, "w"))
    WORKLOADS.post(
        f"{plural}-no-selector", path, of("apps/v1", kind, "x", spec={"template": template()}), 422
    )
    WORKLOADS.post(
        f"{plural}-selector-misses", path, workload(kind, "x", template=template({"app": "other"})), 422
    )
    WORKLOADS.post(f"{plural}-empty-selector", path, workload(kind, "x", selector={}), 422)
    WORKLOADS.post(
        f"{plural}-restart-never", path, workload(kind, "x", template=template(restartPolicy="Never")), 422
    )
    WORKLOADS.post(
        f"{plural}-no-template",
        path,
        of("apps/v1", kind, "x", spec={"selector": {"matchLabels": {"a": "b"}}}),
        422,
    )
    WORKLOADS.post(f"{plural}-bad-name", path, workload(kind, "Bad_Name"), 422)
    WORKLOADS.patch(
        f"{plural}-image",
        "strategic",
        path + "/w",
        {"spec": {"template": {"spec": {"containers": [container(image="v2")]}}}},
    )
    WORKLOADS.patch(f"{plural}-status", "merge", path + "/w/status", {"status": {"observedGeneration": 2}})
    WORKLOADS.get(f"{plural}-list", path)
for plural in ("deployments", "replicasets", "statefulsets"):
    WORKLOADS.patch(
        f"{plural}-negative-replicas", "merge", f"{APPS}/{plural}/w", {"spec": {"replicas": -1}}, 422
    )
WORKLOADS.patch(
    "statefulset-service-name", "merge", APPS + "/statefulsets/w", {"spec": {"serviceName": "other"}}, 422
)
WORKLOADS.post(
    "statefulset-with-claims",
    APPS + "/statefulsets",
    workload(
        "StatefulSet",
        "claims",
        serviceName="s",
        podManagementPolicy="Parallel",
        volumeClaimTemplates=[
            {
                "metadata": {"name": "data"},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
            }
        ],
    ),
)
WORKLOADS.post(
    "statefulset-policy",
    APPS + "/statefulsets",
    workload("StatefulSet", "x", podManagementPolicy="Chaos"),
    422,
)
WORKLOADS.post(
    "deployment-strategy",
    APPS + "/deployments",
    workload("Deployment", "x", strategy={"type": "Replace"}),
    422,
)
WORKLOADS.post(
    "deployment-zero-and-zero",
    APPS + "/deployments",
    workload("Deployment", "x", strategy={"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}),
    422,
)
WORKLOADS.post(
    "deployment-recreate",
    APPS + "/deployments",
    workload("Deployment", "recreate", strategy={"type": "Recreate"}),
)
WORKLOADS.post(
    "daemonset-on-delete",
    APPS + "/daemonsets",
    workload("DaemonSet", "on-delete", updateStrategy={"type": "OnDelete"}),
)
WORKLOADS.post(
    "controller",
    CORE + "/replicationcontrollers",
    of("v1", "ReplicationController", "rc", spec={"template": template()}),
)
WORKLOADS.post(
    "controller-empty", CORE + "/replicationcontrollers", of("v1", "ReplicationController", "x", spec={}), 422
)
WORKLOADS.get("replicasets-by-replicas", APPS + "/replicasets?fieldSelector=status.replicas%3D0", 400)

BATCHES = Area("batch")
_job_template = {"spec": {"restartPolicy": "Never", "containers": [container()]}}
JOBS = BATCH + "/jobs"
CRON_JOBS = BATCH + "/cronjobs"


def _job(name: str, **spec: Any) -> dict[str, Any]:
    return of("batch/v1", "Job", name, spec={"template": _job_template, **spec})


def _cron_job(name: str, **spec: Any) -> dict[str, Any]:
    fields = {"schedule": "*/5 * * * *", "jobTemplate": {"spec": {"template": _job_template}}, **spec}
    return of("batch/v1", "CronJob", name, spec=fields)


BATCHES.post("job", JOBS, _job("j"))
BATCHES.get("job-get", JOBS + "/j")
BATCHES.post("job-parallel", JOBS, _job("parallel", parallelism=3, completions=5, backoffLimit=2))
BATCHES.post("job-indexed", JOBS, _job("indexed", completionMode="Indexed", completions=2))
BATCHES.post("job-suspended", JOBS, _job("suspended", suspend=True))
BATCHES.post("job-restart-always", JOBS, _job("x", template={"spec": {"containers": [container()]}}), 422)
BATCHES.post("job-negative", JOBS, _job("x", parallelism=-1), 422)
BATCHES.post("job-with-selector", JOBS, _job("x", selector={"matchLabels": {"a": "b"}}), 422)
BATCHES.post("job-indexed-without-completions", JOBS, _job("one", completionMode="Indexed"))
BATCHES.patch("job-parallelism", "merge", JOBS + "/j", {"spec": {"parallelism": 2}})
BATCHES.patch("job-completions-fixed", "merge", JOBS + "/parallel", {"spec": {"completions": 6}}, 422)
BATCHES.patch(
    "job-template-fixed",
    "merge",
    JOBS + "/j",
    {"spec": {"template": {"spec": {"restartPolicy": "OnFailure"}}}},
    422,
)
BATCHES.patch("job-resumed", "merge", JOBS + "/suspended", {"spec": {"suspend": False}})
BATCHES.patch(
    "job-status", "merge", JOBS + "/j/status", {"status": {"active": 1, "startTime": "2020-01-01T00:00:00Z"}}
)
BATCHES.get("jobs-by-success", JOBS + "?fieldSelector=status.successful%3D0")
BATCHES.post("cronjob", CRON_JOBS, _cron_job("c"))
BATCHES.patch("cronjob-suspend", "merge", CRON_JOBS + "/c", {"spec": {"suspend": True}})
BATCHES.post("cronjob-schedule", CRON_JOBS, _cron_job("x", schedule="whenever"), 422)
BATCHES.post("cronjob-no-schedule", CRON_JOBS, _cron_job("x", schedule=""), 422)
BATCHES.post("cronjob-policy", CRON_JOBS, _cron_job("x", concurrencyPolicy="Race"), 422)
BATCHES.post("cronjob-long-name", CRON_JOBS, _cron_job("c" * 53), 422)
BATCHES.post("cronjob-zone", CRON_JOBS, _cron_job("zoned", timeZone="Europe/Zurich"))
BATCHES.post("cronjob-bad-zone", CRON_JOBS, _cron_job("x", timeZone="Moon/Sea"), 422)
BATCHES.delete("job-deletion-warns", JOBS + "/j")
BATCHES.get("job-after-delete", JOBS + "/j", 200)
