"""Our server with a kube-controller-manager at work on it, and something for its collectors to find."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.kit.real_parts import Server, controller_manager, podlife_apiserver
from tests.real.clients import objects
from tests.real.clients.conftest import make_namespace
from tests.real.clients.pair import manifest
from tests.real.clients.world import open_world

CONTROLLERS = (
    "cronjob-controller",
    "daemonset-controller",
    "deployment-controller",
    "disruption-controller",
    "endpoints-controller",
    "garbage-collector-controller",
    "job-controller",
    "namespace-controller",
    "pod-garbage-collector-controller",
    "replicaset-controller",
    "replicationcontroller-controller",
    "serviceaccount-controller",
    "statefulset-controller",
    "ttl-after-finished-controller",
)
CONTENT_TYPES = {"application/json": "json", "application/vnd.kubernetes.protobuf": "protobuf"}
ABANDONED = "abandoned"
KEPT = 10
"""How many pods that have ended the collector leaves, in the whole cluster."""


@dataclass(frozen=True)
class Managed:
    """Our server with a controller manager at work on it."""

    server: Server
    log: Path


@contextmanager
def manage(folder: Path, content_type: str) -> Iterator[Managed]:
    """Starts both, with pods that a pod garbage collector should find in the namespace ABANDONED."""
    flags = (
        f"--kube-api-content-type={content_type}",
        f"--terminated-pod-gc-threshold={KEPT}",
        "--leader-elect=true",
        # One that is late with its lease ends, and a machine may be busy for as long as this.
        "--leader-elect-lease-duration=60s",
        "--leader-elect-renew-deadline=50s",
    )
    with podlife_apiserver(folder / "podlife") as server:
        make_namespace(server, ABANDONED)
        with (
            open_world(server, ABANDONED) as world,
            controller_manager(folder / "kcm", server, CONTROLLERS, *flags) as log,
        ):
            ended = [objects.pod(f"ended-{number}") for number in range(KEPT + 3)]
            world.kubectl("create", "-f", "-", stdin=manifest(objects.pod("orphan", nodeName="gone"), *ended))
            for pod in ended:
                world.kubectl.set_status(f"pod/{pod['metadata']['name']}", {"phase": "Succeeded"})
            yield Managed(server, log)
