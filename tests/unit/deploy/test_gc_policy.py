"""The component `policy` of deploy/gc: a policy that is right, in a place where it is read again when it changes."""

from __future__ import annotations

import shutil
import subprocess
from typing import Any

import pytest
import yaml

from podlife.podgc.policy.parse import read_policy
from tests.kit.real_parts import ROOT

FOLDER = ROOT / "deploy" / "gc"


@pytest.fixture(
    scope="module", params=["[policy]", "[owners, policy]", "[archive, policy]", "[policy, archive]"]
)
def built(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[tuple[str, str], dict[str, Any]]:
    """What kubectl would apply, by kind and name."""
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    copy = tmp_path_factory.mktemp("deploy") / "gc"
    shutil.copytree(FOLDER, copy)
    with (copy / "kustomization.yaml").open("a") as file:
        file.write(f"components: {request.param}\n")
    made = subprocess.run(
        ["kubectl", "kustomize", str(copy)], capture_output=True, text=True, timeout=60, check=True
    )
    documents = list(yaml.safe_load_all(made.stdout))
    return {(each["kind"], each["metadata"]["name"]): each for each in documents}


def test_the_policy_is_the_example_and_only_observes() -> None:
    text = (FOLDER / "policy" / "policy.yaml").read_text(encoding="utf-8")
    example = (ROOT / "examples" / "policies" / "managed-cluster.yaml").read_text(encoding="utf-8")
    # But for the first line, which says where the schema is.
    assert text.partition("\n")[2] == example.partition("\n")[2]
    assert read_policy(text, "policy.yaml").guards.is_observing


def test_the_collector_is_given_the_policy_where_it_is_mounted(
    built: dict[tuple[str, str], dict[str, Any]],
) -> None:
    pod = built["Deployment", "podlife-gc"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["args"][:2] == ["gc", "run"]
    assert "--policy=/etc/podlife/policy.yaml" in container["args"]
    (mount,) = [each for each in container["volumeMounts"] if each["name"] == "policy"]
    # Mounted as a file of its own it would never change.
    assert mount == {"name": "policy", "mountPath": "/etc/podlife", "readOnly": True}
    assert {"name": "policy", "configMap": {"name": "podlife-gc-policy"}} in pod["volumes"]
    config = built["ConfigMap", "podlife-gc-policy"]
    assert config["metadata"]["namespace"] == built["Deployment", "podlife-gc"]["metadata"]["namespace"]
    assert read_policy(config["data"]["policy.yaml"], "policy.yaml").rules


def test_its_rights_are_bound_to_the_account_of_the_collector(
    built: dict[tuple[str, str], dict[str, Any]],
) -> None:
    account = built["Deployment", "podlife-gc"]["spec"]["template"]["spec"]["serviceAccountName"]
    binding = built["ClusterRoleBinding", "podlife-gc:policy"]
    assert binding["roleRef"]["name"] == "podlife-gc:policy"
    subject = {"kind": "ServiceAccount", "name": account, "namespace": "podlife-system"}
    assert binding["subjects"] == [subject]
    assert ("ClusterRole", "podlife-gc:policy") in built
