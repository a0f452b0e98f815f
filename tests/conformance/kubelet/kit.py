"""Pods, containers and their states, in few words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from podlife.kubelet.runtime import ContainerConfig, ContainerState, ContainerStatus

Object = dict[str, Any]

START = datetime(2030, 1, 1, tzinfo=UTC)


def container(name: str = "a", /, **fields: Any) -> Object:
    return {"name": name, "image": f"image-of-{name}", **fields}


def sidecar(name: str = "x", /, **fields: Any) -> Object:
    return container(name, restartPolicy="Always", **fields)


def rule(operator: str, *codes: int, action: str = "Restart") -> Object:
    """Of a container: what follows an end with one of these codes, or with none of them."""
    return {"action": action, "exitCodes": {"operator": operator, "values": list(codes)}}


RESTART_ALL = rule("In", 42, action="RestartAllContainers")


def pod(
    *containers: Object, init: list[Object] | None = None, policy: str = "Always", **fields: Any
) -> Object:
    """`metadata` and `status` go into the pod, all other fields into its spec."""
    metadata = {"name": "p", "namespace": "ns", "uid": "u", **fields.pop("metadata", {})}
    status = fields.pop("status", {})
    spec: Object = {"containers": list(containers or (container(),)), "restartPolicy": policy, **fields}
    if init:
        spec["initContainers"] = init
    return {"metadata": metadata, "spec": spec, "status": status}


def deleting(each: Object, grace: int = 30) -> Object:
    metadata = {
        **each["metadata"],
        "deletionTimestamp": "2030-01-01T00:00:30Z",
        "deletionGracePeriodSeconds": grace,
    }
    return {**each, "metadata": metadata}


def static(each: Object) -> Object:
    return {**each, "metadata": {**each["metadata"], "annotations": {"kubernetes.io/config.source": "file"}}}


def terminated(code: int, **fields: Any) -> Object:
    return {"terminated": {"exitCode": code, **fields}}


UNKNOWN_137 = {
    "terminated": {
        "reason": "ContainerStatusUnknown",
        "message": "The container could not be located when the pod was terminated",
        "exitCode": 137,
    }
}

_RESTARTING = {"exitCode": 137, "reason": "RestartingAllContainers"}
_STATES: dict[str, Object] = {
    "W": {"state": {"waiting": {}}},
    "W*": {"state": {"waiting": {}}, "lastState": terminated(0)},
    "Wf": {"state": {"waiting": {}}, "lastState": terminated(1)},
    "R": {"state": {"running": {}}},
    "Rs": {"state": {"running": {}}, "started": True},
    "T0": {"state": terminated(0)},
    "Tf": {"state": terminated(1)},
    "Tf(42)": {"state": terminated(42)},
    "RA": {
        "state": {"waiting": {"reason": "RestartingAllContainers"}},
        "lastState": {"terminated": _RESTARTING},
    },
}


def shown(name: str, code: str, /, **fields: Any) -> Object:
    """A container's status in the words of the table of phases."""
    return {"name": name, **_STATES[code], **fields}


def instance(
    name: str, state: str, code: int | None = None, *, attempt: int = 0, finished: float = 0, **fields: Any
) -> ContainerStatus:
    """A container as the runtime knows it; `finished` is in seconds after START."""
    has_ended = state == "exited"
    started = START + timedelta(seconds=fields.pop("started", 0.0))
    return ContainerStatus(
        id=fields.pop("id", f"{name}-{attempt}"),
        sandbox_id="s",
        pod_uid="u",
        config=ContainerConfig(
            name=name, image=f"image-of-{name}", attempt=attempt, annotations=fields.pop("annotations", {})
        ),
        state=ContainerState(state.capitalize()),
        created_at=fields.pop("created", started),
        started_at=started if state != "created" else None,
        finished_at=START + timedelta(seconds=finished) if has_ended else None,
        exit_code=code if has_ended else None,
        **fields,
    )
