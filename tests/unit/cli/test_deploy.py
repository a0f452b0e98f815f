"""The manifests in `deploy/`: they fit together, keep to the strictest standard, and start a command that exists."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from podlife import __version__
from tests.unit.cli.test_cli import podlife

FOLDER = Path(__file__).resolve().parents[3] / "deploy" / "gc"


def documents() -> list[dict[str, Any]]:
    kustomization = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())
    return [
        document
        for name in kustomization["resources"]
        for document in yaml.safe_load_all((FOLDER / name).read_text())
    ]


def of_kind(kind: str) -> dict[str, Any]:
    [found] = [document for document in documents() if document["kind"] == kind]
    return found


def container() -> dict[str, Any]:
    [found] = of_kind("Deployment")["spec"]["template"]["spec"]["containers"]
    assert isinstance(found, dict)
    return found


def test_every_manifest_is_in_the_kustomization() -> None:
    kustomization = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())
    files = {path.name for path in FOLDER.glob("*.yaml")} - {"kustomization.yaml"}
    assert files == set(kustomization["resources"])
    assert kustomization["images"][0]["newTag"] == __version__


def test_the_command_takes_the_arguments() -> None:
    """It comes as far as the server, which is not there."""
    result = podlife(*container()["args"], "--listen=127.0.0.1:0", "--server=https://127.0.0.1:1")
    assert result.returncode == 1
    assert "cannot be reached" in result.stderr


def test_the_pod_has_no_rights_on_its_node() -> None:
    pod = of_kind("Deployment")["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container()["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_the_probes_ask_where_it_listens() -> None:
    main = container()
    assert [port["name"] for port in main["ports"] if port["containerPort"] == 8080] == ["metrics"]
    assert "--listen=:8080" in main["args"]
    assert main["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "metrics"}
    assert main["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "metrics"}


def test_the_roles_are_bound_to_the_account_that_the_pod_has() -> None:
    account, pod = of_kind("ServiceAccount")["metadata"], of_kind("Deployment")["spec"]["template"]["spec"]
    assert pod["serviceAccountName"] == account["name"]
    for kind in ("ClusterRole", "Role"):
        binding = of_kind(f"{kind}Binding")
        assert (binding["roleRef"]["kind"], binding["roleRef"]["name"]) == (
            kind,
            of_kind(kind)["metadata"]["name"],
        )
        subject = {"kind": "ServiceAccount", "name": account["name"], "namespace": account["namespace"]}
        assert binding["subjects"] == [subject]


def test_no_rule_has_a_star() -> None:
    rules = of_kind("ClusterRole")["rules"] + of_kind("Role")["rules"]
    assert not [value for rule in rules for values in rule.values() for value in values if "*" in value]
