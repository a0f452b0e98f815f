"""CustomResourceDefinitions of classes: names, versions, columns and paths; manifests of instances."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from podlife.api.crd import (
    CustomResource,
    definition_of,
    definitions_of,
    manifest_of,
    resource_of,
    rule,
)
from podlife.api.views import Metadata
from podlife.client import Ref
from podlife.errors import ConfigError
from tests.kit.gadget import Gadget, GadgetSpec


class Spec(msgspec.Struct):
    size: int = 1
    names: list[str] = []


@CustomResource("example.com", "v1", "pools", scope="Cluster", columns={"Names": ".spec.names"})
class Pool(msgspec.Struct):
    metadata: Metadata
    spec: Spec = msgspec.field(default_factory=Spec)


@CustomResource("example.com", "v1beta1", "pools", kind="Pool")
class OldPool(msgspec.Struct):
    metadata: Metadata
    size: int = 1


def pool(**settings: Any) -> type:
    cls = msgspec.defstruct("Pool", [("metadata", Metadata), ("spec", Spec)])
    return CustomResource("example.com", "v1", "pools", **settings)(cls)


def test_names_follow_from_the_class_and_its_resource() -> None:
    definition = definition_of(Pool)
    assert definition["metadata"] == {"name": "pools.example.com"}
    spec = definition["spec"]
    assert spec["names"] == {"kind": "Pool", "listKind": "PoolList", "plural": "pools", "singular": "pool"}
    assert (spec["group"], spec["scope"]) == ("example.com", "Cluster")
    (version,) = spec["versions"]
    assert "subresources" not in version
    assert version["additionalPrinterColumns"] == [
        {"name": "Names", "type": "string", "jsonPath": ".spec.names"}
    ]


def test_first_of_several_versions_is_stored() -> None:
    (definition,) = definitions_of([Pool, OldPool])
    versions = definition["spec"]["versions"]
    assert [(each["name"], each["storage"]) for each in versions] == [("v1", True), ("v1beta1", False)]
    assert len(definitions_of([Pool, Gadget])) == 2


def test_version_of_another_resource_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"Gadget in gadgets.example.com is not a version of Pool in pools"):
        definition_of(Pool, Gadget)


@pytest.mark.parametrize(
    "settings",
    [
        {"columns": {"Size": ".spec.sise"}},
        {"columns": {"Size": {"jsonPath": "spec.size"}}},
        {"selectable": (".spec.sise",)},
        {"scale": (".spec.sise", ".spec.size")},
    ],
)
def test_path_to_a_field_that_the_class_does_not_have_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"Pool: invalid path '\.?spec"):
        definition_of(pool(**settings))


def test_invalid_rule_of_the_whole_object_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"Pool: Invalid value: .*undefined field 'sise'"):
        definition_of(pool(rules=(rule("self.spec.sise > 1"),)))


def test_class_without_the_decorator_is_refused() -> None:
    with pytest.raises(ConfigError, match="Spec is not a custom resource: decorate it"):
        resource_of(Spec)


def test_class_is_a_reference_to_its_resource() -> None:
    assert Ref.of(Pool) == Ref("example.com", "v1", "pools", namespaced=False, kind="Pool")
    assert Ref.of(Gadget).path("default") == "/apis/example.com/v1/namespaces/default/gadgets"


def test_manifest_has_the_kind_and_no_empty_metadata() -> None:
    assert manifest_of(Pool(Metadata("a"), Spec(2))) == {
        "apiVersion": "example.com/v1",
        "kind": "Pool",
        "metadata": {"name": "a"},
        "spec": {"size": 2, "names": []},
    }
    spec = manifest_of(Gadget(Metadata("a", "default"), GadgetSpec("app", tags={"b", "a"})))["spec"]
    assert (spec["tags"], spec["mode"]) == (["a", "b"], "safe")
    assert not {"owner", "step"} & spec.keys()
