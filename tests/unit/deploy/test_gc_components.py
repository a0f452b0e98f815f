"""The components `archive` and `policy` of `deploy/gc`: each fits what it changes, and the command takes its flags."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from podlife.podgc.archive import step
from podlife.podgc.policy.parse import read_policy
from tests.unit.cli.test_main import podlife

DEPLOY = Path(__file__).resolve().parents[3] / "deploy"
GC, ARCHIVE = DEPLOY / "gc", DEPLOY / "gc" / "archive"
DEPLOYMENT = ("Deployment", "podlife-gc")


def documents(path: Path) -> list[Any]:
    return list(yaml.safe_load_all(path.read_text()))


def added_argument() -> str:
    [[patch]] = documents(ARCHIVE / "argument.yaml")
    assert patch["path"] == "/spec/template/spec/containers/0/args/-"
    return str(patch["value"])


@pytest.fixture(
    scope="module",
    params=["[archive]", "[archive, policy]", "[policy, archive]", "[owners, policy, archive]"],
)
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The Deployment that kubectl would apply, and with which components."""
    return {"components": request.param, **kustomized(request.param, tmp_path_factory)[DEPLOYMENT]}


Objects = dict[tuple[str, str], dict[str, Any]]


@pytest.fixture(
    scope="module", params=["[policy]", "[owners, policy]", "[archive, policy]", "[policy, archive]"]
)
def with_policy(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Objects:
    return kustomized(request.param, tmp_path_factory)


def kustomized(components: str, folders: pytest.TempPathFactory) -> Objects:
    """What kubectl would apply, by kind and name."""
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    copy = folders.mktemp("deploy") / "gc"
    shutil.copytree(GC, copy)
    with (copy / "kustomization.yaml").open("a") as file:
        file.write(f"components: {components}\n")
    made = subprocess.run(
        ["kubectl", "kustomize", str(copy)], capture_output=True, text=True, timeout=60, check=True
    )
    return {(each["kind"], each["metadata"]["name"]): each for each in yaml.safe_load_all(made.stdout)}


def test_every_file_is_in_the_component() -> None:
    [component] = documents(ARCHIVE / "kustomization.yaml")
    assert component["kind"] == "Component"
    named = {*component["resources"], *(each["path"] for each in component["patches"])}
    assert named == {path.name for path in ARCHIVE.glob("*.yaml")} - {"kustomization.yaml"}


def test_it_adds_three_rights_for_the_account_of_the_collector() -> None:
    role, binding = documents(ARCHIVE / "rbac.yaml")
    assert [(rule["resources"], rule["verbs"]) for rule in role["rules"]] == [
        (["pods"], ["get"]),
        (["events"], ["list"]),
        (["pods/log"], ["get"]),
    ]
    [account] = [each for each in documents(GC / "rbac.yaml") if each["kind"] == "ServiceAccount"]
    names = {"name": account["metadata"]["name"], "namespace": account["metadata"]["namespace"]}
    assert binding["subjects"] == [{"kind": "ServiceAccount", **names}]
    assert binding["roleRef"]["name"] == role["metadata"]["name"]


def test_what_a_missing_right_is_told_with_names_the_file_that_has_it() -> None:
    path = (ARCHIVE / "rbac.yaml").relative_to(DEPLOY.parent)
    assert str(path) in Path(step.__file__).read_text(encoding="utf-8")


def test_the_volume_is_mounted_where_the_flag_points_and_holds_more_than_the_archive_may(
    built: dict[str, Any],
) -> None:
    [claim] = documents(ARCHIVE / "claim.yaml")
    pod = built["spec"]["template"]["spec"]
    [container] = pod["containers"]
    [volume] = [each for each in pod["volumes"] if each["name"] == "archive"]
    [mount] = [each for each in container["volumeMounts"] if each["name"] == "archive"]
    assert volume["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
    assert f"--archive={mount['mountPath']}/pods" in container["args"]
    assert claim["spec"]["resources"]["requests"]["storage"] == "2Gi"


def test_it_takes_nothing_away_whatever_stands_before_or_after_it(built: dict[str, Any]) -> None:
    [plain] = documents(GC / "deployment.yaml")
    pod, before = built["spec"]["template"]["spec"], plain["spec"]["template"]["spec"]
    [container], [plain_container] = pod["containers"], before["containers"]
    others = ["policy"] if "policy" in built["components"] else []
    assert sorted(each["name"] for each in pod["volumes"]) == sorted(["archive", *others])
    assert sorted(each["name"] for each in container["volumeMounts"]) == sorted(["archive", *others])
    assert container["args"][: len(plain_container["args"])] == plain_container["args"]
    assert len(container["args"]) == len(plain_container["args"]) + 1 + len(others)
    assert pod["securityContext"] == {**before["securityContext"], "fsGroup": 65532}
    assert container["securityContext"] == plain_container["securityContext"]


def test_one_at_a_time_writes_to_the_volume(built: dict[str, Any]) -> None:
    assert (built["spec"]["replicas"], built["spec"]["strategy"]) == (1, {"type": "Recreate"})


def test_the_command_takes_the_arguments(tmp_path: Path) -> None:
    """It comes as far as the server, which is not there."""
    [deployment] = documents(GC / "deployment.yaml")
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    flag = added_argument().replace("/archive", str(tmp_path))
    result = podlife(*container["args"], flag, "--listen=127.0.0.1:0", "--server=https://127.0.0.1:1")
    assert result.returncode == 1
    assert "cannot be reached" in result.stderr
    assert (tmp_path / "pods").is_dir()


def test_the_policy_is_the_example_and_only_observes() -> None:
    text = (GC / "policy" / "policy.yaml").read_text(encoding="utf-8")
    example = (DEPLOY.parent / "examples" / "policies" / "managed-cluster.yaml").read_text(encoding="utf-8")
    # But for the first line, which says where the schema is.
    assert text.partition("\n")[2] == example.partition("\n")[2]
    assert read_policy(text, "policy.yaml").guards.is_observing


def test_the_collector_is_given_the_policy_where_it_is_mounted(with_policy: Objects) -> None:
    pod = with_policy[DEPLOYMENT]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["args"][:2] == ["gc", "run"]
    assert "--policy=/etc/podlife/policy.yaml" in container["args"]
    (mount,) = [each for each in container["volumeMounts"] if each["name"] == "policy"]
    # Mounted as a file of its own it would never change.
    assert mount == {"name": "policy", "mountPath": "/etc/podlife", "readOnly": True}
    assert {"name": "policy", "configMap": {"name": "podlife-gc-policy"}} in pod["volumes"]
    config = with_policy["ConfigMap", "podlife-gc-policy"]
    assert config["metadata"]["namespace"] == with_policy[DEPLOYMENT]["metadata"]["namespace"]
    assert read_policy(config["data"]["policy.yaml"], "policy.yaml").rules


def test_its_rights_are_bound_to_the_account_of_the_collector(with_policy: Objects) -> None:
    account = with_policy[DEPLOYMENT]["spec"]["template"]["spec"]["serviceAccountName"]
    binding = with_policy["ClusterRoleBinding", "podlife-gc:policy"]
    assert binding["roleRef"]["name"] == "podlife-gc:policy"
    subject = {"kind": "ServiceAccount", "name": account, "namespace": "podlife-system"}
    assert binding["subjects"] == [subject]
    assert ("ClusterRole", "podlife-gc:policy") in with_policy
