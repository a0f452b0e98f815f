"""`Cluster(crds=…)`: definitions from folders, files, classes and manifests, and mistakes in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from podlife.api.crd import definition_of
from podlife.api.views import Metadata
from podlife.client import CUSTOM_RESOURCE_DEFINITIONS, Ref
from podlife.errors import ConfigError
from podlife.testing import Cluster, virtual_time
from podlife.testing.definitions import Source
from tests.kit.gadget import Gadget

GADGETS = Ref.of(Gadget)
TEXT = """\
# Generated.
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: pools.example.com
spec:
  group: example.com
  scope: Namespaced
  names: {plural: pools, singular: pool, kind: Pool, listKind: PoolList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer}
              parts:
                type: array
                items: {type: string}
---
kind: Kustomization
resources: []
"""


def only(**settings: Any) -> Cluster:
    return Cluster(nodes=0, controllers=(), **settings)


async def names(cluster: Cluster) -> list[str]:
    listed = await cluster.client.list(CUSTOM_RESOURCE_DEFINITIONS)
    return [each["metadata"]["name"] for each in listed.items]


async def refusal(crds: Source | list[Source]) -> str:
    with pytest.raises(ConfigError) as raised:
        async with only(crds=crds):
            pass
    assert "\n" not in str(raised.value)
    return str(raised.value)


@virtual_time
async def test_resources_of_a_folder_are_served_when_the_block_begins(tmp_path: Path) -> None:
    (tmp_path / "pools.yaml").write_text(TEXT)
    (tmp_path / "gadgets.json").write_bytes(msgspec.json.encode(definition_of(Gadget)))
    (tmp_path / "README.md").write_text("not: a definition")
    async with only(crds=tmp_path) as cluster:
        assert cluster.time == 0
        assert (await cluster.client.list(GADGETS)).items == []
        assert await names(cluster) == ["gadgets.example.com", "pools.example.com"]


@virtual_time
async def test_files_classes_and_manifests_can_be_given_together(tmp_path: Path) -> None:
    (tmp_path / "pools.yaml").write_text(TEXT)
    other = yaml.safe_load(TEXT.replace("pool", "cup").replace("Pool", "Cup").split("---")[1])
    async with only(crds=[str(tmp_path / "pools.yaml"), Gadget, other]) as cluster:
        assert await names(cluster) == ["cups.example.com", "gadgets.example.com", "pools.example.com"]


@virtual_time
async def test_controllers_of_custom_resources_find_them_served() -> None:
    async with Cluster(nodes=1, crds=Gadget) as cluster:
        assert not cluster.controllers.complaint


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("size: {type: integer}", "size: {type: intger}", '22: SCHEMA[size].type: Unsupported value: "intger"'),
        ("items: {type: string}", "items: {}", "25: SCHEMA[parts].items.type: Required value"),
        ("                items: {type: string}\n", "", "23: SCHEMA[parts].items: Required value"),
        ("scope: Namespaced", "scope: Namespace", '9: spec.scope: Unsupported value: "Namespace"'),
        ("scope: Namespaced", "scoop: Namespaced", '9: CustomResourceDefinition in version "v1" cannot'),
        ("name: pools.", "name: pool.", '6: metadata.name: Invalid value: "pool.example.com": must be'),
        ("k8s.io/v1", "k8s.io/v1beta1", "3: unsupported apiVersion 'apiextensions.k8s.io/v1beta1'; use"),
        ("served: true", "served: [", "15: invalid YAML: "),
        ("served: true", "served: maybe", '13: CustomResourceDefinition in version "v1" cannot'),
    ],
)  # fmt: skip
@virtual_time
async def test_mistake_in_a_file_is_reported_with_its_line(
    tmp_path: Path, old: str, new: str, expected: str
) -> None:
    file = tmp_path / "pools.yaml"
    file.write_text(TEXT.replace(old, new, 1))
    expected = expected.replace("SCHEMA", "spec.validation.openAPIV3Schema.properties[spec].properties")
    assert (await refusal(file)).startswith(f"{file}:{expected}")


@virtual_time
async def test_names_that_are_taken_are_refused(tmp_path: Path) -> None:
    for name, text in (
        ("a", TEXT),
        ("b", TEXT.replace("plural: pools", "plural: pond").replace("name: pools", "name: pond")),
    ):
        (tmp_path / f"{name}.yaml").write_text(text)
    assert await refusal(tmp_path) == f'{tmp_path}/b.yaml:10: "PoolList" is already in use'
    (tmp_path / "b.yaml").write_text(TEXT)
    expected = f'{tmp_path}/b.yaml:3: customresourcedefinitions.apiextensions.k8s.io "pools.example.com" already exists'
    assert await refusal(tmp_path) == expected


@virtual_time
async def test_path_without_definitions_is_refused(tmp_path: Path) -> None:
    assert await refusal(str(tmp_path / "crd")) == f"{tmp_path}/crd: No such file or directory"
    assert (await refusal(tmp_path)).startswith(f"{tmp_path}: contains no CustomResourceDefinition")
    (tmp_path / "a.yaml").write_text("kind: Kustomization")
    assert (await refusal(tmp_path)).startswith(f"{tmp_path}: contains no CustomResourceDefinition")


@virtual_time
async def test_mistake_in_a_class_or_a_manifest_names_it() -> None:
    assert await refusal(Metadata) == "Metadata is not a custom resource: decorate it with @CustomResource(…)"
    manifest = definition_of(Gadget)
    manifest["spec"]["scope"] = "Galaxy"
    assert (await refusal(manifest)).startswith(
        "definition 'gadgets.example.com': spec.scope: Unsupported value"
    )
