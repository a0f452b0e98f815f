"""`deploy/gc/archive`, a component of `deploy/gc`: it fits what it changes, and the command takes what it adds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from podlife.podgc.archive import step
from tests.unit.cli.test_cli import podlife

DEPLOY = Path(__file__).resolve().parents[3] / "deploy"
GC, ARCHIVE = DEPLOY / "gc", DEPLOY / "gc" / "archive"


def documents(path: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(path.read_text()))


def added(path: str) -> Any:
    [patch] = documents(ARCHIVE / "deployment.yaml")
    [value] = [each["value"] for each in patch if each["path"] == path]
    return value


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


def test_the_volume_is_mounted_where_the_flag_points_and_holds_more_than_the_archive_may() -> None:
    [mount] = added("/spec/template/spec/containers/0/volumeMounts")
    [volume] = added("/spec/template/spec/volumes")
    [claim] = documents(ARCHIVE / "claim.yaml")
    assert (mount["name"], volume["persistentVolumeClaim"]["claimName"]) == (
        volume["name"],
        claim["metadata"]["name"],
    )
    assert added("/spec/template/spec/containers/0/args/-").startswith(f"--archive={mount['mountPath']}/")
    assert claim["spec"]["resources"]["requests"]["storage"] == "2Gi"


def test_the_command_takes_the_arguments(tmp_path: Path) -> None:
    """It comes as far as the server, which is not there."""
    [deployment] = documents(GC / "deployment.yaml")
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    flag = added("/spec/template/spec/containers/0/args/-").replace("/archive", str(tmp_path))
    result = podlife(*container["args"], flag, "--listen=127.0.0.1:0", "--server=https://127.0.0.1:1")
    assert result.returncode == 1
    assert "cannot be reached" in result.stderr
    assert (tmp_path / "pods").is_dir()
