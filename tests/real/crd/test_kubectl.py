"""kubectl with custom resources: the same commands on kube-apiserver and on podlife, with the same output."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.kit.real_parts import Server
from tests.kit.wait import until_blocking
from tests.real.conftest import Kubectl

NAME = "crontabs.kubectl.example.com"
DEFINITION: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": NAME},
    "spec": {
        "group": "kubectl.example.com",
        "scope": "Namespaced",
        "names": {"plural": "crontabs", "kind": "CronTab", "shortNames": ["ct"], "categories": ["all"]},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "selectableFields": [{"jsonPath": ".spec.image"}],
                "additionalPrinterColumns": [
                    {"name": "Spec", "type": "string", "jsonPath": ".spec.cronSpec"},
                    {"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas", "priority": 1},
                ],
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
                },
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "description": "A cron tab.",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "description": "What it should do.",
                                "required": ["cronSpec"],
                                "properties": {
                                    "cronSpec": {"type": "string", "description": "When."},
                                    "image": {"type": "string", "default": "none"},
                                    "replicas": {"type": "integer", "minimum": 1},
                                    "port": {"x-kubernetes-int-or-string": True},
                                    "tags": {"type": "array", "items": {"type": "string"}},
                                    "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                                },
                            },
                            "status": {"type": "object", "properties": {"replicas": {"type": "integer"}}},
                        },
                    }
                },
            }
        ],
    },
}


def crontab(name: str, **spec: Any) -> str:
    return json.dumps(
        {
            "apiVersion": "kubectl.example.com/v1",
            "kind": "CronTab",
            "metadata": {"name": name},
            "spec": {"cronSpec": "* * * * *", **spec},
        }
    )


# Each command, and what it reads.
COMMANDS: list[tuple[str, str | None]] = [
    ("api-resources --api-group=kubectl.example.com", None),
    ("explain crontab", None),
    ("explain crontab.spec", None),
    ("explain crontab.spec.replicas", None),
    ("explain crontab --recursive", None),
    ("explain crontab --output=plaintext-openapiv2", None),
    ("create --validate=strict -f -", crontab("a", what=1)),
    ("create --validate=warn -f -", crontab("warned", what=1)),
    ("create --validate=strict -f -", crontab("a", replicas=2)),
    ("create --dry-run=server -f -", crontab("dry", replicas=2)),
    ("create -f -", crontab("bad", replicas=0)),
    ("apply -f -", crontab("b", tags=["x"])),
    ("apply -f -", crontab("b", tags=["y", "z"], replicas=3)),
    ("apply -f -", crontab("b", tags=["y", "z"], replicas=3)),
    ("get ct", None),
    ("get ct -o wide", None),
    ("get crontabs.v1.kubectl.example.com a", None),
    ("get ct --field-selector=spec.image=none -o name", None),
    ("scale --replicas=5 ct/a", None),
    ("get ct a -o jsonpath={.spec.replicas},{.metadata.generation}", None),
    ('patch ct a --subresource=status --type=merge -p {"status":{"replicas":1}}', None),
    ("label ct a x=y", None),
    ("patch ct a -p {}", None),
    ("wait ct/a --for=jsonpath={.status.replicas}=1 --timeout=10s", None),
    ("delete ct b", None),
    ("delete ct --all", None),
]


@pytest.fixture(scope="module")
def servers(kube: Server, podlife_server: Server, kubectl: Kubectl) -> Iterator[tuple[Server, Server]]:
    both = (kube, podlife_server)
    for server in both:
        made = kubectl("create", "-f", "-", kubeconfig=server.kubeconfig, stdin=json.dumps(DEFINITION))
        assert made.returncode == 0, made.stderr
        for what in (f"crd/{NAME} --for=condition=established --timeout=30s",):
            kubectl("wait", *what.split(), kubeconfig=server.kubeconfig)
        # The real server publishes OpenAPI later.
        until_blocking(lambda server=server: is_published(kubectl, server))
    yield both
    for server in both:
        kubectl("delete", "crd", NAME, kubeconfig=server.kubeconfig)


def is_published(kubectl: Kubectl, server: Server) -> bool:
    index = kubectl("get", "--raw", "/openapi/v3", kubeconfig=server.kubeconfig).stdout
    whole = kubectl("get", "--raw", "/openapi/v2", kubeconfig=server.kubeconfig).stdout
    return "kubectl.example.com" in index and "com.example.kubectl.v1.CronTab" in whole


def test_every_command_says_the_same_on_both_servers(
    servers: tuple[Server, Server], kubectl: Kubectl
) -> None:
    for command, stdin in COMMANDS:
        real, ours = (
            kubectl(*command.split(" "), kubeconfig=server.kubeconfig, stdin=stdin) for server in servers
        )
        assert ours.returncode == real.returncode, f"{command}: {ours.stderr}\n{real.stderr}"
        assert _plain(ours.stdout) == _plain(real.stdout), command
        assert _plain(ours.stderr) == _plain(real.stderr), command


def _plain(text: str) -> str:
    """Without ages, and the columns that depend on their width."""
    return re.sub(r"\s+", " ", re.sub(r"\b\d+s\b", "<age>", text))
