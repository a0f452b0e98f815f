"""The manifests in `deploy/`: they fit together, keep to the strictest standard, and start a command that exists."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from podlife import __version__
from tests.unit.cli.test_main import podlife

DEPLOY = Path(__file__).resolve().parents[3] / "deploy"
# Rights on everything there is, and nobody else's: what the garbage collector of owned objects needs, and the
# controller of quotas to count objects of any kind.
COUNTING = "podlife-controllers:resourcequota-controller"
WITH_STARS = {"podlife-controllers:garbage-collector-controller", COUNTING}
# Only to read, and only this of a resource: how many pods an owner wants, of whatever kind it is.
SCALES = {"apiGroups": ["*"], "resources": ["*/scale"], "verbs": ["get"]}
WITH_SCALES = {"podlife-controllers:disruption-controller"}


@pytest.fixture(params=["gc", "controllers"])
def folder(request: pytest.FixtureRequest) -> Path:
    return DEPLOY / str(request.param)


def documents(folder: Path) -> list[dict[str, Any]]:
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text())
    return [
        document
        for name in kustomization["resources"]
        for document in yaml.safe_load_all((folder / name).read_text())
    ]


def of_kind(folder: Path, kind: str) -> list[dict[str, Any]]:
    return [document for document in documents(folder) if document["kind"] == kind]


def pod(folder: Path) -> dict[str, Any]:
    [deployment] = of_kind(folder, "Deployment")
    found = deployment["spec"]["template"]["spec"]
    assert isinstance(found, dict)
    return found


def container(folder: Path) -> dict[str, Any]:
    [found] = pod(folder)["containers"]
    assert isinstance(found, dict)
    return found


def test_every_manifest_is_in_the_kustomization(folder: Path) -> None:
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text())
    files = {path.name for path in folder.glob("*.yaml")} - {"kustomization.yaml"}
    assert files == set(kustomization["resources"])
    assert kustomization["images"][0]["newTag"] == __version__


def test_the_command_takes_the_arguments(folder: Path) -> None:
    """It comes as far as the server, which is not there."""
    result = podlife(*container(folder)["args"], "--listen=127.0.0.1:0", "--server=https://127.0.0.1:1")
    assert result.returncode == 1
    assert "cannot be reached" in result.stderr


def test_the_pod_has_no_rights_on_its_node(folder: Path) -> None:
    security = pod(folder)["securityContext"]
    assert security["runAsNonRoot"] is True
    assert security["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container(folder)["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_the_probes_ask_where_it_listens(folder: Path) -> None:
    main = container(folder)
    assert [port["name"] for port in main["ports"] if port["containerPort"] == 8080] == ["metrics"]
    assert "--listen=:8080" in main["args"]
    assert main["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "metrics"}
    assert main["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "metrics"}


def test_the_roles_are_bound_to_the_account_that_the_pod_has(folder: Path) -> None:
    [account] = [each["metadata"] for each in of_kind(folder, "ServiceAccount")]
    assert pod(folder)["serviceAccountName"] == account["name"]
    subject = {"kind": "ServiceAccount", "name": account["name"], "namespace": account["namespace"]}
    for kind in ("ClusterRole", "Role"):
        roles = {each["metadata"]["name"] for each in of_kind(folder, kind)}
        bindings = of_kind(folder, f"{kind}Binding")
        assert {binding["roleRef"]["name"] for binding in bindings} == roles
        assert all(binding["roleRef"]["kind"] == kind for binding in bindings)
        assert all(binding["subjects"] == [subject] for binding in bindings)


def test_no_rule_has_a_star(folder: Path) -> None:
    for role in of_kind(folder, "ClusterRole") + of_kind(folder, "Role"):
        assert (SCALES in role["rules"]) == (role["metadata"]["name"] in WITH_SCALES)
        rules = [rule for rule in role["rules"] if rule != SCALES]
        values = [value for rule in rules for values in rule.values() for value in values]
        assert ("*" in values) == (role["metadata"]["name"] in WITH_STARS)
        assert not [value for value in values if "*" in value and value != "*"]


def test_what_counts_everything_only_reads_it() -> None:
    [role] = [
        each
        for each in of_kind(DEPLOY / "controllers", "ClusterRole")
        if each["metadata"]["name"] == COUNTING
    ]
    assert [rule["verbs"] for rule in role["rules"] if "*" in rule["resources"]] == [["list", "watch"]]


def test_no_verb_is_a_star_and_no_role_may_give_itself_more(folder: Path) -> None:
    for role in of_kind(folder, "ClusterRole") + of_kind(folder, "Role"):
        verbs = {verb for rule in role["rules"] for verb in rule["verbs"]}
        assert not verbs & {"*", "escalate", "bind", "impersonate", "deletecollection"}


def test_the_image_is_made_of_exact_versions_and_those_of_the_makefile() -> None:
    image = (DEPLOY / "Containerfile").read_text()
    makefile = (DEPLOY.parent / "Makefile").read_text()
    bases = re.findall(r"^FROM (\S+)", image, re.MULTILINE)
    assert bases == ["${PYTHON}", "${PYTHON}"]
    assert re.search(r"^ARG PYTHON=docker\.io/library/python:\d+\.\d+\.\d+-slim-\w+$", image, re.MULTILINE)
    pins = re.findall(r"^(?:ARG )?UV_VERSION ?:?= ?(\S+)$", image + makefile, re.MULTILINE)
    assert len(pins) == 2
    assert len(set(pins)) == 1
    assert not re.search(r"pip install.* uv(\s|$)", image + makefile, re.MULTILINE)
