"""Kinds of apps/v1, and ReplicationControllers."""

from __future__ import annotations

from typing import Any

from podlife.api.codec import Object
from podlife.apiserver.printers.cells import age, format_labels, format_selector, names_and_images
from podlife.apiserver.printers.columns import columns
from podlife.apiserver.resource import Printer


def _pod_spec(spec: Object) -> Object:
    found: Object = spec.get("template", {}).get("spec", {})
    return found


def _deployment(obj: Object, now: float) -> list[Any]:
    spec, status = obj.get("spec", {}), obj.get("status", {})
    return [
        obj["metadata"].get("name", ""),
        f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}",
        status.get("updatedReplicas", 0),
        status.get("availableReplicas", 0),
        age(obj, now),
        *names_and_images(_pod_spec(spec)),
        format_selector(spec.get("selector"), empty="", broken="<invalid>"),
    ]


def _replica_counts(obj: Object, now: float) -> list[Any]:
    spec, status = obj.get("spec", {}), obj.get("status", {})
    return [
        obj["metadata"].get("name", ""),
        spec.get("replicas", 0),
        status.get("replicas", 0),
        status.get("readyReplicas", 0),
        age(obj, now),
        *names_and_images(_pod_spec(spec)),
    ]


def _replica_set(obj: Object, now: float) -> list[Any]:
    return [*_replica_counts(obj, now), format_selector(obj.get("spec", {}).get("selector"))]


def _replication_controller(obj: Object, now: float) -> list[Any]:
    # Its selector is a plain map of labels: the kind is older than selectors with expressions.
    return [*_replica_counts(obj, now), format_labels(obj.get("spec", {}).get("selector"))]


def _stateful_set(obj: Object, now: float) -> list[Any]:
    spec = obj.get("spec", {})
    ready = obj.get("status", {}).get("readyReplicas", 0)
    return [
        obj["metadata"].get("name", ""),
        f"{ready}/{spec.get('replicas', 0)}",
        age(obj, now),
        *names_and_images(_pod_spec(spec)),
    ]


def _daemon_set(obj: Object, now: float) -> list[Any]:
    spec, status = obj.get("spec", {}), obj.get("status", {})
    return [
        obj["metadata"].get("name", ""),
        status.get("desiredNumberScheduled", 0),
        status.get("currentNumberScheduled", 0),
        status.get("numberReady", 0),
        status.get("updatedNumberScheduled", 0),
        status.get("numberAvailable", 0),
        format_labels(_pod_spec(spec).get("nodeSelector")),
        age(obj, now),
        *names_and_images(_pod_spec(spec)),
        format_selector(spec.get("selector")),
    ]


def _controller_revision(obj: Object, now: float) -> list[Any]:
    return [obj["metadata"].get("name", ""), _controller(obj), obj.get("revision", 0), age(obj, now)]


def _controller(obj: Object) -> str:
    for owner in obj["metadata"].get("ownerReferences", ()):
        if owner.get("controller"):
            group = owner.get("apiVersion", "").rpartition("/")[0]
            kind = f"{owner.get('kind', '')}.{group}" if group else owner.get("kind", "")
            return f"{kind.lower()}/{owner.get('name', '')}"
    return "<none>"


DEPLOYMENTS = Printer(columns("deployments.apps"), _deployment)
REPLICA_SETS = Printer(columns("replicasets.apps"), _replica_set)
REPLICATION_CONTROLLERS = Printer(columns("replicationcontrollers"), _replication_controller)
STATEFUL_SETS = Printer(columns("statefulsets.apps"), _stateful_set)
DAEMON_SETS = Printer(columns("daemonsets.apps"), _daemon_set)
CONTROLLER_REVISIONS = Printer(columns("controllerrevisions.apps"), _controller_revision)
