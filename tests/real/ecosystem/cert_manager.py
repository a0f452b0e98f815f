"""cert-manager, installed by its own chart, with its three parts as processes beside the cluster.

The chart's pods are simulated and do nothing: the programs that reconcile are started here, so that they need no
images. Its webhook is reached at `localhost`, for which the chart has a value.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.kit.real_parts import MissingPartError, Server, free_port, running_part, tail, tools
from tests.kit.wait import until_blocking
from tests.real.clients.pair import Command, One, Said

MODULE = "github.com/cert-manager/cert-manager"
NAMESPACE = "cert-manager"


class CertManager:
    """cert-manager on one server. `kubectl` stands in the namespace of the tests' own objects."""

    def __init__(self, server: Server) -> None:
        self.kubectl = One(server, "certificates")
        self._admin = One(server, NAMESPACE)

    def helm(self, *arguments: str) -> Said:
        return self._admin(*arguments, program="helm")

    def create(self, kind: str, name: str, spec: dict[str, Any], code: int = 0, **metadata: Any) -> Said:
        api_version = "networking.k8s.io/v1" if kind == "Ingress" else "cert-manager.io/v1"
        item = {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **metadata}, "spec": spec}
        return self.kubectl("create", "-f", "-", stdin=json.dumps(item), code=code)

    def wait(self, *what: str) -> None:
        for each in what:
            self.kubectl("wait", each, "--for=create", "--timeout=180s")
            self.kubectl("wait", each, "--for=condition=Ready", "--timeout=180s")

    def secret(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.kubectl.get("secret", name)
        return found

    def has_webhook(self) -> bool:
        """Whether the webhook has a certificate, and its configuration the authority of that."""
        issuer = {"apiVersion": "cert-manager.io/v1", "kind": "Issuer", "metadata": {"name": "probe"}}
        text = json.dumps({**issuer, "spec": {"selfSigned": {}}})
        return self.kubectl.run(Command(("create", "--dry-run=server", "-f", "-"), text)).code == 0


def chart() -> Path:
    """Its chart, as it lies in its Go module."""
    if shutil.which("go") is None:
        raise MissingPartError("the chart of cert-manager lies in its Go module: install Go")
    done = subprocess.run(
        ["go", "mod", "download", "-json", MODULE],
        cwd=tools().ECOSYSTEM["cert-manager"],
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    return Path(json.loads(done.stdout)["Dir"]) / "deploy" / "charts" / "cert-manager"


@contextmanager
def cert_manager(folder: Path, server: Server) -> Iterator[CertManager]:
    """Installed, running, and with a webhook that the server reaches."""
    manager = CertManager(server)
    kubeconfig = f"--kubeconfig={server.kubeconfig}"
    port = free_port()
    values = f"crds.enabled=true,startupapicheck.enabled=false,webhook.url.host=localhost:{port}"
    manager.helm(
        "install",
        NAMESPACE,
        str(chart()),
        "--create-namespace",
        "--wait",
        "--timeout=240s",
        f"--set={values}",
    )
    manager.kubectl("create", "namespace", "certificates")
    webhook = (
        kubeconfig,
        f"--secure-port={port}",
        f"--healthz-port={free_port()}",
        "--metrics-listen-address=0",
        f"--dynamic-serving-ca-secret-namespace={NAMESPACE}",
        "--dynamic-serving-ca-secret-name=cert-manager-webhook-ca",
        "--dynamic-serving-dns-names=localhost",
    )
    logs = {name: folder / f"cert-manager-{name}.log" for name in ("webhook", "cainjector", "controller")}
    with (
        running_part("cert-manager", "webhook", *webhook, log=logs["webhook"]),
        running_part("cert-manager", "cainjector", kubeconfig, log=logs["cainjector"]),
        running_part("cert-manager", "controller", kubeconfig, log=logs["controller"]),
    ):
        until_blocking(manager.has_webhook, "\n".join(map(tail, logs.values())))
        yield manager
