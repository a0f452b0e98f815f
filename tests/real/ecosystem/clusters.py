"""Two clusters with the same simulated nodes: Kubernetes' own control plane, and `podlife up`.

Both use podlife's simulated nodes, scheduler and provisioner, since kube-scheduler is not one of the real parts. Each
control plane runs its own controllers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.kit.component_process import ComponentProcess, running
from tests.kit.real_parts import Server, controller_manager, kube_apiserver
from tests.kit.up_process import running_up

# Those that podlife has as well. Others would act on objects that here are only stored (autoscalers).
CONTROLLERS = (
    "daemonset-controller",
    "deployment-controller",
    "disruption-controller",
    "endpoints-controller",
    "endpointslice-controller",
    "garbage-collector-controller",
    "job-controller",
    "namespace-controller",
    # Takes off the taint that every new node has there.
    "node-lifecycle-controller",
    "persistentvolume-binder-controller",
    "persistentvolume-protection-controller",
    "persistentvolumeclaim-protection-controller",
    "replicaset-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
    "statefulset-controller",
)


class Podlife(ComponentProcess):
    """A command of podlife on somebody's server."""

    def __init__(self, folder: Path, server: Server, command: list[str], ready: str) -> None:
        super().__init__(folder, command[0], ready)
        self._command = [*command, "--kubeconfig", str(server.kubeconfig)]

    @property
    def arguments(self) -> list[str]:
        return self._command


@contextmanager
def kubernetes(folder: Path, nodes: int = 1) -> Iterator[Server]:
    """etcd, kube-apiserver and kube-controller-manager, with simulated nodes."""
    others = ["controllers", "run", "--controllers=scheduler,local-path-provisioner", "--no-leader-elect"]
    with (
        kube_apiserver(folder / "kube") as server,
        controller_manager(folder, server, CONTROLLERS, f"--root-ca-file={server.ca_file}"),
        running(Podlife(folder, server, others, "running: ")),
        running(Podlife(folder, server, ["sim", "--name=node", f"--nodes={nodes}"], " ready")),
    ):
        yield server


@contextmanager
def podlife(folder: Path, nodes: int = 1) -> Iterator[Server]:
    """`podlife up`, with simulated nodes."""
    with running_up(folder, "--runtime=sim", f"--nodes={nodes}", "--no-ui") as up:
        ca_file = up.data / "pki" / "ca.crt"
        yield Server("127.0.0.1", up.port, ca_file, up.kubeconfig, folder, up.pid, up.log, {})
