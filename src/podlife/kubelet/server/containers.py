"""Finds the container that a log or exec request refers to, by its pod's status, with upstream's error messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podlife.kubelet.pod_fields import Pod, state_of, status_by_name

from .request import HttpError, ServedPods

_IN_SPEC = ("containers", "initContainers", "ephemeralContainers")
_IN_STATUS = ("ephemeralContainerStatuses", "initContainerStatuses", "containerStatuses")
_PULLING = {"ErrImagePull": "image can't be pulled", "ImagePullBackOff": "trying and failing to pull image"}


def pod_to_log(pods: ServedPods, namespace: str, name: str, container: str) -> Pod:
    pod = pods.find_pod(namespace, name)
    if pod is None:
        raise HttpError(404, f'pod "{name}" does not exist')
    spec = pod.get("spec") or {}
    if not any(each.get("name") == container for field in _IN_SPEC for each in spec.get(field) or ()):
        raise HttpError(404, f'container "{container}" not found in pod "{name}"')
    return pod


def pod_to_exec(pods: ServedPods, namespace: str, name: str, uid: str) -> Pod:
    pod = pods.find_pod(namespace, name)
    if pod is None:
        raise HttpError(404, "pod does not exist")
    if uid and pod["metadata"].get("uid") != uid:
        raise HttpError(404, "pod not found")
    return pod


def container_to_log(pod: Pod, container: str, *, previous: bool) -> str:
    """The ID, as in the pod's status, of the container whose log is requested."""
    which = f'container "{container}" in pod "{pod["metadata"]["name"]}"'
    status = _statuses(pod).get(container)
    if status is None:
        raise HttpError(400, f"{which} is not available")
    kind, state = state_of(status)
    last_kind, last = state_of(status, "lastState")
    last_id = str(last.get("containerID") or "") if last_kind == "terminated" else ""
    if previous:
        if not last_id:
            raise HttpError(400, f"previous terminated {which} not found")
        return last_id
    if kind == "running":
        return str(status.get("containerID") or "")
    if kind == "terminated" and state.get("containerID"):
        return str(state["containerID"])
    if last_id:
        return last_id
    if kind == "terminated" or last_kind == "terminated":
        raise HttpError(400, f"{which} is terminated")
    if kind == "waiting":
        reason = str(state.get("reason") or "")
        raise HttpError(400, f"{which} is waiting to start: {_PULLING.get(reason, reason)}")
    raise HttpError(400, f"{which} is waiting to start - no logs yet")


def container_to_exec(pod: Pod, container: str) -> str:
    """The ID, as in the pod's status, of the running container; the error is upstream's."""
    status = _statuses(pod).get(container)
    if status is None or state_of(status)[0] != "running" or not status.get("containerID"):
        raise HttpError(404, f'container not found ("{container}")')
    return str(status["containerID"])


def _statuses(pod: Pod) -> dict[str, Mapping[str, Any]]:
    status = pod.get("status") or {}
    return status_by_name(*(status.get(field) for field in _IN_STATUS))
