"""Selectable fields of each resource besides name and namespace: exactly upstream's.

Every function returns the value as a selector compares it; an absent value is the empty string, except where
upstream's type has a number or a boolean.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from podlife.api.codec import Object

SelectableFields = Mapping[str, Callable[[Object], str]]


def _text(path: str) -> Callable[[Object], str]:
    *parents, last = path.split(".")

    def value(obj: Object) -> str:
        for parent in parents:
            obj = obj.get(parent) or {}
        found = obj.get(last)
        return found if isinstance(found, str) else ""

    return value


def _shown(show: Callable[[Any], str], path: str) -> Callable[[Object], str]:
    *parents, last = path.split(".")

    def value(obj: Object) -> str:
        for parent in parents:
            obj = obj.get(parent) or {}
        return show(obj.get(last))

    return value


_flag = partial(_shown, lambda found: "true" if found else "false")
_count = partial(_shown, lambda found: str(found or 0))


def _event_source(event: Object) -> str:
    component = (event.get("source") or {}).get("component")
    return component or event.get("reportingComponent") or ""


_INVOLVED = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")

_POD_TEXTS = (
    *("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName"),
    *("status.phase", "status.podIP", "status.nominatedNodeName"),
)

SELECTABLE: Mapping[str, SelectableFields] = {
    "pods": {
        **{path: _text(path) for path in _POD_TEXTS},
        "spec.host": _text("spec.nodeName"),
        "spec.hostNetwork": _flag("spec.hostNetwork"),
        # Accepted, but never filled in: a gap of upstream's.
        "status.podIPs": lambda _: "",
    },
    "nodes": {"spec.unschedulable": _flag("spec.unschedulable")},
    "events": {
        **{f"involvedObject.{field}": _text(f"involvedObject.{field}") for field in _INVOLVED},
        **{field: _text(field) for field in ("reason", "reportingComponent", "type")},
        "source": _event_source,
    },
    # Stored in the core/v1 form, selected by the names of events.k8s.io/v1.
    "events.events.k8s.io": {
        **{f"regarding.{field}": _text(f"involvedObject.{field}") for field in _INVOLVED},
        "reason": _text("reason"),
        "reportingController": _text("reportingComponent"),
        "type": _text("type"),
    },
    "namespaces": {"status.phase": _text("status.phase")},
    "secrets": {"type": _text("type")},
    "services": {"spec.clusterIP": _text("spec.clusterIP"), "spec.type": _text("spec.type")},
    "replicationcontrollers": {"status.replicas": _count("status.replicas")},
    "certificatesigningrequests.certificates.k8s.io": {"spec.signerName": _text("spec.signerName")},
    "resourceslices.resource.k8s.io": {path: _text(path) for path in ("spec.driver", "spec.nodeName")},
    "jobs.batch": {"status.successful": _count("status.succeeded")},
}
"""By the key of the resource (`pods`, `replicasets.apps`). Resources without an entry have no selectable fields of
their own."""
